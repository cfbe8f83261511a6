//! Opening what its owner has locked away from itself. Root is not stopped by modes; for anybody
//! else a mode of `000` on their own file must not keep it out of a snapshot, or out of an undo.

use std::os::fd::AsRawFd;

use glovebox_workspace::{Dir, FsError, FsErrorKind, FsResult};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, chmod};

use crate::tree::{Facts, READING};

const LISTING: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// What happens to a directory that may not be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locked {
    /// It stays as it is, and that is an error.
    Refuse,
    /// It is opened for its owner; whoever asks sets all modes afterwards.
    Unlock,
}

pub(crate) fn open_directory(dir: &Dir, path: &[u8], locked: Locked) -> FsResult<OwnedFd> {
    match (dir.open_plain(path, LISTING), locked) {
        (Err(error), Locked::Unlock) if error.kind() == FsErrorKind::Permission => {
            let held = dir.open_plain(path, OFlags::PATH | OFlags::DIRECTORY)?;
            set_mode(&held, path, 0o700)?;
            dir.open_plain(path, LISTING)
        }
        (Ok(fd), Locked::Unlock) if !rustix::process::geteuid().is_root() => {
            let mode = Facts::of(&fd).map_err(|errno| FsError::os("look at", path, errno))?;
            if mode.mode & 0o700 != 0o700 {
                set_mode(&fd, path, mode.mode | 0o700)?;
            }
            Ok(fd)
        }
        (opened, _) => opened,
    }
}

/// Opens a file for reading; its mode is changed for the moment of opening and changed back.
pub(crate) fn open_file(dir: &Dir, path: &[u8]) -> FsResult<OwnedFd> {
    // Not touching the access time needs ownership; without it the plain way must do.
    let plain = || match dir.open_plain(path, READING) {
        Err(error) if error.kind() == FsErrorKind::Permission => {
            dir.open_plain(path, READING.difference(OFlags::NOATIME))
        }
        opened => opened,
    };
    match plain() {
        Err(error) if error.kind() == FsErrorKind::Permission => {}
        opened => return opened,
    }
    let held = dir.open_plain(path, OFlags::PATH)?;
    let facts = Facts::of(&held).map_err(|errno| FsError::os("look at", path, errno))?;
    set_mode(&held, path, facts.mode | 0o400)?;
    let opened = plain();
    let given_back = set_mode(&held, path, facts.mode);
    let opened = opened?;
    given_back.map(|()| opened)
}

/// `fchmod` takes no path-only descriptor, and a name could be swapped for a link. Our own entry in
/// `/proc` leads to exactly what is held.
pub(crate) fn set_mode(held: &OwnedFd, path: &[u8], mode: u32) -> FsResult<()> {
    let own = format!("/proc/self/fd/{}", held.as_raw_fd());
    chmod(own.as_str(), Mode::from_raw_mode(mode))
        .map_err(|errno| FsError::os("change the mode of", path, errno))
}
