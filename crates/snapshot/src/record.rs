//! The record of one snapshot: written last, so a snapshot without one does not exist.

use std::io::Write;

use glovebox_model::{ExecId, ProjectId, Result, SnapshotId};
use glovebox_workspace::{Dir, Existing, RelPath};
use serde::{Deserialize, Serialize};

use crate::counts::Counts;
use crate::fault::{STAGE, damaged, internal, io, storing};
use crate::hash::ChunkHash;
use crate::snapshots::sync_dir;
use crate::stamp::Stamp;

const VERSION: u32 = 1;
const BYTES_MAX: u64 = 64 << 10;
pub(crate) const TEXT_MAX: usize = 4096;
const SUFFIX: &str = ".json";
const TEMPORARY: &str = "tmp-";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    pub id: SnapshotId,
    pub project: ProjectId,
    pub taken_at: jiff::Timestamp,
    /// The snapshot that it was compared with; it can be removed without harm.
    pub parent: Option<SnapshotId>,
    /// A labelled snapshot is only removed by name.
    pub label: Option<String>,
    pub note: Option<String>,
    /// The exec that it was taken before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_exec: Option<ExecId>,
    /// The snapshot whose restore it was taken before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_restore: Option<SnapshotId>,
    /// The agent that took it, or whose exec it was taken before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    pub counts: Counts,
    pub manifest: Digest,
    pub(crate) source: Source,
}

/// What holds a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Digest {
    /// The chunk that lists the manifest's chunks.
    pub list: ChunkHash,
    /// Of all bytes of the manifest.
    pub whole: ChunkHash,
    pub bytes: u64,
}

/// What the files were seen on, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Source {
    pub(crate) device: (u32, u32),
    pub(crate) started: Stamp,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    snapshot: Snapshot,
    /// Of `snapshot` as it is written.
    check: ChunkHash,
}

pub(crate) fn encode(snapshot: &Snapshot) -> Result<Vec<u8>> {
    let writing = |error| internal(format!("cannot write a record: {error}"));
    let inner = serde_json::to_vec(snapshot).map_err(writing)?;
    let file = File {
        version: VERSION,
        snapshot: snapshot.clone(),
        check: ChunkHash::of(&inner),
    };
    serde_json::to_vec(&file).map_err(writing)
}

pub(crate) fn parse(bytes: &[u8]) -> Result<Snapshot> {
    let file: File = serde_json::from_slice(bytes)
        .map_err(|error| damaged(format!("a record cannot be read: {error}")))?;
    if file.version != VERSION {
        let message = format!("a record has version {}, not {VERSION}", file.version);
        return Err(damaged(message).hint("use the version of Glovebox that wrote it"));
    }
    // There is one way to write a record, so any changed byte shows.
    match encode(&file.snapshot)? == bytes {
        true => Ok(file.snapshot),
        false => Err(damaged("a record is not the one that was written")),
    }
}

fn name_of(id: &SnapshotId) -> Result<RelPath> {
    let name = format!("{id}{SUFFIX}");
    RelPath::new(&name).map_err(|error| error.at(STAGE, name.as_bytes()))
}

/// The id in a record's file name; None for anything else that lies there.
pub(crate) fn id_of(name: &str) -> Option<SnapshotId> {
    name.strip_suffix(SUFFIX)?.parse().ok()
}

pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with(TEMPORARY)
}

pub(crate) fn read(dir: &Dir, id: &SnapshotId) -> Result<Option<Snapshot>> {
    use glovebox_workspace::FsErrorKind;
    let bytes = match dir.read(&name_of(id)?, BYTES_MAX) {
        Err(error) if error.kind() == FsErrorKind::NotFound => return Ok(None),
        read => read.map_err(storing)?,
    };
    let snapshot = parse(&bytes)
        .map_err(|error| damaged(format!("the record of `{id}` is damaged")).caused_by(error))?;
    match snapshot.id == *id {
        true => Ok(Some(snapshot)),
        false => Err(damaged(format!("the record of `{id}` is another one's"))),
    }
}

/// On disk when it returns, or not there.
pub(crate) fn write(dir: &Dir, id: &SnapshotId, bytes: &[u8]) -> Result<()> {
    let temporary = format!("{TEMPORARY}{id}");
    let temporary =
        RelPath::new(&temporary).map_err(|error| error.at(STAGE, temporary.as_bytes()))?;
    let mut file = dir.create(&temporary, 0o600).map_err(storing)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let placed = written
        .map_err(|error| io("write", temporary.as_bytes(), &error))
        .and_then(|()| {
            dir.rename(&temporary, &name_of(id)?, Existing::Refuse)
                .map_err(storing)
        });
    if let Err(error) = placed {
        // Best effort: the first fault is the one to report.
        let _ = dir.remove_file(&temporary);
        return Err(error);
    }
    sync_dir(dir)
}

pub(crate) fn remove(dir: &Dir, id: &SnapshotId) -> Result<()> {
    dir.remove_file(&name_of(id)?).map_err(storing)
}
