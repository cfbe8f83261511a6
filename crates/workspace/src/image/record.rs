//! What is known of the images that are here.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};

use glovebox_model::{Code, Error, Result};
use jiff::Timestamp;
use rustix::fs::{OFlags, fsync, renameat};
use serde::{Deserialize, Serialize};

use super::name::{ImageDigest, ImageName};
use super::{STAGE, storing};
use crate::dir::{Dir, from_io, single, temporary_name};
use crate::fault::{FsError, FsErrorKind};
use rustix::fd::AsFd;

const NAMES: &str = "names.json";
const LARGEST: u64 = 64 << 20;
const VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageRecord {
    pub name: ImageName,
    pub digest: ImageDigest,
    /// When it was built, as it says itself.
    pub created_at: Option<Timestamp>,
    pub imported_at: Timestamp,
    /// Of all regular files.
    pub size_bytes: u64,
    pub files: u64,
    /// Devices and FIFOs that were left out.
    pub skipped: u64,
    /// None when it came without a word about it.
    pub architecture: Option<String>,
    pub config: ImageConfig,
}

/// What the image would like its processes to have. Only a wish.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageConfig {
    /// `NAME=value` each.
    pub env: Vec<String>,
    pub entrypoint: Vec<String>,
    pub cmd: Vec<String>,
    pub user: Option<String>,
    pub workdir: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    pub name: ImageName,
    pub digest: ImageDigest,
    /// The files are gone too: no other name meant the same image.
    pub files_removed: bool,
}

/// Which name means which image.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Names {
    version: u32,
    pub(super) images: BTreeMap<ImageName, ImageRecord>,
}

impl Names {
    /// No file means no images. One that cannot be read is an error, never an empty list: what no
    /// name means is removed.
    pub(super) fn read(images: &Dir) -> Result<Self> {
        let file = match images.open_file_name(NAMES) {
            Err(error) if error.kind() == FsErrorKind::NotFound => {
                return Ok(Self {
                    version: VERSION,
                    images: BTreeMap::new(),
                });
            }
            opened => opened.map_err(storing)?,
        };
        let mut text = Vec::new();
        let read = file.take(LARGEST + 1).read_to_end(&mut text);
        read.map_err(|error| storing(writing(from_io(&error))))?;
        match serde_json::from_slice::<Self>(&text) {
            Ok(names) if names.version == VERSION && text.len() as u64 <= LARGEST => Ok(names),
            Ok(_) => Err(unreadable("it was written by another version")),
            Err(error) => Err(unreadable(error)),
        }
    }

    /// Whole or not at all, and on disk when it returns.
    pub(super) fn write(&self, images: &Dir) -> Result<()> {
        let text = serde_json::to_vec_pretty(self).map_err(unreadable)?;
        let fault = |kind| storing(writing(kind));
        let temporary = temporary_name().map_err(fault)?;
        let temporary = temporary.to_string_lossy().into_owned();
        let mut file = images.create_name(&temporary, 0o600).map_err(storing)?;
        let written = fill(&mut file, &text).and_then(|()| {
            renameat(images, temporary.as_str(), images, NAMES)?;
            sync_dir(images)
        });
        written.map_err(|kind| {
            // Best effort: the first fault is the one to report.
            let _ = images.remove_entry(&temporary);
            fault(kind)
        })
    }

    pub(super) fn mention(&self, digest: &ImageDigest) -> bool {
        self.images.values().any(|record| record.digest == *digest)
    }
}

fn fill(file: &mut File, text: &[u8]) -> Result<(), FsErrorKind> {
    file.write_all(text).map_err(|error| from_io(&error))?;
    Ok(fsync(file)?)
}

/// A handle cannot be synced; a second opening of the same directory can.
pub(super) fn sync_dir(dir: &Dir) -> Result<(), FsErrorKind> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    Ok(fsync(single(dir.as_fd(), b".", flags)?)?)
}

fn writing(kind: FsErrorKind) -> FsError {
    FsError::new("write", NAMES.as_bytes(), kind)
}

fn unreadable(why: impl std::fmt::Display) -> Error {
    let message = "the list of images (`images/names.json`) cannot be read";
    Error::new(Code::StoreUnavailable, STAGE, message)
        .caused_by(why)
        .hint("restore it, or remove the `images` directory and import them again")
}
