//! How much caches take, and removing those that nobody uses.

use std::time::{Duration, Instant};

use glovebox_model::{Result, SpaceId};
use rustix::fs::{FlockOperation, flock, renameat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::key::{CacheKey, CacheOwner, SHARED, USER};
use super::name::CacheName;
use super::{CACHES, MARK, is_named, mark_of, opening, path_of};
use crate::dir::{Dir, DiskUsage, UsageLimits};
use crate::fault::{FsError, FsErrorKind, FsResult};
use crate::layout::Layout;
use crate::stat::{FileTime, Kind};

const MOST_SCOPES: usize = 100_000;
const MOST_NAMES: usize = 10_000;
/// Says whose the caches are, for people: the directory's name does not tell.
const LABEL: &str = ".owner.json";
const LABEL_BYTES: u64 = 64 << 10;
const GONE: &str = ".gone-";
/// How every temporary name starts.
const UNNAMED: &str = ".glovebox-";
/// What was replaced may still be mounted, and what is being filled has no name yet.
const UNNAMED_STAYS: Duration = Duration::from_secs(24 * 3600);

#[derive(Serialize, Deserialize)]
struct Label {
    space_id: SpaceId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheUse {
    /// None when its label cannot be read.
    pub owner: Option<CacheOwner>,
    pub name: CacheName,
    pub usage: DiskUsage,
    /// When a sandbox last got it.
    pub used: FileTime,
    scope: String,
}

/// Which of the users' caches go. Shared ones stay: without them programs would be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CachePrune {
    /// Those that nobody used for so long.
    pub unused_for: Option<Duration>,
    /// Then the longest unused, until the rest takes no more than this.
    pub bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pruned {
    pub removed: Vec<CacheUse>,
    pub bytes: u64,
    /// Would have gone, and are in use.
    pub in_use: Vec<CacheUse>,
}

impl Layout {
    /// Every cache of the space, by owner and name.
    pub fn caches(&self, limits: UsageLimits) -> Result<Vec<CacheUse>> {
        let mut all = Vec::new();
        let end = Instant::now() + limits.time;
        for (scope, dir) in self.cache_scopes()? {
            all.extend(look(&scope, &dir, limits, end).map_err(opening)?);
        }
        Ok(all)
    }

    pub fn prune_caches(
        &self,
        prune: CachePrune,
        limits: UsageLimits,
        now: FileTime,
    ) -> Result<Pruned> {
        let mut found = Vec::new();
        let end = Instant::now() + limits.time;
        for (scope, dir) in self.cache_scopes()? {
            remove_unnamed(&dir, now).map_err(opening)?;
            if scope.starts_with(USER) {
                found.extend(look(&scope, &dir, limits, end).map_err(opening)?);
            }
        }
        found.sort_by(|a, b| (a.used, &a.scope, &a.name).cmp(&(b.used, &b.scope, &b.name)));
        let mut total: u64 = found.iter().map(|it| it.usage.bytes).sum();
        let mut pruned = Pruned::default();
        for cache in found {
            let old = prune
                .unused_for
                .is_some_and(|age| older(cache.used, age, now));
            if !old && prune.bytes.is_none_or(|bytes| total <= bytes) {
                continue;
            }
            match self.remove_unused(&cache).map_err(opening)? {
                true => {
                    total = total.saturating_sub(cache.usage.bytes);
                    pruned.bytes = pruned.bytes.saturating_add(cache.usage.bytes);
                    pruned.removed.push(cache);
                }
                false => pruned.in_use.push(cache),
            }
        }
        Ok(pruned)
    }

    /// Removes one cache of either kind. False when it is in use or not there.
    pub fn remove_cache(&self, key: &CacheKey) -> Result<bool> {
        let scope = self.cache_scope(key)?;
        remove(&scope, key.name()).map_err(opening)
    }

    fn remove_unused(&self, cache: &CacheUse) -> FsResult<bool> {
        let scope = self.root().open_name(CACHES)?.open_name(&cache.scope)?;
        remove(&scope, &cache.name)
    }

    fn cache_scopes(&self) -> Result<Vec<(String, Dir)>> {
        let caches = match self.root().open_name(CACHES) {
            Err(error) if error.kind() == FsErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened.map_err(opening)?,
        };
        let mut scopes = Vec::new();
        for entry in caches.list(MOST_SCOPES).map_err(opening)?.entries {
            let name = entry.name.display();
            let ours = name.starts_with(USER) || name.starts_with(SHARED);
            if ours && entry.stat.kind == Kind::Directory {
                let dir = caches.open_name(&name).map_err(opening)?;
                scopes.push((name, dir));
            }
        }
        Ok(scopes)
    }
}

fn look(scope: &str, dir: &Dir, limits: UsageLimits, end: Instant) -> FsResult<Vec<CacheUse>> {
    let owner = owner_of(dir);
    let mut found = Vec::new();
    for entry in dir.list(MOST_NAMES)?.entries {
        let Ok(name) = entry.name.display().parse::<CacheName>() else {
            continue;
        };
        if entry.stat.kind != Kind::Directory {
            continue;
        }
        let used = match dir.lstat(&path_of(&format!("{MARK}{name}"))?) {
            Ok(mark) => mark.modified,
            Err(error) if error.kind() == FsErrorKind::NotFound => entry.stat.changed,
            Err(error) => return Err(error),
        };
        let time = end.saturating_duration_since(Instant::now());
        let usage = dir
            .open_name(name.as_str())?
            .usage(UsageLimits { time, ..limits })?;
        found.push(CacheUse {
            owner: owner.clone(),
            name,
            usage,
            used,
            scope: scope.to_owned(),
        });
    }
    Ok(found)
}

/// Only if nobody holds it, and so that a new user of the same name starts with a new one.
fn remove(scope: &Dir, name: &CacheName) -> FsResult<bool> {
    let mark = format!("{MARK}{name}");
    let fault = |errno| FsError::os("remove", name.as_str().as_bytes(), errno);
    let file = mark_of(scope, &mark)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(false),
        Err(errno) => return Err(fault(errno)),
    }
    if !is_named(scope, &mark, &file)? {
        // Somebody else has just removed it.
        return Ok(false);
    }
    let unguessed = crate::dir::temporary_name()
        .map_err(|kind| FsError::new("remove", name.as_str().as_bytes(), kind))?;
    let gone = format!("{GONE}{}", unguessed.to_string_lossy());
    let renamed = renameat(scope, name.as_str(), scope, gone.as_str());
    scope.remove_entry(&mark)?;
    drop(file);
    match renamed {
        Ok(()) => scope.remove_entry(&gone).map(|()| true),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(fault(errno)),
    }
}

/// What a removal or a filling left that was cut off, and what was replaced long enough ago.
fn remove_unnamed(scope: &Dir, now: FileTime) -> FsResult<()> {
    for entry in scope.list(MOST_NAMES)?.entries {
        let name = entry.name.display();
        let left = name.starts_with(UNNAMED) && older(entry.stat.changed, UNNAMED_STAYS, now);
        if !left && !name.starts_with(GONE) {
            continue;
        }
        match scope.remove_entry(&name) {
            Err(error) if error.kind() != FsErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn older(since: FileTime, age: Duration, now: FileTime) -> bool {
    let age = i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
    now.sec.saturating_sub(since.sec) > age
}

/// Written once; what it says follows from the directory's name, so nothing depends on it.
pub(super) fn label(scope: &Dir, key: &CacheKey) -> FsResult<()> {
    let path = path_of(LABEL)?;
    if scope.lstat(&path).is_ok() {
        return Ok(());
    }
    let label = Label {
        space_id: key.space().clone(),
        user_id: match key.owner() {
            CacheOwner::Everybody => None,
            CacheOwner::User(user) => Some(user.clone()),
        },
    };
    let text = serde_json::to_vec(&label)
        .map_err(|_| FsError::os("write", LABEL.as_bytes(), Errno::INVAL))?;
    scope.write(&path, &text, 0o600)
}

fn owner_of(scope: &Dir) -> Option<CacheOwner> {
    let bytes = scope.read(&path_of(LABEL).ok()?, LABEL_BYTES).ok()?;
    let label: Label = serde_json::from_slice(&bytes).ok()?;
    Some(
        label
            .user_id
            .map_or(CacheOwner::Everybody, CacheOwner::User),
    )
}
