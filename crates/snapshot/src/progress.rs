//! How far something has come, and whether it is still wanted.

use std::ops::ControlFlow;

use glovebox_model::{Code, Error, Result};
use serde::Serialize;

use crate::fault::STAGE;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Progress {
    /// Names looked at.
    pub entries: u64,
    /// Bytes of files that were read or written.
    pub bytes: u64,
}

/// Is told of progress, often; to break off is to cancel.
pub trait Watch {
    fn on(&mut self, progress: Progress) -> ControlFlow<()>;
}

/// Lets it run.
impl Watch for () {
    fn on(&mut self, _: Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(Progress) -> ControlFlow<()>> Watch for F {
    fn on(&mut self, progress: Progress) -> ControlFlow<()> {
        self(progress)
    }
}

pub(crate) fn tell(watch: &mut dyn Watch, progress: Progress) -> Result<()> {
    match watch.on(progress) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::new(Code::Canceled, STAGE, "canceled by the caller")),
    }
}
