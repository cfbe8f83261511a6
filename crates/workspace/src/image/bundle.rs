//! The files that an image comes in: a directory, or an archive that was copied to one file and is
//! read in place. Names in it are only ever looked up in a table or beneath the directory.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};

use glovebox_model::Result;
use sha2::{Digest, Sha256};

use super::name::ImageDigest;
use super::slice::Slice;
use super::{STAGE, damaged, storing, unfit};
use crate::archive::{
    Digested, Entry, Flow, Members, Purpose, Refusal, Stopped, UnpackError, UnpackLimits,
    entry_path,
};
use crate::dir::{Dir, from_io};
use crate::fault::{FsError, FsErrorKind};
use crate::hex::hex;
use crate::relpath::{RelPath, shown};

/// An index, a manifest or a configuration.
const LARGEST_DOCUMENT: u64 = 4 << 20;
/// Older images name identical layers by links to one of them.
const MOST_LINKS: usize = 4;

#[derive(Debug)]
pub(super) enum Bundle {
    Folder(Dir),
    Spooled(Spool),
}

#[derive(Debug)]
pub(super) struct Spool {
    file: File,
    parts: HashMap<Vec<u8>, Part>,
    bytes: u64,
}

#[derive(Debug)]
enum Part {
    Contents {
        at: u64,
        length: u64,
    },
    Link(Vec<u8>),
    /// Which of them counts is where readers differ.
    Twice,
}

impl Bundle {
    pub(super) fn has(&self, name: &str) -> bool {
        match (self, RelPath::new(name)) {
            (_, Err(_)) => false,
            (Self::Folder(dir), Ok(path)) => dir.lstat(&path).is_ok(),
            (Self::Spooled(spool), Ok(path)) => spool.parts.contains_key(path.as_bytes()),
        }
    }

    /// A file's contents and size.
    pub(super) fn open(&self, name: &str) -> Result<(Box<dyn Read + '_>, u64)> {
        let path = RelPath::new(name).map_err(|error| error.at(STAGE, name.as_bytes()))?;
        match self {
            Self::Folder(dir) => match dir.open_file(&path) {
                Err(error) if error.kind() == FsErrorKind::NotFound => Err(missing(name)),
                opened => {
                    let (file, stat) = opened.map_err(storing)?;
                    Ok((Box::new(file), stat.size))
                }
            },
            Self::Spooled(spool) => {
                let (at, length) = spool.find(name, path.as_bytes())?;
                Ok((Box::new(Slice::new(&spool.file, at, length)), length))
            }
        }
    }

    pub(super) fn document(&self, name: &str) -> Result<Vec<u8>> {
        let (reader, size) = self.open(name)?;
        let mut bytes = Vec::new();
        // The size is what somebody says; the cap is ours.
        let read = reader.take(LARGEST_DOCUMENT + 1).read_to_end(&mut bytes);
        read.map_err(|error| {
            damaged(format!("`{}` cannot be read", shown(name.as_bytes()))).caused_by(error)
        })?;
        if size > LARGEST_DOCUMENT || bytes.len() as u64 > LARGEST_DOCUMENT {
            let message = format!("`{}` is larger than 4 MiB", shown(name.as_bytes()));
            return Err(unfit(message).hint("no index, manifest or configuration is that large"));
        }
        Ok(bytes)
    }

    /// A document that is named by its digest, which is checked.
    pub(super) fn verified(&self, digest: &ImageDigest, size: u64) -> Result<Vec<u8>> {
        let bytes = self.document(&blob(digest))?;
        if bytes.len() as u64 != size || hex(&Sha256::digest(&bytes)) != digest.hex() {
            return Err(mismatch(digest));
        }
        Ok(bytes)
    }
}

impl Spool {
    /// Copies an archive, decompressed, to a file and notes where each part of it lies.
    pub(super) fn new(
        source: impl Read,
        writer: &File,
        file: File,
        limits: UnpackLimits,
    ) -> std::result::Result<Self, UnpackError> {
        let tee = Tee {
            inner: source,
            file: writer,
        };
        let mut members = Members::new(tee);
        let mut parts = HashMap::new();
        let mut entries = 0;
        while let Some(member) = members.advance()? {
            let fault = |why| UnpackError::of_entry(&member.path, why);
            entries += 1;
            if entries > limits.entries {
                let limit = crate::archive::Limit::Entries(limits.entries);
                return Err(fault(Refusal::Limit(limit)));
            }
            // An archive of a root directory comes this way too when its first names look like an
            // image's, and it is checked in full when it is unpacked.
            let Ok(Some(path)) = entry_path(&member.path, Purpose::Image, limits) else {
                continue;
            };
            let part = match member.entry {
                Entry::File => Part::Contents {
                    at: members.position(),
                    length: member.size,
                },
                Entry::Symlink(target) | Entry::HardLink(target) => Part::Link(target),
                Entry::Directory | Entry::Special(_) => continue,
            };
            parts
                .entry(path.as_bytes().to_vec())
                .and_modify(|earlier| *earlier = Part::Twice)
                .or_insert(part);
        }
        let mut rest = Digested::new(members.into_source());
        rest.drain()
            .map_err(|error| UnpackError::of_archive(crate::archive::from_reading(&error)))?;
        let bytes = file.metadata().map(|it| it.len());
        let bytes = bytes.map_err(|error| {
            let error = FsError::new("look at", b"spool", from_io(&error));
            UnpackError::of_archive(Refusal::Files(error))
        })?;
        Ok(Self { file, parts, bytes })
    }

    /// The whole archive again.
    pub(super) fn whole(&self) -> Slice<'_> {
        Slice::new(&self.file, 0, self.bytes)
    }

    fn find(&self, name: &str, path: &[u8]) -> Result<(u64, u64)> {
        let mut path = path.to_vec();
        for _ in 0..MOST_LINKS {
            match self.parts.get(&path) {
                Some(Part::Contents { at, length }) => return Ok((*at, *length)),
                Some(Part::Link(target)) => {
                    path = beside(&path, target).ok_or_else(|| missing(name))?;
                }
                Some(Part::Twice) => {
                    let message = format!("`{}` is in it more than once", shown(&path));
                    return Err(damaged(message));
                }
                None => break,
            }
        }
        Err(missing(name))
    }
}

/// Where a link of the archive leads, by its text alone: nothing but the table is looked at.
fn beside(path: &[u8], target: &[u8]) -> Option<Vec<u8>> {
    let mut parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    parts.pop();
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join(&b'/'))
}

struct Tee<'f, R> {
    inner: R,
    file: &'f File,
}

impl<R: Read> Read for Tee<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.file.write_all(&buffer[..read]).map_err(|error| {
            let error = FsError::new("write", b"spool", from_io(&error));
            io::Error::other(Stopped(Refusal::Files(error)))
        })?;
        Ok(read)
    }
}

/// Where an OCI layout keeps it.
pub(super) fn blob(digest: &ImageDigest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

pub(super) fn mismatch(digest: &ImageDigest) -> glovebox_model::Error {
    damaged(format!("`{digest}` is not what its name says"))
}

fn missing(name: &str) -> glovebox_model::Error {
    damaged(format!(
        "the image names `{}`, which is not in it",
        shown(name.as_bytes())
    ))
}

/// The first bytes of an archive, enough to see what it is of.
const PEEKED: u64 = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looks {
    LikeABundle,
    LikeARoot,
}

/// Looks at the first name. An archive that looks like a root directory is unpacked as it streams;
/// everything else is copied first and looked at in full.
pub(super) fn peek<'r>(mut flow: Flow<'r>) -> Result<(Looks, impl Read + 'r)> {
    let mut start = Vec::new();
    let read = flow.by_ref().take(PEEKED).read_to_end(&mut start);
    read.map_err(|error| UnpackError::of_archive(crate::archive::from_reading(&error)).at(STAGE))?;
    let looks = look(&start);
    Ok((looks, io::Cursor::new(start).chain(flow)))
}

fn look(start: &[u8]) -> Looks {
    let mut members = Members::new(start);
    while let Ok(Some(member)) = members.advance() {
        let path = entry_path(&member.path, Purpose::Image, UnpackLimits::IMAGE);
        let Ok(Some(path)) = path else { continue };
        let first = path.components().next().unwrap_or_default();
        let stem = first.split(|byte| *byte == b'.').next().unwrap_or_default();
        let known = matches!(
            first,
            b"blobs" | b"index.json" | b"oci-layout" | b"manifest.json" | b"repositories"
        );
        let digest = stem.len() == 64 && stem.iter().all(u8::is_ascii_hexdigit);
        return match known || digest {
            true => Looks::LikeABundle,
            false => Looks::LikeARoot,
        };
    }
    Looks::LikeABundle
}
