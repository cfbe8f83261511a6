//! Version 2: one directory, all controllers.

use std::io;
use std::path::Path;

use super::{Bounds, Stats, number};

const PERIOD_US: u64 = 100_000;

pub(super) fn set(directory: &Path, bounds: &Bounds) -> io::Result<()> {
    if let Some(bytes) = bounds.memory_bytes {
        std::fs::write(directory.join("memory.max"), bytes.to_string())?;
        // Absent without swap support; then there is nothing to forbid.
        let swap = directory.join("memory.swap.max");
        if swap.exists() {
            std::fs::write(swap, "0")?;
        }
    }
    if let Some(pids) = bounds.pids {
        // Pid 1 lives here too and is not the payload's to pay for.
        std::fs::write(directory.join("pids.max"), (pids + 1).to_string())?;
    }
    if let Some(cpus) = bounds.cpus_milli {
        let quota = (PERIOD_US * u64::from(cpus) / 1000).max(1000);
        std::fs::write(directory.join("cpu.max"), format!("{quota} {PERIOD_US}"))?;
    }
    Ok(())
}

pub(super) fn stats(directory: &Path) -> Stats {
    let read = |name: &str, key: Option<&str>| number(&directory.join(name), key);
    Stats {
        cpu_us: read("cpu.stat", Some("usage_usec")),
        max_memory_bytes: read("memory.peak", None),
        max_pids: read("pids.peak", None).map(|peak| peak.saturating_sub(1)),
        oom_kills: read("memory.events", Some("oom_kill")).unwrap_or(0),
        pids_refused: read("pids.events", Some("max")).unwrap_or(0),
    }
}
