//! The bytes of a file on either side: whether they are the same, and reading them.

use std::fs::File;
use std::os::unix::fs::FileExt;

use glovebox_model::Result;
use glovebox_workspace::Kind;

use super::side::{Item, Tree};
use crate::chunks::Chunks;
use crate::fault::{hurting, io, os, storing};
use crate::manifest::{Content, Piece};
use crate::reach::open_file;
use crate::restore::same_contents;
use crate::tree::Facts;

const BLOCK: usize = 64 << 10;
/// Files with holes can be endless; what is the same for so long is told as different, which is the
/// harmless mistake.
const COMPARED_MAX: u64 = 256 << 20;

pub(super) fn same(
    before_tree: &Tree<'_>,
    before: &Item<'_>,
    after_tree: &Tree<'_>,
    after: &Item<'_>,
) -> Result<bool> {
    if size(before) != size(after) {
        return Ok(false);
    }
    match (before, after) {
        (Item::Stored { content: old, .. }, Item::Stored { content: new, .. }) => {
            let (Some(old), Some(new)) = (old, new) else {
                return Ok(false);
            };
            if old.same_pieces(new) {
                return Ok(true);
            }
            // The same bytes are always cut the same; only holes can stand for zeros.
            if !has_hole(old) && !has_hole(new) {
                return Ok(false);
            }
            streamed(before_tree, before, after_tree, after)
        }
        (stored @ Item::Stored { .. }, live @ Item::Live { .. }) => {
            stored_and_live(before_tree, stored, after_tree, live)
        }
        (live @ Item::Live { .. }, stored @ Item::Stored { .. }) => {
            stored_and_live(after_tree, stored, before_tree, live)
        }
        (Item::Live { found: old, .. }, Item::Live { found: new, .. }) => {
            match old.facts.same_file(&new.facts) {
                true => Ok(true),
                false => streamed(before_tree, before, after_tree, after),
            }
        }
    }
}

fn size(item: &Item<'_>) -> u64 {
    match item {
        Item::Stored { content, .. } => content.map_or(0, |content| content.size),
        Item::Live { found, .. } => found.facts.size,
    }
}

fn has_hole(content: &Content) -> bool {
    let hole = |piece: &Piece| matches!(piece, Piece::Hole { .. });
    content.pieces.iter().any(hole)
}

fn stored_and_live(
    stored_tree: &Tree<'_>,
    stored: &Item<'_>,
    live_tree: &Tree<'_>,
    live: &Item<'_>,
) -> Result<bool> {
    let (Tree::Stored { snapshot, .. }, Item::Stored { entry, content }) = (stored_tree, stored)
    else {
        return Ok(false);
    };
    let (Tree::Live { dir, .. }, Item::Live { found, .. }) = (live_tree, live) else {
        return Ok(false);
    };
    let Some(content) = content else {
        return Ok(false);
    };
    let source = snapshot.source;
    let still = found.facts.device == source.device
        && found.facts.is_still(content, &entry.meta, source.started);
    if still {
        return Ok(true);
    }
    match open(dir, &found.path)? {
        Some(file) => same_contents(&file, content, &found.path),
        None => Ok(false),
    }
}

/// None when there is no regular file any more.
fn open(dir: &glovebox_workspace::Dir, path: &[u8]) -> Result<Option<File>> {
    let file = File::from(open_file(dir, path).map_err(storing)?);
    let facts = Facts::of(&file).map_err(|errno| os("look at", path, errno))?;
    Ok((facts.kind == Kind::File).then_some(file))
}

fn streamed(
    before_tree: &Tree<'_>,
    before: &Item<'_>,
    after_tree: &Tree<'_>,
    after: &Item<'_>,
) -> Result<bool> {
    let mut old = Reader::new(before_tree, before)?;
    let mut new = Reader::new(after_tree, after)?;
    let (mut left, mut right) = (vec![0u8; BLOCK], vec![0u8; BLOCK]);
    let mut compared = 0u64;
    while compared < COMPARED_MAX {
        let (count, other) = (old.fill(&mut left)?, new.fill(&mut right)?);
        if left[..count] != right[..other] {
            return Ok(false);
        }
        if count == 0 {
            return Ok(true);
        }
        compared += count as u64;
    }
    Ok(false)
}

/// The whole file, or None when it is larger than `cap`.
pub(super) fn read(tree: &Tree<'_>, item: &Item<'_>, cap: u64) -> Result<Option<Vec<u8>>> {
    if size(item) > cap {
        return Ok(None);
    }
    let mut reader = Reader::new(tree, item)?;
    let mut bytes = Vec::new();
    let mut block = vec![0u8; BLOCK];
    loop {
        let count = reader.fill(&mut block)?;
        if count == 0 {
            return Ok(Some(bytes));
        }
        bytes.extend_from_slice(&block[..count]);
        // A live file may have grown since it was listed.
        if bytes.len() as u64 > cap {
            return Ok(None);
        }
    }
}

enum Reader<'r> {
    Stored {
        content: &'r Content,
        chunks: &'r Chunks,
        snapshot: &'r glovebox_model::SnapshotId,
        path: &'r [u8],
        piece: usize,
        /// Of the piece.
        at: u64,
        chunk: Vec<u8>,
    },
    Live {
        file: File,
        path: &'r [u8],
        at: u64,
    },
    Nothing,
}

impl<'r> Reader<'r> {
    fn new(tree: &'r Tree<'_>, item: &Item<'r>) -> Result<Self> {
        Ok(match (tree, item) {
            (
                Tree::Stored {
                    chunks, snapshot, ..
                },
                Item::Stored {
                    entry,
                    content: Some(content),
                },
            ) => Self::Stored {
                content,
                chunks,
                snapshot: &snapshot.id,
                path: &entry.path.0,
                piece: 0,
                at: 0,
                chunk: Vec::new(),
            },
            (Tree::Live { dir, .. }, Item::Live { found, .. }) => match open(dir, &found.path)? {
                Some(file) => Self::Live {
                    file,
                    path: &found.path,
                    at: 0,
                },
                None => Self::Nothing,
            },
            _ => Self::Nothing,
        })
    }

    /// Fills the buffer unless the file ends.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            let count = self.some(&mut buffer[filled..])?;
            if count == 0 {
                break;
            }
            filled += count;
        }
        Ok(filled)
    }

    fn some(&mut self, buffer: &mut [u8]) -> Result<usize> {
        match self {
            Self::Nothing => Ok(0),
            Self::Live { file, path, at } => {
                let count = file
                    .read_at(buffer, *at)
                    .map_err(|error| io("read", path, &error))?;
                *at += count as u64;
                Ok(count)
            }
            Self::Stored {
                content,
                chunks,
                snapshot,
                path,
                piece,
                at,
                chunk,
            } => {
                let Some(current) = content.pieces.get(*piece) else {
                    return Ok(0);
                };
                let left = current.length() - *at;
                let count = usize::try_from(left)
                    .unwrap_or(usize::MAX)
                    .min(buffer.len());
                match current {
                    Piece::Hole { .. } => buffer[..count].fill(0),
                    Piece::Chunk { hash, .. } => {
                        if *at == 0 {
                            *chunk = chunks
                                .get(*hash)
                                .map_err(|error| hurting(snapshot, Some(path), error))?;
                        }
                        let from = usize::try_from(*at).unwrap_or(usize::MAX);
                        let part = chunk.get(from..from.saturating_add(count));
                        let part = part.ok_or_else(|| {
                            let fault = crate::fault::damaged("a chunk is too short");
                            hurting(snapshot, Some(path), fault)
                        })?;
                        buffer[..count].copy_from_slice(part);
                    }
                }
                *at += count as u64;
                if *at == current.length() {
                    *at = 0;
                    *piece += 1;
                }
                Ok(count)
            }
        }
    }
}
