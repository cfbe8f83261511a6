//! Which snapshots stay.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use glovebox_model::{ProjectId, SnapshotId};

use crate::record::Snapshot;

/// What either rule keeps stays, and so does everything with a label. No rule keeps all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Keep {
    /// The newest of each project.
    pub last: Option<usize>,
    /// Whatever is younger.
    pub within: Option<Duration>,
}

impl Keep {
    /// Those that go. `newest_first` as they are listed.
    pub(crate) fn expired(
        self,
        newest_first: &[Snapshot],
        now: jiff::Timestamp,
    ) -> HashSet<SnapshotId> {
        if self.last.is_none() && self.within.is_none() {
            return HashSet::new();
        }
        let mut seen: HashMap<&ProjectId, usize> = HashMap::new();
        let mut expired = HashSet::new();
        for snapshot in newest_first {
            let place = seen.entry(&snapshot.project).or_default();
            *place += 1;
            let recent = self.last.is_some_and(|last| *place <= last);
            let age = now.duration_since(snapshot.taken_at);
            let young = self.within.is_some_and(|within| {
                // A snapshot from the future is young.
                Duration::try_from(age).map_or(true, |age| age <= within)
            });
            if !recent && !young && snapshot.label.is_none() {
                expired.insert(snapshot.id.clone());
            }
        }
        expired
    }
}
