//! The host that was measured: figures of two hosts compare only as ratios.

use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct Host {
    pub kernel: String,
    pub machine: String,
    pub processor: String,
    pub processors: usize,
    pub memory_bytes: u64,
    pub cgroups: &'static str,
    pub user: &'static str,
    pub version: &'static str,
    pub build: &'static str,
}

impl Host {
    pub(crate) fn read() -> Self {
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

/// By the file systems that are mounted.
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
