//! What a manifest may say. It comes from disk, so nothing in it is believed: a path that climbs, a
//! size that its pieces do not have, an attribute that grants something.

use glovebox_model::{Error, Result};
use glovebox_workspace::RelPath;

use super::entry::{Content, Entry, Meta, Node, Piece, XATTR_BYTES_MAX, XATTRS_MAX};
use crate::bytes::shown;
use crate::fault::damaged;
use crate::pack::PLAIN_MAX;

const NAME_PREFIX: &[u8] = b"user.";
const TARGET_MAX: usize = 4095;

/// `before` are those that were already found good.
pub(super) fn entry(entry: &Entry, before: &[Entry]) -> Result<()> {
    let path = entry.path.0.as_slice();
    let unfit = |why: &str| damaged(format!("manifest entry `{}` {why}", shown(path)));
    let plain = RelPath::new(path).is_ok_and(|checked| {
        // Changed by the check means that it was not in its one form.
        checked.as_bytes() == path && !checked.climbs()
    });
    if !plain {
        return Err(unfit("has no plain relative path"));
    }
    if before.last().is_some_and(|last| last.path >= entry.path) {
        return Err(unfit("is out of order"));
    }
    let find = |path: &[u8]| {
        let found = before.binary_search_by(|entry| entry.path.0.as_slice().cmp(path));
        found.ok().map(|at| &before[at])
    };
    if let Some(slash) = path.iter().rposition(|byte| *byte == b'/') {
        let parent = find(&path[..slash]);
        if !parent.is_some_and(|parent| parent.node.is_directory()) {
            return Err(unfit("is in no directory of the manifest"));
        }
    }
    meta(&entry.meta, unfit)?;
    match &entry.node {
        Node::Directory | Node::Fifo => Ok(()),
        Node::File(content) => pieces(content, unfit),
        Node::Link { to } => match find(&to.0).map(|first| &first.node) {
            Some(Node::File(_)) => Ok(()),
            _ => Err(unfit("is a further name of no file")),
        },
        Node::Symlink { target } => {
            let target = &target.0;
            match target.is_empty() || target.len() > TARGET_MAX || target.contains(&0) {
                true => Err(unfit("is a link to nothing that can be named")),
                false => Ok(()),
            }
        }
    }
}

fn meta(meta: &Meta, unfit: impl Fn(&str) -> Error) -> Result<()> {
    if meta.mode & !0o1777 != 0 {
        return Err(unfit("has mode bits that are never stored"));
    }
    if !meta.modified.is_sane() {
        return Err(unfit("has an impossible time"));
    }
    let bytes: usize = meta.xattrs.iter().map(|(_, value)| value.0.len()).sum();
    let named = |name: &[u8]| {
        name.starts_with(NAME_PREFIX)
            && name.len() > NAME_PREFIX.len()
            && name.len() <= 255
            && !name.contains(&0)
    };
    let fit = meta.xattrs.len() <= XATTRS_MAX
        && bytes <= XATTR_BYTES_MAX
        && meta.xattrs.iter().all(|(name, _)| named(&name.0));
    match fit {
        true => Ok(()),
        false => Err(unfit("has attributes that are never stored")),
    }
}

fn pieces(content: &Content, unfit: impl Fn(&str) -> Error) -> Result<()> {
    let mut sum = 0u64;
    for piece in &content.pieces {
        let fits = match piece {
            Piece::Chunk { length, .. } => *length > 0 && *length as usize <= PLAIN_MAX,
            Piece::Hole { length } => *length > 0,
        };
        let added = sum.checked_add(piece.length()).filter(|_| fits);
        sum = added.ok_or_else(|| unfit("has a piece of an impossible length"))?;
    }
    let seen = content.seen.is_none_or(|seen| seen.changed.is_sane());
    // The largest offset that the kernel takes.
    match sum == content.size && i64::try_from(sum).is_ok() && seen && content.names > 0 {
        true => Ok(()),
        false => Err(unfit("does not add up")),
    }
}
