//! Version 2: one directory, all controllers.

use std::io;
use std::path::Path;

use super::Bounds;
use super::gauges::{Gauge, Gauges};

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

/// From now on, for whoever reads this very file. An older kernel's peak is read-only.
pub(super) fn reset_peak(gauges: &Gauges) -> bool {
    let peak = gauges.memory_peak.as_ref();
    peak.is_some_and(|it| it.write(b"reset"))
}

pub(super) fn gauges(directory: &Path) -> Gauges {
    let open = |name: &str, key: Option<&'static str>| Gauge::open(&directory.join(name), key);
    Gauges {
        cpu: open("cpu.stat", Some("usage_usec")),
        memory_peak: Gauge::open_writable(&directory.join("memory.peak")),
        pids_peak: open("pids.peak", None),
        oom_kills: open("memory.events", Some("oom_kill")),
        pids_refused: open("pids.events", Some("max")),
        cpu_scale: 1,
        own_pids: 1,
    }
}
