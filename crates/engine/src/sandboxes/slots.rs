//! Who is in which kept sandbox of this process. One exec at a time; the next waits, with a
//! deadline. What is taken out comes back however its holder ends.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use glovebox_backend::Kept;
use glovebox_model::{
    BackendName, Code, Error, ExecId, Result, Sandbox, SandboxId, SandboxState, Stage,
};
use jiff::Timestamp;

use crate::network::Way;

/// How often whoever waits looks whether it is still wanted.
const GLANCE: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
pub(crate) struct Slots {
    all: Mutex<HashMap<SandboxId, Slot>>,
    freed: Condvar,
}

#[derive(Debug)]
struct Slot {
    row: Sandbox,
    holding: Holding,
    /// When the row in the store last said how it was used, and whether it was used since.
    written: Instant,
    is_changed: bool,
}

#[derive(Debug)]
enum Holding {
    /// Nothing stands.
    Down,
    Idle(Box<dyn Kept>, Option<Arc<Way>>),
    Taken {
        by: Option<ExecId>,
        /// Once what it is taken for runs.
        is_busy: bool,
    },
    /// Somebody is finding out whether it still stands; to everybody else it does.
    LookedAt,
}

/// A kept sandbox that is one holder's for now. `kept` is what stands, if anything does.
#[derive(Debug)]
pub(crate) struct Turn {
    slots: Arc<Slots>,
    pub(crate) id: SandboxId,
    pub(crate) kept: Option<Box<dyn Kept>>,
    /// The way out of what stands.
    pub(crate) way: Option<Arc<Way>>,
}

impl Slots {
    fn locked(&self) -> MutexGuard<'_, HashMap<SandboxId, Slot>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a sandbox that is this process's own.
    pub(crate) fn adopt(&self, row: Sandbox) {
        let slot = |row| Slot {
            row,
            holding: Holding::Down,
            written: Instant::now(),
            is_changed: false,
        };
        let mut all = self.locked();
        all.entry(row.sandbox_id.clone())
            .or_insert_with(|| slot(row));
    }

    pub(crate) fn row(&self, id: &SandboxId) -> Option<Sandbox> {
        self.locked().get(id).map(Slot::shown)
    }

    pub(crate) fn named(&self, name: &str) -> Option<Sandbox> {
        let all = self.locked();
        let mut slots = all.values();
        slots.find(|slot| slot.row.name == name).map(Slot::shown)
    }

    pub(crate) fn rows(&self) -> Vec<Sandbox> {
        self.locked().values().map(Slot::shown).collect()
    }

    /// Waits for its turn. `is_wanted` is asked now and then.
    pub(crate) fn take(
        self: &Arc<Self>,
        id: &SandboxId,
        by: Option<&ExecId>,
        patience: Duration,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Turn> {
        let deadline = Instant::now() + patience;
        let mut all = self.locked();
        loop {
            let Some(slot) = all.get_mut(id) else {
                return Err(gone(id));
            };
            let taken = Holding::Taken {
                by: by.cloned(),
                is_busy: false,
            };
            match std::mem::replace(&mut slot.holding, taken) {
                Holding::Down => return Ok(self.turn(id, None, None)),
                Holding::Idle(kept, way) => return Ok(self.turn(id, Some(kept), way)),
                still @ (Holding::Taken { .. } | Holding::LookedAt) => slot.holding = still,
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(busy(&slot.row, patience));
            }
            if !is_wanted() {
                let message = "it was canceled while it waited for its sandbox";
                return Err(Error::new(Code::Canceled, Stage::Admit, message));
            }
            all = match self.freed.wait_timeout(all, left.min(GLANCE)) {
                Ok((all, _)) => all,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    /// Looks at those of a backend that stand and are nobody's now. One that was ended from outside
    /// is down from then on.
    pub(crate) fn look_over(self: &Arc<Self>, backend: BackendName) {
        let is_meant = |slot: &Slot| {
            slot.row.config.backend == backend && matches!(slot.holding, Holding::Idle(..))
        };
        let meant: Vec<_> = {
            let all = self.locked();
            let meant = all.iter().filter(|(_, slot)| is_meant(slot));
            meant.map(|(id, _)| id.clone()).collect()
        };
        for id in meant {
            let Some(mut turn) = self.look_at(&id) else {
                continue;
            };
            // Outside the lock: it may have to ask the engine of containers.
            if !turn.kept.as_mut().is_some_and(|kept| kept.is_alive()) {
                turn.change(|row| row.trouble = Some("it was ended from outside".to_owned()));
                turn.kept = None;
            }
        }
    }

    fn look_at(self: &Arc<Self>, id: &SandboxId) -> Option<Turn> {
        let mut all = self.locked();
        let slot = all.get_mut(id)?;
        match std::mem::replace(&mut slot.holding, Holding::LookedAt) {
            Holding::Idle(kept, way) => Some(self.turn(id, Some(kept), way)),
            other => {
                slot.holding = other;
                None
            }
        }
    }

    fn turn(
        self: &Arc<Self>,
        id: &SandboxId,
        kept: Option<Box<dyn Kept>>,
        way: Option<Arc<Way>>,
    ) -> Turn {
        Turn {
            slots: Arc::clone(self),
            id: id.clone(),
            kept,
            way,
        }
    }

    /// Rows whose use the store does not know yet.
    pub(crate) fn unwritten(&self, since: Duration) -> Vec<Sandbox> {
        let mut all = self.locked();
        let mut rows = Vec::new();
        for slot in all.values_mut() {
            if slot.is_changed && slot.written.elapsed() >= since {
                slot.written = Instant::now();
                slot.is_changed = false;
                rows.push(slot.row.clone());
            }
        }
        rows
    }

    /// Everything that stands and is nobody's now is given out, to be closed.
    pub(crate) fn empty(&self) -> Vec<Box<dyn Kept>> {
        let mut all = self.locked();
        let mut kept = Vec::new();
        for slot in all.values_mut() {
            match std::mem::replace(&mut slot.holding, Holding::Down) {
                Holding::Idle(it, _) => kept.push(it),
                Holding::Down => {}
                taken @ (Holding::Taken { .. } | Holding::LookedAt) => slot.holding = taken,
            }
        }
        kept
    }
}

impl Slot {
    /// The row with what only this process knows.
    fn shown(&self) -> Sandbox {
        let mut row = self.row.clone();
        (row.state, row.exec_id) = match &self.holding {
            Holding::Down => (SandboxState::Down, None),
            Holding::Idle(..) | Holding::LookedAt => (SandboxState::Idle, None),
            Holding::Taken { by, is_busy: true } => (SandboxState::Busy, by.clone()),
            Holding::Taken { by, is_busy: false } => (SandboxState::Acquiring, by.clone()),
        };
        row
    }
}

impl Turn {
    pub(crate) fn row(&self) -> Option<Sandbox> {
        self.slots.row(&self.id)
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Sandbox)) {
        if let Some(slot) = self.slots.locked().get_mut(&self.id) {
            change(&mut slot.row);
            slot.is_changed = true;
        }
    }

    /// What it was taken for begins.
    pub(crate) fn begin(&self) {
        if let Some(slot) = self.slots.locked().get_mut(&self.id) {
            slot.row.uses += 1;
            slot.is_changed = true;
            slot.row.last_used_at = Timestamp::now();
            if let Holding::Taken { is_busy, .. } = &mut slot.holding {
                *is_busy = true;
            }
        }
    }

    /// The sandbox is no more: whoever waits for it hears so.
    pub(crate) fn forget(mut self) -> Option<Box<dyn Kept>> {
        self.slots.locked().remove(&self.id);
        self.kept.take()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let kept = self.kept.take();
        let mut all = self.slots.locked();
        // None: it was removed meanwhile, and what stands goes with this value.
        if let Some(slot) = all.get_mut(&self.id) {
            if let Holding::Taken { is_busy: true, .. } = slot.holding {
                slot.row.last_used_at = Timestamp::now();
                slot.is_changed = true;
            }
            slot.holding = match kept {
                Some(kept) => Holding::Idle(kept, self.way.take()),
                None => Holding::Down,
            };
        }
        drop(all);
        self.slots.freed.notify_all();
    }
}

fn gone(id: &SandboxId) -> Error {
    Error::new(
        Code::NotFound,
        Stage::Admit,
        format!("the sandbox `{id}` was removed"),
    )
    .hint("`glovebox sandbox ls` lists those that are there")
}

fn busy(row: &Sandbox, patience: Duration) -> Error {
    let (name, waited) = (&row.name, patience.as_millis());
    Error::new(
        Code::Busy,
        Stage::Admit,
        format!("the sandbox `{name}` was in use for {waited} ms"),
    )
    .hint("a kept sandbox takes one exec at a time; try again, or use one of its own per session")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use glovebox_backend::{Ended, ExecDirs, Run, TeardownGuard};
    use glovebox_model::Isolation;

    use super::*;
    use crate::sandboxes::sample::sandbox;

    #[derive(Debug)]
    struct Paper(Isolation, Arc<AtomicBool>);

    impl Kept for Paper {
        fn isolation(&self) -> &Isolation {
            &self.0
        }
        fn is_alive(&mut self) -> bool {
            !self.1.load(Ordering::Relaxed)
        }
        fn run(&mut self, _: ExecDirs<'_>, _: Run<'_>) -> Result<Ended> {
            Err(gone(&sandbox().sandbox_id))
        }
        fn close(self: Box<Self>) -> TeardownGuard {
            TeardownGuard::nothing()
        }
    }

    const LONG: Duration = Duration::from_secs(60);

    fn slots() -> (Arc<Slots>, SandboxId) {
        let slots = Arc::new(Slots::default());
        let row = sandbox();
        let id = row.sandbox_id.clone();
        slots.adopt(row);
        (slots, id)
    }

    fn state(slots: &Slots, id: &SandboxId) -> SandboxState {
        slots.row(id).unwrap().state
    }

    #[test]
    fn a_turn_goes_through_its_states_and_back() {
        let (slots, id) = slots();
        assert_eq!(state(&slots, &id), SandboxState::Down);
        let mut turn = slots.take(&id, None, LONG, &|| true).unwrap();
        assert_eq!(state(&slots, &id), SandboxState::Acquiring);
        turn.kept = Some(Box::new(Paper(Isolation::default(), Arc::default())));
        turn.begin();
        assert_eq!(state(&slots, &id), SandboxState::Busy);
        drop(turn);
        assert_eq!(state(&slots, &id), SandboxState::Idle);
        assert_eq!(slots.row(&id).unwrap().uses, 1);
        assert_eq!(slots.empty().len(), 1);
        assert_eq!(state(&slots, &id), SandboxState::Down);
    }

    #[test]
    fn one_that_was_ended_from_outside_is_found_down() {
        let (slots, id) = slots();
        let ended = Arc::new(AtomicBool::new(false));
        let mut turn = slots.take(&id, None, LONG, &|| true).unwrap();
        turn.kept = Some(Box::new(Paper(Isolation::default(), Arc::clone(&ended))));
        ended.store(true, Ordering::Relaxed);
        let backend = slots.row(&id).unwrap().config.backend;
        slots.look_over(backend);
        assert_eq!(
            state(&slots, &id),
            SandboxState::Acquiring,
            "it was somebody's"
        );
        ended.store(false, Ordering::Relaxed);
        drop(turn);
        slots.look_over(backend);
        assert_eq!(state(&slots, &id), SandboxState::Idle);
        ended.store(true, Ordering::Relaxed);
        slots.look_over(backend);
        assert_eq!(state(&slots, &id), SandboxState::Down);
        assert!(slots.row(&id).unwrap().trouble.is_some());
    }

    #[test]
    fn whoever_breaks_off_leaves_nothing_that_acquires_for_ever() {
        let (slots, id) = slots();
        let taken = slots.take(&id, None, LONG, &|| true).unwrap();
        let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let _turn = taken;
            panic!("as the test wants");
        }));
        assert!(broken.is_err());
        assert_eq!(state(&slots, &id), SandboxState::Down);
    }

    #[test]
    fn whoever_waits_too_long_or_is_not_wanted_goes_away() {
        let (slots, id) = slots();
        let turn = slots.take(&id, None, LONG, &|| true).unwrap();
        let late = slots.take(&id, None, Duration::ZERO, &|| true).unwrap_err();
        assert_eq!(late.code, Code::Busy);
        let canceled = slots.take(&id, None, LONG, &|| false).unwrap_err();
        assert_eq!(canceled.code, Code::Canceled);
        assert_eq!(state(&slots, &id), SandboxState::Acquiring);
        drop(turn.forget());
        assert_eq!(
            slots.take(&id, None, LONG, &|| true).unwrap_err().code,
            Code::NotFound
        );
    }

    #[test]
    fn one_at_a_time() {
        let (slots, id) = slots();
        let inside = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let turn = slots.take(&id, None, LONG, &|| true).unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        turn.begin();
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(slots.row(&id).unwrap().uses, 400);
    }
}
