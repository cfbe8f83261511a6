//! Limits by control group, on hosts with version 1 and on hosts with version 2.
//!
//! The caller creates a group per sandbox, sets its limits and removes it; the keeper enters it
//! (version 1) or pid 1 is born in it (version 2).

mod gauges;
mod host;
mod v1;
mod v2;

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gauges::Gauges;
pub use host::{Controllers, Host};

/// What a group may use. Unset is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    pub memory_bytes: Option<u64>,
    pub pids: Option<u64>,
    pub cpus_milli: Option<u32>,
}

/// What a group used and ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    pub cpu_us: Option<u64>,
    pub max_memory_bytes: Option<u64>,
    pub max_pids: Option<u64>,
    pub oom_kills: u64,
    pub pids_refused: u64,
}

/// One sandbox's groups: a directory per version 1 hierarchy, or one on version 2.
#[derive(Debug)]
pub struct Group {
    controllers: Controllers,
    directories: Vec<PathBuf>,
    /// Of one that is read more than once. Version 2 keeps a memory peak for each open file, so it
    /// must be read where it was reset.
    held: Option<Gauges>,
}

impl Group {
    /// Makes the directories. `name` must be one file name.
    pub fn create(host: &Host, name: &str) -> io::Result<Self> {
        let mut group = Self {
            controllers: host.controllers.clone(),
            directories: Vec::new(),
            held: None,
        };
        for directory in host.places(name) {
            if let Err(error) = std::fs::create_dir(&directory) {
                // Only what was made here: the one in the way belongs to somebody.
                let _ = group.remove();
                return Err(error);
            }
            group.directories.push(directory);
        }
        Ok(group)
    }

    pub fn directories(&self) -> &[PathBuf] {
        &self.directories
    }

    /// Where the keeper must go before it clones; empty on version 2.
    pub fn to_enter(&self) -> Vec<CString> {
        match self.controllers {
            Controllers::V1(_) => self
                .directories
                .iter()
                .filter_map(|it| c_path(it))
                .collect(),
            Controllers::V2 { .. } => Vec::new(),
        }
    }

    /// Where pid 1 is born; none on version 1.
    pub fn birthplace(&self) -> Option<CString> {
        match self.controllers {
            Controllers::V1(_) => None,
            Controllers::V2 { .. } => self.directories.first().and_then(|it| c_path(it)),
        }
    }

    pub fn set(&self, bounds: &Bounds) -> io::Result<()> {
        match &self.controllers {
            Controllers::V1(hierarchies) => v1::set(hierarchies, &self.directories, bounds),
            Controllers::V2 { .. } => v2::set(&self.directories[0], bounds),
        }
    }

    pub fn stats(&self) -> Stats {
        match &self.held {
            Some(gauges) => gauges.read(),
            None => self.gauges().read(),
        }
    }

    fn gauges(&self) -> Gauges {
        match &self.controllers {
            Controllers::V1(hierarchies) => v1::gauges(hierarchies, &self.directories),
            Controllers::V2 { .. } => v2::gauges(&self.directories[0]),
        }
    }

    /// Who is inside, by pid. Version 1 has the keeper too. Whoever is past its last instruction need not
    /// be among them.
    pub fn processes(&self) -> io::Result<Vec<i32>> {
        let Some(directory) = self.directories.first() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let listed = std::fs::read_to_string(directory.join("cgroup.procs"))?;
        Ok(listed.lines().filter_map(|it| it.parse().ok()).collect())
    }

    /// Lets the memory peak start anew, and keeps the files of what is counted open. False where the
    /// kernel cannot reset it.
    pub fn reset_peak(&mut self) -> bool {
        let gauges = self.held.take().unwrap_or_else(|| self.gauges());
        let reset = match &self.controllers {
            Controllers::V1(_) => v1::reset_peak(&gauges),
            Controllers::V2 { .. } => v2::reset_peak(&gauges),
        };
        self.held = Some(gauges);
        reset
    }

    /// Removes the directories; whoever is still inside keeps them busy.
    pub fn remove(&self) -> io::Result<()> {
        let mut result = Ok(());
        for directory in &self.directories {
            match std::fs::remove_dir(directory) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => result = Err(error),
                _ => {}
            }
        }
        result
    }
}

fn c_path(path: &Path) -> Option<CString> {
    CString::new(path.as_os_str().as_bytes()).ok()
}

fn path_of(group: &CStr) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(group.to_bytes()))
}

/// Moves the calling process into a group.
pub(crate) fn enter(group: &CStr) -> rustix::io::Result<()> {
    write_self(&path_of(group)).map_err(|error| {
        rustix::io::Errno::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO))
    })
}

fn write_self(directory: &Path) -> io::Result<()> {
    // 0 is whoever writes.
    std::fs::write(directory.join("cgroup.procs"), "0")
}

/// Moves the calling process to the parent. On version 2 it was never inside, and stays where it is.
pub(crate) fn leave(group: &CStr) -> io::Result<()> {
    let directory = path_of(group);
    let inside = std::fs::read_to_string(directory.join("cgroup.procs"))?;
    let own = std::process::id().to_string();
    match directory.parent() {
        Some(parent) if inside.lines().any(|pid| pid == own) => write_self(parent),
        _ => Ok(()),
    }
}

/// Moves the calling process to the parent and removes the group.
pub(crate) fn leave_and_remove(group: &CStr) -> io::Result<()> {
    let _ = leave(group);
    remove(&path_of(group))
}

/// The kernel frees a group a moment after its last process was reaped; a bounded number of tries.
fn remove(directory: &Path) -> io::Result<()> {
    for _ in 0..200 {
        match std::fs::remove_dir(directory) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => return other,
        }
    }
    Err(io::Error::from_raw_os_error(libc::EBUSY))
}

/// Takes down what a killed caller and a killed keeper left: ends the processes inside and removes
/// the directory. Returns whether there was anything.
pub fn clear(directory: &Path) -> io::Result<bool> {
    let listed = match std::fs::read_to_string(directory.join("cgroup.procs")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        other => other?,
    };
    let _ = std::fs::write(directory.join("cgroup.kill"), "1");
    for pid in listed.lines().filter_map(|line| line.parse().ok()) {
        if let Some(pid) = rustix::process::Pid::from_raw(pid) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
    remove(directory).map(|()| true)
}
