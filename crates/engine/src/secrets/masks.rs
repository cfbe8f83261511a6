//! All values of a space, to be looked for in what its programs say.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use glovebox_model::{Result, SecretName, SpaceId};
use zeroize::Zeroizing;

/// Values by the names of their secrets, older ones included: what was rotated away is still secret
/// in the output of whoever got it before.
#[derive(Clone, Default)]
pub struct Masks(Vec<(SecretName, Zeroizing<Vec<u8>>)>);

impl fmt::Debug for Masks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|(name, _)| name);
        f.debug_tuple("Masks")
            .field(&names.collect::<Vec<_>>())
            .finish()
    }
}

impl Masks {
    pub(super) fn new(values: Vec<(SecretName, Zeroizing<Vec<u8>>)>) -> Self {
        Self(values)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&SecretName, &[u8])> {
        self.0.iter().map(|(name, value)| (name, value.as_slice()))
    }
}

/// What was read at which count of changes.
#[derive(Debug, Default)]
pub(super) struct Remembered(Mutex<HashMap<SpaceId, (u64, Arc<Masks>)>>);

impl Remembered {
    /// `stamp` was read before, so whatever changes meanwhile is noticed the next time.
    pub(super) fn get(
        &self,
        space: &SpaceId,
        stamp: u64,
        read: impl FnOnce() -> Result<Masks>,
    ) -> Result<Arc<Masks>> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, masks)) = lock().get(space)
            && *at == stamp
        {
            return Ok(Arc::clone(masks));
        }
        let masks = Arc::new(read()?);
        lock().insert(space.clone(), (stamp, Arc::clone(&masks)));
        Ok(masks)
    }
}
