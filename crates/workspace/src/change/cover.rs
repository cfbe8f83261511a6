//! Names of a workspace that a run must not see: found before it begins, each with every other hard
//! link of it, and covered by entries that stand before the workspace's own.

use std::collections::{BTreeMap, HashSet};
use std::ops::{Bound, ControlFlow};

use rustix::fd::AsFd;
use rustix::fs::{FileType, Mode, OFlags, XattrFlags, fchmod, fsetxattr, mkdirat, mknodat, openat};
use rustix::io::Errno;

use super::entry::{Change, EntryChange};
use super::ground::{finish, parents};
use super::place::{Place, look};
use super::read::link_text;
use crate::dir::{Dir, Order, Skip, Visit, WalkEnd, WalkEntry, WalkLimits, remove_name, walk};
use crate::fault::{FsError, FsErrorKind, FsResult};
use crate::relpath::PATH_MAX;
use crate::stat::{FileId, Kind, Stat};

const LOOKING: &str = "look for denied names in";
const COVERING: &str = "cover";
/// Where a workspace stands inside: what its absolute links mean.
const WORK: &[u8] = b"/workspace/work";
const OPAQUE: &str = "user.overlay.opaque";
/// As many links as the kernel follows.
const LINKS: usize = 40;
const COVERS: usize = 100_000;
const ENTRIES: u64 = 1_000_000;

/// Whether a path below the workspace is one of them.
pub type Matches<'a> = &'a dyn Fn(&[u8]) -> bool;

/// What a run must not see, by paths relative to the workspace.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations, reason = "a function has none")]
pub struct Sought<'a> {
    /// Each with all below it. They stay hidden when they appear later.
    pub literals: &'a [Vec<u8>],
    /// Tells names wherever they are.
    pub pattern: Option<Matches<'a>>,
}

/// What stands before a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cover {
    /// An empty file that cannot be opened.
    File,
    /// An empty directory that cannot be entered.
    Directory,
    /// Nothing, and what appears there from outside is not seen.
    Absent,
}

/// All of one workspace, as it was looked at.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Covers {
    found: BTreeMap<Vec<u8>, Cover>,
    /// A path goes through a link, or through something that is no directory: what takes its place
    /// from outside leads elsewhere, so only a copy that stays as it is can be covered.
    pub moves: bool,
}

/// Where a path leads.
enum Leads {
    To(Vec<u8>, Stat),
    /// The first name on its way that is not there.
    Nowhere(Vec<u8>),
    /// Through something that is no directory.
    Into,
    /// The workspace itself.
    Root,
    EgressRuntime,
}

impl Covers {
    /// What cannot be looked at is an error that names it.
    pub fn look(work: &Dir, sought: &Sought<'_>) -> FsResult<Self> {
        let mut search = Search {
            work,
            covers: Self::default(),
            linked: HashSet::new(),
            links: Vec::new(),
        };
        for path in sought.literals {
            search.literal(path)?;
        }
        if let Some(pattern) = sought.pattern {
            search.pattern(pattern)?;
        }
        for link in std::mem::take(&mut search.links) {
            search.behind(&link)?;
        }
        search.other_names()?;
        Ok(search.covers)
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Cover)> {
        let all = self.found.iter();
        all.map(|(path, cover)| (path.as_slice(), *cover))
    }

    /// Makes the entries in `over`, below directories like those of `work`, instead of what may
    /// stand there.
    pub(super) fn put(&self, work: &Dir, over: &Dir) -> FsResult<()> {
        let mut made = Vec::new();
        for (path, cover) in &self.found {
            if self.above(path).is_none() {
                made.extend(parents(work, over, path)?);
                put(over, path, *cover)?;
            }
        }
        finish(work, over, &made)
    }

    /// The covered name that a change would change, remove or replace.
    pub fn changed_by(&self, change: &Change) -> Option<&[u8]> {
        let path = change.path.as_bytes();
        let is_there = |it: &(&Vec<u8>, &Cover)| *it.1 != Cover::Absent;
        let own = self.found.get_key_value(path).or_else(|| self.above(path));
        if let Some((name, _)) = own.filter(is_there) {
            return Some(name);
        }
        let was_directory = change.before.as_ref().map(|it| it.kind) == Some(Kind::Directory);
        if !was_directory || !matches!(change.what, EntryChange::Removed | EntryChange::Replaced) {
            return None;
        }
        let inside = [path, b"/"].concat();
        let from = (Bound::Included(inside.clone()), Bound::Unbounded);
        let below = self.found.range(from);
        let mut below = below.take_while(|(name, _)| name.starts_with(&inside));
        below.find(is_there).map(|(name, _)| name.as_slice())
    }

    /// The covered directory that a path lies in.
    fn above(&self, path: &[u8]) -> Option<(&Vec<u8>, &Cover)> {
        let mut ends = (0..path.len()).filter(|at| path[*at] == b'/');
        ends.find_map(|end| self.found.get_key_value(&path[..end]))
    }
}

struct Search<'work> {
    work: &'work Dir,
    covers: Covers,
    /// Files that have other names as well.
    linked: HashSet<FileId>,
    /// Names that are symbolic links themselves.
    links: Vec<Vec<u8>>,
}

impl Search<'_> {
    fn literal(&mut self, path: &[u8]) -> FsResult<()> {
        match self.follow(path, false)? {
            Leads::To(at, stat) => self.deny(at, &stat),
            Leads::Nowhere(at) => self.add(at, Cover::Absent),
            Leads::Into => {
                self.covers.moves = true;
                Ok(())
            }
            Leads::Root => Err(FsError::new(LOOKING, path, FsErrorKind::Loop)),
            Leads::EgressRuntime => Ok(()),
        }
    }

    fn pattern(&mut self, pattern: &dyn Fn(&[u8]) -> bool) -> FsResult<()> {
        let work = self.work;
        each(work, b"", &mut |entry| {
            if self.covers.above(entry.path).is_some() {
                self.note(&entry.stat);
            } else if pattern(entry.path) {
                self.note(&entry.stat);
                self.name(entry.path.to_vec(), &entry.stat)?;
            }
            Ok(())
        })
    }

    /// What a denied name leads to that is a link itself.
    fn behind(&mut self, link: &[u8]) -> FsResult<()> {
        match self.follow(link, true)? {
            // A directory that the link lies in cannot be hidden by it.
            Leads::To(at, _) if link.starts_with(&[at.as_slice(), b"/"].concat()) => {
                Err(FsError::new(LOOKING, link, FsErrorKind::Loop))
            }
            Leads::Root => Err(FsError::new(LOOKING, link, FsErrorKind::Loop)),
            Leads::To(at, stat) => self.deny(at, &stat),
            Leads::Nowhere(_) | Leads::Into | Leads::EgressRuntime => Ok(()),
        }
    }

    fn deny(&mut self, at: Vec<u8>, stat: &Stat) -> FsResult<()> {
        self.note(stat);
        if stat.kind == Kind::Directory {
            each(self.work, &at, &mut |entry| {
                self.note(&entry.stat);
                Ok(())
            })?;
        }
        self.name(at, stat)
    }

    fn name(&mut self, at: Vec<u8>, stat: &Stat) -> FsResult<()> {
        if stat.kind == Kind::Symlink {
            self.links.push(at.clone());
        }
        let cover = match stat.kind {
            Kind::Directory => Cover::Directory,
            _ => Cover::File,
        };
        self.add(at, cover)
    }

    fn add(&mut self, at: Vec<u8>, cover: Cover) -> FsResult<()> {
        if self.covers.found.len() >= COVERS {
            let cap = COVERS as u64;
            return Err(FsError::new(
                LOOKING,
                &at,
                FsErrorKind::TooManyEntries { cap },
            ));
        }
        self.covers.found.insert(at, cover);
        Ok(())
    }

    fn note(&mut self, stat: &Stat) {
        if stat.kind != Kind::Directory && stat.links > 1 {
            self.linked.insert(stat.id);
        }
    }

    fn other_names(&mut self) -> FsResult<()> {
        if self.linked.is_empty() {
            return Ok(());
        }
        each(self.work, b"", &mut |entry| {
            let is_one = entry.stat.links > 1 && self.linked.contains(&entry.stat.id);
            match is_one && self.covers.above(entry.path).is_none() {
                true => self.add(entry.path.to_vec(), Cover::File),
                false => Ok(()),
            }
        })
    }

    /// As the kernel would inside, without leaving the workspace. The last part is followed only
    /// when that is asked for.
    fn follow(&mut self, path: &[u8], last: bool) -> FsResult<Leads> {
        let (mut at, mut rest, mut links) = (Vec::<u8>::new(), parts(path), 0);
        while let Some(part) = rest.pop() {
            if part == b".." {
                if at.is_empty() {
                    return Ok(Leads::EgressRuntime);
                }
                at.truncate(at.iter().rposition(|byte| *byte == b'/').unwrap_or(0));
                continue;
            }
            let above = at.len();
            if above > 0 {
                at.push(b'/');
            }
            at.extend_from_slice(&part);
            let Some(stat) = look(self.work, &at)? else {
                return Ok(Leads::Nowhere(at));
            };
            match stat.kind {
                Kind::Symlink if last || !rest.is_empty() => {
                    links += 1;
                    if links > LINKS {
                        return Err(FsError::new(LOOKING, path, FsErrorKind::Loop));
                    }
                    self.covers.moves |= !last;
                    let text = self.text(&at)?;
                    at.truncate(above);
                    if text.first() == Some(&b'/') {
                        at.clear();
                    }
                    match below_work(&text) {
                        Some(text) => rest.extend(parts(text)),
                        None => return Ok(Leads::EgressRuntime),
                    }
                }
                Kind::Directory => {}
                _ if !rest.is_empty() => return Ok(Leads::Into),
                _ => {}
            }
        }
        if at.is_empty() {
            return Ok(Leads::Root);
        }
        Ok(match look(self.work, &at)? {
            Some(stat) => Leads::To(at, stat),
            None => Leads::Nowhere(at),
        })
    }

    fn text(&self, link: &[u8]) -> FsResult<Vec<u8>> {
        let place = Place::below(self.work, link)?;
        let text = link_text(place.dir.as_fd(), &place.name);
        Ok(text.map_err(place.fault("read"))?.into_bytes())
    }
}

/// The names of a path, last first.
fn parts(path: &[u8]) -> Vec<Vec<u8>> {
    let parts = path.split(|byte| *byte == b'/').rev();
    let named = parts.filter(|part| !matches!(*part, b"" | b"."));
    named.map(<[u8]>::to_vec).collect()
}

/// What a link means below the workspace; `None` for what lies outside of it.
fn below_work(text: &[u8]) -> Option<&[u8]> {
    if text.first() != Some(&b'/') {
        return Some(text);
    }
    let rest = text.strip_prefix(WORK)?;
    (rest.is_empty() || rest.starts_with(b"/")).then_some(rest)
}

/// Everything below a directory of the workspace, or an error that names what cannot be seen. What
/// is mounted there is not seen inside either.
fn each(
    work: &Dir,
    below: &[u8],
    visit: &mut dyn FnMut(&WalkEntry<'_>) -> FsResult<()>,
) -> FsResult<()> {
    let start = work.enter(below)?;
    let limits = WalkLimits {
        depth: PATH_MAX / 2,
        path_bytes: PATH_MAX,
        entries: ENTRIES,
        deadline: None,
    };
    let mut fault = None;
    let end = walk(&start, limits, Order::ByName, &mut |seen| {
        let done = match seen {
            Visit::Entry(entry) => visit(&entry),
            Visit::Skipped { entry, why } => {
                let kind = match why {
                    Skip::OtherFileSystem => return ControlFlow::Continue(()),
                    Skip::TooDeep => FsErrorKind::NameTooLong,
                    Skip::TooManyEntries => FsErrorKind::TooManyEntries { cap: ENTRIES },
                    Skip::Unreadable => FsErrorKind::Permission,
                };
                let at = [below, entry.path].join(&b'/');
                Err(FsError::new(LOOKING, &at, kind))
            }
        };
        fault = done.err();
        match fault {
            None => ControlFlow::Continue(()),
            Some(_) => ControlFlow::Break(()),
        }
    });
    let failed = |kind| FsError::new(LOOKING, below, kind);
    match (end.map_err(failed)?, fault) {
        (_, Some(fault)) => Err(fault),
        (WalkEnd::Complete, None) => Ok(()),
        (WalkEnd::EntryLimit, None) => Err(failed(FsErrorKind::TooManyEntries { cap: ENTRIES })),
        (WalkEnd::Stopped | WalkEnd::Moved | WalkEnd::Deadline, None) => {
            Err(failed(FsErrorKind::Contended))
        }
    }
}

fn put(over: &Dir, path: &[u8], cover: Cover) -> FsResult<()> {
    let fault = |errno: Errno| FsError::os(COVERING, path, errno);
    let at = Place::below(over, path)?;
    if at.look()?.is_some() {
        remove_name(at.dir.as_fd(), &at.name).map_err(|kind| FsError::new(COVERING, path, kind))?;
    }
    match cover {
        Cover::File => {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            let flags = flags | OFlags::CLOEXEC;
            let made = openat(&at.dir, &at.name, flags, Mode::empty());
            made.map(drop).map_err(fault)
        }
        Cover::Directory => {
            mkdirat(&at.dir, &at.name, Mode::RWXU).map_err(fault)?;
            let made = at.open_directory()?;
            fsetxattr(&made, OPAQUE, b"y", XattrFlags::CREATE).map_err(fault)?;
            fchmod(&made, Mode::empty()).map_err(fault)
        }
        Cover::Absent => {
            let made = mknodat(
                &at.dir,
                &at.name,
                FileType::CharacterDevice,
                Mode::empty(),
                0,
            );
            made.map_err(fault)
        }
    }
}
