//! What must not be written down: secrets, wherever a record or a request to people has them.

use std::fmt::Debug;

use glovebox_model::{Result, SpaceId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::internal;
use crate::store::Store;

/// Knows the secrets of every space.
pub trait Mask: Send + Sync + Debug {
    /// Takes them out of every text in it; whether there were any.
    fn mask(&self, space: &SpaceId, value: &mut Value) -> bool;

    /// Whether there is anything to look for.
    fn knows(&self, space: &SpaceId) -> bool;
}

impl Store {
    /// From now on nothing is written that this mask knows. The first one stays.
    pub fn mask_with(&self, mask: impl Mask + 'static) {
        let _ = self.mask.set(Box::new(mask));
    }

    pub(crate) fn masked<T: Serialize + DeserializeOwned>(
        &self,
        space: &SpaceId,
        value: T,
    ) -> Result<T> {
        let Some(mask) = self.mask.get().filter(|it| it.knows(space)) else {
            return Ok(value);
        };
        let mut json = serde_json::to_value(&value)
            .map_err(|error| internal("a record cannot be written").caused_by(error))?;
        match mask.mask(space, &mut json) {
            false => Ok(value),
            true => serde_json::from_value(json)
                // The cause would show what surrounds the secret.
                .map_err(|_| internal("a record cannot be written without a secret in it")),
        }
    }
}
