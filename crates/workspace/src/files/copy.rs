//! Copying a file or a tree: made aside, then put in its place in one step.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    Mode, OFlags, RenameFlags, fchmod, mkdirat, openat, readlinkat, renameat_with, symlinkat,
};

use super::fault::{Bound, FileError, FileResult};
use super::mkdir::Parents;
use super::tour::{Bounds, Next, Seen, tour, until};
use crate::dir::{
    Dir, Existing, FRESH, READING, from_io, permissions, regular, remove_name, single,
    temporary_name,
};
use crate::fault::FsErrorKind;
use crate::relpath::{RelPath, shown};
use crate::stat::{Kind, stat_fd};

const CHUNK: usize = 128 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyLimits {
    pub entries: u64,
    pub bytes: u64,
    pub time: Duration,
}

impl Default for CopyLimits {
    fn default() -> Self {
        Self {
            entries: 200_000,
            bytes: 4 << 30,
            time: Duration::from_secs(300),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    pub files: u64,
    pub directories: u64,
    pub links: u64,
    pub bytes: u64,
    /// Special files, which are never copied, and what could not be read.
    pub skipped: u64,
}

/// Links are copied as links, with the text they have; set-id bits are left behind.
pub fn copy(
    dir: &Dir,
    from: &RelPath,
    to: &RelPath,
    existing: Existing,
    parents: Parents,
    limits: CopyLimits,
) -> FileResult<Copied> {
    let (stat, link) = dir.look(from)?;
    parents.of(dir, to)?;
    let fault = |kind| FileError::new("copy", to.as_bytes(), kind);
    let (parent, name) = dir.parent("copy", to)?;
    let temporary = temporary_name().map_err(fault)?;
    let mut copying = Copying {
        limits,
        deadline: until(limits.time),
        copied: Copied::default(),
        buffer: vec![0; CHUNK],
    };
    let made = match (stat.kind, link) {
        (Kind::Symlink, Some(text)) => copying.link(&text, parent.as_fd(), &temporary),
        (Kind::File, _) => {
            let (file, stat) = dir.open_itself(from)?;
            copying.file(file, stat.mode, parent.as_fd(), &temporary)
        }
        (Kind::Directory, _) => {
            let source = dir.open_dir(from)?;
            copying.tree(&source, stat.mode, parent.as_fd(), &temporary, from)
        }
        (kind, _) => Err(fault(FsErrorKind::NotRegular(kind))),
    };
    let flags = match existing {
        Existing::Replace => RenameFlags::empty(),
        Existing::Refuse => RenameFlags::NOREPLACE,
    };
    let placed = made.and_then(|()| {
        renameat_with(&parent, &temporary, &parent, &name, flags)
            .map_err(|errno| fault(errno.into()))
    });
    placed.inspect_err(|_| {
        // Best effort: the first fault is the one to report.
        let _ = remove_name(parent.as_fd(), &temporary);
    })?;
    Ok(copying.copied)
}

struct Copying {
    limits: CopyLimits,
    deadline: Instant,
    copied: Copied,
    buffer: Vec<u8>,
}

/// A directory of the copy that is being filled, and the mode that it gets at the end: one that
/// nobody may write could not be filled.
struct Filling {
    fd: OwnedFd,
    mode: u32,
}

impl Filling {
    fn new(parent: BorrowedFd<'_>, name: &CStr, mode: u32) -> Result<Self, FsErrorKind> {
        mkdirat(parent, name, Mode::RWXU)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let fd = single(parent, name.to_bytes(), flags)?;
        Ok(Self { fd, mode })
    }

    fn finish(self) -> Result<(), FsErrorKind> {
        // Its owner must be able to use and to remove it.
        Ok(fchmod(&self.fd, permissions(self.mode | 0o700))?)
    }
}

impl Copying {
    fn tree(
        &mut self,
        source: &Dir,
        mode: u32,
        parent: BorrowedFd<'_>,
        name: &CString,
        from: &RelPath,
    ) -> FileResult<()> {
        let fault = |path: &[u8], kind| FileError::new("copy", path, kind);
        let top = Filling::new(parent, name, mode).map_err(|kind| fault(b"", kind))?;
        let own = stat_fd(&top.fd)
            .map_err(|errno| fault(b"", errno.into()))?
            .id;
        self.copied.directories += 1;
        let mut open = vec![top];
        let bounds = Bounds {
            entries: self.limits.entries,
            deadline: self.deadline,
        };
        let toured = tour(source, None, bounds, &mut |seen| {
            if seen.stat.id == own {
                return Err(FileError::IntoItself {
                    path: shown(from.as_bytes()),
                });
            }
            while open.len() > seen.depth {
                let done = open.pop().map_or(Ok(()), Filling::finish);
                done.map_err(|kind| fault(seen.path, kind))?;
            }
            let Some(into) = open.last() else {
                return Ok(Next::Stop);
            };
            if let Some(deeper) = self.entry(seen, into.fd.as_fd())? {
                open.push(deeper);
            }
            Ok(Next::Into)
        })?;
        if let Some(bound) = toured.cut {
            return Err(FileError::Limit(bound));
        }
        self.copied.skipped += toured.unread;
        while let Some(done) = open.pop() {
            done.finish().map_err(|kind| fault(b"", kind))?;
        }
        Ok(())
    }

    fn entry(&mut self, seen: Seen<'_>, into: BorrowedFd<'_>) -> FileResult<Option<Filling>> {
        let fault = |kind| FileError::new("copy", seen.path, kind);
        match seen.stat.kind {
            Kind::Directory => {
                let deeper = Filling::new(into, seen.name, seen.stat.mode).map_err(fault)?;
                self.copied.directories += 1;
                return Ok(Some(deeper));
            }
            Kind::Symlink => match readlinkat(seen.dir, seen.name, Vec::new()) {
                Ok(text) => self.link(text.as_bytes(), into, seen.name)?,
                // Swapped for something else since.
                Err(_) => self.copied.skipped += 1,
            },
            Kind::File => {
                let flags = READING | OFlags::NOFOLLOW;
                let opened = single(seen.dir, seen.name.to_bytes(), flags);
                match opened.and_then(|fd| regular(&fd).map(|stat| (fd, stat))) {
                    Ok((fd, stat)) => self.file(File::from(fd), stat.mode, into, seen.name)?,
                    Err(_) => self.copied.skipped += 1,
                }
            }
            Kind::Fifo | Kind::Socket | Kind::Device | Kind::Unknown => self.copied.skipped += 1,
        }
        Ok(None)
    }

    fn link(&mut self, text: &[u8], into: BorrowedFd<'_>, name: &CStr) -> FileResult<()> {
        symlinkat(text, into, name)
            .map_err(|errno| FileError::new("copy", name.to_bytes(), errno.into()))?;
        self.copied.links += 1;
        Ok(())
    }

    fn file(
        &mut self,
        mut from: File,
        mode: u32,
        into: BorrowedFd<'_>,
        name: &CStr,
    ) -> FileResult<()> {
        let fault = |kind| FileError::new("copy", name.to_bytes(), kind);
        let flags = FRESH | OFlags::CLOEXEC;
        let fd = openat(into, name, flags, Mode::RUSR | Mode::WUSR);
        let mut to = File::from(fd.map_err(|errno| fault(errno.into()))?);
        loop {
            let read = match from.read(&mut self.buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(fault(from_io(&error))),
            };
            self.copied.bytes = self.copied.bytes.saturating_add(read as u64);
            if self.copied.bytes > self.limits.bytes {
                return Err(FileError::Limit(Bound::Bytes(self.limits.bytes)));
            }
            if Instant::now() >= self.deadline {
                return Err(FileError::Limit(Bound::Time));
            }
            to.write_all(&self.buffer[..read])
                .map_err(|error| fault(from_io(&error)))?;
        }
        fchmod(&to, permissions(mode)).map_err(|errno| fault(errno.into()))?;
        self.copied.files += 1;
        Ok(())
    }
}
