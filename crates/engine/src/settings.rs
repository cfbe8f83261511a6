//! What the engine is told about the host and the caller, read once.

use glovebox_policy::HostFacts;
use glovebox_workspace::toolchain;

/// Which of the caller's own interpreters may be seen inside.
#[derive(Debug, Clone)]
pub struct ToolchainSettings {
    pub host: toolchain::Host,
    pub mode: toolchain::Mode,
}

/// Memory and processors of this machine, as policy's defaults need them.
pub fn host_facts() -> HostFacts {
    let info = rustix::system::sysinfo();
    let memory_bytes = info.totalram.saturating_mul(u64::from(info.mem_unit));
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    HostFacts {
        memory_bytes,
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
    }
}
