//! How a shared cache gets its contents: copied beside it, then put in its place in one step.
//! Sandboxes that have the old one keep it; it is removed a day later.

use glovebox_model::{Code, Error, Result, Stage};
use rustix::fd::AsFd;
use rustix::fs::{RenameFlags, renameat_with, syncfs};
use rustix::io::Errno;

use super::{ORDINARY, hold, opening};
use crate::cache::key::{CacheKey, CacheOwner};
use crate::dir::{Dir, temporary_name};
use crate::fault::{FsError, FsErrorKind};
use crate::layout::Layout;
use crate::seed::{Copy, Flush, Rights, SeedLimits, Seeded, make_directory};

impl Layout {
    /// For an operator's command, never for a request: everybody in the space reads the result. Once
    /// it is not wanted any more, the cache is as it was.
    pub fn fill_cache(
        &self,
        key: &CacheKey,
        from: &Dir,
        limits: SeedLimits,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Seeded> {
        if *key.owner() != CacheOwner::Everybody {
            return Err(Error::new(
                Code::InvalidArgument,
                Stage::Open,
                format!("cache `{}` belongs to a user, who fills it", key.name()),
            )
            .hint("only shared caches are filled from a directory"));
        }
        let scope = self.cache_scope(key)?;
        let staging = temporary_name()
            .map_err(|kind| opening(FsError::new("fill", b"", kind)))?
            .to_string_lossy()
            .into_owned();
        let filled = fill(&scope, &staging, from, limits, is_wanted)
            .and_then(|seeded| put(&scope, &staging, key).map(|()| seeded));
        if filled.is_err() {
            // Best effort: the first fault is the one to report, and pruning takes it along.
            let _ = scope.remove_entry(&staging);
            if !is_wanted() {
                let message = "canceled by the caller; the cache is as it was";
                return Err(Error::new(Code::Canceled, Stage::Open, message));
            }
        }
        filled
    }
}

fn fill(
    scope: &Dir,
    staging: &str,
    from: &Dir,
    limits: SeedLimits,
    is_wanted: &dyn Fn() -> bool,
) -> Result<Seeded> {
    let fault = |kind| opening(FsError::new("fill", b"", kind));
    let name = std::ffi::CString::new(staging).map_err(|_| fault(Errno::INVAL.into()))?;
    make_directory(scope.as_fd(), &name, ORDINARY).map_err(fault)?;
    let target = scope.open_name(staging).map_err(opening)?;
    let copy = Copy {
        template: from,
        target: &target,
        limits,
        room: &|_, _| Ok(()),
        rights: Rights::Everyone,
        flush: Flush::Later,
        is_wanted,
    };
    let seeded = copy.run()?;
    let top = crate::dir::single(scope.as_fd(), staging.as_bytes(), READER).map_err(fault)?;
    syncfs(&top).map_err(|errno| fault(errno.into()))?;
    Ok(seeded)
}

const READER: rustix::fs::OFlags = rustix::fs::OFlags::RDONLY
    .union(rustix::fs::OFlags::DIRECTORY)
    .union(rustix::fs::OFlags::NOFOLLOW);

fn put(scope: &Dir, staging: &str, key: &CacheKey) -> Result<()> {
    let _held = hold(scope, key.name()).map_err(opening)?;
    let name = key.name().as_str();
    let rename = |flags| renameat_with(scope, staging, scope, name, flags);
    let done = match rename(RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) => rename(RenameFlags::EXCHANGE),
        done => done,
    };
    done.map_err(|errno| {
        opening(FsError::new(
            "fill",
            name.as_bytes(),
            FsErrorKind::from(errno),
        ))
    })
}
