//! Every name of a snapshot with what stood there, by path. Read from bytes that anybody may have
//! changed: a manifest that parsed has only paths that stay inside, each below a directory of the
//! same manifest.

mod check;
mod entry;

pub(crate) use entry::{Content, Entry, Meta, Node, Piece, Seen, XATTR_BYTES_MAX, XATTRS_MAX};

use std::ops::Range;

use fastcdc::v2020::FastCDC;
use glovebox_model::Result;

use crate::chunks::Chunks;
use crate::fault::{damaged, internal, too_much};
use crate::hash::{ChunkHash, HASH_BYTES};

const MAGIC: &[u8] = b"glovebox manifest 1\n";
/// Some million entries. It is held in memory.
const BYTES_MAX: u64 = 512 << 20;

/// Small, since a snapshot after a few changes stores anew what lies around them.
const CUT_MIN: usize = 2 << 10;
const CUT_AVERAGE: usize = 8 << 10;
const CUT_MAX: usize = 64 << 10;

/// In the list of the manifest's own chunks: a hash and a length.
const LISTED: usize = HASH_BYTES + 4;

#[derive(Debug, Default)]
pub(crate) struct Manifest {
    entries: Vec<Entry>,
}

impl Manifest {
    /// `entries` are in the order of their paths.
    pub(crate) fn new(entries: Vec<Entry>) -> Self {
        Self { entries }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn find(&self, path: &[u8]) -> Option<&Entry> {
        self.position(path).map(|at| &self.entries[at])
    }

    pub(crate) fn position(&self, path: &[u8]) -> Option<usize> {
        self.entries
            .binary_search_by(|entry| entry.path.0.as_slice().cmp(path))
            .ok()
    }

    /// The contents that a name leads to; of a further name of a file, those of its first.
    pub(crate) fn content<'m>(&'m self, entry: &'m Entry) -> Option<&'m Content> {
        match &entry.node {
            Node::File(content) => Some(content),
            Node::Link { to } => match &self.find(&to.0)?.node {
                Node::File(content) => Some(content),
                _ => None,
            },
            Node::Directory | Node::Symlink { .. } | Node::Fifo => None,
        }
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = MAGIC.to_vec();
        for entry in &self.entries {
            bytes = postcard::to_extend(entry, bytes)
                .map_err(|error| internal(format!("cannot write a manifest entry: {error}")))?;
            if bytes.len() as u64 > BYTES_MAX {
                let message = format!("the list of files is larger than {BYTES_MAX} bytes");
                return Err(too_much(message, "snapshot a smaller directory"));
            }
        }
        Ok(bytes)
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let Some(mut rest) = bytes.strip_prefix(MAGIC) else {
            return Err(damaged("a manifest does not begin like one"));
        };
        let mut entries: Vec<Entry> = Vec::new();
        while !rest.is_empty() {
            let (entry, after) = postcard::take_from_bytes::<Entry>(rest)
                .map_err(|error| damaged(format!("a manifest entry cannot be read: {error}")))?;
            check::entry(&entry, &entries)?;
            entries.push(entry);
            rest = after;
        }
        Ok(Self { entries })
    }
}

/// Where an encoded manifest is cut into chunks.
pub(crate) fn cuts(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    FastCDC::new(bytes, CUT_MIN, CUT_AVERAGE, CUT_MAX)
        .map(|chunk| chunk.offset..chunk.offset + chunk.length)
}

/// The chunk that lists a manifest's chunks.
pub(crate) fn encode_list(chunks: &[(ChunkHash, u32)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(chunks.len() * LISTED);
    for (hash, length) in chunks {
        bytes.extend_from_slice(hash.as_bytes());
        bytes.extend_from_slice(&length.to_le_bytes());
    }
    bytes
}

fn parse_list(bytes: &[u8]) -> Result<Vec<(ChunkHash, u32)>> {
    let (listed, rest) = bytes.as_chunks::<LISTED>();
    if !rest.is_empty() {
        return Err(damaged("the list of a manifest's chunks is cut off"));
    }
    let read = |item: &[u8; LISTED]| {
        let (hash, length) = item.split_at(HASH_BYTES);
        let length: [u8; 4] = length.try_into().ok()?;
        Some((ChunkHash::from_slice(hash)?, u32::from_le_bytes(length)))
    };
    let list: Option<Vec<_>> = listed.iter().map(read).collect();
    list.ok_or_else(|| damaged("the list of a manifest's chunks cannot be read"))
}

/// The hashes of the chunks that hold a manifest, its list first.
pub(crate) fn own_chunks(chunks: &Chunks, list: ChunkHash) -> Result<Vec<ChunkHash>> {
    let listed = parse_list(&chunks.get(list)?)?;
    Ok([list]
        .into_iter()
        .chain(listed.into_iter().map(|(hash, _)| hash))
        .collect())
}

/// Reads a manifest from its chunks and holds it against its own hash.
pub(crate) fn load(chunks: &Chunks, list: ChunkHash, whole: ChunkHash) -> Result<Manifest> {
    let listed = parse_list(&chunks.get(list)?)?;
    let total: u64 = listed.iter().map(|(_, length)| u64::from(*length)).sum();
    if total > BYTES_MAX {
        return Err(damaged(format!(
            "a manifest says that it has {total} bytes"
        )));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(total).unwrap_or(0));
    for (hash, length) in listed {
        let chunk = chunks.get(hash)?;
        if chunk.len() as u64 != u64::from(length) {
            return Err(damaged(format!(
                "chunk `{hash}` has another length than listed"
            )));
        }
        bytes.extend_from_slice(&chunk);
    }
    if ChunkHash::of(&bytes) != whole {
        return Err(damaged("a manifest is not the one that the record names"));
    }
    Manifest::parse(&bytes)
}
