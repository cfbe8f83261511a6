//! What a run could leave on the host: processes, control groups, mounts, files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::wait::Watched;

/// Control groups whose name starts with this, in any hierarchy.
pub(crate) fn groups(tag: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect_groups(Path::new("/sys/fs/cgroup"), tag, 8, &mut found);
    found
}

fn collect_groups(directory: &Path, tag: &str, depth: usize, found: &mut Vec<PathBuf>) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if entry.file_name().to_string_lossy().starts_with(tag) {
            found.push(entry.path());
        }
        collect_groups(&entry.path(), tag, depth, found);
    }
}

/// Living processes in such a group.
pub(crate) fn processes_in_groups(tag: &str) -> Vec<(i32, String)> {
    pids()
        .filter(|pid| {
            fs::read_to_string(format!("/proc/{pid}/cgroup"))
                .is_ok_and(|groups| groups.contains(&format!("/{tag}")))
        })
        .filter(|pid| is_alive(*pid))
        .map(|pid| (pid, name(pid)))
        .collect()
}

fn pids() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn name(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
}

fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

/// Everything below a process, nearest first: for `glovebox` its keeper, pid 1, the payload.
pub(crate) fn family(pid: i32) -> Vec<Watched> {
    let mut found = Vec::new();
    let mut waiting = std::collections::VecDeque::from([pid]);
    while let Some(pid) = waiting.pop_front() {
        let threads = fs::read_dir(format!("/proc/{pid}/task"));
        for thread in threads.into_iter().flatten().flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace().filter_map(|it| it.parse().ok()) {
                waiting.push_back(child);
                found.extend(Watched::new(child));
            }
        }
    }
    found
}

pub(crate) fn mounts_below(path: &Path) -> Vec<String> {
    let shown = path.to_str().unwrap();
    fs::read_to_string("/proc/self/mountinfo")
        .unwrap()
        .lines()
        .filter(|line| line.contains(shown))
        .map(str::to_owned)
        .collect()
}

pub(crate) fn names_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
