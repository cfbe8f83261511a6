//! Writing a file: whole or not at all, and only over the file that the caller knew.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{Read, Write};
use std::sync::{Mutex, PoisonError};

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, fchmod, renameat, renameat_with, unlinkat};
use rustix::io::Errno;

use super::fault::{FileError, FileResult};
use super::mkdir::Parents;
use super::stat::{Etag, FileStat};
use crate::dir::{Dir, FRESH, from_io, permissions, single, temporary_name};
use crate::fault::FsErrorKind;
use crate::relpath::RelPath;
use crate::stat::{Kind, Stat, stat_fd, stat_name};

const FILE_MODE: u32 = 0o644;
const CHUNK: usize = 128 << 10;

/// Two who put back what they took out would undo each other, so the writers of this process take
/// turns for the moment of a rename. Who works inside needs no turn: what they do last stays.
static TURNS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    Always,
    /// Only over the file with this mark.
    Matches(Etag),
    /// Only where nothing stands, a link to nothing neither.
    Absent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// On disk before it is acknowledged.
    Synced,
    /// When the kernel gets to it.
    Later,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteOptions {
    pub condition: Condition,
    pub parents: Parents,
    /// Permission bits; without, those of the file that is replaced, or 0644.
    pub mode: Option<u32>,
    pub durability: Durability,
    /// Most bytes that are taken from the source.
    pub most_bytes: u64,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            condition: Condition::Always,
            parents: Parents::Require,
            mode: None,
            durability: Durability::Later,
            most_bytes: 1 << 30,
        }
    }
}

pub fn write(
    dir: &Dir,
    path: &RelPath,
    source: &mut dyn Read,
    options: &WriteOptions,
) -> FileResult<FileStat> {
    let fault = |kind| FileError::new("write", path.as_bytes(), kind);
    if options.condition == Condition::Always || options.condition == Condition::Absent {
        options.parents.of(dir, path)?;
    }
    let (parent, name) = dir.parent("write", path)?;
    let known = admit(&parent, &name, path, &options.condition)?;
    let mode = options
        .mode
        .or(known.map(|stat| stat.mode))
        .unwrap_or(FILE_MODE);
    let temporary = temporary_name().map_err(fault)?;
    let place = Place {
        parent: parent.as_fd(),
        name: &name,
        temporary: &temporary,
        path,
    };
    let written = place.fill(source, mode, options).and_then(|file| {
        place.settle(&file, known.as_ref(), &options.condition)?;
        Ok(file)
    });
    let file = written.inspect_err(|_| {
        // Best effort: the first fault is the one to report.
        let _ = unlinkat(&parent, &temporary, AtFlags::empty());
    })?;
    if options.durability == Durability::Synced {
        sync_directory(parent.as_fd()).map_err(fault)?;
    }
    let stat = stat_fd(&file).map_err(|errno| fault(errno.into()))?;
    Ok(FileStat::new(&stat, None))
}

/// Looks at what stands there. A courtesy to the caller for everything but the mark: what counts
/// is that renaming replaces a link and never follows it.
fn admit(
    parent: &impl AsFd,
    name: &CStr,
    path: &RelPath,
    condition: &Condition,
) -> FileResult<Option<Stat>> {
    let fault = |kind| FileError::new("write", path.as_bytes(), kind);
    let known = match stat_name(parent, name) {
        Ok(stat) => Some(stat),
        Err(Errno::NOENT) => None,
        Err(errno) => return Err(fault(errno.into())),
    };
    match (condition, &known) {
        (Condition::Absent, Some(_)) => return Err(fault(FsErrorKind::Exists)),
        (Condition::Matches(_), None) => return Err(FileError::changed(path)),
        (Condition::Matches(etag), Some(stat)) if *etag != Etag::of(stat) => {
            return Err(FileError::changed(path));
        }
        _ => {}
    }
    match known.map(|stat| stat.kind) {
        None | Some(Kind::File) => Ok(known),
        Some(Kind::Directory) => Err(fault(FsErrorKind::IsADirectory)),
        Some(Kind::Symlink) => Err(fault(FsErrorKind::Symlink)),
        Some(kind) => Err(fault(FsErrorKind::NotRegular(kind))),
    }
}

struct Place<'p> {
    parent: BorrowedFd<'p>,
    name: &'p CStr,
    temporary: &'p CString,
    path: &'p RelPath,
}

impl Place<'_> {
    fn fault(&self, kind: FsErrorKind) -> FileError {
        FileError::new("write", self.path.as_bytes(), kind)
    }

    fn fill(&self, source: &mut dyn Read, mode: u32, options: &WriteOptions) -> FileResult<File> {
        let fd = rustix::fs::openat(
            self.parent,
            self.temporary,
            FRESH | OFlags::CLOEXEC,
            Mode::RUSR | Mode::WUSR,
        );
        let mut file = File::from(fd.map_err(|errno| self.fault(errno.into()))?);
        let mut buffer = vec![0; CHUNK];
        let mut left = options.most_bytes;
        loop {
            let read = match source.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(FileError::Stream(error.to_string())),
            };
            left = left.checked_sub(read as u64).ok_or_else(|| {
                let cap = options.most_bytes;
                self.fault(FsErrorKind::TooLarge { cap })
            })?;
            file.write_all(&buffer[..read])
                .map_err(|error| self.fault(from_io(&error)))?;
        }
        // Not at creation: the process's umask would take bits away.
        fchmod(&file, permissions(mode)).map_err(|errno| self.fault(errno.into()))?;
        if options.durability == Durability::Synced {
            file.sync_all()
                .map_err(|error| self.fault(from_io(&error)))?;
        }
        Ok(file)
    }

    fn settle(&self, ours: &File, known: Option<&Stat>, condition: &Condition) -> FileResult<()> {
        let parent = stat_fd(self.parent).map_err(|errno| self.fault(errno.into()))?;
        let turn = usize::try_from(parent.id.ino % TURNS.len() as u64).unwrap_or(0);
        let _turn = TURNS[turn].lock().unwrap_or_else(PoisonError::into_inner);
        match (condition, known) {
            (Condition::Matches(_), Some(known)) => self.exchange(ours, known),
            (Condition::Matches(_), None) => Err(FileError::changed(self.path)),
            (Condition::Absent, _) => self.rename(RenameFlags::NOREPLACE),
            (Condition::Always, _) => renameat(self.parent, self.temporary, self.parent, self.name)
                .map_err(|errno| self.fault(errno.into())),
        }
    }

    fn rename(&self, flags: RenameFlags) -> FileResult<()> {
        renameat_with(self.parent, self.temporary, self.parent, self.name, flags)
            .map_err(|errno| self.fault(errno.into()))
    }

    /// Between a look and a rename somebody could write. So the two files change places first, and
    /// what came out is judged: if it is not what the caller knew, it goes back.
    fn exchange(&self, ours: &File, known: &Stat) -> FileResult<()> {
        let swap = || match self.rename(RenameFlags::EXCHANGE) {
            Err(FileError::Fs(error)) if error.kind() == FsErrorKind::NotFound => {
                Err(FileError::changed(self.path))
            }
            done => done,
        };
        let look = |fault| {
            stat_name(self.parent, self.temporary).map_err(|errno: Errno| -> FileError {
                FileError::new(fault, self.path.as_bytes(), errno.into())
            })
        };
        swap()?;
        let out = look("look at")?;
        // The time of change is another now, since the file was renamed.
        let same = out.id == known.id && out.size == known.size && out.modified == known.modified;
        if !same {
            swap()?;
            let ours = stat_fd(ours).map_err(|errno| self.fault(errno.into()))?;
            if look("look at")?.id != ours.id {
                // Somebody replaced ours meanwhile; theirs is the newest and stays.
                swap()?;
            }
        }
        let removed = unlinkat(self.parent, self.temporary, AtFlags::empty());
        removed.map_err(|errno| self.fault(errno.into()))?;
        match same {
            true => Ok(()),
            false => Err(FileError::changed(self.path)),
        }
    }
}

pub(super) fn sync_directory(dir: BorrowedFd<'_>) -> Result<(), FsErrorKind> {
    let fd = single(dir, b".", OFlags::RDONLY | OFlags::DIRECTORY)?;
    Ok(rustix::fs::fsync(fd)?)
}
