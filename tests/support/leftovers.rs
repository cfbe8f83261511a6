//! Looking for what must not be there after a run: processes, control groups, mounts.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Asks again and again until it is so; `false` when the patience is over.
pub fn wait_until(patience: Duration, mut so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + patience;
    loop {
        if so() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What was read of a directory that somebody works in meanwhile; None when it is gone since.
///
/// # Panics
/// When it is there and cannot be read.
pub fn still_there<T>(read: std::io::Result<T>) -> Option<T> {
    match read {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        read => Some(read.expect("readable")),
    }
}

fn pids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .expect("list /proc")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn holds(bytes: &[u8], needle: &str) -> bool {
    bytes
        .windows(needle.len())
        .any(|part| part == needle.as_bytes())
}

/// Processes of the host that carry this text in their environment or arguments, but ourselves.
pub fn processes_with(text: &str) -> Vec<u32> {
    let own = std::process::id();
    pids()
        .filter(|pid| *pid != own)
        .filter(|pid| {
            ["environ", "cmdline"].iter().any(|file| {
                let content = fs::read(format!("/proc/{pid}/{file}"));
                content.is_ok_and(|content| holds(&content, text))
            })
        })
        .collect()
}

/// Keepers and pid 1s whose `glovebox` is gone. A keeper forgets its arguments, so an orphan is
/// known by its adoptive parent: this process, which made itself the reaper of its descendants.
pub(crate) fn orphans() -> Vec<u32> {
    let own = std::process::id();
    pids()
        .filter(|pid| {
            let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
                return false;
            };
            let (Some(name), Some((_, rest))) =
                (stat.split(['(', ')']).nth(1), stat.rsplit_once(") "))
            else {
                return false;
            };
            let mut fields = rest.split(' ');
            let (state, parent) = (fields.next(), fields.next());
            // A zombie is over; nobody but us is left to bury it.
            name.starts_with("glovebox-")
                && state != Some("Z")
                && parent == Some(own.to_string().as_str())
        })
        .collect()
}

/// Control groups of the runs that used this state directory.
pub(crate) fn groups(state: &Path) -> Vec<PathBuf> {
    let Ok(facts) = fs::metadata(state) else {
        return Vec::new();
    };
    let prefix = format!("glovebox-{:x}-{:x}-", facts.dev(), facts.ino());
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                found.push(entry.path());
            }
            waiting.push(entry.path());
        }
    }
    found
}

/// Mounts of the host that show something of this directory.
pub(crate) fn mounts(directory: &Path) -> Vec<String> {
    let shown = directory.to_string_lossy();
    fs::read_to_string("/proc/self/mountinfo")
        .expect("read the mounts")
        .lines()
        .filter(|line| line.contains(shown.as_ref()) || line.contains(" - tmpfs glovebox "))
        .map(str::to_owned)
        .collect()
}
