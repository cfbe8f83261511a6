//! The secrets of all spaces, as the engine reaches them.

use std::sync::Arc;

use glovebox_model::Result;

use super::vault::{Secrets, Vault};
use crate::instance::Instance;

#[derive(Debug)]
pub(crate) struct SecretAccess {
    pub(crate) instance: Arc<Instance>,
    vault: Vault,
}

impl SecretAccess {
    pub(crate) fn new(instance: &Arc<Instance>, vault: Vault) -> Self {
        Self {
            instance: Arc::clone(instance),
            vault,
        }
    }

    pub(crate) fn open(&self) -> Result<Secrets<'_>> {
        Ok(Secrets::new(self.instance.store()?, &self.vault))
    }
}
