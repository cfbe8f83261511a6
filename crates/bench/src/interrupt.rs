//! Ctrl-C while measuring: the child that runs is killed, temporary directories are removed, and the
//! error says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use glovebox_engine::Cancel;
use glovebox_model::{Code, Error, Result, Stage};

/// Two views of the same signals: a sandbox that runs in this process takes the request out of
/// `cancel`, and the flag stays set.
#[derive(Debug)]
pub struct Interrupt {
    requested: Arc<AtomicBool>,
    cancel: Cancel,
}

impl Interrupt {
    /// The same signals set `requested` and write to `cancel`, whose other end stays open for as long
    /// as this value: a closed one would end every run. No thread may wait for the signals, since
    /// keepers are forked from this process all along.
    pub fn new(requested: Arc<AtomicBool>, cancel: Cancel) -> Self {
        Self { requested, cancel }
    }

    /// For a sandbox that runs in this process.
    pub(crate) fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.requested.load(Ordering::Relaxed) {
            return Err(Error::new(
                Code::Canceled,
                Stage::Run,
                "the measurement was canceled; nothing is left of it",
            ));
        }
        Ok(())
    }
}
