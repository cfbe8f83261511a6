//! Chunks one after another in one file, then their index, then a trailer that vouches for the
//! index. The index is inside so that a pack is one file to sync, and whole or not there. Snapshots
//! name chunks and never packs, so packs can be written anew.

mod index;
mod read;
mod write;

pub(crate) use index::{Form, Located};
pub(crate) use read::{Pack, parse_whole};
pub(crate) use write::{Batch, PackWriter};

/// The largest chunk before compression; only the list of a large manifest's chunks comes near.
pub(crate) const PLAIN_MAX: usize = 16 << 20;

const MAGIC: &[u8; 8] = b"GBXPACK1";
const END_MAGIC: &[u8; 8] = b"GBXEND01";

const SUFFIX: &str = ".pack";
const TEMPORARY: &str = "tmp-";

/// Whether a name in the directory of packs is one that a finished pack has.
pub(crate) fn is_pack_name(name: &str) -> bool {
    name.strip_suffix(SUFFIX).is_some_and(|id| {
        id.len() == 32
            && id
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}
