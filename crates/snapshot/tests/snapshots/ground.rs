//! A store and a workspace in a directory of their own, and an independent look at a tree.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use glovebox_model::{ProjectId, Result, SnapshotId};
use glovebox_snapshot::{Restore, Restored, Snapshots, Take, TakeLimits, Taken};
use glovebox_workspace::Dir;

pub(crate) struct Ground {
    _room: Option<tempfile::TempDir>,
    pub(crate) space: PathBuf,
    pub(crate) work: PathBuf,
}

pub(crate) fn dir(path: &Path) -> Dir {
    Dir::open_trusted(path).unwrap()
}

pub(crate) fn project() -> ProjectId {
    "demo".parse().unwrap()
}

impl Ground {
    pub(crate) fn new() -> Self {
        let room = tempfile::tempdir().unwrap();
        let ground = Self::at(room.path());
        Self {
            _room: Some(room),
            ..ground
        }
    }

    /// In a directory that somebody else removes.
    pub(crate) fn at(room: &Path) -> Self {
        let ground = Self {
            _room: None,
            space: room.join("space"),
            work: room.join("work"),
        };
        fs::create_dir_all(&ground.space).unwrap();
        fs::create_dir_all(&ground.work).unwrap();
        ground
    }

    pub(crate) fn snapshots(&self) -> Snapshots {
        Snapshots::open(&dir(&self.space)).unwrap()
    }

    pub(crate) fn take(&self) -> Taken {
        self.try_take(TakeLimits::default()).unwrap()
    }

    pub(crate) fn try_take(&self, limits: TakeLimits) -> Result<Taken> {
        let mut watch = ();
        let take = Take {
            limits,
            ..Take::new(project(), &mut watch)
        };
        self.snapshots().take(&dir(&self.work), take)
    }

    pub(crate) fn restore(&self, id: &SnapshotId) -> Restored {
        self.restore_to(id, &self.work).unwrap()
    }

    pub(crate) fn restore_to(&self, id: &SnapshotId, to: &Path) -> Result<Restored> {
        let restore = Restore { watch: &mut () };
        self.snapshots().restore(id, &dir(to), restore)
    }

    pub(crate) fn write(&self, path: impl AsRef<[u8]>, contents: impl AsRef<[u8]>) {
        let path = self.path(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).unwrap();
        }
        fs::write(path, contents).unwrap();
    }

    pub(crate) fn path(&self, path: impl AsRef<[u8]>) -> PathBuf {
        self.work.join(OsStr::from_bytes(path.as_ref()))
    }

    /// Waits until the file system's clock has moved on so far that a change from now on gets
    /// another stamp than any that is there.
    pub(crate) fn settle(&self) {
        let probe = self.space.join("probe");
        let stamp = || {
            fs::write(&probe, "x").unwrap();
            let metadata = fs::metadata(&probe).unwrap();
            metadata.ctime() * 1_000_000_000 + metadata.ctime_nsec()
        };
        let from = stamp();
        while stamp() - from < 150_000_000 {
            std::thread::yield_now();
        }
        fs::remove_file(&probe).unwrap();
    }

    pub(crate) fn files_in(&self, below: &str) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = fs::read_dir(self.space.join("snapshots").join(below))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        files
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) kind: &'static str,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    pub(crate) modified: (i64, i64),
    pub(crate) contents: Vec<u8>,
    pub(crate) size: u64,
    pub(crate) xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    /// The first path with the same inode.
    pub(crate) same_as: Vec<u8>,
}

pub(crate) type Tree = BTreeMap<Vec<u8>, Seen>;

/// Files over this size are sparse ones, compared by their hash elsewhere.
const LARGE: u64 = 64 << 20;

pub(crate) fn look(top: &Path) -> Tree {
    let mut tree = Tree::new();
    look_below(top, &mut Vec::new(), &mut tree);
    let mut firsts: HashMap<u64, Vec<u8>> = HashMap::new();
    for (path, seen) in &mut tree {
        let ino = fs::symlink_metadata(top.join(OsStr::from_bytes(path)))
            .unwrap()
            .ino();
        seen.same_as = firsts.entry(ino).or_insert_with(|| path.clone()).clone();
    }
    tree
}

fn look_below(top: &Path, below: &mut Vec<u8>, tree: &mut Tree) {
    for entry in fs::read_dir(top.join(OsStr::from_bytes(below))).unwrap() {
        let name = entry.unwrap().file_name().into_vec();
        let length = below.len();
        if !below.is_empty() {
            below.push(b'/');
        }
        below.extend_from_slice(&name);
        let path = top.join(OsStr::from_bytes(below));
        let metadata = fs::symlink_metadata(&path).unwrap();
        let kind = metadata.file_type();
        let mut seen = Seen {
            kind: "?",
            mode: metadata.mode() & 0o7777,
            owner: (metadata.uid(), metadata.gid()),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            contents: Vec::new(),
            size: 0,
            xattrs: Vec::new(),
            same_as: Vec::new(),
        };
        if kind.is_dir() {
            seen.kind = "dir";
            seen.xattrs = xattrs(&path);
        } else if kind.is_symlink() {
            seen.kind = "link";
            seen.contents = fs::read_link(&path).unwrap().into_os_string().into_vec();
        } else if kind.is_fifo() {
            seen.kind = "fifo";
        } else if kind.is_socket() {
            seen.kind = "socket";
        } else {
            seen.kind = "file";
            seen.size = metadata.len();
            seen.xattrs = xattrs(&path);
            if metadata.len() <= LARGE {
                seen.contents = fs::read(&path).unwrap();
            }
        }
        let is_dir = kind.is_dir();
        tree.insert(below.clone(), seen);
        if is_dir {
            look_below(top, below, tree);
        }
        below.truncate(length);
    }
}

fn xattrs(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = vec![0u8; 65536];
    let length = rustix::fs::llistxattr(path, &mut names[..]).unwrap();
    let mut all = Vec::new();
    for name in names[..length].split(|byte| *byte == 0) {
        if name.starts_with(b"user.") {
            let mut value = vec![0u8; 65536];
            let length = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap();
            all.push((name.to_vec(), value[..length].to_vec()));
        }
    }
    all.sort();
    all
}

pub(crate) fn set_xattr(path: &Path, name: &str, value: &[u8]) {
    rustix::fs::lsetxattr(path, name, value, rustix::fs::XattrFlags::empty()).unwrap();
}

pub(crate) fn make_fifo(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o640);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

pub(crate) fn set_modified(path: &Path, sec: i64, nsec: i64) {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
    let time = Timespec {
        tv_sec: sec,
        tv_nsec: nsec,
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// Bytes that do not compress, always the same for the same seed.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
