//! What a layer in memory holds when its sandbox is gone.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use glovebox_model::LimitKind;
use glovebox_workspace::{Dir, RelPath};

/// Filled when the run is over. Dropped, it takes with it what was written.
#[derive(Debug, Clone, Default)]
pub struct MemoryLayer(Arc<Mutex<Option<Dir>>>);

impl MemoryLayer {
    /// The directory with `upper` in it. None for a layer on disk, which the caller has, and for a
    /// sandbox that never stood.
    pub fn take(&self) -> Option<Dir> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The artifacts that lay in the same memory, for whoever carries them to disk.
    pub fn artifacts(&self) -> Option<Dir> {
        let place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let beside = RelPath::new("beside").ok()?;
        place.as_ref()?.open_dir(&beside).ok()
    }

    pub(super) fn lay(&self, layer: &OwnedFd) {
        // Our own entry in /proc leads to exactly what is held.
        let own = PathBuf::from(format!("/proc/self/fd/{}", layer.as_raw_fd()));
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Dir::open_trusted(&own).ok();
    }
}

/// Which limit of a layer in memory is used up, for a program that failed.
pub(super) fn full(layer: &OwnedFd) -> Option<LimitKind> {
    let facts = rustix::fs::fstatvfs(layer).ok()?;
    if facts.f_bfree == 0 {
        return Some(LimitKind::Disk);
    }
    (facts.f_ffree == 0).then_some(LimitKind::Inodes)
}
