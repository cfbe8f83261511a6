//! Where the attempts of the exec that is inside right now are written.

use std::sync::{Arc, Mutex, PoisonError};

use glovebox_capture::Secrets;
use glovebox_gateway::{Log, Seen};
use glovebox_model::Attempt;
use glovebox_workspace::NetworkLog;

use crate::effects::{Gathering, outward, request};

/// Between execs there is nobody to tell.
#[derive(Debug, Default)]
pub(super) struct Told(Mutex<Option<Inside>>);

/// The exec that is inside.
#[derive(Debug)]
struct Inside {
    log: NetworkLog,
    masks: Arc<Secrets>,
    gathering: Option<Watched>,
}

/// Where the effects of an exec are gathered, and who tells of them.
#[derive(Debug)]
pub(super) enum Watched {
    /// What was let through and refused.
    Real(Arc<Gathering>),
    /// What was answered instead.
    Simulated(Arc<Gathering>),
}

impl Told {
    pub(super) fn begin(&self, log: NetworkLog, masks: Arc<Secrets>, gathering: Option<Watched>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Inside {
            log,
            masks,
            gathering,
        });
    }

    pub(super) fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Log for Told {
    fn attempt(&self, attempt: &Attempt) {
        let mut inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(inside) = inside.as_mut() else {
            return;
        };
        // A full log keeps its beginning; the record counts all.
        match inside.masks.is_empty() {
            true => inside.log.add(attempt),
            false => inside.log.add(&masked(attempt, &inside.masks)),
        };
        if let Some(Watched::Real(gathering)) = &inside.gathering
            && let Some(observed) = outward(attempt)
        {
            gathering.add(observed);
        }
    }

    fn simulated(&self, seen: &Seen) {
        let inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let watched = inside.as_ref().and_then(|it| it.gathering.as_ref());
        if let Some(Watched::Simulated(gathering)) = watched {
            gathering.add(request(seen, gathering.masks()));
        }
    }

    fn untold(&self) {
        let inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let watched = inside.as_ref().and_then(|it| it.gathering.as_ref());
        if let Some(Watched::Simulated(gathering)) = watched {
            gathering.dropped(1);
        }
    }
}

/// A program puts a secret into a path or a name as easily as into its output.
fn masked(attempt: &Attempt, masks: &Secrets) -> Attempt {
    let clean = |text: &String| masks.redact_str(text).into_owned();
    Attempt {
        host: clean(&attempt.host),
        path: attempt.path.as_ref().map(clean),
        hint: attempt.hint.as_ref().map(clean),
        method: attempt.method.as_ref().map(clean),
        ..attempt.clone()
    }
}
