//! Shutting a server down: no new work, a while for what runs, then it is asked to stop, then killed.
//! What waits stays in the queue, for whoever opens next.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use glovebox_model::{Result, SpaceId};
use serde::Serialize;

use super::live::Stop;
use super::{Dispatcher, locked};
use crate::patience::Wait;
use glovebox_store::NOBODY;

/// How long a program that was asked to stop gets. Less than a backend waits by itself: who was
/// killed is counted as such, and not as one that stopped.
const GRACE: Duration = Duration::from_secs(4);
/// How long killing may take before we go without it; its keeper finishes the work.
const KILL: Duration = Duration::from_secs(10);

/// How the execs ended that were there when the server shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Drained {
    /// By themselves.
    pub ended: usize,
    /// After they were asked to.
    pub stopped: usize,
    pub killed: usize,
    /// Still there: the next start finds them lost.
    pub left: usize,
    /// Never started; they go on waiting.
    pub queued: usize,
}

impl Dispatcher {
    /// Takes no new work from here on. Until `hurry` says so, what runs has `patience` to end.
    pub fn drain(&self, patience: Duration, hurry: &dyn Fn() -> bool) -> Result<Drained> {
        let drained = self.wind_down(patience, hurry);
        self.leave(drained)
    }

    /// The same for the process of one session under a name that nobody has again: what was kept
    /// for it would stay for nobody.
    pub fn drain_session(&self, session: &str, patience: Duration) -> Result<Drained> {
        self.sessions.end_all(self.state().path());
        let drained = self.wind_down(patience, &|| false);
        if let Err(error) = self.engine.sandboxes.end_scope(&SpaceId::local(), session) {
            tracing::warn!(%error, "what was kept for the session cannot be looked for");
        }
        self.leave(drained)
    }

    fn wind_down(&self, patience: Duration, hurry: &dyn Fn() -> bool) -> Drained {
        self.draining.store(true, Ordering::SeqCst);
        let waiting = locked(&self.admission).shut();
        let queued = waiting.len() + self.leave_awaiting();
        for waiting in waiting {
            waiting.live.end();
            self.drop_live(&waiting.live);
        }
        // One whose end was told already is not among them, though its sandbox may be taken apart.
        let all = locked(&self.live).len();
        let ended = all.saturating_sub(self.wait_until(patience, hurry));
        for live in locked(&self.live).values() {
            live.stop(Stop::Shutdown);
        }
        let asked = self.running();
        let stopped = asked.saturating_sub(self.wait_until(Wait::Grace.within(GRACE), hurry));
        for live in locked(&self.live).values() {
            live.cancel();
        }
        let left_to_kill = self.running();
        let left = self.wait_until(KILL, &|| false);
        Drained {
            ended,
            stopped,
            killed: left_to_kill.saturating_sub(left),
            left,
            queued,
        }
    }

    fn leave(&self, drained: Drained) -> Result<Drained> {
        self.maintenance.go();
        if let Some(pool) = self.pool.get() {
            pool.close();
        }
        self.engine.registry.leave();
        self.sign_off(&drained)?;
        Ok(drained)
    }

    fn sign_off(&self, drained: &Drained) -> Result<()> {
        let store = self.store()?;
        store.adopt_queued(self.owner(), NOBODY)?;
        store.adopt_awaiting(self.owner(), NOBODY)?;
        let details = serde_json::to_value(drained).unwrap_or_default();
        if !self.purpose.is_session() {
            store.note(&SpaceId::local(), "server_stopped", None, details)?;
        }
        store.retire(self.owner())?;
        if drained.left == 0 {
            self.engine.instance.owner().resign();
        }
        Ok(())
    }

    /// Those that have not ended, and those whose sandbox is still being taken apart.
    fn running(&self) -> usize {
        let places =
            usize::try_from(locked(&self.admission).counts().running).unwrap_or(usize::MAX);
        locked(&self.live).len().max(places)
    }

    /// How many are left when time is over, or when somebody is in a hurry.
    fn wait_until(&self, patience: Duration, hurry: &dyn Fn() -> bool) -> usize {
        const LOOK: Duration = Duration::from_millis(50);
        let deadline = Instant::now() + patience;
        loop {
            let running = self.running();
            if running == 0 || Instant::now() >= deadline || hurry() {
                return running;
            }
            let _told = self.gone.wait_timeout(locked(&self.live), LOOK);
        }
    }
}
