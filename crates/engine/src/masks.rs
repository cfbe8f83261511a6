//! What is looked for in everything that leaves a space: its secrets, ready to be found.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use glovebox_capture::Secrets;
use glovebox_model::{Result, SpaceId};
use glovebox_store::Mask;
use serde_json::Value;

use crate::dispatch::Dispatcher;
use crate::engine::Engine;
use crate::secrets::Masks;

/// The last that was known of each space.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known(Arc<Mutex<HashMap<SpaceId, Compiled>>>);

/// Values, and the same ready to be looked for.
type Compiled = (Arc<Masks>, Arc<Secrets>);

impl Known {
    fn get(&self, space: &SpaceId) -> Option<Arc<Secrets>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(space).map(|(_, secrets)| Arc::clone(secrets))
    }

    fn ready(&self, space: &SpaceId, masks: Arc<Masks>) -> Result<Arc<Secrets>> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, secrets)) = lock().get(space)
            && Arc::ptr_eq(of, &masks)
        {
            return Ok(Arc::clone(secrets));
        }
        let values = masks
            .iter()
            .map(|(name, value)| (name.clone(), value.to_vec()));
        let secrets = Arc::new(Secrets::compile(values)?);
        lock().insert(space.clone(), (masks, Arc::clone(&secrets)));
        Ok(secrets)
    }

    /// Of every space that anybody asked for.
    fn all(&self) -> Vec<Arc<Secrets>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = all.values().map(|(_, secrets)| Arc::clone(secrets));
        all.filter(|secrets| !secrets.is_empty()).collect()
    }
}

impl Dispatcher {
    /// As the engine's.
    pub fn masks(&self, space: &SpaceId) -> Result<Arc<Secrets>> {
        self.engine().masks(space)
    }

    /// What was last known, without asking the store.
    pub fn known_masks(&self, space: &SpaceId) -> Option<Arc<Secrets>> {
        self.engine().known_secrets().get(space)
    }

    pub fn log_mask(&self) -> LogMask {
        LogMask(self.engine().known_secrets().clone())
    }
}

/// Takes out of the log what is secret in any space.
#[derive(Debug, Clone)]
pub struct LogMask(Known);

impl LogMask {
    pub fn clean<'l>(&self, line: &'l [u8]) -> Cow<'l, [u8]> {
        let mut clean = Cow::Borrowed(line);
        for secrets in self.0.all() {
            if let Cow::Owned(masked) = secrets.redact(&clean) {
                clean = Cow::Owned(masked);
            }
        }
        clean
    }
}

impl Engine {
    /// Everything secret of a space, as it is now.
    pub(crate) fn masks(&self, space: &SpaceId) -> Result<Arc<Secrets>> {
        let masks = self.secrets()?.masks(space)?;
        self.known_secrets().ready(space, masks)
    }

    /// Takes out what is secret of something that is about to be shown. Whether anything was.
    pub fn hide(&self, space: &SpaceId, shown: &mut Value) -> Result<bool> {
        Ok(self.masks(space)?.redact_json(shown))
    }
}

/// What is written down holds no secret that was known when its exec began.
impl Mask for Known {
    fn mask(&self, space: &SpaceId, value: &mut Value) -> bool {
        self.get(space)
            .is_some_and(|secrets| secrets.redact_json(value))
    }

    fn knows(&self, space: &SpaceId) -> bool {
        self.get(space).is_some_and(|it| !it.is_empty())
    }
}
