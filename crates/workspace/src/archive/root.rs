//! The directory that an archive is unpacked to, and the one way to reach something in it.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::hash::{BuildHasher, RandomState};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, ResolveFlags, fchmod, mkdirat, openat2};
use rustix::io::Errno;

use super::Purpose;
use super::refusal::Refusal;
use crate::dir::Dir;
use crate::fault::{FsError, FsErrorKind};
use crate::relpath::{PathError, RelPath};
use crate::stat::{FileId, stat_fd};

/// Nobody else renames in a directory that is being filled; the kernel may say so all the same.
const ATTEMPTS: u32 = 256;
/// Until the archive says otherwise.
const DIRECTORY_MODE: u32 = 0o755;

#[derive(Debug)]
pub(crate) struct Root<'d> {
    top: &'d Dir,
    pub(super) purpose: Purpose,
    /// The directory of the last entry: the next one usually lies beside it.
    last: Option<(Vec<u8>, OwnedFd)>,
    /// Names that this layer made, so that its own whiteouts spare them; only an image needs it.
    /// Hashed with a secret of this process: millions of them fit, and none can be made to collide.
    made: HashSet<u64>,
    hashing: RandomState,
}

impl<'d> Root<'d> {
    pub(crate) fn new(top: &'d Dir, purpose: Purpose) -> Self {
        Self {
            top,
            purpose,
            last: None,
            made: HashSet::new(),
            hashing: RandomState::new(),
        }
    }

    pub(super) fn top(&self) -> &Dir {
        self.top
    }

    /// The directory that holds `path`, made when it is missing, and the name in it.
    pub(super) fn parent(&mut self, path: &RelPath) -> Result<(OwnedFd, CString), Refusal> {
        let (parent, name) = split(path)?;
        let cached = match &self.last {
            Some((at, fd)) if at == parent => Some(fd.try_clone()),
            _ => None,
        };
        let fd = match cached {
            Some(fd) => fd.map_err(|_| files("open", path, Errno::MFILE))?,
            None => self.directory(parent, path)?,
        };
        if self.last.as_ref().is_none_or(|(at, _)| at != parent) {
            let kept = fd.try_clone();
            let kept = kept.map_err(|_| files("open", path, Errno::MFILE))?;
            self.last = Some((parent.to_vec(), kept));
        }
        Ok((fd, name))
    }

    /// The same when it is there already; None when it is not.
    pub(super) fn existing_parent(
        &self,
        path: &RelPath,
    ) -> Result<Option<(OwnedFd, CString)>, Refusal> {
        let (parent, name) = split(path)?;
        match self.open(parent) {
            Ok(fd) => Ok(Some((fd, name))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(on_the_way(path, errno)),
        }
    }

    /// Must be called after something was removed: a name may lead elsewhere now.
    pub(super) fn forget_place(&mut self) {
        self.last = None;
    }

    pub(super) fn note_made(&mut self, parent: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
        if self.purpose == Purpose::Image {
            let key = self.key(stat_fd(parent)?.id, name);
            self.made.insert(key);
        }
        Ok(())
    }

    pub(super) fn made_here(&self, parent: BorrowedFd<'_>, name: &CStr) -> Result<bool, Errno> {
        Ok(self.made.contains(&self.key(stat_fd(parent)?.id, name)))
    }

    /// Directories are told apart by what they are, since links give them several paths.
    fn key(&self, parent: FileId, name: &CStr) -> u64 {
        self.hashing.hash_one((parent, name))
    }

    fn directory(&mut self, parent: &[u8], path: &RelPath) -> Result<OwnedFd, Refusal> {
        match self.open(parent) {
            Err(Errno::NOENT) => {}
            opened => return opened.map_err(|errno| on_the_way(path, errno)),
        }
        let mut held = self.open(b"").map_err(|errno| on_the_way(path, errno))?;
        let ends = parent.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let ends: Vec<usize> = ends.map(|(at, _)| at).chain([parent.len()]).collect();
        let mut start = 0;
        for end in ends {
            held = match self.open(&parent[..end]) {
                Err(Errno::NOENT) => {
                    let name = CString::new(&parent[start..end]);
                    let name = name.map_err(|_| Refusal::Path(PathError::Nul))?;
                    match make_directory(held.as_fd(), &name, DIRECTORY_MODE) {
                        // It was not found, and it is there: a link to nothing.
                        Err(Errno::EXIST) => return Err(Refusal::DanglingLink),
                        made => made.map_err(|errno| files("make the directory", path, errno))?,
                    };
                    self.note_made(held.as_fd(), &name)
                        .map_err(|errno| files("look at", path, errno))?;
                    self.open(&parent[..end])
                }
                opened => opened,
            }
            .map_err(|errno| on_the_way(path, errno))?;
            start = end + 1;
        }
        Ok(held)
    }

    /// An archive of files may not go through any link. In an image links are ordinary, and the
    /// kernel resolves them with the target as the root: there is nothing above it.
    fn open(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let how = match self.purpose {
            Purpose::Files => ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
            Purpose::Image => ResolveFlags::IN_ROOT,
        };
        let how = how | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
        let path = if path.is_empty() {
            b".".as_slice()
        } else {
            path
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        for _ in 0..ATTEMPTS {
            match openat2(self.top, path, flags, Mode::empty(), how) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                done => return done,
            }
        }
        Err(Errno::AGAIN)
    }
}

/// With exactly this mode: the process's umask would take bits away.
pub(crate) fn make_directory(
    parent: BorrowedFd<'_>,
    name: &CStr,
    mode: u32,
) -> Result<OwnedFd, Errno> {
    mkdirat(parent, name, Mode::RWXU)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let fd = open_single(parent, name, flags, Mode::empty())?;
    fchmod(&fd, Mode::from_raw_mode(mode))?;
    Ok(fd)
}

/// One name in a directory that is held; never a link, never another file system.
pub(super) fn open_single(
    parent: BorrowedFd<'_>,
    name: &CStr,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let how = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    openat2(parent, name, flags | OFlags::CLOEXEC, mode, how)
}

fn split(path: &RelPath) -> Result<(&[u8], CString), Refusal> {
    let (parent, name) = path.split().map_err(Refusal::Path)?;
    let name = CString::new(name).map_err(|_| Refusal::Path(PathError::Nul))?;
    Ok((parent.unwrap_or_default(), name))
}

pub(super) fn files(action: &'static str, path: &RelPath, errno: Errno) -> Refusal {
    Refusal::Files(FsError::os(action, path.as_bytes(), errno))
}

fn on_the_way(path: &RelPath, errno: Errno) -> Refusal {
    match errno {
        Errno::LOOP => Refusal::ThroughLink,
        Errno::NOTDIR => Refusal::ParentNotADirectory,
        Errno::XDEV => Refusal::Files(FsError::new(
            "open",
            path.as_bytes(),
            FsErrorKind::OtherFileSystem,
        )),
        Errno::NOSYS => Refusal::Files(FsError::new(
            "open",
            path.as_bytes(),
            FsErrorKind::ResolverMissing,
        )),
        errno => files("open", path, errno),
    }
}
