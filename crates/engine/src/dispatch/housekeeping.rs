//! What is removed by age: snapshots, and the artifacts of execs. Now and then, beside everything else.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use glovebox_model::{ExecId, Result, SpaceId};

use super::{Dispatcher, locked};

/// Workspaces of one space that are looked at.
const PROJECTS: usize = 100_000;

impl Dispatcher {
    /// On a thread of its own, since it may take long; never twice at once.
    pub(super) fn keep_house(self: &Arc<Self>) {
        if self.housekeeping.swap(true, Ordering::SeqCst) {
            return;
        }
        let dispatcher = Arc::clone(self);
        let started = std::thread::Builder::new()
            .name("housekeeping".to_owned())
            .spawn(move || {
                dispatcher.remove_by_age();
                dispatcher.housekeeping.store(false, Ordering::SeqCst);
            });
        if started.is_err() {
            self.housekeeping.store(false, Ordering::SeqCst);
        }
    }

    /// One that fails keeps none of the others from being looked at.
    fn remove_by_age(&self) {
        if self.engine.instance.only_own() {
            return;
        }
        let Ok(mut spaces) = self.engine.instance.spaces() else {
            return;
        };
        spaces.push(SpaceId::local());
        for space in spaces {
            if self.is_closed() {
                return;
            }
            if let Err(error) = self.tidy(&space) {
                tracing::warn!(%space, %error, "what is too old could not be removed");
            }
        }
    }

    fn tidy(&self, space: &SpaceId) -> Result<()> {
        if self.engine.workspaces.limits_artifacts() {
            // Also those of other processes that have this state directory.
            let open = self.store()?.open_anywhere(space)?;
            let runs = |exec: &ExecId| open.contains(exec) || locked(&self.live).contains_key(exec);
            for project in self.layout(space)?.projects(PROJECTS)? {
                self.engine
                    .workspaces
                    .retain_artifacts(space, &project, &runs)?;
            }
        }
        if self.engine.workspaces.has_snapshots(space)? {
            self.engine.workspaces.collect_snapshots(space)?;
        }
        Ok(())
    }
}
