//! Who reads a whole ledger now. Each space has a few places of its own: a client that reads slowly
//! keeps out its own space alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use glovebox_model::{Code, SpaceId};

use crate::failure::{Answer, Failure};

/// Of one space at one time.
const MOST: usize = 4;

type Counts = HashMap<SpaceId, usize>;

#[derive(Debug, Clone, Default)]
pub(crate) struct Readers(Arc<Mutex<Counts>>);

/// A place; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Reader {
    readers: Readers,
    space: SpaceId,
}

impl Readers {
    pub(crate) fn enter(&self, space: &SpaceId) -> Answer<Reader> {
        let mut counts = self.counts();
        let count = counts.entry(space.clone()).or_default();
        if *count >= MOST {
            let message = format!("the ledger of this space is read {MOST} times already");
            return Err(Failure::new(Code::Busy, message)
                .hint("wait for an export or a verification to end")
                .after(1));
        }
        *count += 1;
        Ok(Reader {
            readers: self.clone(),
            space: space.clone(),
        })
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut counts = self.readers.counts();
        if let Some(count) = counts.get_mut(&self.space) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.space);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_space_has_its_own_places_and_gets_them_back() {
        let readers = Readers::default();
        let (one, other) = (SpaceId::local(), "other".parse().unwrap());
        let mut held: Vec<_> = (0..MOST).map(|_| readers.enter(&one).unwrap()).collect();
        assert_eq!(readers.enter(&one).unwrap_err().0.code, Code::Busy);
        readers.enter(&other).unwrap();
        held.pop();
        held.push(readers.enter(&one).unwrap());
        drop(held);
        assert!(readers.counts().is_empty(), "nothing is kept of a space");
    }
}
