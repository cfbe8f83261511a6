//! The directory of one exec whose changes wait: the layer that took them, the moment it began, and
//! the note of what is being carried over.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Gid, Mode, OFlags, Uid, fchmod, fchown};
use rustix::io::Errno;

use super::apply::{Outcome, RecoveredChange, apply, recover};
use super::base::Base;
use super::carry::{Marks, carry};
use super::entry::Changes;
use super::locked::Modes;
use super::read::{ReadLimits, read_with};
use crate::dir::{Dir, single};
use crate::fault::{FsError, FsErrorKind, FsResult};

const LAYER: &str = "layer";
const UPPER: &str = "upper";
const WORK: &str = "work";
/// What is carried here from memory, until it is whole.
const ASIDE: &str = "aside";
/// There when gates judge what is written here.
const GATED: &str = "gated";
const PRIVATE: u32 = 0o700;

#[derive(Debug)]
pub struct Held {
    home: Dir,
    layer: Dir,
    upper: Dir,
}

impl Held {
    /// Makes the layer for an exec on `lower`, as `name` in a directory of ours.
    pub fn create(shelf: &Dir, name: &str, lower: &Dir) -> FsResult<Self> {
        let home = shelf.make_new_dir(name, PRIVATE)?;
        let layer = home.make_new_dir(LAYER, PRIVATE)?;
        let upper = layer.make_new_dir(UPPER, PRIVATE)?;
        let work = layer.make_new_dir(WORK, PRIVATE)?;
        // The layer is seen in place of the workspace, so it must look like it.
        let facts = rustix::fs::fstat(lower).map_err(|errno| making(name, errno))?;
        let root = rustix::process::geteuid().is_root();
        for (dir, mode) in [
            (&layer, PRIVATE),
            (&upper, facts.st_mode & 0o777),
            (&work, PRIVATE),
        ] {
            let fd = readable(dir)?;
            if root {
                let (uid, gid) = (Uid::from_raw(facts.st_uid), Gid::from_raw(facts.st_gid));
                fchown(&fd, Some(uid), Some(gid)).map_err(|errno| making(name, errno))?;
            }
            fchmod(&fd, Mode::from_raw_mode(mode)).map_err(|errno| making(name, errno))?;
        }
        Ok(Self { home, layer, upper })
    }

    pub fn open(shelf: &Dir, name: &str) -> FsResult<Self> {
        let home = shelf.open_name(name)?;
        let layer = home.open_name(LAYER)?;
        let upper = layer.open_name(UPPER)?;
        Ok(Self { home, layer, upper })
    }

    /// What a sandbox is given.
    pub fn layer(&self) -> &Dir {
        &self.layer
    }

    /// What is written, for whoever counts it.
    pub fn upper(&self) -> &Dir {
        &self.upper
    }

    /// Takes what an exec wrote in memory instead: the directory with its `upper`. Nothing of it is
    /// seen here until all of it is.
    pub fn fill(&mut self, memory: &Dir) -> FsResult<()> {
        let from = memory.open_name(UPPER)?;
        Modes::unlock(&from, &self.home)?;
        let facts =
            rustix::fs::fstat(&self.upper).map_err(|errno| FsError::os("look at", b"", errno))?;
        let aside = self.home.make_new_dir(ASIDE, PRIVATE)?;
        let fd = readable(&aside)?;
        if rustix::process::geteuid().is_root() {
            let (uid, gid) = (Uid::from_raw(facts.st_uid), Gid::from_raw(facts.st_gid));
            fchown(&fd, Some(uid), Some(gid)).map_err(|errno| making(ASIDE, errno))?;
        }
        let moved = carry(&from, &aside, Marks::Carried).and_then(|()| {
            fchmod(&fd, Mode::from_raw_mode(facts.st_mode & 0o777))
                .map_err(|errno| making(ASIDE, errno))?;
            // In place of the empty one.
            rustix::fs::renameat(&self.home, ASIDE, &self.layer, UPPER)
                .map_err(|errno| making(ASIDE, errno))
        });
        if let Err(error) = moved {
            // Best effort: it goes with the whole directory otherwise.
            let _ = self.home.remove_entry(ASIDE);
            return Err(error);
        }
        self.upper = self.layer.open_name(UPPER)?;
        Ok(())
    }

    /// Gates judge it: who finds it unjudged after a crash must know.
    pub fn note_gated(&self) -> FsResult<()> {
        self.home.create_name(GATED, 0o600).map(drop)
    }

    pub fn is_gated(&self) -> bool {
        self.home.open_file_name(GATED).is_ok()
    }

    /// The program has ended: what it closed to itself, and so to an ordinary user who runs us, is
    /// opened, and the modes that it gave are noted.
    pub fn unlock(&self) -> FsResult<()> {
        Modes::unlock(&self.upper, &self.home)
    }

    /// From here on the workspace counts as moved when it is changed. Between building the sandbox
    /// and starting the program; waits for a tick of the clock.
    pub fn begin(&self) -> FsResult<()> {
        Base::take().save(&self.home)
    }

    pub fn changes(&self, lower: &Dir, limits: ReadLimits) -> FsResult<Changes> {
        read_with(lower, &self.upper, &Modes::load(&self.home)?, limits)
    }

    /// Carries everything over, or nothing. The directory stays, so that the answer can be given
    /// again until it is removed.
    pub fn keep(&self, lower: &Dir, limits: ReadLimits) -> FsResult<Outcome> {
        let base = Base::load(&self.home)?;
        recover(&self.home, lower)?;
        let changes = self.changes(lower, limits)?;
        apply(&self.home, lower, &self.upper, &changes, &base)
    }

    /// After a crash, before anything else is done with it.
    pub fn recover(&self, lower: &Dir) -> FsResult<RecoveredChange> {
        recover(&self.home, lower)
    }

    /// Removes it with all that was not carried over. True when it was there.
    pub fn remove(shelf: &Dir, name: &str) -> FsResult<bool> {
        match shelf.remove_entry(name) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == FsErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// A handle takes no mode and no owner; a second opening of the same directory does.
fn readable(dir: &Dir) -> FsResult<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    single(dir.as_fd(), b".", flags).map_err(|kind| FsError::new("make the layer", b"", kind))
}

fn making(name: &str, errno: Errno) -> FsError {
    FsError::os("make the layer", name.as_bytes(), errno)
}
