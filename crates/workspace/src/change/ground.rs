//! What an exec stands on when its workspace must not change under it: private directories of its
//! own, which nothing else writes to and which go with it. They hold no changes and count against no
//! quota.

use std::io::Write;

use glovebox_model::{Error, ExecId, ProjectId, Result, Stage};
use rustix::fd::AsFd;
use rustix::fs::{Gid, Mode, OFlags, Uid, XattrFlags, fchmod, fchown, fsetxattr, mkdirat, openat};
use rustix::io::Errno;

use super::attributes;
use super::carry::{LeftOut, copy_workspace};
use super::cover::Covers;
use super::place::Place;
use crate::dir::{Dir, single};
use crate::fault::{FsError, FsErrorKind, FsResult};
use crate::layout::{Layout, Project, is_skill_input};
use crate::relpath::RelPath;
use crate::stat::Stat;

const GROUND: &str = "ground";
const COPY: &str = "copy";
const OVER: &str = "over";
const INPUTS: &str = "inputs";
const PRIVATE: u32 = 0o700;
const MAKING: &str = "make ground for an exec";

/// Removed when it is dropped.
#[derive(Debug)]
pub struct Ground {
    all: Dir,
    home: Dir,
    exec: ExecId,
}

impl Drop for Ground {
    fn drop(&mut self) {
        // What cannot be removed now is found when its exec is.
        let _ = self.all.remove_entry(self.exec.as_str());
    }
}

impl Project {
    pub fn ground(&self, exec: &ExecId) -> Result<Ground> {
        let all = self.home().ensure_dir(GROUND, PRIVATE).map_err(opening)?;
        let home = all.make_new_dir(exec.as_str(), PRIVATE).map_err(opening)?;
        let exec = exec.clone();
        Ok(Ground { all, home, exec })
    }
}

impl Layout {
    /// Removes what a crash left of an exec's ground.
    pub fn clear_ground(&self, project: &ProjectId, exec: &ExecId) -> Result<()> {
        let all = self.home_of(project);
        let all = all.and_then(|home| home.open_name(GROUND));
        match all.and_then(|all| all.remove_entry(exec.as_str())) {
            Err(error) if error.kind() == FsErrorKind::NotFound => Ok(()),
            removed => removed.map_err(opening),
        }
    }
}

impl Ground {
    /// A copy of the workspace, without what is left out: a directory with all that is in it.
    pub fn copy(&self, work: &Dir, left_out: LeftOut<'_>) -> Result<Dir> {
        self.copied(COPY, work, left_out)
    }

    /// A copy of the files that came with execs. What skills bring is placed anew for each.
    pub fn inputs(&self, inputs: &Dir, left_out: LeftOut<'_>) -> Result<Dir> {
        let out = |path: &[u8], stat: &Stat| is_skill_input(path) || left_out(path, stat);
        self.copied(INPUTS, inputs, &out)
    }

    fn copied(&self, name: &str, from: &Dir, left_out: LeftOut<'_>) -> Result<Dir> {
        let to = self.home.make_new_dir(name, PRIVATE).map_err(opening)?;
        // The copy of each file belongs to its owner; that of the root to the workspace's.
        let copied = copy_workspace(from, &to, left_out);
        copied.and_then(|()| alike(from, &to)).map_err(opening)?;
        Ok(to)
    }

    /// An empty directory for what stands before the workspace's own entries.
    pub fn over(&self, work: &Dir) -> Result<Dir> {
        let over = self.home.make_new_dir(OVER, PRIVATE).map_err(opening)?;
        alike(work, &over).map_err(opening)?;
        Ok(over)
    }

    /// Puts a file into `over` with these bytes and the mode that it has in the workspace, below
    /// directories like those of the workspace.
    pub fn seal(&self, over: &Dir, work: &Dir, path: &RelPath, contents: &[u8]) -> Result<()> {
        sealed(over, work, path, contents).map_err(opening)
    }

    /// Puts covers before the names in `work` that they were found for.
    pub fn cover(&self, over: &Dir, work: &Dir, covers: &Covers) -> Result<()> {
        covers.put(work, over).map_err(opening)
    }
}

fn sealed(over: &Dir, work: &Dir, path: &RelPath, contents: &[u8]) -> FsResult<()> {
    let text = path.to_byte_string();
    let bytes = text.as_bytes();
    let fault = |errno: Errno| FsError::os(MAKING, bytes, errno);
    let above = parents(work, over, bytes)?;
    let (from, to) = (Place::below(work, bytes)?, Place::below(over, bytes)?);
    let (from, _) = from.open_file()?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = openat(&to.dir, &to.name, flags, Mode::RUSR | Mode::WUSR).map_err(fault)?;
    let mut file = std::fs::File::from(made);
    let written = file.write_all(contents);
    written.map_err(|error| fault(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
    like(from, file).map_err(fault)?;
    finish(work, over, &above)
}

/// Makes the directories above a path, so that something can be put there. Those that it made are
/// like the workspace's own once they are finished.
pub(super) fn parents(work: &Dir, over: &Dir, path: &[u8]) -> FsResult<Vec<Vec<u8>>> {
    let mut made = Vec::new();
    for end in (0..path.len()).filter(|at| path[*at] == b'/') {
        let to = Place::below(over, &path[..end])?;
        match mkdirat(&to.dir, &to.name, Mode::RWXU) {
            Ok(()) => made.push(path[..end].to_vec()),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(FsError::os(MAKING, path, errno)),
        }
    }
    // What can be stood before must be there.
    if let Some(last) = made.last() {
        Place::below(work, last)?.open_directory()?;
    }
    Ok(made)
}

/// The deepest first: nothing can be put into one that cannot be written.
pub(super) fn finish(work: &Dir, over: &Dir, made: &[Vec<u8>]) -> FsResult<()> {
    for path in made.iter().rev() {
        let fault = |errno: Errno| FsError::os(MAKING, path, errno);
        let from = Place::below(work, path)?.open_directory()?;
        let to = Place::below(over, path)?.open_directory()?;
        for (name, value) in attributes::read(&from).map_err(fault)?.own {
            fsetxattr(&to, name.as_slice(), &value, XattrFlags::empty()).map_err(fault)?;
        }
        like(from, to).map_err(fault)?;
    }
    Ok(())
}

fn alike(from: &Dir, to: &Dir) -> FsResult<()> {
    let open = |dir: &Dir| {
        single(dir.as_fd(), b".", OFlags::RDONLY | OFlags::DIRECTORY)
            .map_err(|kind| FsError::new(MAKING, b"", kind))
    };
    like(open(from)?, open(to)?).map_err(|errno| FsError::os(MAKING, b"", errno))
}

/// The same owner and permissions.
fn like(from: impl AsFd, to: impl AsFd) -> rustix::io::Result<()> {
    let facts = rustix::fs::fstat(from)?;
    if rustix::process::geteuid().is_root() {
        let (uid, gid) = (Uid::from_raw(facts.st_uid), Gid::from_raw(facts.st_gid));
        fchown(&to, Some(uid), Some(gid))?;
    }
    fchmod(to, Mode::from_raw_mode(facts.st_mode & 0o777))
}

fn opening(error: FsError) -> Error {
    error.at(Stage::Open)
}
