//! The one place where a path becomes a descriptor. The kernel resolves it beneath a directory and
//! refuses whatever leaves; there is no second, weaker way.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use crate::fault::FsErrorKind;

/// `EAGAIN` means that a rename somewhere raced with a `..` on the way. An attacker who renames in
/// a loop makes some attempts fail, never this many in a row by chance.
const ATTEMPTS: u32 = 256;

const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// Resolves `path`, which may go through links as long as they stay inside.
pub(crate) fn beneath(
    dir: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, FsErrorKind> {
    resolve(dir, path, flags, mode, BENEATH)
}

/// Opens one name: no link, no other mount.
pub(crate) fn single(
    dir: BorrowedFd<'_>,
    name: &[u8],
    flags: OFlags,
) -> Result<OwnedFd, FsErrorKind> {
    let resolve_flags = BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    resolve(dir, name, flags, Mode::empty(), resolve_flags).map_err(|kind| match kind {
        // One name cannot climb, so it is a mount point.
        FsErrorKind::Escapes => FsErrorKind::OtherFileSystem,
        kind => kind,
    })
}

/// The one resolution that goes up. The caller compares the identity of what it gets with that of
/// the directory it came from before using it.
pub(crate) fn parent_of(dir: BorrowedFd<'_>) -> Result<OwnedFd, FsErrorKind> {
    let flags = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    resolve(
        dir,
        b"..",
        OFlags::PATH | OFlags::DIRECTORY,
        Mode::empty(),
        flags,
    )
}

fn resolve(
    dir: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    mode: Mode,
    how: ResolveFlags,
) -> Result<OwnedFd, FsErrorKind> {
    for _ in 0..ATTEMPTS {
        match openat2(dir, path, flags | OFlags::CLOEXEC, mode, how) {
            Ok(fd) => return Ok(fd),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(explain(dir, errno)),
        }
    }
    Err(FsErrorKind::Contended)
}

fn explain(dir: BorrowedFd<'_>, errno: Errno) -> FsErrorKind {
    match errno {
        Errno::XDEV => FsErrorKind::Escapes,
        Errno::NOSYS => FsErrorKind::ResolverMissing,
        // An immutable file answers the same as a filter that forbids the call.
        Errno::PERM if forbidden(dir) => FsErrorKind::ResolverMissing,
        errno => errno.into(),
    }
}

fn forbidden(dir: impl AsFd) -> bool {
    openat2(
        dir,
        c".",
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        BENEATH,
    )
    .is_err()
}
