//! Processes as `/proc` shows them.

use serde::Serialize;

/// What one process holds, in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProcessMemory {
    pub process: String,
    pub rss_bytes: u64,
    /// Shared pages counted by their share.
    pub pss_bytes: u64,
    /// What the kernel frees when it ends.
    pub private_bytes: u64,
}

/// Whether it has this name and sleeps.
pub(crate) fn is_asleep(pid: i32, name: &str) -> bool {
    stat(pid).is_some_and(|(found, state)| found == name && state == 'S')
}

pub(crate) fn name(pid: i32) -> Option<String> {
    stat(pid).map(|(name, _)| name)
}

fn stat(pid: i32) -> Option<(String, char)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may contain some itself.
    let (head, rest) = text.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    Some((name.to_owned(), rest.trim_start().chars().next()?))
}

/// The process and its descendants, each before its children.
pub(crate) fn tree(root: i32) -> Vec<i32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        let children = format!("/proc/{pid}/task/{pid}/children");
        let children = std::fs::read_to_string(children).unwrap_or_default();
        found.extend(
            children
                .split_whitespace()
                .filter_map(|it| it.parse::<i32>().ok()),
        );
        next += 1;
    }
    found
}

/// `None` where the kernel does not allow reading it.
pub(crate) fn memory(pid: i32) -> Option<ProcessMemory> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let kilobytes = |key: &str| {
        let line = text.lines().find(|line| line.starts_with(key))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    let bytes = |key: &str| kilobytes(key).map(|it| it * 1024);
    Some(ProcessMemory {
        process: name(pid)?,
        rss_bytes: bytes("Rss:")?,
        pss_bytes: bytes("Pss:")?,
        private_bytes: bytes("Private_Clean:")? + bytes("Private_Dirty:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_very_process_is_described() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(tree(own).first(), Some(&own));
        let memory = memory(own).unwrap();
        assert!(memory.private_bytes > 0);
        assert!(memory.pss_bytes <= memory.rss_bytes);
        assert_eq!(name(own), Some(memory.process));
        assert!(!is_asleep(own, "another name"));
    }
}
