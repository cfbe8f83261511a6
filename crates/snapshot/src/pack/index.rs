//! Where each chunk of a pack lies.

use glovebox_model::Result;

use super::{END_MAGIC, MAGIC, PLAIN_MAX};
use crate::fault::damaged;
use crate::hash::{ChunkHash, HASH_BYTES};

/// Hash, offset, stored length, plain length, form.
const ITEM: usize = HASH_BYTES + 8 + 4 + 4 + 1;
/// Where the index begins, how many items, hash of both and the index, magic.
pub(super) const TRAILER: usize = 8 + 8 + HASH_BYTES + 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Plain,
    Zstd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Located {
    pub(crate) hash: ChunkHash,
    pub(crate) offset: u64,
    pub(crate) stored: u32,
    pub(crate) plain: u32,
    pub(crate) form: Form,
}

/// The index and the trailer, for chunks that end at `begins`.
pub(super) fn encode(items: &mut [Located], begins: u64) -> Vec<u8> {
    items.sort_unstable_by_key(|item| item.hash);
    let mut bytes = Vec::with_capacity(encoded_length(items.len()));
    for item in items.iter() {
        bytes.extend_from_slice(item.hash.as_bytes());
        bytes.extend_from_slice(&item.offset.to_le_bytes());
        bytes.extend_from_slice(&item.stored.to_le_bytes());
        bytes.extend_from_slice(&item.plain.to_le_bytes());
        bytes.push(match item.form {
            Form::Plain => 0,
            Form::Zstd => 1,
        });
    }
    let count = items.len() as u64;
    let check = checksum(begins, count, &bytes);
    bytes.extend_from_slice(&begins.to_le_bytes());
    bytes.extend_from_slice(&count.to_le_bytes());
    bytes.extend_from_slice(check.as_bytes());
    bytes.extend_from_slice(END_MAGIC);
    bytes
}

pub(super) fn encoded_length(items: usize) -> usize {
    items.saturating_mul(ITEM).saturating_add(TRAILER)
}

fn checksum(begins: u64, count: u64, index: &[u8]) -> ChunkHash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&begins.to_le_bytes());
    hasher.update(&count.to_le_bytes());
    hasher.update(index);
    let hash = hasher.finalize();
    ChunkHash::from_slice(hash.as_bytes()).unwrap_or_else(|| ChunkHash::of(b""))
}

/// What the trailer of a pack of `length` bytes says: where the index lies.
pub(super) struct Trailer {
    begins: u64,
    count: u64,
    check: ChunkHash,
    index_length: usize,
}

impl Trailer {
    pub(super) fn parse(bytes: &[u8; TRAILER], length: u64) -> Result<Self> {
        let number = |at: usize| {
            let mut number = [0u8; 8];
            number.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(number)
        };
        let (begins, count) = (number(0), number(8));
        let check = ChunkHash::from_slice(&bytes[16..16 + HASH_BYTES]);
        let index_length = count.checked_mul(ITEM as u64);
        let sum = index_length
            .and_then(|index| index.checked_add(begins))
            .and_then(|sum| sum.checked_add(TRAILER as u64));
        // The three parts fill the file exactly, which also bounds what is read next.
        match (check, index_length.map(usize::try_from), sum) {
            (Some(check), Some(Ok(index_length)), Some(sum))
                if bytes.ends_with(END_MAGIC) && sum == length && begins >= MAGIC.len() as u64 =>
            {
                Ok(Self {
                    begins,
                    count,
                    check,
                    index_length,
                })
            }
            _ => Err(damaged("the trailer of a pack does not fit it")),
        }
    }

    pub(super) fn begins(&self) -> u64 {
        self.begins
    }

    pub(super) fn index_length(&self) -> usize {
        self.index_length
    }

    pub(super) fn index(&self, bytes: &[u8]) -> Result<Vec<Located>> {
        if checksum(self.begins, self.count, bytes) != self.check {
            return Err(damaged(
                "the index of a pack is not the one that was written",
            ));
        }
        let (items, _) = bytes.as_chunks::<ITEM>();
        let mut index: Vec<Located> = Vec::with_capacity(items.len());
        for item in items {
            let located = self
                .item(item)
                .filter(|located| index.last().is_none_or(|last| last.hash < located.hash));
            index.push(located.ok_or_else(|| damaged("the index of a pack is not sound"))?);
        }
        Ok(index)
    }

    fn item(&self, item: &[u8; ITEM]) -> Option<Located> {
        let (hash, rest) = item.split_at_checked(HASH_BYTES)?;
        let (offset, rest) = rest.split_first_chunk::<8>()?;
        let (stored, rest) = rest.split_first_chunk::<4>()?;
        let (plain, form) = rest.split_first_chunk::<4>()?;
        let located = Located {
            hash: ChunkHash::from_slice(hash)?,
            offset: u64::from_le_bytes(*offset),
            stored: u32::from_le_bytes(*stored),
            plain: u32::from_le_bytes(*plain),
            form: match form {
                [0] => Form::Plain,
                [1] => Form::Zstd,
                _ => return None,
            },
        };
        let end = located.offset.checked_add(u64::from(located.stored))?;
        let inside = located.offset >= MAGIC.len() as u64 && end <= self.begins;
        let sized = located.plain as usize <= PLAIN_MAX && located.stored <= located.plain;
        let formed = located.form == Form::Zstd || located.stored == located.plain;
        (inside && sized && formed).then_some(located)
    }
}
