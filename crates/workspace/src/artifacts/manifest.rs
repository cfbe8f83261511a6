//! What an exec left: every file with its size and digest, and what was not kept.

use glovebox_model::{ByteString, Code, Error, ExecId, Result, Stage};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::dir::Dir;
use crate::fault::FsErrorKind;
use crate::hex::hex;
use crate::relpath::RelPath;
use crate::stat::Kind;

/// More than the largest manifest that collection can give.
const LARGEST: u64 = 128 << 20;
/// Dropped files that are named; the rest is only counted.
const NAMED_DROPS: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestEntry {
    pub path: ByteString,
    #[serde(rename = "type")]
    pub kind: Kind,
    pub size: u64,
    /// SHA-256, hexadecimal; only regular files have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

impl ManifestEntry {
    pub(super) fn of_bytes(path: ByteString, bytes: &[u8]) -> Self {
        Self {
            path,
            kind: Kind::File,
            size: bytes.len() as u64,
            hash: Some(hex(&Sha256::digest(bytes))),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// Would have passed the limit on bytes.
    Bytes,
    /// Would have passed the limit on the number of files.
    Entries,
    TooDeep,
    Unreadable,
    /// One of the four names that are ours.
    Reserved,
    /// Grew while it was read.
    Changed,
    /// Its name has a secret in it.
    Secret,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    pub path: ByteString,
    #[serde(rename = "type")]
    pub kind: Kind,
    pub size: u64,
    pub reason: DropReason,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Drops {
    /// A directory counts as one, whatever was in it.
    pub count: u64,
    pub bytes: u64,
    /// The first thousand.
    pub files: Vec<Dropped>,
}

impl Drops {
    pub(super) fn add(&mut self, dropped: Dropped) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(dropped.size);
        if self.files.len() < NAMED_DROPS {
            self.files.push(dropped);
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub exec_id: ExecId,
    /// By path. Everything but the manifest itself.
    pub files: Vec<ManifestEntry>,
    pub dropped: Drops,
}

impl Manifest {
    /// Of an exec that was sealed; `not_found` before that.
    pub fn read(artifacts: &Dir) -> Result<Self> {
        let path = RelPath::new(super::MANIFEST)
            .map_err(|error| error.at(Stage::Collect, super::MANIFEST.as_bytes()))?;
        let bytes = artifacts
            .read(&path, LARGEST)
            .map_err(|error| match error.kind() {
                FsErrorKind::NotFound => error
                    .at(Stage::Collect)
                    .hint("the exec has not ended yet, or was lost"),
                _ => error.at(Stage::Collect),
            })?;
        serde_json::from_slice(&bytes).map_err(|error| {
            Error::new(
                Code::Internal,
                Stage::Collect,
                "the manifest of the artifacts does not parse",
            )
            .caused_by(error)
        })
    }
}
