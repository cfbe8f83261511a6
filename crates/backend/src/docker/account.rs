//! What a container used, by its control groups, where the engine is on this host. A directory that
//! carries the container's whole id cannot be anybody else's.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

const ROOT: &str = "/sys/fs/cgroup";
/// Engines put containers a few levels down: a slice, a scope, an operator's parent.
const DEEPEST: usize = 4;

/// Where containers of this engine were found last.
#[derive(Debug, Default, Clone)]
pub(super) struct Parents(Arc<Mutex<Option<PathBuf>>>);

/// The groups of one container: one directory, or one for each kind.
#[derive(Debug, Clone)]
pub(super) struct Account {
    /// Below the hierarchy's root.
    path: PathBuf,
    unified: bool,
}

/// Since the container was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) cpu_us: u64,
    pub(super) max_memory: u64,
    pub(super) pids: u64,
    pub(super) max_pids: u64,
    pub(super) oom_kills: u64,
    pub(super) pids_refused: u64,
}

impl Sum {
    /// Nothing of it goes down but the number of processes: an engine removes the groups one after
    /// the other, and one that is gone must not take back what was read from it.
    pub(super) fn rise(&mut self, now: Self) {
        *self = Self {
            cpu_us: self.cpu_us.max(now.cpu_us),
            max_memory: self.max_memory.max(now.max_memory),
            pids: now.pids,
            max_pids: self.max_pids.max(now.max_pids),
            oom_kills: self.oom_kills.max(now.oom_kills),
            pids_refused: self.pids_refused.max(now.pids_refused),
        };
    }
}

impl Parents {
    /// None while it does not run, and always when the engine is elsewhere.
    pub(super) fn find(&self, id: &str) -> Option<Account> {
        self.look(id).filter(|account| account.sum().is_some())
    }

    fn look(&self, id: &str) -> Option<Account> {
        if id.len() < 32 {
            return None;
        }
        let unified = !Path::new(ROOT).join("pids").is_dir();
        let root = if unified {
            PathBuf::from(ROOT)
        } else {
            Path::new(ROOT).join("pids")
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let near = known.as_ref().and_then(|parent| child(parent, id));
        let found = near.or_else(|| search(&root, id, DEEPEST))?;
        *known = found.parent().map(Path::to_path_buf);
        let path = found.strip_prefix(&root).ok()?.to_path_buf();
        Some(Account { path, unified })
    }
}

fn child(parent: &Path, id: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(parent).ok()?;
    let named = entries.flatten().find(|entry| {
        let name = entry.file_name();
        name.to_str().is_some_and(|name| name.contains(id))
    })?;
    Some(named.path()).filter(|path| path.is_dir())
}

fn search(parent: &Path, id: &str, depth: usize) -> Option<PathBuf> {
    if let Some(found) = child(parent, id) {
        return Some(found);
    }
    if depth == 0 {
        return None;
    }
    let entries = std::fs::read_dir(parent).ok()?;
    entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .find_map(|entry| search(&entry.path(), id, depth - 1))
}

impl Account {
    /// None when the container has ended.
    pub(super) fn sum(&self) -> Option<Sum> {
        if self.unified { self.v2() } else { self.v1() }
    }

    /// Its processes, by their numbers here; those of gVisor stand for its programs.
    pub(super) fn processes(&self) -> Vec<i32> {
        let listed = std::fs::read_to_string(self.dir("pids").join("cgroup.procs"));
        let listed = listed.unwrap_or_default();
        listed.lines().filter_map(|pid| pid.parse().ok()).collect()
    }

    fn dir(&self, controller: &str) -> PathBuf {
        let root = Path::new(ROOT);
        if self.unified {
            root.join(&self.path)
        } else {
            root.join(controller).join(&self.path)
        }
    }

    fn v1(&self) -> Option<Sum> {
        // Found by this one, so it is there as long as anything of the container is.
        let pids = number(&self.dir("pids").join("pids.current"))?;
        Some(Sum {
            pids,
            cpu_us: number(&self.dir("cpuacct").join("cpuacct.usage")).unwrap_or(0) / 1000,
            max_memory: number(&self.dir("memory").join("memory.max_usage_in_bytes")).unwrap_or(0),
            max_pids: most_pids(&self.dir("pids"), pids),
            oom_kills: field(&self.dir("memory").join("memory.oom_control"), "oom_kill"),
            pids_refused: field(&self.dir("pids").join("pids.events"), "max"),
        })
    }

    fn v2(&self) -> Option<Sum> {
        let dir = self.dir("");
        let pids = number(&dir.join("pids.current"))?;
        Some(Sum {
            cpu_us: field(&dir.join("cpu.stat"), "usage_usec"),
            max_memory: number(&dir.join("memory.peak")).unwrap_or(0),
            pids,
            max_pids: most_pids(&dir, pids),
            oom_kills: field(&dir.join("memory.events"), "oom_kill"),
            pids_refused: field(&dir.join("pids.events"), "max"),
        })
    }
}

/// The most processes that the group had. Without the kernel's own count it is `now` at most up to the
/// limit: the kernel counts a process before it refuses it, so that `pids.current` may be above
/// `pids.max` for a moment.
fn most_pids(group: &Path, now: u64) -> u64 {
    number(&group.join("pids.peak"))
        .unwrap_or_else(|| number(&group.join("pids.max")).map_or(now, |limit| now.min(limit)))
}

fn number(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn field(path: &Path, name: &str) -> u64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let mut values = lines.filter(|(key, _)| *key == name);
    values
        .next()
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_refused_is_not_counted() {
        let group = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(group.path().join(name), text).unwrap();
        assert_eq!(most_pids(group.path(), 7), 7);
        write("pids.max", "max\n");
        assert_eq!(most_pids(group.path(), 201), 201);
        write("pids.max", "200\n");
        assert_eq!(most_pids(group.path(), 201), 200);
        write("pids.peak", "198\n");
        assert_eq!(most_pids(group.path(), 201), 198);
    }
}
