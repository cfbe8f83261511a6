//! Takes stock of a directory that a hostile program filled. Nothing is followed, no special file
//! is opened, and time and memory depend on the limits below, not on what lies there.

use std::ffi::CString;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::ops::ControlFlow;

use glovebox_capture::Secrets;
use glovebox_model::{Artifact, ByteString, ExecId};
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, Mode, OFlags, openat, readlinkat, unlinkat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::manifest::{DropReason, Dropped, Drops, Manifest, ManifestEntry};
use super::{OURS, attributes};
use crate::dir::{
    At, Dir, Order, READING, Skip, Visit, WalkEnd, WalkEntry, WalkLimits, from_io, regular,
    remove_name, single, temporary_name, walk,
};
use crate::fault::{FsError, FsErrorKind, FsResult};
use crate::hex::hex;
use crate::relpath::PATH_MAX;
use crate::stat::{Kind, stat_name};

/// Real trees stay far below; each level costs a descriptor at most for a while.
const DEPTH: usize = 64;
const ENTRIES: u64 = 100_000;
/// Of all paths together: long names must not make the manifest larger than the artifacts.
const PATH_BYTES: usize = 16 << 20;

/// What the guest left and what was kept of it.
#[derive(Debug)]
pub struct Collected {
    guest: Vec<ManifestEntry>,
    pub(super) streams: Vec<ManifestEntry>,
    dropped: Drops,
}

impl Collected {
    /// The guest's regular files, as the exec record lists them.
    pub fn artifacts(&self) -> Vec<Artifact> {
        let mut artifacts: Vec<Artifact> = self
            .guest
            .iter()
            .filter_map(|entry| {
                Some(Artifact {
                    path: entry.path.clone(),
                    size: entry.size,
                    hash: entry.hash.clone()?,
                })
            })
            .collect();
        artifacts.sort_by(|a, b| a.path.cmp(&b.path));
        artifacts
    }

    pub fn dropped(&self) -> &Drops {
        &self.dropped
    }

    pub(super) fn into_manifest(self, exec: &ExecId, meta: ManifestEntry) -> Manifest {
        let mut files = self.guest;
        files.extend(self.streams);
        files.push(meta);
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Manifest {
            exec_id: exec.clone(),
            files,
            dropped: self.dropped,
        }
    }
}

/// Files are taken in the order of the walk (a directory's entries by name, then the directories in
/// it), and one that would pass `cap` is removed: the same tree always keeps the same files.
pub(super) fn collect(artifacts: &Dir, cap: u64, masks: &Secrets) -> FsResult<Collected> {
    let mut collector = Collector {
        left: cap,
        path_bytes: 0,
        guest: Vec::new(),
        dropped: Drops::default(),
        fault: None,
        masks,
    };
    collector.make_way(artifacts)?;
    let cleared = attributes::clear(artifacts, masks);
    cleared.map_err(|errno| FsError::new("collect", b"", errno.into()))?;
    let limits = WalkLimits {
        depth: DEPTH,
        path_bytes: PATH_MAX,
        entries: ENTRIES,
        deadline: None,
    };
    let end = walk(
        artifacts,
        limits,
        Order::ByName,
        &mut |visit| match collector.visit(artifacts, visit) {
            Ok(()) => ControlFlow::Continue(()),
            Err(fault) => {
                collector.fault = Some(fault);
                ControlFlow::Break(())
            }
        },
    );
    let fault = |kind| FsError::new("collect", b"", kind);
    match (end.map_err(fault)?, collector.fault) {
        (_, Some(error)) => Err(error),
        (WalkEnd::Complete, None) => Ok(Collected {
            guest: collector.guest,
            streams: Vec::new(),
            dropped: collector.dropped,
        }),
        (WalkEnd::Moved | WalkEnd::Stopped | WalkEnd::EntryLimit | WalkEnd::Deadline, None) => {
            Err(fault(FsErrorKind::Contended))
        }
    }
}

struct Collector<'m> {
    left: u64,
    path_bytes: usize,
    guest: Vec<ManifestEntry>,
    dropped: Drops,
    fault: Option<FsError>,
    masks: &'m Secrets,
}

/// Why a file is not kept, or a fault of ours.
enum Lost {
    Dropped(DropReason),
    Gone,
    Fault(FsErrorKind),
}

impl Collector<'_> {
    fn make_way(&mut self, artifacts: &Dir) -> FsResult<()> {
        for ours in OURS {
            let fault = |kind| FsError::new("remove", ours.as_bytes(), kind);
            let name = CString::new(ours).map_err(|_| fault(Errno::INVAL.into()))?;
            let stat = match stat_name(artifacts, &name) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(fault(errno.into())),
            };
            remove_name(artifacts.as_fd(), &name).map_err(fault)?;
            self.dropped.add(Dropped {
                path: path_of(ours.as_bytes()),
                kind: stat.kind,
                size: stat.size,
                reason: DropReason::Reserved,
            });
        }
        Ok(())
    }

    fn visit(&mut self, artifacts: &Dir, visit: Visit<'_>) -> FsResult<()> {
        let (entry, lost) = match visit {
            Visit::Entry(entry) => (entry, self.take(&entry)),
            Visit::Skipped { entry, why } => (
                entry,
                Err(match why {
                    Skip::TooDeep => Lost::Dropped(DropReason::TooDeep),
                    Skip::TooManyEntries => Lost::Dropped(DropReason::Entries),
                    Skip::Unreadable => Lost::Dropped(DropReason::Unreadable),
                    // Nothing a guest can make; it is neither counted nor ours to remove.
                    Skip::OtherFileSystem => Lost::Fault(FsErrorKind::OtherFileSystem),
                }),
            ),
        };
        let fault = |kind| FsError::new("collect", entry.path, kind);
        match lost {
            Ok(()) | Err(Lost::Gone) => Ok(()),
            Err(Lost::Fault(kind)) => Err(fault(kind)),
            Err(Lost::Dropped(reason)) => {
                self.dropped.add(Dropped {
                    path: path_of(&self.masks.redact(entry.path)),
                    kind: entry.stat.kind,
                    size: match entry.stat.kind {
                        Kind::Directory => 0,
                        _ => entry.stat.size,
                    },
                    reason,
                });
                match entry.path {
                    b"" => artifacts.clear(),
                    _ => remove(entry.at).map_err(fault),
                }
            }
        }
    }

    fn take(&mut self, entry: &WalkEntry<'_>) -> Result<(), Lost> {
        let kind = entry.stat.kind;
        if !self.masks.is_empty() && self.masks.find(entry.path).is_some() {
            return Err(Lost::Dropped(DropReason::Secret));
        }
        if kind == Kind::Directory {
            return self.check_directory(entry);
        }
        // A symbolic link's size is the length of its text, which takes room as well.
        if entry.stat.size > self.left {
            return Err(Lost::Dropped(DropReason::Bytes));
        }
        if self.path_bytes + entry.path.len() > PATH_BYTES {
            return Err(Lost::Dropped(DropReason::Entries));
        }
        let (size, hash) = match kind {
            Kind::File => {
                let mut read = digest(entry.at, self.left, self.masks)?;
                if read.is_secret {
                    rewrite(entry.at, self.left, self.masks)?;
                    read = digest(entry.at, self.left, self.masks)?;
                    if read.is_secret {
                        return Err(Lost::Dropped(DropReason::Secret));
                    }
                }
                (read.size, Some(read.hash))
            }
            Kind::Symlink if self.points_to_a_secret(entry.at)? => {
                return Err(Lost::Dropped(DropReason::Secret));
            }
            Kind::Directory
            | Kind::Symlink
            | Kind::Fifo
            | Kind::Socket
            | Kind::Device
            | Kind::Unknown => (entry.stat.size, None),
        };
        self.left -= size;
        self.path_bytes += entry.path.len();
        self.guest.push(ManifestEntry {
            path: path_of(entry.path),
            kind,
            size,
            hash,
        });
        Ok(())
    }

    fn check_directory(&self, entry: &WalkEntry<'_>) -> Result<(), Lost> {
        if self.masks.is_empty() || entry.path.is_empty() {
            return Ok(());
        }
        let flags = READING | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let opened = openat(entry.at.dir, entry.at.name, flags, Mode::empty());
        let held = opened.and_then(|fd| attributes::hold_a_secret(fd, self.masks));
        match held {
            Ok(false) => Ok(()),
            Ok(true) => Err(Lost::Dropped(DropReason::Secret)),
            Err(Errno::ACCESS) => Err(Lost::Dropped(DropReason::Unreadable)),
            Err(Errno::NOENT) => Err(Lost::Gone),
            Err(Errno::NOTDIR | Errno::LOOP) => Err(Lost::Dropped(DropReason::Changed)),
            Err(errno) => Err(Lost::Fault(errno.into())),
        }
    }

    /// A link's text is whatever its maker wrote.
    fn points_to_a_secret(&self, at: At<'_>) -> Result<bool, Lost> {
        if self.masks.is_empty() {
            return Ok(false);
        }
        match readlinkat(at.dir, at.name, Vec::new()) {
            Ok(text) => Ok(self.masks.find(text.as_bytes()).is_some()),
            Err(Errno::NOENT) => Err(Lost::Gone),
            Err(Errno::INVAL) => Err(Lost::Dropped(DropReason::Changed)),
            Err(errno) => Err(Lost::Fault(errno.into())),
        }
    }
}

/// One file, as it was read.
struct Read {
    size: u64,
    hash: String,
    /// There is something in it that must be masked.
    is_secret: bool,
}

/// Opens one file that is none of a guest's tricks.
fn checked(at: At<'_>, left: u64) -> Result<File, Lost> {
    let fd = match single(at.dir, at.name.to_bytes(), READING | OFlags::NOFOLLOW) {
        Ok(fd) => fd,
        Err(FsErrorKind::Permission) => return Err(Lost::Dropped(DropReason::Unreadable)),
        Err(FsErrorKind::NotFound) => return Err(Lost::Gone),
        Err(FsErrorKind::Loop | FsErrorKind::NotRegular(_)) => {
            return Err(Lost::Dropped(DropReason::Changed));
        }
        Err(kind) => return Err(Lost::Fault(kind)),
    };
    match regular(&fd) {
        Ok(stat) if stat.size <= left => {}
        Ok(_) => return Err(Lost::Dropped(DropReason::Bytes)),
        Err(FsErrorKind::NotRegular(_) | FsErrorKind::IsADirectory) => {
            return Err(Lost::Dropped(DropReason::Changed));
        }
        Err(kind) => return Err(Lost::Fault(kind)),
    }
    Ok(File::from(fd))
}

/// Reads through one descriptor that was checked itself. The size is that of the bytes hashed.
fn digest(at: At<'_>, left: u64, masks: &Secrets) -> Result<Read, Lost> {
    let file = checked(at, left)?;
    // A masked copy has none.
    let hung = attributes::hold_a_secret(&file, masks);
    let hung = hung.map_err(|errno| Lost::Fault(errno.into()))?;
    let mut file = file.take(left.saturating_add(1));
    let mut masks = (!masks.is_empty()).then(|| masks.redactor());
    let mut unseen = Vec::new();
    let mut buffer = vec![0u8; 64 << 10];
    let mut digest = Sha256::new();
    let mut size = 0u64;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                digest.update(&buffer[..read]);
                size += read as u64;
                if let Some(redactor) = &mut masks {
                    unseen.clear();
                    redactor.push(&buffer[..read], &mut unseen);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Lost::Fault(from_io(&error))),
        }
    }
    match size <= left {
        true => Ok(Read {
            size,
            hash: hex(&digest.finalize()),
            is_secret: hung
                || masks.is_some_and(|mut redactor| {
                    redactor.finish(&mut unseen);
                    redactor.masked() > 0
                }),
        }),
        false => Err(Lost::Dropped(DropReason::Changed)),
    }
}

/// Puts a masked copy in the place of a file, which may have grown or shrunk by it.
fn rewrite(at: At<'_>, left: u64, masks: &Secrets) -> Result<(), Lost> {
    let fault = |error: &std::io::Error| Lost::Fault(from_io(error));
    let mut file = checked(at, left)?;
    let mode = file.metadata().map_err(|it| fault(&it))?.permissions();
    let name = temporary_name().map_err(Lost::Fault)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let copy = openat(at.dir, &name, flags, Mode::RUSR | Mode::WUSR);
    let mut copy = File::from(copy.map_err(|errno| Lost::Fault(errno.into()))?);
    let mut redactor = masks.redactor();
    let (mut buffer, mut clean) = (vec![0u8; 64 << 10], Vec::new());
    let written = loop {
        clean.clear();
        let read = match file.read(&mut buffer) {
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => break Err(error),
        };
        match read {
            0 => redactor.finish(&mut clean),
            read => redactor.push(&buffer[..read], &mut clean),
        }
        if let Err(error) = copy.write_all(&clean) {
            break Err(error);
        }
        if read == 0 {
            break copy.set_permissions(mode);
        }
    };
    let moved = written.map_err(|it| fault(&it)).and_then(|()| {
        let moved = rustix::fs::renameat(at.dir, &name, at.dir, at.name);
        moved.map_err(|errno| Lost::Fault(errno.into()))
    });
    if moved.is_err() {
        let _ = unlinkat(at.dir, &name, AtFlags::empty());
    }
    moved
}

fn remove(at: At<'_>) -> Result<(), FsErrorKind> {
    match unlinkat(at.dir, at.name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::ISDIR) => remove_name(at.dir, at.name),
        Err(errno) => Err(errno.into()),
    }
}

fn path_of(bytes: &[u8]) -> ByteString {
    ByteString::new(bytes).unwrap_or_default()
}
