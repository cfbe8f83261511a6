//! Reading one file into pieces. Its size is a hint, its kind is judged by the descriptor, and a
//! file that changes meanwhile is read again.

use std::fs::File;
use std::os::fd::AsFd;

use glovebox_model::Result;
use glovebox_workspace::{Dir, FsErrorKind, Kind};
use rustix::fs::{fgetxattr, flistxattr};
use rustix::io::Errno;

use super::cut::{Cutter, each_extent};
use crate::bytes::Raw;
use crate::fault::{os, storing};
use crate::hash::ChunkHash;
use crate::manifest::{Content, Piece, XATTR_BYTES_MAX, XATTRS_MAX};
use crate::reach::open_file;
use crate::tree::Facts;

const ATTEMPTS: u32 = 3;
/// The kernel's own limit on a list of names.
const XATTR_LIST: usize = 64 << 10;
const PREFIX: &[u8] = b"user.";

#[derive(Debug)]
pub(crate) struct Readout {
    pub(crate) facts: Facts,
    pub(crate) content: Content,
    pub(crate) xattrs: Vec<(Raw, Raw)>,
    pub(crate) xattrs_dropped: u64,
}

/// Where chunks go.
pub(super) trait Sink {
    fn chunk(&mut self, cutter: &mut Cutter, hash: ChunkHash, plain: &[u8]) -> Result<()>;
}

/// None when there is no regular file of that name any more.
pub(super) fn read(
    work: &Dir,
    path: &[u8],
    cutter: &mut Cutter,
    sink: &mut dyn Sink,
) -> Result<Option<Readout>> {
    let fd = match open_file(work, path) {
        Ok(fd) => fd,
        Err(error) => {
            return match error.kind() {
                FsErrorKind::NotFound
                | FsErrorKind::NotADirectory
                | FsErrorKind::Loop
                | FsErrorKind::NotRegular(_) => Ok(None),
                _ => Err(storing(error)),
            };
        }
    };
    let file = File::from(fd);
    let look = || Facts::of(&file).map_err(|errno| os("look at", path, errno));
    let mut facts = look()?;
    if facts.kind != Kind::File {
        return Ok(None);
    }
    cutter.begin();
    for attempt in 1.. {
        let (xattrs, xattrs_dropped) = xattrs_of(&file, path)?;
        let pieces = pieces(&file, path, &facts, cutter, sink)?;
        let after = look()?;
        let stable = after.changed == facts.changed
            && after.modified == facts.modified
            && after.size == facts.size;
        if !stable && attempt < ATTEMPTS {
            facts = after;
            continue;
        }
        let content = Content {
            size: pieces.iter().map(|piece| piece.length()).sum(),
            names: 1,
            seen: stable.then(|| facts.seen()),
            pieces,
        };
        return Ok(Some(Readout {
            facts,
            content,
            xattrs,
            xattrs_dropped,
        }));
    }
    Ok(None)
}

fn pieces(
    file: &File,
    path: &[u8],
    facts: &Facts,
    cutter: &mut Cutter,
    sink: &mut dyn Sink,
) -> Result<Vec<Piece>> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut at = 0u64;
    let mut whole = true;
    each_extent(file, path, facts.size, facts.allocated, |from, length| {
        if from > at {
            pieces.push(Piece::Hole { length: from - at });
        }
        let mut put = |cutter: &mut Cutter, plain: &[u8]| {
            let hash = ChunkHash::of(plain);
            let length = u32::try_from(plain.len()).unwrap_or(u32::MAX);
            pieces.push(Piece::Chunk { hash, length });
            sink.chunk(cutter, hash, plain)
        };
        let read = cutter.cut(file, path, from, length, &mut put)?;
        at = from + read;
        // Cut off meanwhile: there is nothing behind this.
        whole = read == length;
        Ok(whole)
    })?;
    if whole && at < facts.size {
        pieces.push(Piece::Hole {
            length: facts.size - at,
        });
    }
    Ok(pieces)
}

/// The attributes that are kept, by name, and how many are not. A file system without attributes
/// has none.
pub(crate) fn xattrs_of(fd: impl AsFd, path: &[u8]) -> Result<(Vec<(Raw, Raw)>, u64)> {
    // Almost every file has none: one call with a small buffer tells.
    let mut small = [0u8; 256];
    let mut large = Vec::new();
    let names: &[u8] = match flistxattr(&fd, &mut small[..]) {
        Ok(length) => &small[..length],
        Err(Errno::OPNOTSUPP) => return Ok((Vec::new(), 0)),
        Err(Errno::RANGE) => {
            large.resize(XATTR_LIST, 0);
            let length = flistxattr(&fd, &mut large[..])
                .map_err(|errno| os("read the attributes of", path, errno))?;
            &large[..length]
        }
        Err(errno) => return Err(os("read the attributes of", path, errno)),
    };
    let mut kept: Vec<(Raw, Raw)> = Vec::new();
    let (mut dropped, mut bytes) = (0u64, 0usize);
    let mut value = Vec::new();
    for name in names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
    {
        if !name.starts_with(PREFIX) || kept.len() >= XATTRS_MAX {
            dropped += 1;
            continue;
        }
        value.resize(XATTR_BYTES_MAX, 0);
        match fgetxattr(&fd, name, &mut value[..]) {
            Ok(length) if bytes + length <= XATTR_BYTES_MAX => {
                bytes += length;
                kept.push((Raw(name.to_vec()), Raw(value[..length].to_vec())));
            }
            Ok(_) | Err(Errno::RANGE) => dropped += 1,
            // Removed meanwhile.
            Err(Errno::NODATA) => {}
            Err(errno) => return Err(os("read the attributes of", path, errno)),
        }
    }
    kept.sort_unstable();
    Ok((kept, dropped))
}
