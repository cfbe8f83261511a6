//! A file's bytes from their pieces, and whether a file has them already.

use std::fs::File;
use std::os::unix::fs::FileExt;

use glovebox_model::Result;

use crate::chunks::Chunks;
use crate::fault::{damaged, io};
use crate::hash::ChunkHash;
use crate::manifest::{Content, Piece};

const ZEROS: usize = 64 << 10;

/// Writes a new file. Holes are not written, so they are holes again.
pub(super) fn write(file: &File, content: &Content, chunks: &Chunks, path: &[u8]) -> Result<()> {
    let mut at = 0u64;
    for piece in &content.pieces {
        if let Piece::Chunk { hash, length } = piece {
            let bytes = chunks.get(*hash)?;
            if bytes.len() as u64 != u64::from(*length) {
                let message = format!("chunk `{hash}` has another length than the manifest says");
                return Err(damaged(message));
            }
            file.write_all_at(&bytes, at)
                .map_err(|error| io("write", path, &error))?;
        }
        at = at.saturating_add(piece.length());
    }
    let ends_in_hole = matches!(content.pieces.last(), Some(Piece::Hole { .. }));
    match ends_in_hole {
        true => file
            .set_len(content.size)
            .map_err(|error| io("write", path, &error)),
        false => Ok(()),
    }
}

/// Reads a file piece by piece and holds each against its hash; stops at the first difference.
pub(crate) fn same_contents(file: &File, content: &Content, path: &[u8]) -> Result<bool> {
    let mut buffer = Vec::new();
    let mut at = 0u64;
    for piece in &content.pieces {
        let same = match piece {
            Piece::Chunk { hash, length } => {
                buffer.resize(*length as usize, 0);
                read_exact(file, &mut buffer, at, path)? && ChunkHash::of(&buffer) == *hash
            }
            Piece::Hole { length } => is_zero(file, &mut buffer, at, *length, path)?,
        };
        if !same {
            return Ok(false);
        }
        at = at.saturating_add(piece.length());
    }
    let mut one = [0u8; 1];
    let more = file.read_at(&mut one, at);
    more.map(|count| count == 0)
        .map_err(|error| io("read", path, &error))
}

/// False when the file ends before.
fn read_exact(file: &File, buffer: &mut [u8], at: u64, path: &[u8]) -> Result<bool> {
    match file.read_exact_at(buffer, at) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(io("read", path, &error)),
    }
}

/// Only data is read: a hole of a terabyte costs nothing.
fn is_zero(file: &File, buffer: &mut Vec<u8>, from: u64, length: u64, path: &[u8]) -> Result<bool> {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;
    let end = from.saturating_add(length);
    let mut at = from;
    while at < end {
        at = match seek(file, SeekFrom::Data(at)) {
            Ok(data) => data.max(at),
            Err(Errno::NXIO) => return Ok(true),
            Err(errno) => return Err(crate::fault::os("read", path, errno)),
        };
        if at >= end {
            return Ok(true);
        }
        let count = usize::try_from(end - at).unwrap_or(ZEROS).min(ZEROS);
        buffer.resize(count, 0);
        if !read_exact(file, buffer, at, path)? || buffer.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at += count as u64;
    }
    Ok(true)
}
