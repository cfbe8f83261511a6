//! Version 1: one hierarchy per controller, limits in files named by the controller.

use std::io;
use std::path::{Path, PathBuf};

use super::Bounds;
use super::gauges::{Gauge, Gauges};
use super::host::Hierarchy;

/// Of the processor's time, in microseconds.
const PERIOD_US: u64 = 100_000;

fn with<'a>(
    hierarchies: &'a [Hierarchy],
    directories: &'a [PathBuf],
    controller: &'a str,
) -> Option<&'a Path> {
    hierarchies
        .iter()
        .position(|hierarchy| hierarchy.has(controller))
        .map(|index| directories[index].as_path())
}

pub(super) fn set(
    hierarchies: &[Hierarchy],
    directories: &[PathBuf],
    bounds: &Bounds,
) -> io::Result<()> {
    if let (Some(directory), Some(bytes)) = (
        with(hierarchies, directories, "memory"),
        bounds.memory_bytes,
    ) {
        std::fs::write(directory.join("memory.limit_in_bytes"), bytes.to_string())?;
        let with_swap = directory.join("memory.memsw.limit_in_bytes");
        if with_swap.exists() {
            std::fs::write(with_swap, bytes.to_string())?;
        }
    }
    if let (Some(directory), Some(pids)) = (with(hierarchies, directories, "pids"), bounds.pids) {
        // Pid 1 lives here too, and the keeper for the first moment; neither is the payload's to pay
        // for.
        std::fs::write(directory.join("pids.max"), (pids + 2).to_string())?;
    }
    if let (Some(directory), Some(cpus)) =
        (with(hierarchies, directories, "cpu"), bounds.cpus_milli)
    {
        let quota = (PERIOD_US * u64::from(cpus) / 1000).max(1000);
        std::fs::write(directory.join("cpu.cfs_period_us"), PERIOD_US.to_string())?;
        std::fs::write(directory.join("cpu.cfs_quota_us"), quota.to_string())?;
    }
    Ok(())
}

/// From what is used now on.
pub(super) fn reset_peak(gauges: &Gauges) -> bool {
    gauges.memory_peak.as_ref().is_some_and(|it| it.write(b"0"))
}

pub(super) fn gauges(hierarchies: &[Hierarchy], directories: &[PathBuf]) -> Gauges {
    let file = |controller: &str, name: &str| {
        with(hierarchies, directories, controller).map(|directory| directory.join(name))
    };
    let open = |controller: &str, name: &str, key: Option<&'static str>| {
        file(controller, name).and_then(|file| Gauge::open(&file, key))
    };
    let memory_peak = file("memory", "memory.max_usage_in_bytes");
    Gauges {
        cpu: open("cpuacct", "cpuacct.usage", None),
        memory_peak: memory_peak.and_then(|file| Gauge::open_writable(&file)),
        pids_peak: open("pids", "pids.peak", None),
        oom_kills: open("memory", "memory.oom_control", Some("oom_kill")),
        pids_refused: open("pids", "pids.events", Some("max")),
        cpu_scale: 1000,
        own_pids: 2,
    }
}
