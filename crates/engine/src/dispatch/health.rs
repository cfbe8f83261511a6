//! Whether a server can do its work right now, found out by doing a little of it.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use glovebox_model::{Evidence, Result};

use super::Dispatcher;

#[derive(Debug)]
pub struct Health {
    /// A row could be written now.
    pub store: Result<()>,
    /// A file could be made in the state directory now.
    pub writable: bool,
    /// Sandboxes can be started: the process that does is there.
    pub startable: bool,
    /// What the native backend enforces on this host.
    pub guarantees: Vec<Evidence>,
}

impl Dispatcher {
    pub fn health(&self) -> Health {
        Health {
            store: self.store().and_then(glovebox_store::Store::ping),
            writable: self.is_writable(),
            startable: self.can_start(),
            guarantees: glovebox_backend::probe(),
        }
    }

    /// Without the process that starts sandboxes nothing can be run until the server is started
    /// anew.
    pub fn can_start(&self) -> bool {
        self.spawner.as_ref().is_some_and(|it| it.is_alive())
    }

    fn is_writable(&self) -> bool {
        static LOOKS: AtomicU64 = AtomicU64::new(0);
        let look = LOOKS.fetch_add(1, Ordering::Relaxed);
        let path = self
            .state()
            .path()
            .join(format!(".writable-{}-{look}", self.owner()));
        let written = fs::write(&path, b"glovebox");
        let removed = fs::remove_file(&path);
        written.is_ok() && removed.is_ok()
    }
}
