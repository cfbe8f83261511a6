//! Whiteouts: how a layer takes away what the layers below it brought. What the layer itself made
//! stays, wherever in the archive the whiteout stands.

use std::ffi::{CStr, CString};

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, Dir as Listing, Mode, OFlags, unlinkat};
use rustix::io::Errno;

use super::refusal::{Limit, Refusal};
use super::root::{Root, files, open_single};
use crate::relpath::RelPath;
use crate::stat::{Kind, stat_name};

const PREFIX: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";
/// Bookkeeping of a file system that is long gone; means nothing.
const RESERVED: &[u8] = b".wh..wh.";
/// Links inside an image can make a directory deeper than any path in it.
const DEEPEST: usize = 256;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Whiteout {
    Entry(RelPath),
    /// All that lies in this directory; None is the root.
    Contents(Option<RelPath>),
    Ignored,
}

impl Whiteout {
    /// None when it is an ordinary name.
    pub(super) fn of(path: &RelPath) -> Result<Option<Self>, Refusal> {
        let (parent, name) = path.split().map_err(Refusal::Path)?;
        let Some(hidden) = name.strip_prefix(PREFIX) else {
            return Ok(None);
        };
        let parent = match parent {
            Some(parent) => Some(RelPath::new(parent).map_err(Refusal::Path)?),
            None => None,
        };
        if name == OPAQUE {
            return Ok(Some(Self::Contents(parent)));
        }
        if name.starts_with(RESERVED) {
            return Ok(Some(Self::Ignored));
        }
        if matches!(hidden, b"" | b"." | b"..") {
            return Err(Refusal::Whiteout);
        }
        let mut target = parent.map_or_else(Vec::new, |parent| parent.as_bytes().to_vec());
        if !target.is_empty() {
            target.push(b'/');
        }
        target.extend_from_slice(hidden);
        let target = RelPath::new(target).map_err(Refusal::Path)?;
        Ok(Some(Self::Entry(target)))
    }
}

impl Root<'_> {
    pub(super) fn take_away(&mut self, whiteout: &Whiteout) -> Result<(), Refusal> {
        self.forget_place();
        match whiteout {
            Whiteout::Ignored => Ok(()),
            Whiteout::Entry(path) => match self.existing_parent(path)? {
                None => Ok(()),
                Some((parent, name)) => self.purge(parent.as_fd(), &name, path, 0),
            },
            Whiteout::Contents(None) => self.purge_contents_of_root(),
            Whiteout::Contents(Some(path)) => match self.existing_parent(path)? {
                None => Ok(()),
                Some((parent, name)) => match stat_name(&parent, &name) {
                    Ok(found) if found.kind == Kind::Directory => {
                        self.purge_contents(parent.as_fd(), &name, path, 0)
                    }
                    // No directory of an earlier layer, so there is nothing to hide.
                    Ok(_) | Err(Errno::NOENT) => Ok(()),
                    Err(errno) => Err(files("look at", path, errno)),
                },
            },
        }
    }

    fn purge_contents_of_root(&self) -> Result<(), Refusal> {
        // Named for messages only.
        let path = RelPath::new(OPAQUE).map_err(Refusal::Path)?;
        self.purge_contents(self.top().as_fd(), c".", &path, 0)
    }

    fn purge(
        &self,
        parent: BorrowedFd<'_>,
        name: &CStr,
        path: &RelPath,
        depth: usize,
    ) -> Result<(), Refusal> {
        let fault = |errno| files("remove", path, errno);
        let found = match stat_name(parent, name) {
            Err(Errno::NOENT) => return Ok(()),
            found => found.map_err(fault)?,
        };
        let ours = self.made_here(parent, name).map_err(fault)?;
        if found.kind != Kind::Directory {
            return match ours {
                true => Ok(()),
                false => unlinkat(parent, name, AtFlags::empty()).map_err(fault),
            };
        }
        self.purge_contents(parent, name, path, depth)?;
        if ours {
            return Ok(());
        }
        match unlinkat(parent, name, AtFlags::REMOVEDIR) {
            // Something of this layer is left in it.
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            done => done.map_err(fault),
        }
    }

    fn purge_contents(
        &self,
        parent: BorrowedFd<'_>,
        name: &CStr,
        path: &RelPath,
        depth: usize,
    ) -> Result<(), Refusal> {
        if depth >= DEEPEST {
            return Err(Refusal::Limit(Limit::Depth(DEEPEST)));
        }
        let fault = |errno| files("remove", path, errno);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let held = open_single(parent, name, flags, Mode::empty()).map_err(fault)?;
        let listing = Listing::read_from(&held).map_err(fault)?;
        let mut names: Vec<CString> = Vec::new();
        for entry in listing {
            let entry = entry.map_err(fault)?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                names.push(entry.file_name().to_owned());
            }
        }
        for name in &names {
            self.purge(held.as_fd(), name, path, depth + 1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Result<Option<Whiteout>, Refusal> {
        Whiteout::of(&RelPath::new(path).unwrap())
    }

    #[test]
    fn a_whiteout_names_one_entry_beside_it() {
        let entry = |path: &str| Ok(Some(Whiteout::Entry(RelPath::new(path).unwrap())));
        assert_eq!(of("a/.wh.b"), entry("a/b"));
        assert_eq!(of(".wh.b"), entry("b"));
        assert_eq!(of(".wh..hidden"), entry(".hidden"));
        assert_eq!(
            of("a/.wh..wh..opq"),
            Ok(Some(Whiteout::Contents(RelPath::new("a").ok())))
        );
        assert_eq!(of("a/.wh..wh.plnk"), Ok(Some(Whiteout::Ignored)));
        assert_eq!(of("a/wh.b"), Ok(None));
        for climbing in [".wh...", ".wh..", ".wh.", "a/.wh..."] {
            assert_eq!(of(climbing), Err(Refusal::Whiteout), "{climbing}");
        }
    }
}
