//! Reading packs: the index once, chunks as they are needed.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;

use glovebox_model::Result;
use glovebox_workspace::Dir;
use rustix::fs::OFlags;

use super::index::{Form, Located, TRAILER, Trailer};
use super::{MAGIC, PLAIN_MAX};
use crate::fault::{damaged, io, storing};
use crate::hash::ChunkHash;

#[derive(Debug)]
pub(crate) struct Pack {
    pub(crate) name: String,
    pub(crate) length: u64,
    /// Where the chunks end.
    pub(crate) chunk_bytes: u64,
    file: File,
}

impl Pack {
    pub(crate) fn open(dir: &Dir, name: &str) -> Result<(Self, Vec<Located>)> {
        let fd = dir.open_plain(name.as_bytes(), OFlags::RDONLY | OFlags::NONBLOCK);
        let file = File::from(fd.map_err(storing)?);
        let reading = |error| io("read", name.as_bytes(), &error);
        let metadata = file.metadata().map_err(reading)?;
        let length = metadata.len();
        let mut head = [0u8; MAGIC.len()];
        let mut trailer = [0u8; TRAILER];
        let at = length.checked_sub(TRAILER as u64);
        let Some(at) = at.filter(|_| metadata.is_file()) else {
            return Err(damaged("a pack is too short to be one"));
        };
        file.read_exact_at(&mut head, 0).map_err(reading)?;
        file.read_exact_at(&mut trailer, at).map_err(reading)?;
        if &head != MAGIC {
            return Err(damaged("a pack does not begin like one"));
        }
        let trailer = Trailer::parse(&trailer, length)?;
        let mut index = vec![0u8; trailer.index_length()];
        file.read_exact_at(&mut index, trailer.begins())
            .map_err(reading)?;
        let pack = Self {
            name: name.to_owned(),
            length,
            chunk_bytes: trailer.begins(),
            file,
        };
        Ok((pack, trailer.index(&index)?))
    }

    /// A chunk as it lies in the pack; nothing about it is checked.
    pub(crate) fn stored(&self, located: &Located) -> Result<Vec<u8>> {
        let mut stored = vec![0u8; located.stored as usize];
        self.file
            .read_exact_at(&mut stored, located.offset)
            .map_err(|error| io("read", self.name.as_bytes(), &error))?;
        Ok(stored)
    }

    /// The plain bytes of a chunk, held against its name.
    pub(crate) fn chunk(&self, located: &Located) -> Result<Vec<u8>> {
        expand(self.stored(located)?, located)
            .ok_or_else(|| damaged(format!("chunk `{}` is damaged", located.hash)))
    }
}

pub(crate) fn expand(stored: Vec<u8>, located: &Located) -> Option<Vec<u8>> {
    let plain = match located.form {
        Form::Plain => stored,
        Form::Zstd => {
            // The plain length is bounded by the index's check, and zstd never writes past it.
            let length = (located.plain as usize).min(PLAIN_MAX);
            decompress(&stored, length)?
        }
    };
    let whole = plain.len() == located.plain as usize && ChunkHash::of(&plain) == located.hash;
    whole.then_some(plain)
}

thread_local! {
    /// Making one costs more than most chunks.
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> =
        const { RefCell::new(None) };
}

fn decompress(stored: &[u8], length: usize) -> Option<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let zstd = match kept {
            Some(zstd) => zstd,
            none => none.insert(zstd::bulk::Decompressor::new().ok()?),
        };
        let mut plain = Vec::with_capacity(length);
        zstd.decompress_to_buffer(stored, &mut plain).ok()?;
        Some(plain)
    })
}

/// All of a pack from memory, each chunk checked.
pub(crate) fn parse_whole(bytes: &[u8]) -> Result<Vec<Located>> {
    let trailer = bytes.last_chunk::<TRAILER>();
    let Some(trailer) = trailer.filter(|_| bytes.starts_with(MAGIC)) else {
        return Err(damaged("a pack does not begin like one"));
    };
    let trailer = Trailer::parse(trailer, bytes.len() as u64)?;
    let begins = usize::try_from(trailer.begins()).unwrap_or(usize::MAX);
    let (chunks, rest) = bytes.split_at_checked(begins).unwrap_or((bytes, &[]));
    let index = rest.get(..trailer.index_length()).unwrap_or(&[]);
    let index = trailer.index(index)?;
    for located in &index {
        let from = usize::try_from(located.offset).unwrap_or(usize::MAX);
        let stored = chunks.get(from..from.saturating_add(located.stored as usize));
        let plain = stored.and_then(|stored| expand(stored.to_vec(), located));
        if plain.is_none() {
            return Err(damaged(format!("chunk `{}` is damaged", located.hash)));
        }
    }
    Ok(index)
}
