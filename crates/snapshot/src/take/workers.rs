//! Reading, hashing and compressing on two threads, while the caller's writes the pack.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use glovebox_model::{Error, Result};
use glovebox_workspace::Dir;

use super::cut::Cutter;
use super::read::{Readout, Sink, read};
use crate::chunks::Chunks;
use crate::fault::{internal, too_much};
use crate::hash::ChunkHash;
use crate::pack::{Batch, PackWriter};
use crate::progress::{Progress, Watch, tell};

/// Below this a second thread costs more than it saves.
const WORTH_TWO: u64 = 1 << 20;
const FILES_WORTH_TWO: usize = 256;
/// At most this many megabytes wait for the disk.
const WAITING: usize = 8;

/// One file, by all its names.
#[derive(Debug)]
pub(super) struct Job {
    /// Their places in the tree, in order.
    pub(super) names: Vec<usize>,
    pub(super) paths: Vec<Vec<u8>>,
    /// As far as is known.
    pub(super) bytes: u64,
}

#[derive(Debug, Default)]
pub(super) struct Yield {
    /// By the place of the name that was read.
    pub(super) readouts: Vec<(usize, Readout)>,
    pub(super) gone: Vec<usize>,
    /// A name that is the first now, and the names that come after it.
    pub(super) moved_first: Vec<(usize, Vec<usize>)>,
    pub(super) files: u64,
    pub(super) bytes: u64,
}

struct Shared<'s> {
    work: &'s Dir,
    jobs: &'s [Job],
    chunks: &'s Chunks,
    next: AtomicUsize,
    stop: AtomicBool,
    bytes: AtomicU64,
    bytes_max: u64,
    /// Chunks that this snapshot adds.
    fresh: Mutex<HashSet<ChunkHash>>,
}

pub(super) fn run(
    work: &Dir,
    jobs: Vec<Job>,
    chunks: &Chunks,
    writer: &mut PackWriter<'_>,
    bytes_max: u64,
    watch: &mut dyn Watch,
) -> Result<Yield> {
    if jobs.is_empty() {
        return Ok(Yield::default());
    }
    let shared = Shared {
        work,
        jobs: &jobs,
        chunks,
        next: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        bytes: AtomicU64::new(0),
        bytes_max,
        fresh: Mutex::new(HashSet::new()),
    };
    let expected: u64 = jobs
        .iter()
        .map(|job| job.bytes)
        .fold(0, u64::saturating_add);
    let threads = match expected >= WORTH_TWO || jobs.len() >= FILES_WORTH_TWO {
        true => 2,
        false => 1,
    };
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel::<Batch>(WAITING);
        let mut running = Vec::new();
        for _ in 0..threads {
            let sender = sender.clone();
            let shared = &shared;
            running.push(scope.spawn(move || work_through(shared, &sender)));
        }
        drop(sender);
        let written = write_all(receiver, writer, &shared, watch);
        if written.is_err() {
            shared.stop.store(true, Ordering::Relaxed);
        }
        let mut total = Yield::default();
        let mut fault = None;
        for thread in running {
            match thread.join() {
                Ok(Ok(part)) => total.add(part),
                Ok(Err(error)) => fault = Some(error),
                Err(_) => fault = Some(internal("a thread that read files has panicked")),
            }
        }
        // The writer's own fault comes first: the threads only noticed that nobody listens.
        written?;
        fault.map_or(Ok(()), Err)?;
        total.bytes = shared.bytes.load(Ordering::Relaxed);
        Ok(total)
    })
}

/// The receiver is dropped at the end, so that no thread waits for a writer that has failed.
fn write_all(
    receiver: Receiver<Batch>,
    writer: &mut PackWriter<'_>,
    shared: &Shared<'_>,
    watch: &mut dyn Watch,
) -> Result<()> {
    for batch in receiver {
        writer.put(&batch)?;
        let entries = shared.next.load(Ordering::Relaxed) as u64;
        let bytes = shared.bytes.load(Ordering::Relaxed);
        tell(watch, Progress { entries, bytes })?;
    }
    Ok(())
}

impl Yield {
    fn add(&mut self, part: Self) {
        self.readouts.extend(part.readouts);
        self.gone.extend(part.gone);
        self.moved_first.extend(part.moved_first);
        self.files += part.files;
    }
}

fn work_through(shared: &Shared<'_>, sender: &SyncSender<Batch>) -> Result<Yield> {
    let done = read_jobs(shared, sender);
    if done.is_err() {
        shared.stop.store(true, Ordering::Relaxed);
    }
    done
}

fn read_jobs(shared: &Shared<'_>, sender: &SyncSender<Batch>) -> Result<Yield> {
    let mut cutter = Cutter::new()?;
    let mut part = Yield::default();
    let mut feed = Feed {
        shared,
        sender,
        batch: Batch::default(),
    };
    while !shared.stop.load(Ordering::Relaxed) {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        let Some(job) = shared.jobs.get(number) else {
            break;
        };
        read_job(shared.work, job, &mut cutter, &mut feed, &mut part)?;
    }
    feed.send()?;
    Ok(part)
}

/// The first of a file's names that is still there is read; those before it are gone.
fn read_job(
    work: &Dir,
    job: &Job,
    cutter: &mut Cutter,
    feed: &mut Feed<'_>,
    part: &mut Yield,
) -> Result<()> {
    for (order, (at, path)) in job.names.iter().zip(&job.paths).enumerate() {
        match read(work, path, cutter, feed)? {
            None => part.gone.push(*at),
            Some(readout) => {
                part.files += 1;
                part.readouts.push((*at, readout));
                if order > 0 {
                    let all = job.names[order..].to_vec();
                    part.moved_first.push((*at, all));
                }
                return Ok(());
            }
        }
    }
    Ok(())
}

struct Feed<'f> {
    shared: &'f Shared<'f>,
    sender: &'f SyncSender<Batch>,
    batch: Batch,
}

impl Sink for Feed<'_> {
    fn chunk(&mut self, cutter: &mut Cutter, hash: ChunkHash, plain: &[u8]) -> Result<()> {
        let length = plain.len() as u64;
        let before = self.shared.bytes.fetch_add(length, Ordering::Relaxed);
        if before.saturating_add(length) > self.shared.bytes_max {
            let message = format!(
                "the workspace has more than {} bytes in its files",
                self.shared.bytes_max
            );
            return Err(too_much(message, "remove some, or raise the limit"));
        }
        if self.shared.chunks.has(hash) || !self.is_fresh(hash) {
            return Ok(());
        }
        cutter.store(hash, plain, &mut self.batch)?;
        match self.batch.is_full() {
            true => self.send(),
            false => Ok(()),
        }
    }
}

impl Feed<'_> {
    fn send(&mut self) -> Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        self.sender.send(batch).map_err(|_| stopped())
    }

    fn is_fresh(&self, hash: ChunkHash) -> bool {
        let fresh = &self.shared.fresh;
        fresh
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(hash)
    }
}

fn stopped() -> Error {
    internal("the pack is no longer written")
}
