//! Making a directory what a snapshot says, in place and with as little writing as possible. What
//! is right already is not touched; a file's new bytes appear under its name all at once; what the
//! snapshot does not have goes last, after everything it has is there. Killed anywhere, the same
//! restore again completes it.

mod contents;
mod metadata;
mod place;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use glovebox_model::{Code, Error, Result, SnapshotId};
use glovebox_workspace::{Dir, Kind, RelPath};
use rustix::fs::OFlags;
use serde::Serialize;

use crate::bytes::shown;
use crate::chunks::Chunks;
use crate::fault::{STAGE, hurting, internal, os, storing};
use crate::lock::{CHUNKS, Lock};
use crate::manifest::{Content, Entry, Manifest, Node};
use crate::progress::{Progress, Watch, tell};
use crate::reach::Locked;
use crate::record::Snapshot;
use crate::snapshots::Snapshots;
use crate::tree::{Bounds, Found, split, walk};

pub(crate) use contents::same_contents;
use place::{Parent, Placed};

/// Twice what a snapshot may have: the tree that stands there is somebody else's.
const ENTRIES_MAX: usize = 4_000_000;
const FILES_WORTH_TWO: usize = 64;

pub struct Restore<'a> {
    pub watch: &'a mut dyn Watch,
}

impl std::fmt::Debug for Restore<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Restore").finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Restored {
    /// Files whose contents were written.
    pub files_written: u64,
    pub bytes_written: u64,
    /// Directories, links, FIFOs and further names that were made.
    pub made: u64,
    /// Whose mode, owner, time or attributes were set and nothing else.
    pub adjusted: u64,
    /// Trees and files that were not in the snapshot.
    pub removed: u64,
    /// Mount points, which are not part of the workspace.
    pub mounts_left: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extras {
    /// In the normal case: nothing is lost if a damaged chunk stops us.
    Last,
    /// When there is no space for what comes back as long as they are there.
    First,
}

impl Snapshots {
    /// Into an empty directory it is a fork.
    pub fn restore(&self, id: &SnapshotId, target: &Dir, restore: Restore<'_>) -> Result<Restored> {
        let _lock = Lock::shared(&self.dir, CHUNKS, restore.watch)?;
        let snapshot = self.get(id)?;
        let chunks = Chunks::load(&self.packs)?;
        let manifest = self.manifest(&chunks, &snapshot)?;
        check_whole(&snapshot, &manifest, &chunks)?;
        let run = |extras, watch: &mut dyn Watch| -> Result<Restored> {
            let mut pass = Pass {
                snapshot: &snapshot,
                manifest: &manifest,
                chunks: &chunks,
                target,
                done: Restored::default(),
            };
            pass.run(extras, watch)?;
            Ok(pass.done)
        };
        match run(Extras::Last, restore.watch) {
            Err(error) if error.code == Code::DiskFull => run(Extras::First, restore.watch),
            done => done,
        }
    }
}

/// Before anything is touched: a snapshot that has lost chunks cannot be restored.
fn check_whole(snapshot: &Snapshot, manifest: &Manifest, chunks: &Chunks) -> Result<()> {
    for entry in manifest.entries() {
        let Node::File(content) = &entry.node else {
            continue;
        };
        if let Some(hash) = content.hashes().find(|hash| !chunks.has(*hash)) {
            let fault = chunks.missing(hash);
            return Err(hurting(&snapshot.id, Some(&entry.path.0), fault));
        }
    }
    Ok(())
}

struct Pass<'p> {
    snapshot: &'p Snapshot,
    manifest: &'p Manifest,
    chunks: &'p Chunks,
    target: &'p Dir,
    done: Restored,
}

impl Pass<'_> {
    fn run(&mut self, extras: Extras, watch: &mut dyn Watch) -> Result<()> {
        let bounds = Bounds {
            entries: ENTRIES_MAX,
            depth: usize::MAX,
        };
        // Directories that are no part of the snapshot are removed whole, so it does not matter how
        // deep or how full they are.
        let known = |path: &[u8]| {
            let entry = self.manifest.find(path);
            entry.is_some_and(|entry| entry.node.is_directory())
        };
        let found = walk(self.target, bounds, Locked::Unlock, &known, watch)?;
        let live: HashMap<&[u8], &Found> =
            found.iter().map(|it| (it.path.as_slice(), it)).collect();
        if extras == Extras::First {
            self.remove_extras(&found)?;
        }
        self.directories(&live)?;
        self.files(&live, watch)?;
        self.others(&live)?;
        if extras == Extras::Last {
            self.remove_extras(&found)?;
        }
        self.directory_metadata()?;
        let top = self
            .target
            .open_plain(b"", OFlags::RDONLY)
            .map_err(storing)?;
        rustix::fs::syncfs(top).map_err(|errno| os("write", b"", errno))
    }

    /// What the snapshot does not have.
    fn remove_extras(&mut self, found: &[Found]) -> Result<()> {
        for entry in found {
            let (above, name) = split(&entry.path);
            let wanted = self.manifest.find(&entry.path);
            if entry.facts.is_mount {
                if wanted.is_some() {
                    return Err(in_the_way(&entry.path));
                }
                self.done.mounts_left += 1;
                continue;
            }
            // Something else of a name that the snapshot has is replaced when its turn comes.
            if wanted.is_none() {
                let parent = Parent::open(self.target, above)?;
                parent.remove(name, &entry.path)?;
                self.done.removed += 1;
            }
        }
        Ok(())
    }

    fn directories(&mut self, live: &HashMap<&[u8], &Found>) -> Result<()> {
        for entry in self.manifest.entries() {
            if !entry.node.is_directory() {
                continue;
            }
            let path = entry.path.0.as_slice();
            let there = live.get(path).map(|found| found.facts);
            match there {
                Some(facts) if facts.is_mount => return Err(in_the_way(path)),
                Some(facts) if facts.kind == Kind::Directory => {}
                _ => {
                    let (above, name) = split(path);
                    let parent = Parent::open(self.target, above)?;
                    parent.make_directory(name, path)?;
                    self.done.made += 1;
                }
            }
        }
        Ok(())
    }

    fn files(&mut self, live: &HashMap<&[u8], &Found>, watch: &mut dyn Watch) -> Result<()> {
        let groups = self.groups();
        let mut work: Vec<Work<'_>> = Vec::new();
        let started = self.snapshot.source.started;
        for entry in self.manifest.entries() {
            let Node::File(content) = &entry.node else {
                continue;
            };
            let there = live.get(entry.path.0.as_slice()).copied();
            let still = there.is_some_and(|found| {
                found.facts.device == self.snapshot.source.device
                    // A set-id bit on the file itself is none of the snapshot's.
                    && found.facts.mode == entry.meta.mode
                    && found.facts.is_still(content, &entry.meta, started)
            });
            if still {
                continue;
            }
            work.push(Work {
                entry,
                content,
                there: there.filter(|found| self.may_stay(found, content, entry, &groups, live)),
            });
        }
        let tally = self.write_files(&work, watch)?;
        self.done.files_written += tally.files;
        self.done.bytes_written += tally.bytes;
        self.done.adjusted += tally.adjusted;
        Ok(())
    }

    /// The further names of each file.
    fn groups(&self) -> HashMap<&[u8], Vec<&[u8]>> {
        let mut groups: HashMap<&[u8], Vec<&[u8]>> = HashMap::new();
        for entry in self.manifest.entries() {
            if let Node::Link { to } = &entry.node {
                groups.entry(&to.0).or_default().push(&entry.path.0);
            }
        }
        groups
    }

    /// Whether what stands there could be kept if its bytes are right: a file with the names that it
    /// should have and no other. One that has another name elsewhere is shared with it, and what we
    /// set here would show there.
    fn may_stay(
        &self,
        found: &Found,
        content: &Content,
        entry: &Entry,
        groups: &HashMap<&[u8], Vec<&[u8]>>,
        live: &HashMap<&[u8], &Found>,
    ) -> bool {
        let further = groups.get(entry.path.0.as_slice());
        found.facts.kind == Kind::File
            && !found.facts.is_mount
            && found.facts.size == content.size
            && found.facts.links == content.names
            && further.into_iter().flatten().all(|name| {
                live.get(name)
                    .is_some_and(|other| other.facts.same_file(&found.facts))
            })
    }

    fn write_files(&self, work: &[Work<'_>], watch: &mut dyn Watch) -> Result<Tally> {
        let next = AtomicUsize::new(0);
        let stop = AtomicBool::new(false);
        let bytes = AtomicU64::new(0);
        let threads = if work.len() >= FILES_WORTH_TWO { 2 } else { 1 };
        let through = |watch: Option<&mut dyn Watch>| {
            let done = self.write_some(work, &next, &stop, &bytes, watch);
            if done.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            done
        };
        std::thread::scope(|scope| {
            let other = (threads == 2).then(|| scope.spawn(|| through(None)));
            let mine = through(Some(watch));
            let theirs = match other.map(std::thread::ScopedJoinHandle::join) {
                None => Ok(Tally::default()),
                Some(Ok(done)) => done,
                Some(Err(_)) => Err(internal("a thread that wrote files has panicked")),
            };
            let (mine, theirs) = (mine?, theirs?);
            Ok(Tally {
                files: mine.files + theirs.files,
                bytes: mine.bytes + theirs.bytes,
                adjusted: mine.adjusted + theirs.adjusted,
            })
        })
    }

    fn write_some(
        &self,
        work: &[Work<'_>],
        next: &AtomicUsize,
        stop: &AtomicBool,
        bytes: &AtomicU64,
        mut watch: Option<&mut dyn Watch>,
    ) -> Result<Tally> {
        let mut tally = Tally::default();
        let mut parent: Option<(&[u8], Parent)> = None;
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = work.get(number) else {
                break;
            };
            let path = item.entry.path.0.as_slice();
            let (above, name) = split(path);
            let held = match &parent {
                Some((at, held)) if *at == above => held,
                _ => &parent.insert((above, Parent::open(self.target, above)?)).1,
            };
            match self.file(item, held, name)? {
                Placed::Written => {
                    tally.files += 1;
                    tally.bytes += item.content.size;
                    bytes.fetch_add(item.content.size, Ordering::Relaxed);
                }
                Placed::Adjusted => tally.adjusted += 1,
                Placed::Right => {}
            }
            if let Some(watch) = watch.as_deref_mut() {
                let entries = number as u64;
                let bytes = bytes.load(Ordering::Relaxed);
                tell(watch, Progress { entries, bytes })?;
            }
        }
        Ok(tally)
    }

    fn file(&self, item: &Work<'_>, parent: &Parent, name: &[u8]) -> Result<Placed> {
        let path = item.entry.path.0.as_slice();
        if item.there.is_some() {
            let kept = parent.keep_file(name, item.entry, item.content, path)?;
            if let Some(placed) = kept {
                return Ok(placed);
            }
        }
        parent.write_file(name, item.entry, |file| {
            contents::write(file, item.content, self.chunks, path)
                .map_err(|error| self.told(error, path))
        })?;
        Ok(Placed::Written)
    }

    /// A fault of the store is told with the name that it hurts; one of the target is not.
    fn told(&self, error: Error, path: &[u8]) -> Error {
        match error.code {
            Code::DiskFull => error,
            _ => hurting(&self.snapshot.id, Some(path), error),
        }
    }

    fn others(&mut self, live: &HashMap<&[u8], &Found>) -> Result<()> {
        for entry in self.manifest.entries() {
            let path = entry.path.0.as_slice();
            let (above, name) = split(path);
            let there = live.get(path).copied().filter(|it| !it.facts.is_mount);
            let placed = match &entry.node {
                Node::Directory | Node::File(_) => continue,
                Node::Symlink { target } => {
                    let right = there.is_some_and(|it| it.target.as_ref() == Some(&target.0));
                    Parent::open(self.target, above)?.symlink(name, entry, &target.0, right)?
                }
                Node::Fifo => {
                    let right = there.is_some_and(|it| it.facts.kind == Kind::Fifo);
                    Parent::open(self.target, above)?.fifo(name, entry, right)?
                }
                Node::Link { to } => {
                    let (first_above, first_name) = split(&to.0);
                    let first = Parent::open(self.target, first_above)?;
                    Parent::open(self.target, above)?.link(name, path, &first, first_name)?
                }
            };
            match placed {
                Placed::Written => self.done.made += 1,
                Placed::Adjusted => self.done.adjusted += 1,
                Placed::Right => {}
            }
        }
        Ok(())
    }

    /// Last, and the deepest first: whatever is made or removed inside changes a directory's time,
    /// and a mode without write permission would have kept its owner out.
    fn directory_metadata(&mut self) -> Result<()> {
        for entry in self.manifest.entries().iter().rev() {
            if !entry.node.is_directory() {
                continue;
            }
            let path = entry.path.0.as_slice();
            let fd = self
                .target
                .open_plain(path, OFlags::RDONLY | OFlags::DIRECTORY)
                .map_err(storing)?;
            if metadata::set(&fd, &entry.meta, path)? {
                self.done.adjusted += 1;
            }
        }
        Ok(())
    }
}

struct Work<'w> {
    entry: &'w Entry,
    content: &'w Content,
    /// A file that may stay if its bytes are right.
    there: Option<&'w Found>,
}

#[derive(Default)]
struct Tally {
    files: u64,
    bytes: u64,
    adjusted: u64,
}

fn in_the_way(path: &[u8]) -> Error {
    let message = format!("a mount point stands at `{}`", shown(path));
    Error::new(Code::Conflict, STAGE, message).hint("unmount it and restore again")
}

pub(crate) fn rel(name: &[u8]) -> Result<RelPath> {
    RelPath::new(name).map_err(|error| error.at(STAGE, name))
}
