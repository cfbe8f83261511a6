//! Ctrl-C in work that cannot be asked to stop and is sound wherever it is cut off: it is, and what is
//! left then is said.

use std::sync::{Arc, Mutex, PoisonError};

use glovebox_model::{Error, Result};
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::low_level;

use crate::interrupt::{self, Asker};
use crate::render;
use crate::stop::CANCELED;

/// For as long as it lives.
#[derive(Debug)]
pub(crate) struct CutOff {
    /// Held by whoever has the last word: the work, or whoever cuts it off.
    under_way: Arc<Mutex<bool>>,
    _asker: Asker,
}

impl CutOff {
    pub(crate) fn listen(json: bool, left: Error) -> Result<Self> {
        let (presses, asker) = interrupt::presses()?;
        let under_way = Arc::new(Mutex::new(true));
        let work = Arc::clone(&under_way);
        std::thread::spawn(move || {
            let mut sources = [PollFd::new(&presses, PollFlags::IN)];
            while !matches!(poll(&mut sources, None), Ok(1..)) {}
            // Never given back: from here on nobody ends in any other way.
            let under_way = work.lock().unwrap_or_else(PoisonError::into_inner);
            if *under_way {
                render::error(&left, json);
            }
            low_level::exit(CANCELED);
        });
        Ok(Self {
            under_way,
            _asker: asker,
        })
    }
}

impl Drop for CutOff {
    fn drop(&mut self) {
        let mut under_way = self.under_way.lock();
        *under_way.as_deref_mut().unwrap_or(&mut false) = false;
    }
}
