//! Memory for bodies, shared by all requests: many large ones at once cannot take more than this.

use std::sync::Arc;

use glovebox_model::Code;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::failure::{Answer, Failure};

const UNIT: usize = 64 << 10;
const UNITS: usize = (256 << 20) / UNIT;

#[derive(Debug, Clone)]
pub(crate) struct Room(Arc<Semaphore>);

/// Part of the room; given back when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    permit: Option<OwnedSemaphorePermit>,
    units: usize,
}

impl Room {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(UNITS)))
    }

    /// Makes sure that `taken` is enough for so many bytes.
    pub(super) fn grow(&self, taken: &mut Taken, bytes: usize) -> Answer<()> {
        let units = bytes.div_ceil(UNIT);
        let more = u32::try_from(units.saturating_sub(taken.units)).unwrap_or(u32::MAX);
        if more == 0 {
            return Ok(());
        }
        let Ok(permit) = Arc::clone(&self.0).try_acquire_many_owned(more) else {
            return Err(Failure::new(Code::Busy, "too many large requests at once").after(1));
        };
        taken.units = units;
        match &mut taken.permit {
            Some(held) => held.merge(permit),
            None => taken.permit = Some(permit),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_given_back() {
        let room = Room::new();
        let mut all = Taken::default();
        room.grow(&mut all, UNIT * UNITS).unwrap();
        let mut more = Taken::default();
        assert!(room.grow(&mut more, 1).is_err());
        drop(all);
        room.grow(&mut more, 1).unwrap();
        room.grow(&mut more, UNIT).unwrap();
        assert_eq!(more.units, 1);
    }
}
