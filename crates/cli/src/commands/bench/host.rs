//! Where it was measured: figures from two hosts compare only as ratios.

use serde::Serialize;

#[derive(Debug, Serialize)]
pub(super) struct Host {
    pub(super) kernel: String,
    pub(super) machine: String,
    pub(super) processor: String,
    pub(super) processors: usize,
    pub(super) memory_bytes: u64,
    pub(super) cgroups: &'static str,
    pub(super) user: &'static str,
    pub(super) version: &'static str,
    pub(super) build: &'static str,
}

impl Host {
    pub(super) fn look() -> Self {
        let system = rustix::system::uname();
        let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
        let facts = glovebox_engine::host_facts();
        let root = rustix::process::geteuid().is_root();
        Self {
            kernel: text(system.release()),
            machine: text(system.machine()),
            processor: processor(),
            processors: usize::try_from(facts.cpus).unwrap_or(usize::MAX),
            memory_bytes: facts.memory_bytes,
            cgroups: cgroups(),
            user: if root { "root" } else { "ordinary user" },
            version: env!("CARGO_PKG_VERSION"),
            build: if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            },
        }
    }
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(':'));
    name.map_or("unknown", |(_, name)| name.trim()).to_owned()
}

/// By what is mounted where groups are kept.
fn cgroups() -> &'static str {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let has = |kind: &str| mounts.lines().any(|line| line.contains(kind));
    match (has(" - cgroup "), has(" - cgroup2 ")) {
        (true, true) => "hybrid (version 1 controllers)",
        (true, false) => "version 1",
        (false, true) => "version 2",
        (false, false) => "none",
    }
}
