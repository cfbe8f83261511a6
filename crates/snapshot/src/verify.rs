//! Reading everything, and saying what is damaged and whom it hurts.

use std::collections::HashMap;

use glovebox_model::{ByteString, Result, SnapshotId};
use serde::Serialize;

use crate::bytes::byte_string;
use crate::chunks::Chunks;
use crate::hash::ChunkHash;
use crate::lock::{CHUNKS, Lock};
use crate::manifest::{self, Node};
use crate::progress::{Progress, Watch, tell};
use crate::record::Snapshot;
use crate::snapshots::Snapshots;

const HURTS_NAMED: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Verified {
    pub snapshots: u64,
    pub packs: u64,
    pub chunks: u64,
    /// Plain bytes that were held against their hashes.
    pub bytes: u64,
    /// Empty when all is well; the first thousand.
    pub damage: Vec<Damage>,
    /// What cannot be restored because of it, the first thousand.
    pub hurts: Vec<Hurt>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// `record`, `pack`, `chunk` or `manifest`.
    pub what: &'static str,
    pub name: String,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hurt {
    pub snapshot: SnapshotId,
    /// None: all of it.
    pub path: Option<ByteString>,
}

impl Snapshots {
    pub fn verify(&self, watch: &mut dyn Watch) -> Result<Verified> {
        let _lock = Lock::shared(&self.dir, CHUNKS, watch)?;
        // In this order: others take snapshots meanwhile, and each has its chunks before its record.
        let listed = self.list(None)?;
        let chunks = Chunks::load(&self.packs)?;
        let mut verified = Verified {
            packs: (chunks.packs.len() + chunks.unreadable.len()) as u64,
            ..Verified::default()
        };
        for (name, why) in &chunks.unreadable {
            verified.note("pack", name.clone(), why.clone());
        }
        let good = verified.read_all(&chunks, watch)?;
        for broken in listed.damaged {
            verified.note("record", broken.id.to_string(), broken.why);
            verified.hurt(&broken.id, None);
        }
        for snapshot in &listed.snapshots {
            verified.snapshots += 1;
            self.verify_one(&chunks, snapshot, &good, &mut verified);
        }
        Ok(verified)
    }

    fn verify_one(
        &self,
        chunks: &Chunks,
        snapshot: &Snapshot,
        good: &HashMap<ChunkHash, bool>,
        verified: &mut Verified,
    ) {
        let digest = snapshot.manifest;
        let manifest = match manifest::load(chunks, digest.list, digest.whole) {
            Ok(manifest) => manifest,
            Err(error) => {
                verified.note("manifest", snapshot.id.to_string(), error.to_string());
                verified.hurt(&snapshot.id, None);
                return;
            }
        };
        for entry in manifest.entries() {
            let Node::File(content) = &entry.node else {
                continue;
            };
            let sound = |hash: ChunkHash| good.get(&hash).copied() == Some(true);
            if !content.hashes().all(sound) {
                for hash in content.hashes().filter(|hash| !good.contains_key(hash)) {
                    verified.note("chunk", hash.to_string(), "it is missing".to_owned());
                }
                verified.hurt(&snapshot.id, Some(&entry.path.0));
            }
        }
    }
}

impl Verified {
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }

    /// Every copy of every chunk; which hashes have a good one.
    fn read_all(
        &mut self,
        chunks: &Chunks,
        watch: &mut dyn Watch,
    ) -> Result<HashMap<ChunkHash, bool>> {
        let mut good: HashMap<ChunkHash, bool> = HashMap::new();
        let mut places: Vec<_> = chunks.each().collect();
        places.sort_unstable_by_key(|place| (place.pack, place.located.offset));
        for place in places {
            let pack = &chunks.packs[place.pack];
            let hash = place.located.hash;
            let sound = good.entry(hash).or_default();
            match pack.chunk(&place.located) {
                Ok(bytes) => {
                    *sound = true;
                    self.bytes += bytes.len() as u64;
                }
                Err(error) => {
                    let why = format!("{error}, in pack `{}`", pack.name);
                    self.note("chunk", hash.to_string(), why);
                }
            }
            self.chunks += 1;
            let (entries, bytes) = (self.chunks, self.bytes);
            tell(watch, Progress { entries, bytes })?;
        }
        Ok(good)
    }

    fn note(&mut self, what: &'static str, name: String, why: String) {
        let damage = Damage { what, name, why };
        if self.damage.len() < HURTS_NAMED && !self.damage.contains(&damage) {
            self.damage.push(damage);
        }
    }

    fn hurt(&mut self, snapshot: &SnapshotId, path: Option<&[u8]>) {
        if self.hurts.len() < HURTS_NAMED {
            self.hurts.push(Hurt {
                snapshot: snapshot.clone(),
                path: path.map(byte_string),
            });
        }
    }
}
