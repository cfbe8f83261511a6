//! What the kernel says about running processes: page faults and memory. Nobody is traced meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use support::wait_until;

/// What anything here may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Looked at so often, 5 ms apart: who tries again after a moment is not done.
const LOOKS: u32 = 5;

struct Facts {
    parent: u32,
    /// Of it and of those of its children that it has waited for.
    faults: u64,
}

fn facts(pid: u32) -> Option<Facts> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = after.split(' ').collect();
    let number = |place: usize| fields[place].parse::<u64>().expect("a number");
    Some(Facts {
        parent: fields[1].parse().expect("a parent"),
        // Small and large ones: which of them it is depends on what others read before.
        faults: (7..=10).map(number).sum(),
    })
}

/// This process and everything that descends from it, what is over and not waited for included.
fn below(root: u32) -> BTreeMap<u32, Facts> {
    let mut all: BTreeMap<u32, Facts> = fs::read_dir("/proc")
        .expect("list /proc")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, facts(pid)?)))
        .collect();
    let descends = |mut pid: u32| {
        while pid != root {
            match all.get(&pid) {
                Some(it) => pid = it.parent,
                None => return false,
            }
        }
        true
    };
    let inside: BTreeSet<u32> = all.keys().copied().filter(|pid| descends(*pid)).collect();
    all.retain(|pid, _| inside.contains(pid));
    all
}

/// Page faults of a process and of everything below it, as they were at some moment.
pub(crate) struct Faults(BTreeMap<u32, u64>);

impl Faults {
    pub(crate) fn now(root: u32) -> Self {
        let all = below(root).into_iter();
        Self(all.map(|(pid, it)| (pid, it.faults)).collect())
    }

    /// What those had since who are there now. Who is gone leaves nothing to count: sandboxes are not
    /// waited for in a way that hands it on.
    pub(crate) fn since(&self, before: &Self) -> u64 {
        let was = |pid: &u32| before.0.get(pid).copied().unwrap_or(0);
        self.0
            .iter()
            .map(|(pid, it)| it.saturating_sub(was(pid)))
            .sum()
    }
}

/// Waits until all threads of it and of everything below it wait for something: what an exec leaves to
/// be done afterwards is done. Who has no processor, or is stopped by who traces it, does not wait.
pub(crate) fn settle(root: u32) {
    let mut calm = 0;
    let is_settled = || {
        let all_wait = below(root).keys().all(|pid| waits(*pid));
        calm = if all_wait { calm + 1 } else { 0 };
        calm == LOOKS
    };
    assert!(wait_until(PATIENCE, is_settled), "there is no end to it");
}

fn waits(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    tasks.into_iter().flatten().flatten().all(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let after = stat.rsplit_once(") ").map(|(_, after)| after);
        after.is_some_and(|it| it.starts_with(['S', 'Z']))
    })
}

/// The most that it had in memory at any time since its start.
pub(crate) fn resident_kb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    number.and_then(|it| it.parse().ok()).expect("its memory")
}
