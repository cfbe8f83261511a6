//! Putting one thing at one name of a directory that is held open. Everything is made under a name
//! that nobody guesses and moved into place, so a link or a FIFO that stands there is replaced and
//! never used.

use std::ffi::CString;
use std::fs::File;

use glovebox_model::Result;
use glovebox_workspace::{Dir, Existing, FsErrorKind, Kind, RelPath};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, chownat, linkat, mkdirat, mknodat, symlinkat, unlinkat,
    utimensat,
};
use rustix::io::Errno;

use super::{contents, metadata, rel};
use crate::fault::{internal, os, storing};
use crate::manifest::{Content, Entry};
use crate::reach::{open_file, set_mode};
use crate::tree::Facts;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placed {
    /// Nothing had to be done.
    Right,
    Adjusted,
    Written,
}

#[derive(Debug)]
pub(super) struct Parent(Dir);

impl Parent {
    pub(super) fn open(target: &Dir, path: &[u8]) -> Result<Self> {
        target.enter(path).map(Self).map_err(storing)
    }

    pub(super) fn remove(&self, name: &[u8], path: &[u8]) -> Result<()> {
        match self.0.remove_all(&rel(name)?) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == FsErrorKind::NotFound => Ok(()),
            Err(error) => {
                let error = storing(error);
                Err(error.caused_by(format!("below `{}`", crate::bytes::shown(path))))
            }
        }
    }

    pub(super) fn make_directory(&self, name: &[u8], path: &[u8]) -> Result<()> {
        let fault = |errno| os("make the directory", path, errno);
        let wanted = c_name(name)?;
        match mkdirat(&self.0, &wanted, Mode::RWXU) {
            Ok(()) => return Ok(()),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(fault(errno)),
        }
        // Something else stands there.
        self.remove(name, path)?;
        mkdirat(&self.0, &wanted, Mode::RWXU).map_err(fault)
    }

    /// None when it has other bytes, or is no file any more.
    pub(super) fn keep_file(
        &self,
        name: &[u8],
        entry: &Entry,
        content: &Content,
        path: &[u8],
    ) -> Result<Option<Placed>> {
        let Ok(fd) = open_file(&self.0, name) else {
            return Ok(None);
        };
        let file = File::from(fd);
        let facts = Facts::of(&file).map_err(|errno| os("look at", path, errno))?;
        let fits = facts.kind == Kind::File && facts.links == content.names;
        if !fits || !contents::same_contents(&file, content, path)? {
            return Ok(None);
        }
        Ok(Some(match metadata::set(&file, &entry.meta, path)? {
            true => Placed::Adjusted,
            false => Placed::Right,
        }))
    }

    pub(super) fn write_file(
        &self,
        name: &[u8],
        entry: &Entry,
        fill: impl FnOnce(&File) -> Result<()>,
    ) -> Result<()> {
        let path = entry.path.0.as_slice();
        let temporary = temporary()?;
        let file = self.0.create(&temporary, 0o600).map_err(storing)?;
        let written = fill(&file)
            .and_then(|()| metadata::set(&file, &entry.meta, path))
            .and_then(|_| self.move_in(&temporary, name, path));
        self.or_clean(written, &temporary)
    }

    pub(super) fn symlink(
        &self,
        name: &[u8],
        entry: &Entry,
        target: &[u8],
        right: bool,
    ) -> Result<Placed> {
        let path = entry.path.0.as_slice();
        if right {
            return self.adjust_unopened(name, entry, |_| Ok(false));
        }
        let temporary = temporary()?;
        let made = symlinkat(target, &self.0, temporary.as_bytes())
            .map_err(|errno| os("make the link", path, errno))
            .and_then(|()| self.adjust_unopened(temporary.as_bytes(), entry, |_| Ok(false)))
            .and_then(|_| self.move_in(&temporary, name, path));
        self.or_clean(made, &temporary).map(|()| Placed::Written)
    }

    pub(super) fn fifo(&self, name: &[u8], entry: &Entry, right: bool) -> Result<Placed> {
        let path = entry.path.0.as_slice();
        // A FIFO is held without being opened: opening it can wake or block somebody.
        let mode = |name: &[u8]| {
            let held = self.0.open_plain(name, OFlags::PATH).map_err(storing)?;
            let facts = Facts::of(&held).map_err(|errno| os("look at", path, errno))?;
            if facts.kind != Kind::Fifo || facts.mode == entry.meta.mode {
                return Ok(false);
            }
            set_mode(&held, path, entry.meta.mode).map_err(storing)?;
            Ok(true)
        };
        if right {
            return self.adjust_unopened(name, entry, mode);
        }
        let temporary = temporary()?;
        let bits = Mode::RUSR | Mode::WUSR;
        let made = mknodat(&self.0, temporary.as_bytes(), FileType::Fifo, bits, 0)
            .map_err(|errno| os("make the FIFO", path, errno))
            .and_then(|()| self.adjust_unopened(temporary.as_bytes(), entry, mode))
            .and_then(|_| self.move_in(&temporary, name, path));
        self.or_clean(made, &temporary).map(|()| Placed::Written)
    }

    /// Owner and time of a link or a FIFO, by name and not followed.
    fn adjust_unopened(
        &self,
        name: &[u8],
        entry: &Entry,
        mode: impl FnOnce(&[u8]) -> Result<bool>,
    ) -> Result<Placed> {
        let path = entry.path.0.as_slice();
        let c_name = c_name(name)?;
        let facts = Facts::at(&self.0, &c_name).map_err(|errno| os("look at", path, errno))?;
        let mut changed = false;
        if let Some((uid, gid)) = metadata::owner(&facts, &entry.meta) {
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            chownat(&self.0, &c_name, Some(uid), Some(gid), flags)
                .map_err(|errno| os("change the owner of", path, errno))?;
            changed = true;
        }
        changed |= mode(name)?;
        if facts.modified != entry.meta.modified {
            let times = metadata::times(entry.meta.modified);
            utimensat(&self.0, &c_name, &times, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|errno| os("change the time of", path, errno))?;
            changed = true;
        }
        Ok(match changed {
            true => Placed::Adjusted,
            false => Placed::Right,
        })
    }

    /// A further name of a file that is in place.
    pub(super) fn link(
        &self,
        name: &[u8],
        path: &[u8],
        first: &Parent,
        first_name: &[u8],
    ) -> Result<Placed> {
        let (wanted, from) = (c_name(name)?, c_name(first_name)?);
        let file = Facts::at(&first.0, &from).map_err(|errno| os("look at", path, errno))?;
        match Facts::at(&self.0, &wanted) {
            Ok(there) if there.same_file(&file) => return Ok(Placed::Right),
            _ => {}
        }
        let temporary = temporary()?;
        let made = linkat(
            &first.0,
            &from,
            &self.0,
            temporary.as_bytes(),
            AtFlags::empty(),
        )
        .map_err(|errno| os("link", path, errno))
        .and_then(|()| self.move_in(&temporary, name, path));
        self.or_clean(made, &temporary).map(|()| Placed::Written)
    }

    fn move_in(&self, temporary: &RelPath, name: &[u8], path: &[u8]) -> Result<()> {
        let wanted = rel(name)?;
        match self.0.rename(temporary, &wanted, Existing::Replace) {
            // A directory stands there. It goes, whatever is in it.
            Err(error)
                if matches!(
                    error.kind(),
                    FsErrorKind::IsADirectory | FsErrorKind::Exists | FsErrorKind::NotADirectory
                ) =>
            {
                self.remove(name, path)?;
                self.0
                    .rename(temporary, &wanted, Existing::Replace)
                    .map_err(storing)
            }
            done => done.map_err(storing),
        }
    }

    fn or_clean(&self, done: Result<()>, temporary: &RelPath) -> Result<()> {
        if done.is_err() {
            // Best effort: the first fault is the one to report, and the next restore removes it.
            let _ = unlinkat(&self.0, temporary.as_bytes(), AtFlags::empty());
        }
        done
    }
}

fn c_name(name: &[u8]) -> Result<CString> {
    CString::new(name).map_err(|_| internal("a name with a NUL byte in it"))
}

fn temporary() -> Result<RelPath> {
    let mut random = [0u8; 8];
    getrandom::fill(&mut random).map_err(|_| internal("the system has no random numbers"))?;
    rel(format!(".glovebox-{:016x}", u64::from_ne_bytes(random)).as_bytes())
}
