//! What is about to be done to a workspace, on disk before the first of it is: whoever finds it
//! afterwards can finish the work, or take it back.

use std::fs::File;
use std::io::{Read, Write};

use glovebox_model::ByteString;
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, Mode, OFlags, fsync, renameat, unlinkat};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::attributes::Map;
use super::base::Base;
use crate::dir::{Dir, from_io, single};
use crate::fault::{FsError, FsErrorKind, FsResult};
use crate::stat::{Kind, Stat};

const FILE: &str = "intent";
/// A hundred thousand paths of ordinary length.
const MOST: u64 = 64 << 20;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Intent {
    pub(super) stage: StageAt,
    pub(super) base: Base,
    pub(super) phase: Phase,
    /// When the last of it was staged; unknown in a note of an older version.
    #[serde(default)]
    pub(super) staged_at: Option<(i64, u32)>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Nothing was touched yet.
    Staging,
    /// Everything is staged; some of these may be done.
    Applying(Vec<Op>),
    /// All is done, and nothing left to do but to clear the stage.
    Applied,
}

/// Where complete files wait: on the file system of the workspace, or no rename would reach it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum StageAt {
    /// In the directory of the held exec.
    Home,
    /// In the workspace itself, under this name.
    Inside(String),
}

/// A file that was staged, wherever it is. Its number alone is not enough: it is given to another
/// file as soon as this one is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    kind: Kind,
    ino: u64,
    born: Option<(i64, u32)>,
}

impl Identity {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            kind: stat.kind,
            ino: stat.id.ino,
            born: stat.born.map(|it| (it.sec, it.nsec)),
        }
    }
}

/// The very file that stood somewhere, as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) kind: Kind,
    pub(super) ino: u64,
    size: u64,
    modified: (i64, u32),
    changed: (i64, u32),
}

impl Mark {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            kind: stat.kind,
            ino: stat.id.ino,
            size: stat.size,
            modified: (stat.modified.sec, stat.modified.nsec),
            changed: (stat.changed.sec, stat.changed.nsec),
        }
    }

    /// The same after a rename, which changes the change time and nothing else.
    pub(super) fn same_contents(&self, stat: &Stat) -> bool {
        let changed = self.changed;
        let now = Self {
            changed,
            ..Self::of(stat)
        };
        now == *self
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Op {
    /// What is staged under this name goes there, and what stood there to the stage.
    Put {
        path: ByteString,
        staged: u64,
        new: Identity,
        before: Option<Mark>,
        /// What was staged, if it is a file.
        #[serde(default)]
        made: Option<Mark>,
    },
    /// What stands there goes to the stage.
    Take {
        path: ByteString,
        staged: u64,
        before: Mark,
    },
    /// A directory keeps its place and gets these.
    Set {
        path: ByteString,
        /// None for one that was put there by the same intent.
        ino: Option<u64>,
        old: Dressing,
        new: Dressing,
    },
}

impl Op {
    pub(super) fn path(&self) -> &ByteString {
        match self {
            Self::Put { path, .. } | Self::Take { path, .. } | Self::Set { path, .. } => path,
        }
    }
}

/// What a directory has beside its entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Dressing {
    pub(super) mode: u32,
    pub(super) attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Dressing {
    pub(super) fn new(mode: u32, attributes: Map) -> Self {
        Self {
            mode,
            attributes: attributes.into_iter().collect(),
        }
    }

    pub(super) fn map(&self) -> Map {
        self.attributes.iter().cloned().collect()
    }
}

impl Intent {
    pub(super) fn save(&self, home: &Dir) -> FsResult<()> {
        write_file(home, FILE, self)
    }

    /// None when nothing was begun.
    pub(super) fn load(home: &Dir) -> FsResult<Option<Self>> {
        match read_file(home, FILE, MOST) {
            Ok(intent) => Ok(Some(intent)),
            Err(error) if error.kind() == FsErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn forget(home: &Dir) -> FsResult<()> {
        let fault = |errno| FsError::os("forget", FILE.as_bytes(), errno);
        unlinkat(home, FILE, AtFlags::empty()).map_err(fault)?;
        sync_directory(home)
    }
}

/// Whole and on disk, or not there.
pub(super) fn write_file(home: &Dir, name: &str, what: &impl Serialize) -> FsResult<()> {
    let fault = |kind| FsError::new("write", name.as_bytes(), kind);
    let bytes =
        serde_json::to_vec(what).map_err(|_| fault(FsErrorKind::Os(rustix::io::Errno::INVAL)))?;
    let fresh = format!("{name}.new");
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(home, fresh.as_str(), flags, Mode::from_raw_mode(0o600));
    let mut file = File::from(fd.map_err(|errno| fault(errno.into()))?);
    file.write_all(&bytes)
        .map_err(|error| fault(from_io(&error)))?;
    fsync(&file).map_err(|errno| fault(errno.into()))?;
    renameat(home, fresh.as_str(), home, name).map_err(|errno| fault(errno.into()))?;
    sync_directory(home)
}

pub(super) fn read_file<T: DeserializeOwned>(home: &Dir, name: &str, most: u64) -> FsResult<T> {
    let fault = |kind| FsError::new("read", name.as_bytes(), kind);
    let file = home.open_file_name(name)?;
    let mut bytes = Vec::new();
    let read = file.take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| fault(from_io(&error)))?;
    if bytes.len() as u64 > most {
        return Err(fault(FsErrorKind::TooLarge { cap: most }));
    }
    serde_json::from_slice(&bytes).map_err(|_| fault(FsErrorKind::Os(rustix::io::Errno::BADMSG)))
}

/// Names in a directory are on disk only when the directory is.
pub(super) fn sync_directory(dir: impl AsFd) -> FsResult<()> {
    let fault = |kind| FsError::new("sync", b"", kind);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let fd = single(dir.as_fd(), b".", flags).map_err(fault)?;
    fsync(fd).map_err(|errno| fault(errno.into()))
}
