//! Who does something long now, such as reading a whole ledger. Each space has a few places of its
//! own: a client that reads slowly keeps out its own space alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use glovebox_model::{Code, SpaceId};

use crate::failure::{Answer, Failure};

type Counts = HashMap<SpaceId, usize>;

#[derive(Debug, Clone)]
pub(crate) struct Places(Arc<Kind>);

#[derive(Debug)]
struct Kind {
    /// Of one space at one time.
    most: usize,
    taken: &'static str,
    hint: &'static str,
    counts: Mutex<Counts>,
}

/// Given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    space: SpaceId,
}

impl Places {
    /// `taken` and `hint` are said to whoever finds none.
    pub(crate) fn new(most: usize, taken: &'static str, hint: &'static str) -> Self {
        Self(Arc::new(Kind {
            most,
            taken,
            hint,
            counts: Mutex::default(),
        }))
    }

    pub(crate) fn enter(&self, space: &SpaceId) -> Answer<Place> {
        let mut counts = self.counts();
        let count = counts.entry(space.clone()).or_default();
        let most = self.0.most;
        if *count >= most {
            let message = format!("{} {most} times already", self.0.taken);
            return Err(Failure::new(Code::Busy, message).hint(self.0.hint).after(1));
        }
        *count += 1;
        Ok(Place {
            places: self.clone(),
            space: space.clone(),
        })
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.places.counts();
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
        let places = Places::new(4, "it is read", "wait");
        let (one, other) = (SpaceId::local(), "other".parse().unwrap());
        let mut held: Vec<_> = (0..4).map(|_| places.enter(&one).unwrap()).collect();
        assert_eq!(places.enter(&one).unwrap_err().0.code, Code::Busy);
        places.enter(&other).unwrap();
        held.pop();
        held.push(places.enter(&one).unwrap());
        drop(held);
        assert!(places.counts().is_empty(), "nothing is kept of a space");
    }
}
