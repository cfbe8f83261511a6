//! Retention and garbage. Whoever collects is alone in the store. Nothing is deleted unless every
//! snapshot that stays was read to its last chunk; a pack goes only after all that lives in it is
//! on disk elsewhere. Killed anywhere, the next collection finishes.

use std::collections::{HashMap, HashSet};

use glovebox_model::{Code, Result, SnapshotId};
use serde::Serialize;

use crate::chunks::{Chunks, PACKS_MAX, Place};
use crate::fault::{damaged, storing};
use crate::hash::ChunkHash;
use crate::keep::Keep;
use crate::lock::{CHUNKS, Lock};
use crate::pack::{Batch, PackWriter, is_pack_name};
use crate::record;
use crate::restore::rel;
use crate::snapshots::{Snapshots, sync_dir};

/// Packs of small snapshots are merged when there are many: each costs an opening whenever the
/// store is used.
const SMALL_BYTES: u64 = 4 << 20;
const SMALL_MANY: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Collect {
    pub keep: Keep,
    pub sweep: Sweep,
}

/// When a pack with garbage in it is written anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sweep {
    /// When half of it is garbage.
    #[default]
    Thrifty,
    /// Whenever there is any.
    Full,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CollectionReport {
    pub removed: Vec<SnapshotId>,
    pub snapshots_left: u64,
    pub packs_removed: u64,
    pub packs_written: u64,
    /// Temporary files and the like that a crash had left.
    pub orphans_removed: u64,
    pub bytes_before: u64,
    pub bytes_after: u64,
    /// Chunks that nobody needs and that stay for now, since most of their pack is needed.
    pub garbage_chunks: u64,
}

impl Snapshots {
    pub fn collect(&self, collect: Collect) -> Result<CollectionReport> {
        let _lock = Lock::alone(&self.dir, CHUNKS, &mut ())?;
        let mut done = CollectionReport {
            bytes_before: self.stored_bytes()?,
            ..CollectionReport::default()
        };
        done.orphans_removed = self.remove_orphans()?;
        let listed = self.list(None)?;
        if let Some(broken) = listed.damaged.first() {
            let message = format!("the record of snapshot `{}` is damaged", broken.id);
            return Err(damaged(message)
                .caused_by(&broken.why)
                .hint("what it needs is unknown, so nothing is deleted; remove it and try again"));
        }
        let expired = collect
            .keep
            .expired(&listed.snapshots, jiff::Timestamp::now());
        let chunks = Chunks::load(&self.packs)?;
        let mut live: HashSet<ChunkHash> = HashSet::new();
        for snapshot in &listed.snapshots {
            if expired.contains(&snapshot.id) {
                continue;
            }
            self.mark(&chunks, snapshot, &mut live).map_err(|error| {
                error.hint("nothing was deleted; remove this snapshot and try again")
            })?;
            done.snapshots_left += 1;
        }
        for id in &expired {
            record::remove(&self.records, id)?;
        }
        if !expired.is_empty() {
            // A record that came back after a crash would miss its chunks.
            sync_dir(&self.records)?;
        }
        done.removed = expired.into_iter().collect();
        done.removed.sort();
        self.sweep(&chunks, &live, collect.sweep, &mut done)?;
        done.bytes_after = self.stored_bytes()?;
        Ok(done)
    }

    fn remove_orphans(&self) -> Result<u64> {
        let mut removed = 0;
        let packs = self.packs.list(PACKS_MAX).map_err(storing)?;
        for entry in packs.entries {
            if !is_pack_name(&entry.name.display()) {
                let name = rel(entry.name.as_bytes())?;
                self.packs.remove_file(&name).map_err(storing)?;
                removed += 1;
            }
        }
        let records = self.records.list(PACKS_MAX).map_err(storing)?;
        for entry in records.entries {
            if record::is_temporary(&entry.name.display()) {
                let name = rel(entry.name.as_bytes())?;
                self.records.remove_file(&name).map_err(storing)?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    fn sweep(
        &self,
        chunks: &Chunks,
        live: &HashSet<ChunkHash>,
        sweep: Sweep,
        done: &mut CollectionReport,
    ) -> Result<()> {
        let homes = homes(chunks, live)?;
        let mut tallies = vec![Tally::default(); chunks.packs.len()];
        for place in chunks.each() {
            let tally = &mut tallies[place.pack];
            let is_home = homes.get(&place.located.hash) == Some(&place.pack);
            match live.contains(&place.located.hash) && is_home {
                true => tally.live_bytes += u64::from(place.located.stored),
                false => tally.garbage += 1,
            }
            tally.chunks += 1;
        }
        let rewritten = choose(chunks, &tallies, sweep);
        let going: HashSet<usize> = (0..tallies.len())
            .filter(|pack| tallies[*pack].garbage == tallies[*pack].chunks)
            .chain(rewritten.iter().copied())
            .collect();
        let mut writer = PackWriter::new(&self.packs, u64::MAX, u64::MAX);
        let mut moving: Vec<&Place> = chunks
            .each()
            .filter(|place| rewritten.contains(&place.pack))
            .filter(|place| homes.get(&place.located.hash) == Some(&place.pack))
            .collect();
        // As they lie on disk.
        moving.sort_unstable_by_key(|place| (place.pack, place.located.offset));
        let mut batch = Batch::default();
        for place in &moving {
            let pack = &chunks.packs[place.pack];
            // Checked before it moves: a copy of damage would look fresh.
            pack.chunk(&place.located).map_err(|error| {
                let hint = "nothing was deleted; remove the snapshots that it hurts and try again";
                error
                    .caused_by(format!("in pack `{}`", pack.name))
                    .hint(hint)
            })?;
            let located = &place.located;
            let bytes = pack.stored(located)?;
            batch.push(located.hash, located.plain, located.form, &bytes)?;
            if batch.is_full() {
                writer.put(&std::mem::take(&mut batch))?;
            }
        }
        if !batch.is_empty() {
            writer.put(&batch)?;
        }
        done.packs_written = u64::from(!moving.is_empty());
        writer.finish()?;
        for pack in &going {
            let name = rel(chunks.packs[*pack].name.as_bytes())?;
            match self.packs.remove_file(&name).map_err(storing) {
                Err(error) if error.code != Code::NotFound => return Err(error),
                _ => done.packs_removed += 1,
            }
        }
        if !going.is_empty() {
            sync_dir(&self.packs)?;
        }
        let stays = |pack: &usize| !going.contains(pack);
        done.garbage_chunks = (0..tallies.len())
            .filter(stays)
            .map(|pack| tallies[pack].garbage)
            .sum();
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    chunks: u64,
    garbage: u64,
    live_bytes: u64,
}

/// Which pack each living chunk belongs to. Where there are two copies, the first good one counts.
fn homes(chunks: &Chunks, live: &HashSet<ChunkHash>) -> Result<HashMap<ChunkHash, usize>> {
    let mut homes = HashMap::with_capacity(live.len());
    for hash in live {
        let mut places = chunks.places(*hash);
        let Some(first) = places.next() else {
            return Err(chunks.missing(*hash));
        };
        let home = match places.next() {
            None => Some(first.pack),
            Some(_) => chunks
                .places(*hash)
                .find(|place| chunks.packs[place.pack].chunk(&place.located).is_ok())
                .map(|place| place.pack),
        };
        let home =
            home.ok_or_else(|| damaged(format!("every copy of chunk `{hash}` is damaged")))?;
        homes.insert(*hash, home);
    }
    Ok(homes)
}

/// The packs that are written anew.
fn choose(chunks: &Chunks, tallies: &[Tally], sweep: Sweep) -> HashSet<usize> {
    let alive = |pack: &usize| tallies[*pack].garbage < tallies[*pack].chunks;
    let wasteful = |pack: &usize| {
        let tally = tallies[*pack];
        match sweep {
            Sweep::Full => tally.garbage > 0,
            Sweep::Thrifty => tally.live_bytes * 2 < chunks.packs[*pack].chunk_bytes,
        }
    };
    let mut chosen: HashSet<usize> = (0..tallies.len()).filter(alive).filter(wasteful).collect();
    let small: Vec<usize> = (0..tallies.len())
        .filter(alive)
        .filter(|pack| chunks.packs[*pack].length < SMALL_BYTES)
        .collect();
    if small.len() >= SMALL_MANY {
        chosen.extend(small);
    }
    chosen
}
