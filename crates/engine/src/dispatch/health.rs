//! Whether a server can do its work right now, found out by doing a little of it.

use std::fs;

use glovebox_model::{Evidence, Result};

use super::Dispatcher;

#[derive(Debug)]
pub struct Health {
    /// A row could be written now.
    pub store: Result<()>,
    /// A file could be made in the state directory now.
    pub writable: bool,
    /// What the native backend enforces on this host.
    pub guarantees: Vec<Evidence>,
}

impl Dispatcher {
    pub fn health(&self) -> Health {
        Health {
            store: self.store().and_then(glovebox_store::Store::ping),
            writable: self.is_writable(),
            guarantees: glovebox_backend::probe(),
        }
    }

    fn is_writable(&self) -> bool {
        let path = self
            .state()
            .path()
            .join(format!(".writable-{}", self.owner()));
        let written = fs::write(&path, b"glovebox");
        let removed = fs::remove_file(&path);
        written.is_ok() && removed.is_ok()
    }
}
