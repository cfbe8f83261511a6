//! What programs may reuse: `caches/<scope>/<name>`. A cache that somebody can write is read by
//! nobody else, so nobody can poison another's; what all read is written by the operator alone.
//! Which of the two it is follows from the key, and the handle comes with the access it may be used
//! with.

mod fill;
mod key;
mod name;
mod prune;

use std::fs::File;

use glovebox_model::{Access, Code, Error, Result, Stage};
use rustix::fd::AsFd;
use rustix::fs::{FlockOperation, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, flock, futimens};

use crate::dir::Dir;
use crate::fault::{FsError, FsErrorKind, FsResult};
use crate::layout::Layout;
use crate::relpath::RelPath;
use crate::stat::{Kind, stat_fd};

pub use key::{CacheKey, CacheMode, CacheOwner};
pub use name::CacheName;
pub use prune::{CachePrune, CacheUse, Pruned};

const CACHES: &str = "caches";
const PRIVATE: u32 = 0o700;
const ORDINARY: u32 = 0o755;
/// Beside the cache, where no program can set its time: when it was last used, and by its lock
/// whether it is used now.
const MARK: &str = ".used-";
/// Whoever removes a cache removes its mark as well, and then there is a new one to be locked.
const ATTEMPTS: usize = 64;

/// A cache that is not removed for as long as this value lives.
#[derive(Debug)]
pub struct Cache {
    dir: Dir,
    access: Access,
    _held: File,
}

impl Cache {
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// What a sandbox may be given it with; never more.
    pub fn access(&self) -> Access {
        self.access
    }
}

impl Layout {
    /// A user's own is made when it is not there; a shared one must have been filled.
    pub fn cache(&self, key: &CacheKey) -> Result<Cache> {
        let scope = self.cache_scope(key)?;
        let held = hold(&scope, key.name()).map_err(opening)?;
        let name = key.name().as_str();
        let dir = match key.owner() {
            CacheOwner::User(_) => scope.ensure_dir(name, ORDINARY).map_err(opening)?,
            CacheOwner::Everybody => scope.open_name(name).map_err(|error| match error.kind() {
                FsErrorKind::NotFound => not_filled(key.name()),
                _ => opening(error),
            })?,
        };
        really_there(&scope, name, &dir).map_err(opening)?;
        Ok(Cache {
            dir,
            access: key.access(),
            _held: held,
        })
    }

    fn cache_scope(&self, key: &CacheKey) -> Result<Dir> {
        let all = self.root().ensure_dir(CACHES, PRIVATE).map_err(opening)?;
        let scope = key.scope();
        let dir = all.ensure_dir(&scope, PRIVATE).map_err(opening)?;
        really_there(&all, &scope, &dir).map_err(opening)?;
        prune::label(&dir, key).map_err(opening)?;
        Ok(dir)
    }
}

/// A directory of its own and no link to somebody else's.
fn really_there(parent: &Dir, name: &str, dir: &Dir) -> FsResult<()> {
    let path = path_of(name)?;
    let stat = parent.lstat(&path)?;
    match stat.kind == Kind::Directory && stat.id == dir.id()? {
        true => Ok(()),
        false => Err(FsError::new("open", name.as_bytes(), FsErrorKind::Symlink)),
    }
}

/// Says that it is used, now and for as long as the file is open.
fn hold(scope: &Dir, name: &CacheName) -> FsResult<File> {
    let mark = format!("{MARK}{name}");
    let fault = |kind| FsError::new("lock", mark.as_bytes(), kind);
    for _ in 0..ATTEMPTS {
        let file = mark_of(scope, &mark)?;
        // Held by a removal only while it takes away a name.
        flock(&file, FlockOperation::LockShared).map_err(|errno| fault(errno.into()))?;
        if is_named(scope, &mark, &file)? {
            let now = Timestamps {
                last_access: Timespec {
                    tv_sec: 0,
                    tv_nsec: UTIME_OMIT,
                },
                last_modification: Timespec {
                    tv_sec: 0,
                    tv_nsec: UTIME_NOW,
                },
            };
            futimens(&file, &now).map_err(|errno| fault(errno.into()))?;
            return Ok(file);
        }
    }
    Err(fault(FsErrorKind::Contended))
}

/// Opened, or made when it is not there; others make and remove it at the same time.
fn mark_of(scope: &Dir, mark: &str) -> FsResult<File> {
    for _ in 0..ATTEMPTS {
        match scope.reopen_name(mark) {
            Err(error) if error.kind() == FsErrorKind::NotFound => {}
            opened => return opened,
        }
        match scope.create_name(mark, 0o600) {
            Err(error) if error.kind() == FsErrorKind::Exists => {}
            made => return made,
        }
    }
    let kind = FsErrorKind::Contended;
    Err(FsError::new("lock", mark.as_bytes(), kind))
}

fn is_named(scope: &Dir, name: &str, file: impl AsFd) -> FsResult<bool> {
    let held = stat_fd(file).map_err(|errno| FsError::os("look at", name.as_bytes(), errno))?;
    match scope.lstat(&path_of(name)?) {
        Ok(stat) => Ok(stat.id == held.id),
        Err(error) if error.kind() == FsErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn path_of(name: &str) -> FsResult<RelPath> {
    RelPath::new(name)
        .map_err(|error| FsError::new("open", name.as_bytes(), FsErrorKind::Path(error)))
}

fn not_filled(name: &CacheName) -> Error {
    Error::new(
        Code::NotFound,
        Stage::Open,
        format!("the shared cache `{name}` is not filled"),
    )
    .hint("an operator fills it from a directory of the host")
}

fn opening(error: FsError) -> Error {
    error.at(Stage::Open)
}
