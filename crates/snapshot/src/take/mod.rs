//! Taking a snapshot. Nothing of it exists until its record does, and the record is written after
//! everything that it needs is on disk.

mod cut;
mod known;
mod read;
mod workers;

use std::collections::HashMap;

use glovebox_model::{ByteString, Code, Error, ExecId, ProjectId, Result, SnapshotId};
use glovebox_workspace::{Dir, Kind};
use rustix::fs::{OFlags, fdatasync, syncfs};
use serde::Serialize;

use crate::bytes::{Raw, byte_string};
use crate::chunks::Chunks;
use crate::counts::Counts;
use crate::fault::{STAGE, internal, os, storing, too_much};
use crate::hash::ChunkHash;
use crate::lock::{CHUNKS, Lock, TAKING};
use crate::manifest::{self, Content, Entry, Manifest, Meta, Node};
use crate::pack::{Batch, PackWriter};
use crate::progress::{Progress, Watch, tell};
use crate::reach::{Locked, open_file};
use crate::record::{self, Digest, Snapshot, Source, TEXT_MAX};
use crate::snapshots::Snapshots;
use crate::stamp::Stamp;
use crate::tree::{Bounds, Facts, Found, walk};

use cut::Cutter;
use known::Known;
use read::Readout;
pub(crate) use read::xattrs_of;
use workers::{Job, Yield};

const UNSTABLE_NAMED: usize = 100;
/// A file system writes dirty pages back within half a minute; twice that, to be sure.
const SETTLED_SEC: i64 = 60;
const SYNCED_SINGLY: usize = 64;

pub struct Take<'a> {
    pub project: ProjectId,
    pub label: Option<String>,
    pub note: Option<String>,
    /// The exec that is about to start.
    pub before_exec: Option<ExecId>,
    /// The snapshot that is about to be restored.
    pub before_restore: Option<SnapshotId>,
    /// Whose it is.
    pub agent_id: Option<String>,
    /// What it is compared with; without one, the newest of the project.
    pub parent: Option<SnapshotId>,
    pub writers: Writers,
    pub limits: TakeLimits,
    pub watch: &'a mut dyn Watch,
}

/// Whether a program may have files of the workspace mapped while it is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Writers {
    /// Then what changed lately is written back first, which takes a moment.
    #[default]
    Possible,
    /// Whoever says so knows that no process has the workspace.
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakeLimits {
    /// On all snapshots of the space together.
    pub stored_bytes: Option<u64>,
    pub entries: usize,
    /// Levels of directories.
    pub depth: usize,
    /// Bytes of files, holes not counted.
    pub data_bytes: u64,
}

impl Default for TakeLimits {
    fn default() -> Self {
        Self {
            stored_bytes: None,
            entries: 1_000_000,
            depth: 1_000,
            data_bytes: 64 << 30,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Taken {
    pub snapshot: Snapshot,
    /// Files that were read; the others were known to be unchanged.
    pub files_read: u64,
    pub bytes_read: u64,
    /// What the store grew by.
    pub stored_bytes: u64,
    pub new_chunks: u64,
    /// Files that changed while they were read, the first hundred.
    pub unstable: Vec<ByteString>,
}

impl Taken {
    /// No more chunks than these hold so many files and bytes.
    pub fn most_chunks(files: u64, bytes: u64) -> u64 {
        files + bytes / cut::MIN as u64
    }
}

impl std::fmt::Debug for Take<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Take")
            .field("project", &self.project)
            .field("label", &self.label)
            .field("parent", &self.parent)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl<'a> Take<'a> {
    pub fn new(project: ProjectId, watch: &'a mut dyn Watch) -> Self {
        Self {
            project,
            label: None,
            note: None,
            before_exec: None,
            before_restore: None,
            agent_id: None,
            parent: None,
            writers: Writers::default(),
            limits: TakeLimits::default(),
            watch,
        }
    }
}

impl Snapshots {
    pub fn take(&self, work: &Dir, take: Take<'_>) -> Result<Taken> {
        check_texts(&take)?;
        let _taking = match take.limits.stored_bytes {
            Some(_) => Lock::alone(&self.dir, TAKING, take.watch)?,
            None => Lock::shared(&self.dir, TAKING, take.watch)?,
        };
        let _chunks = Lock::shared(&self.dir, CHUNKS, take.watch)?;
        let chunks = Chunks::load(&self.packs)?;
        let known = self.known(&chunks, &take, work)?;
        let (budget, limit) = match take.limits.stored_bytes {
            Some(limit) => (limit.saturating_sub(self.stored_bytes()?), limit),
            None => (u64::MAX, u64::MAX),
        };
        let mut writer = PackWriter::new(&self.packs, budget, limit);
        // Before the first look, so that every change after a look is newer than this.
        let started = Stamp::now();
        let bounds = Bounds {
            entries: take.limits.entries,
            depth: take.limits.depth,
        };
        let found = walk(work, bounds, Locked::Refuse, &|_| true, take.watch)?;
        let mut plan = Plan::new(found, &known, &chunks);
        if take.writers == Writers::Possible {
            settle(work, &plan, started)?;
        }
        let got = workers::run(
            work,
            std::mem::take(&mut plan.jobs),
            &chunks,
            &mut writer,
            take.limits.data_bytes,
            take.watch,
        )?;
        let entries = plan.found.len() as u64;
        let (bytes_read, files_read) = (got.bytes, got.files);
        let outcome = plan.assemble(work, got, &known)?;
        let manifest = Manifest::new(outcome.entries).encode()?;
        let digest = store_manifest(&manifest, &chunks, &mut writer)?;
        tell(
            take.watch,
            Progress {
                entries,
                bytes: bytes_read,
            },
        )?;
        let snapshot = Snapshot {
            id: fresh_id()?,
            project: take.project,
            taken_at: jiff::Timestamp::now(),
            parent: known.snapshot.as_ref().map(|parent| parent.id.clone()),
            label: take.label,
            before_exec: take.before_exec,
            before_restore: take.before_restore,
            agent_id: take.agent_id,
            note: take.note,
            counts: outcome.counts,
            manifest: digest,
            source: Source {
                device: known.device,
                started,
            },
        };
        let record = record::encode(&snapshot)?;
        writer.within_budget(record.len() as u64)?;
        let written = writer.finish()?;
        record::write(&self.records, &snapshot.id, &record)?;
        Ok(Taken {
            snapshot,
            files_read,
            bytes_read,
            stored_bytes: written.bytes + record.len() as u64,
            new_chunks: written.chunks,
            unstable: outcome.unstable,
        })
    }
}

fn check_texts(take: &Take<'_>) -> Result<()> {
    for (what, text) in [("label", &take.label), ("note", &take.note)] {
        if text.as_ref().is_some_and(|text| text.len() > TEXT_MAX) {
            let message = format!("the {what} is longer than {TEXT_MAX} bytes");
            return Err(too_much(message, "use a shorter one"));
        }
    }
    match &take.label {
        Some(label) if label.is_empty() => {
            let message = "the label is empty";
            Err(Error::new(Code::InvalidArgument, STAGE, message).hint("leave it out, or name it"))
        }
        _ => Ok(()),
    }
}

fn fresh_id() -> Result<SnapshotId> {
    let mut random = [0u8; 16];
    getrandom::fill(&mut random).map_err(|_| internal("the system has no random numbers"))?;
    Ok(SnapshotId::from_random(random))
}

/// A page that a program has mapped and dirtied can be written again without a new change time until
/// it has been written back. So what changed lately is written back before it is read: whatever is
/// stored to it afterwards is stamped. A page that nobody has mapped hides nothing.
fn settle(work: &Dir, plan: &Plan, started: Stamp) -> Result<()> {
    let lately = |facts: &Facts| facts.changed.sec >= started.sec.saturating_sub(SETTLED_SEC);
    let changed: Vec<&Found> = plan
        .jobs
        .iter()
        .map(|job| &plan.found[job.names[0]])
        .filter(|found| lately(&found.facts))
        .collect();
    // The whole file system at once would wait for what everybody else has written.
    if changed.len() <= SYNCED_SINGLY {
        for found in changed {
            // One that is gone, or cannot be opened, is dealt with when it is read.
            if let Ok(file) = open_file(work, &found.path) {
                fdatasync(file).map_err(|errno| os("write back", &found.path, errno))?;
            }
        }
        return Ok(());
    }
    let top = work.open_plain(b"", OFlags::RDONLY).map_err(storing)?;
    syncfs(top).map_err(|errno| os("write back", b"", errno))
}

fn store_manifest(bytes: &[u8], chunks: &Chunks, writer: &mut PackWriter<'_>) -> Result<Digest> {
    let mut cutter = Cutter::new()?;
    let mut batch = Batch::default();
    let mut listed: Vec<(ChunkHash, u32)> = Vec::new();
    for range in manifest::cuts(bytes) {
        let plain = &bytes[range];
        let hash = ChunkHash::of(plain);
        if !chunks.has(hash) {
            cutter.store(hash, plain, &mut batch)?;
        }
        let length = u32::try_from(plain.len()).map_err(|_| internal("a chunk too large"))?;
        listed.push((hash, length));
    }
    let list = manifest::encode_list(&listed);
    let hash = ChunkHash::of(&list);
    if !chunks.has(hash) {
        cutter.store(hash, &list, &mut batch)?;
    }
    if !batch.is_empty() {
        writer.put(&batch)?;
    }
    Ok(Digest {
        list: hash,
        whole: ChunkHash::of(bytes),
        bytes: bytes.len() as u64,
    })
}

/// What was found, and what of it has to be read.
struct Plan {
    found: Vec<Found>,
    jobs: Vec<Job>,
    /// Names whose contents the parent knows.
    kept: HashMap<usize, (Content, Meta)>,
    /// From a further name of a file to its first.
    first: HashMap<usize, usize>,
}

struct Outcome {
    entries: Vec<Entry>,
    counts: Counts,
    unstable: Vec<ByteString>,
}

impl Plan {
    fn new(found: Vec<Found>, known: &Known, chunks: &Chunks) -> Self {
        let mut groups: HashMap<((u32, u32), u64), Vec<usize>> = HashMap::new();
        let mut order: Vec<Vec<usize>> = Vec::new();
        let mut kept = HashMap::new();
        for (at, entry) in found.iter().enumerate() {
            let facts = &entry.facts;
            if facts.kind != Kind::File || facts.is_mount {
                continue;
            }
            if facts.links > 1 {
                groups
                    .entry((facts.device, facts.ino))
                    .or_default()
                    .push(at);
                continue;
            }
            match known.unchanged(entry, 1, chunks) {
                Some(content) => drop(kept.insert(at, content)),
                None => order.push(vec![at]),
            }
        }
        let mut first = HashMap::new();
        let mut linked: Vec<Vec<usize>> = groups.into_values().collect();
        linked.sort_unstable();
        for names in linked {
            for further in &names[1..] {
                first.insert(*further, names[0]);
            }
            let count = u32::try_from(names.len()).unwrap_or(u32::MAX);
            match known.unchanged(&found[names[0]], count, chunks) {
                Some(content) => drop(kept.insert(names[0], content)),
                None => order.push(names),
            }
        }
        let jobs = order
            .into_iter()
            .map(|names| Job {
                paths: names.iter().map(|at| found[*at].path.clone()).collect(),
                bytes: found[names[0]].facts.size,
                names,
            })
            .collect();
        Self {
            found,
            jobs,
            kept,
            first,
        }
    }

    fn assemble(mut self, work: &Dir, got: Yield, known: &Known) -> Result<Outcome> {
        let mut readouts: HashMap<usize, Readout> = got.readouts.into_iter().collect();
        let gone: std::collections::HashSet<usize> = got.gone.into_iter().collect();
        // A first name that vanished hands its place on.
        for (at, names) in got.moved_first {
            for further in names {
                self.first.insert(further, at);
            }
        }
        let mut outcome = Outcome {
            entries: Vec::with_capacity(self.found.len()),
            counts: Counts::default(),
            unstable: Vec::new(),
        };
        let counts = &mut outcome.counts;
        let mut names_of: HashMap<usize, u32> = HashMap::new();
        for (at, first) in &self.first {
            if !gone.contains(at) && at != first {
                *names_of.entry(*first).or_default() += 1;
            }
        }
        for (at, found) in self.found.iter().enumerate() {
            let facts = &found.facts;
            if gone.contains(&at) {
                continue;
            }
            if facts.is_mount {
                counts.mounts_skipped += 1;
                continue;
            }
            if facts.kind != Kind::Symlink && facts.mode & 0o6000 != 0 {
                counts.set_id_dropped += 1;
            }
            let (meta, node) = match facts.kind {
                Kind::Directory => {
                    counts.directories += 1;
                    let (xattrs, dropped) = known.directory_xattrs(work, found)?;
                    counts.xattrs_dropped += dropped;
                    (meta_of(facts, xattrs), Node::Directory)
                }
                Kind::Symlink => {
                    counts.symlinks += 1;
                    let target = Raw(found.target.clone().unwrap_or_default());
                    (meta_of(facts, Vec::new()), Node::Symlink { target })
                }
                Kind::Fifo => {
                    counts.fifos += 1;
                    (meta_of(facts, Vec::new()), Node::Fifo)
                }
                Kind::File => match self.first.get(&at).filter(|first| **first != at) {
                    Some(first) => {
                        counts.hard_links += 1;
                        let to = Raw(self.found[*first].path.clone());
                        (meta_of(facts, Vec::new()), Node::Link { to })
                    }
                    None => {
                        let (mut content, meta) = match readouts.remove(&at) {
                            Some(read) => {
                                counts.xattrs_dropped += read.xattrs_dropped;
                                if read.content.seen.is_none() {
                                    counts.unstable += 1;
                                    if outcome.unstable.len() < UNSTABLE_NAMED {
                                        outcome.unstable.push(byte_string(&found.path));
                                    }
                                }
                                (read.content, meta_of(&read.facts, read.xattrs))
                            }
                            None => self
                                .kept
                                .remove(&at)
                                .ok_or_else(|| internal("a file was neither read nor known"))?,
                        };
                        content.names = 1 + names_of.get(&at).copied().unwrap_or(0);
                        counts.files += 1;
                        counts.bytes = counts.bytes.saturating_add(content.size);
                        (meta, Node::File(content))
                    }
                },
                Kind::Socket => {
                    counts.sockets_skipped += 1;
                    continue;
                }
                Kind::Device | Kind::Unknown => {
                    counts.devices_skipped += 1;
                    continue;
                }
            };
            outcome.entries.push(Entry {
                path: Raw(found.path.clone()),
                meta,
                node,
            });
        }
        Ok(outcome)
    }
}

fn meta_of(facts: &Facts, xattrs: Vec<(Raw, Raw)>) -> Meta {
    Meta {
        mode: facts.kept_mode(),
        uid: facts.uid,
        gid: facts.gid,
        modified: facts.modified,
        xattrs,
    }
}
