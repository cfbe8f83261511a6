//! The snapshots of one space, and the directory they lie in.

use std::collections::HashSet;

use glovebox_model::{Code, Error, ProjectId, Result, SnapshotId};
use glovebox_workspace::{Dir, FsErrorKind, RelPath};
use rustix::fs::OFlags;
use serde::Serialize;

use crate::chunks::Chunks;
use crate::fault::{STAGE, hurting, os, storing};
use crate::lock::{CHUNKS, Lock};
use crate::manifest::{self, Manifest};
use crate::record::{self, Snapshot};

const RECORDS_MAX: usize = 1_000_000;

const STORE: &str = "snapshots";

#[derive(Debug)]
pub struct Snapshots {
    pub(crate) dir: Dir,
    pub(crate) packs: Dir,
    pub(crate) records: Dir,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Newest first.
    pub snapshots: Vec<Snapshot>,
    /// Records that cannot be read. They do not hide the others.
    pub damaged: Vec<DamagedRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DamagedRecord {
    pub id: SnapshotId,
    pub why: String,
}

impl Snapshots {
    /// Whether a space has ever had any.
    pub fn exist(space: &Dir) -> Result<bool> {
        let path = RelPath::new(STORE).map_err(|error| error.at(STAGE, STORE.as_bytes()))?;
        match space.open_dir(&path) {
            Err(error) if error.kind() == FsErrorKind::NotFound => Ok(false),
            opened => opened.map(|_| true).map_err(storing),
        }
    }

    /// `space` is the directory of a space; what is missing is made.
    pub fn open(space: &Dir) -> Result<Self> {
        let dir = ensure(space, STORE)?;
        let packs = ensure(&dir, "packs")?;
        let records = ensure(&dir, "records")?;
        Ok(Self {
            dir,
            packs,
            records,
        })
    }

    /// Those of one project, or all.
    pub fn list(&self, project: Option<&ProjectId>) -> Result<Listed> {
        let listing = self.records.list(RECORDS_MAX).map_err(storing)?;
        let mut listed = Listed {
            snapshots: Vec::new(),
            damaged: Vec::new(),
        };
        for entry in listing.entries {
            let Some(id) = record::id_of(&entry.name.display()) else {
                continue;
            };
            match record::read(&self.records, &id) {
                Ok(Some(snapshot)) => listed.snapshots.push(snapshot),
                // Removed since it was listed.
                Ok(None) => {}
                Err(error) => listed.damaged.push(DamagedRecord {
                    id,
                    why: error.to_string(),
                }),
            }
        }
        if let Some(project) = project {
            listed.snapshots.retain(|it| it.project == *project);
        }
        listed.snapshots.sort_by(|a, b| {
            let time = b.taken_at.cmp(&a.taken_at);
            time.then_with(|| a.id.cmp(&b.id))
        });
        Ok(listed)
    }

    pub fn get(&self, id: &SnapshotId) -> Result<Snapshot> {
        record::read(&self.records, id)?.ok_or_else(|| {
            Error::new(
                Code::NotFound,
                STAGE,
                format!("there is no snapshot `{id}`"),
            )
            .hint("`glovebox snapshot ls` lists them")
        })
    }

    /// Forgets it. The space that it alone took is free after the next collection.
    pub fn remove(&self, id: &SnapshotId) -> Result<()> {
        let _lock = Lock::shared(&self.dir, CHUNKS, &mut ())?;
        match record::remove(&self.records, id) {
            Err(error) if error.code == Code::NotFound => self.get(id).map(drop),
            done => done,
        }?;
        sync_dir(&self.records)
    }

    /// What all packs and records take.
    pub fn stored_bytes(&self) -> Result<u64> {
        let mut sum = 0u64;
        for dir in [&self.packs, &self.records] {
            let listing = dir.list(RECORDS_MAX).map_err(storing)?;
            sum += listing.entries.iter().map(|it| it.stat.size).sum::<u64>();
        }
        Ok(sum)
    }

    pub(crate) fn manifest(&self, chunks: &Chunks, snapshot: &Snapshot) -> Result<Manifest> {
        let digest = snapshot.manifest;
        let manifest = manifest::load(chunks, digest.list, digest.whole);
        manifest.map_err(|error| hurting(&snapshot.id, None, error))
    }

    /// Every chunk that a snapshot needs.
    pub(crate) fn mark(
        &self,
        chunks: &Chunks,
        snapshot: &Snapshot,
        live: &mut HashSet<crate::hash::ChunkHash>,
    ) -> Result<()> {
        let manifest = self.manifest(chunks, snapshot)?;
        let own = manifest::own_chunks(chunks, snapshot.manifest.list)?;
        live.extend(own);
        for entry in manifest.entries() {
            if let manifest::Node::File(content) = &entry.node {
                live.extend(content.hashes());
            }
        }
        Ok(())
    }
}

fn ensure(parent: &Dir, name: &str) -> Result<Dir> {
    let path = RelPath::new(name).map_err(|error| error.at(STAGE, name.as_bytes()))?;
    // Not `enter`: an operator may well mount a larger disk here.
    match parent.open_dir(&path) {
        Err(error) if error.kind() == FsErrorKind::NotFound => {}
        opened => return opened.map_err(storing),
    }
    match parent.mkdir(&path, 0o700) {
        Err(error) if error.kind() != FsErrorKind::Exists => return Err(storing(error)),
        _ => {}
    }
    sync_dir(parent)?;
    parent.open_dir(&path).map_err(storing)
}

/// Names in a directory are on disk once the directory is.
pub(crate) fn sync_dir(dir: &Dir) -> Result<()> {
    let fd = dir
        .open_plain(b"", OFlags::RDONLY | OFlags::DIRECTORY)
        .map_err(storing)?;
    rustix::fs::fsync(&fd).map_err(|errno| os("write", b"", errno))
}
