//! Which directories are watched, and where they are. A watch belongs to a directory and goes with
//! it wherever it is moved, so the paths are kept here.

use std::collections::{BTreeMap, HashMap};
use std::ops::{Bound, ControlFlow};

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use super::ChangeKind;
use super::batch::Batch;
use crate::dir::{Dir, entries, is_temporary, single};
use crate::fault::FsErrorKind;
use crate::stat::{Kind, stat_name};

/// Entries that are looked at when a tree appears.
const MOST_ENTRIES: u64 = 1_000_000;

#[derive(Debug)]
pub(super) struct Tree {
    root: Dir,
    inotify: OwnedFd,
    paths: HashMap<i32, Vec<u8>>,
    /// Ordered, so that what is below a directory lies together.
    watches: BTreeMap<Vec<u8>, i32>,
    most: usize,
    /// Some directory is not watched.
    pub(super) partial: bool,
}

/// Watches of directories that have no place for the moment: the path below the one that moved.
pub(super) type Detached = Vec<(Vec<u8>, i32)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tell {
    /// Everything that is there already is new.
    Created,
    Nothing,
}

impl Tree {
    pub(super) fn new(root: Dir, most: usize) -> Result<Self, FsErrorKind> {
        let mut tree = Self {
            inotify: inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?,
            root,
            paths: HashMap::new(),
            watches: BTreeMap::new(),
            most: most.max(1),
            partial: false,
        };
        tree.watch(b"")?;
        tree.add(b"", Tell::Nothing, &mut Batch::default());
        Ok(tree)
    }

    /// From the beginning, after events were lost.
    pub(super) fn renew(self) -> Result<Self, FsErrorKind> {
        let most = self.most;
        Self::new(self.root, most)
    }

    pub(super) fn inotify(&self) -> &OwnedFd {
        &self.inotify
    }

    pub(super) fn root_is_gone(&self) -> bool {
        self.root.stat_self().is_ok_and(|stat| stat.links == 0)
    }

    pub(super) fn path(&self, watch: i32) -> Option<&[u8]> {
        self.paths.get(&watch).map(Vec::as_slice)
    }

    /// Watches a directory and everything below it. What cannot be watched makes it partial: the
    /// rest is still worth seeing.
    pub(super) fn add(&mut self, path: &[u8], tell: Tell, batch: &mut Batch) {
        let mut pending = vec![path.to_vec()];
        let mut left = MOST_ENTRIES;
        while let Some(path) = pending.pop() {
            let fd = match self.watch(&path) {
                Ok(fd) => fd,
                // Gone or replaced meanwhile.
                Err(FsErrorKind::NotFound | FsErrorKind::NotADirectory | FsErrorKind::Loop) => {
                    continue;
                }
                Err(_) => {
                    self.partial = true;
                    continue;
                }
            };
            let read = entries(fd.as_fd(), |name, hint| {
                let Some(fewer) = left.checked_sub(1) else {
                    return ControlFlow::Break(());
                };
                left = fewer;
                if is_temporary(name.to_bytes()) {
                    return ControlFlow::Continue(());
                }
                let is_dir = match hint {
                    FileType::Unknown => {
                        stat_name(&fd, name).is_ok_and(|stat| stat.kind == Kind::Directory)
                    }
                    hint => hint == FileType::Directory,
                };
                let child = join(&path, name.to_bytes());
                if tell == Tell::Created {
                    batch.add(ChangeKind::Created, &child, is_dir);
                }
                if is_dir {
                    pending.push(child);
                }
                ControlFlow::Continue(())
            });
            self.partial |= read.is_err() || left == 0;
        }
    }

    /// One directory, open for reading. Its descriptor was found without following a link, and our
    /// own entry in `/proc` leads to exactly that directory, whatever its name means by now.
    fn watch(&mut self, path: &[u8]) -> Result<OwnedFd, FsErrorKind> {
        if self.watches.len() >= self.most && !self.watches.contains_key(path) {
            return Err(FsErrorKind::Os(Errno::NOSPC));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let name = if path.is_empty() { b"." } else { path };
        let fd = single(self.root.as_fd(), name, flags)?;
        let wanted = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR
            | WatchFlags::EXCL_UNLINK;
        let own = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let watch = inotify::add_watch(&self.inotify, own.as_str(), wanted)?;
        if let Some(old) = self.paths.insert(watch, path.to_vec()) {
            self.watches.remove(&old);
        }
        if let Some(old) = self.watches.insert(path.to_vec(), watch)
            && old != watch
        {
            self.paths.remove(&old);
            let _ = inotify::remove_watch(&self.inotify, old);
        }
        Ok(fd)
    }

    /// Takes a directory and everything below it from its place.
    pub(super) fn detach(&mut self, path: &[u8]) -> Detached {
        let mut below = path.to_vec();
        below.push(b'/');
        let from = Bound::Included(below.clone());
        let under = self.watches.range((from, Bound::Unbounded));
        let under = under.take_while(|(key, _)| key.starts_with(&below));
        let mut keys: Vec<Vec<u8>> = under.map(|(key, _)| key.clone()).collect();
        keys.push(path.to_vec());
        let mut detached = Vec::new();
        for key in keys {
            if let Some(watch) = self.watches.remove(&key) {
                self.paths.remove(&watch);
                detached.push((key[path.len()..].to_vec(), watch));
            }
        }
        detached
    }

    pub(super) fn attach(&mut self, path: &[u8], detached: Detached) {
        for (below, watch) in detached {
            let place = [path, &below].concat();
            self.paths.insert(watch, place.clone());
            self.watches.insert(place, watch);
        }
    }

    /// What went out of the tree is nobody's business here any more.
    pub(super) fn forget(&mut self, detached: Detached) {
        for (_, watch) in detached {
            // Already gone when the directory is.
            let _ = inotify::remove_watch(&self.inotify, watch);
        }
    }

    /// The kernel has dropped it.
    pub(super) fn dropped(&mut self, watch: i32) {
        if let Some(path) = self.paths.remove(&watch) {
            self.watches.remove(&path);
        }
    }
}

pub(super) fn join(path: &[u8], name: &[u8]) -> Vec<u8> {
    match path.is_empty() {
        true => name.to_vec(),
        false => [path, b"/", name].concat(),
    }
}
