//! ZIP archives that nobody vouches for. A ZIP says everything twice, in front of each file and
//! once more at its end, and readers differ on which of the two they believe. Here both must say
//! the same, every byte must belong to exactly one entry, and names must be unique; so there is
//! only one way to read what is unpacked.

mod bytes;
mod contents;
mod directory;
mod ending;
mod entry;

use std::collections::HashSet;
use std::io::{Read, Seek};

use super::member::{Entry, Member};
use super::refusal::Refusal;
use super::root::Root;
use super::unpack::{Unpacked, Unpacking, entry_path};
use super::{Purpose, UnpackError, UnpackLimits, UnpackResult};
use crate::dir::Dir;
use crate::relpath::PATH_MAX;
use contents::{Budget, Contents};
use directory::Listed;

/// The source must not change meanwhile: a file of ours, not one that a guest can write.
pub trait Seekable: Read + Seek {}

impl<T: Read + Seek> Seekable for T {}

/// Unpacks over what is in `dir`, by the same rules as a tar of files.
pub fn unpack_zip_over(
    source: &mut dyn Seekable,
    dir: &Dir,
    limits: UnpackLimits,
) -> UnpackResult<Unpacked> {
    let entries = directory::read(source, limits)?;
    unique(&entries, limits)?;
    let mut unpacking = Unpacking::new(limits);
    let mut root = Root::new(dir, Purpose::Files);
    let mut budget = Budget::new(limits);
    for listed in &entries {
        one(source, listed, &mut unpacking, &mut root, &mut budget)
            .map_err(|why| UnpackError::of_entry(&listed.name, why))?;
    }
    Ok(unpacking.done())
}

fn one(
    source: &mut dyn Seekable,
    listed: &Listed,
    unpacking: &mut Unpacking,
    root: &mut Root<'_>,
    budget: &mut Budget,
) -> Result<(), Refusal> {
    let mut contents = Contents::open(source, listed, budget)?;
    let entry = match listed.kind()? {
        entry::Kind::File => Entry::File,
        entry::Kind::Directory => Entry::Directory,
        entry::Kind::Link => {
            if listed.size > PATH_MAX as u64 {
                return Err(Refusal::LinkText);
            }
            let mut text = Vec::new();
            let read = contents.read_to_end(&mut text);
            read.map_err(|error| super::from_reading(&error))?;
            Entry::Symlink(text)
        }
    };
    let member = Member {
        path: listed.name.clone(),
        entry,
        size: listed.size,
        mode: listed.mode(),
        modified: listed.modified,
    };
    unpacking.member(&member, root, &mut contents)?;
    contents.finish()
}

/// Which of two entries with one name counts is where readers differ.
fn unique(entries: &[Listed], limits: UnpackLimits) -> UnpackResult<()> {
    let mut names = HashSet::with_capacity(entries.len());
    for listed in entries {
        let fault = |why| UnpackError::of_entry(&listed.name, why);
        if listed.name.contains(&b'\\') {
            return Err(fault(Refusal::Backslash));
        }
        let path = entry_path(&listed.name, Purpose::Files, limits).map_err(fault)?;
        if !names.insert(path) {
            return Err(fault(Refusal::Duplicate));
        }
    }
    Ok(())
}
