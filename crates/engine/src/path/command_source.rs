//! Where a process that runs one exec has its sandbox from.

use glovebox_backend::Cancel;
use glovebox_model::{Code, Error, Result, Stage};

use crate::engine::KeeperSlot;
use crate::path::SandboxSource;
use crate::pool::{Shape, Warm};

/// A process that runs one exec has one keeper, forked when it had no threads.
pub(crate) struct CommandSource<'io> {
    pub(crate) seat: Option<KeeperSlot>,
    pub(crate) cancel: &'io Cancel,
}

impl SandboxSource for CommandSource<'_> {
    fn seat(&mut self) -> Result<KeeperSlot> {
        self.seat
            .take()
            .ok_or_else(|| Error::new(Code::Internal, Stage::Admit, "there is no second keeper"))
    }

    fn keeps_warm(&self) -> bool {
        false
    }

    fn warm(&mut self, _: &[Shape]) -> Option<Box<dyn Warm>> {
        None
    }

    fn is_wanted(&self) -> bool {
        !self.cancel.is_asked()
    }
}
