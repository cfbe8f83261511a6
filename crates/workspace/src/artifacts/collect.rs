//! Takes stock of a directory that a hostile program filled. Nothing is followed, no special file
//! is opened, and time and memory depend on the limits below, not on what lies there.

use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;

use glovebox_model::{Artifact, ByteString, ExecId};
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, OFlags, unlinkat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::OURS;
use super::manifest::{DropReason, Dropped, Drops, Manifest, ManifestEntry};
use crate::dir::{
    At, Dir, Order, READING, Skip, Visit, WalkEnd, WalkEntry, WalkLimits, from_io, regular,
    remove_name, single, walk,
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
pub(super) fn collect(artifacts: &Dir, cap: u64) -> FsResult<Collected> {
    let mut collector = Collector {
        left: cap,
        path_bytes: 0,
        guest: Vec::new(),
        dropped: Drops::default(),
        fault: None,
    };
    collector.make_way(artifacts)?;
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

struct Collector {
    left: u64,
    path_bytes: usize,
    guest: Vec<ManifestEntry>,
    dropped: Drops,
    fault: Option<FsError>,
}

/// Why a file is not kept, or a fault of ours.
enum Lost {
    Dropped(DropReason),
    Gone,
    Fault(FsErrorKind),
}

impl Collector {
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
                    path: path_of(entry.path),
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
        if kind == Kind::Directory {
            return Ok(());
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
                let (size, hash) = digest(entry.at, self.left)?;
                (size, Some(hash))
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
}

/// Reads through one descriptor that was checked itself. The size is that of the bytes hashed.
fn digest(at: At<'_>, left: u64) -> Result<(u64, String), Lost> {
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
    let mut file = File::from(fd).take(left.saturating_add(1));
    let mut buffer = vec![0u8; 64 << 10];
    let mut digest = Sha256::new();
    let mut size = 0u64;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                digest.update(&buffer[..read]);
                size += read as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Lost::Fault(from_io(&error))),
        }
    }
    match size <= left {
        true => Ok((size, hex(&digest.finalize()))),
        false => Err(Lost::Dropped(DropReason::Changed)),
    }
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
