//! Ctrl-C while measuring: the child under way is killed, temporary directories go, and the command
//! says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use glovebox_engine::Cancel;
use glovebox_model::{Code, Error, Result, Stage};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::interrupt::{self, Asker};

#[derive(Debug)]
pub(super) struct Interrupt {
    asked: Arc<AtomicBool>,
    cancel: Cancel,
    /// Without a writer the other end would look canceled.
    _asker: Asker,
}

impl Interrupt {
    /// Starts no thread: keepers are forked from this process all along.
    pub(super) fn listen() -> Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&asked)).map_err(|error| {
                Error::new(Code::Internal, Stage::Parse, "cannot listen for signals")
                    .caused_by(error)
            })?;
        }
        let (cancel, asker) = interrupt::listen()?;
        Ok(Self {
            asked,
            cancel,
            _asker: asker,
        })
    }

    /// For a sandbox that runs in this process.
    pub(super) fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.asked.load(Ordering::Relaxed) {
            return Err(Error::new(
                Code::Canceled,
                Stage::Run,
                "the measurement was canceled; nothing is left of it",
            ));
        }
        Ok(())
    }
}
