//! From an upper directory to the changes it stands for.

use std::collections::HashSet;
use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::time::Instant;

use glovebox_model::ByteString;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, OFlags, readlinkat, statat};
use rustix::io::Errno;

use super::attributes::{self, Attributes};
use super::entry::{Change, Changes, EntryChange, Facts, Skipped};
use super::intent::Mark;
use super::locked::Modes;
use super::place::{Place, look, split};
use crate::dir::{
    Dir, Order, READING, Skip, Visit, WalkEnd, WalkEntry, WalkLimits, from_io, regular, single,
    walk,
};
use crate::fault::{FsError, FsErrorKind, FsResult};
use crate::relpath::PATH_MAX;
use crate::stat::{Kind, Stat, stat_name};

/// Nothing deeper can be named in one call.
const DEPTH: usize = PATH_MAX / 2;
const CHUNK: usize = 128 << 10;

#[derive(Debug, Clone, Copy)]
pub struct ReadLimits {
    /// More of them are an error: half of the changes are not the changes.
    pub entries: u64,
    /// So much is read to compare and to digest; what is larger counts as changed, without a digest.
    pub bytes: u64,
    pub deadline: Option<Instant>,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self {
            entries: 1_000_000,
            bytes: 16 << 30,
            deadline: None,
        }
    }
}

/// What would change in `lower` if `upper` were kept, compared with `lower` as it is now.
pub fn read(lower: &Dir, upper: &Dir, limits: ReadLimits) -> FsResult<Changes> {
    read_with(lower, upper, &Modes::default(), limits)
}

/// `modes` are those that the program gave, where they are others now.
pub(super) fn read_with(
    lower: &Dir,
    upper: &Dir,
    modes: &Modes,
    limits: ReadLimits,
) -> FsResult<Changes> {
    let mut reader = Reader {
        lower,
        modes,
        limits,
        bytes_left: limits.bytes,
        merged: HashSet::from([Vec::new()]),
        opaque: HashSet::new(),
        found: Changes {
            top: top(lower, upper, modes),
            ..Changes::default()
        },
    };
    let mut fault = None;
    let end = walk(
        upper,
        limits.of_walk(limits.entries),
        Order::ByName,
        &mut |visit| match reader.visit(visit) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                fault = Some(error);
                ControlFlow::Break(())
            }
        },
    );
    let failed = |kind| FsError::new("read the changes in", b"", kind);
    match (end.map_err(failed)?, fault) {
        (_, Some(fault)) => Err(fault),
        (WalkEnd::Complete, None) => Ok(reader.found),
        (WalkEnd::Deadline, None) => Err(failed(FsErrorKind::Os(Errno::TIMEDOUT))),
        (WalkEnd::EntryLimit, None) => Err(failed(reader.too_many())),
        (WalkEnd::Stopped | WalkEnd::Moved, None) => Err(failed(FsErrorKind::Contended)),
    }
}

impl ReadLimits {
    fn of_walk(&self, entries: u64) -> WalkLimits {
        WalkLimits {
            depth: DEPTH,
            path_bytes: PATH_MAX,
            entries,
            deadline: self.deadline,
        }
    }
}

fn top(lower: &Dir, upper: &Dir, modes: &Modes) -> Option<(u32, u32)> {
    let mode = |dir: &Dir| Some(rustix::fs::fstat(dir).ok()?.st_mode & 0o777);
    let (before, after) = (mode(lower)?, modes.of(b"", mode(upper)?));
    (before != after).then_some((before, after))
}

struct Reader<'read> {
    lower: &'read Dir,
    modes: &'read Modes,
    limits: ReadLimits,
    bytes_left: u64,
    /// Directories that stand in both.
    merged: HashSet<Vec<u8>>,
    /// Those of them that were made anew. Only the topmost one is marked: where it begins, nothing
    /// below is looked at any more.
    opaque: HashSet<Vec<u8>>,
    found: Changes,
}

impl Reader<'_> {
    fn visit(&mut self, visit: Visit<'_>) -> FsResult<()> {
        match visit {
            Visit::Entry(mut entry) => {
                entry.stat.mode = self.modes.of(entry.path, entry.stat.mode);
                self.entry(&entry)
            }
            Visit::Skipped { entry, why } => {
                let kind = match why {
                    Skip::TooDeep => FsErrorKind::NameTooLong,
                    Skip::TooManyEntries => self.too_many(),
                    Skip::Unreadable => FsErrorKind::Permission,
                    // Nobody inside could mount anything there.
                    Skip::OtherFileSystem => FsErrorKind::OtherFileSystem,
                };
                Err(FsError::new("read the changes in", entry.path, kind))
            }
        }
    }

    fn too_many(&self) -> FsErrorKind {
        let cap = self.limits.entries;
        FsErrorKind::TooManyEntries { cap }
    }

    fn entry(&mut self, entry: &WalkEntry<'_>) -> FsResult<()> {
        let fault = |errno: Errno| FsError::os("read the changes in", entry.path, errno);
        if entry.path.len() > PATH_MAX {
            return Err(fault(Errno::NAMETOOLONG));
        }
        let (parent, _) = split(entry.path);
        let below = match self.merged.contains(parent) {
            true => look(self.lower, entry.path)?,
            false => None,
        };
        match entry.stat.kind {
            Kind::Directory => self.directory(entry, below),
            Kind::File => self.file(entry, below),
            Kind::Symlink => self.link(entry, below),
            Kind::Device if is_whiteout(entry.at.dir, entry.at.name).map_err(fault)? => {
                self.removed(entry.path, below)
            }
            kind @ (Kind::Fifo | Kind::Socket | Kind::Device | Kind::Unknown) => {
                let path = name(entry.path);
                self.found.skipped.push(Skipped { path, kind });
                Ok(())
            }
        }
    }

    fn removed(&mut self, path: &[u8], below: Option<Stat>) -> FsResult<()> {
        // Whatever is gone already need not go.
        let Some(stat) = below else { return Ok(()) };
        let before = self.facts_below(path, &stat)?;
        self.push(path, EntryChange::Removed, Some((before, stat)), None, true);
        self.inside_gone(path, Some(stat))
    }

    /// What lies in a directory that is gone is gone as well, and told one by one.
    fn inside_gone(&mut self, path: &[u8], below: Option<Stat>) -> FsResult<()> {
        if below.is_none_or(|stat| stat.kind != Kind::Directory) {
            return Ok(());
        }
        let directory = match self.lower.enter(path) {
            Err(error) if error.kind() == FsErrorKind::Permission => {
                self.found.unseen += 1;
                return Ok(());
            }
            entered => entered?,
        };
        let left = self
            .limits
            .entries
            .saturating_sub(self.found.entries.len() as u64);
        let mut too_many = false;
        let end = walk(
            &directory,
            self.limits.of_walk(left),
            Order::ByName,
            &mut |visit| {
                match visit {
                    Visit::Entry(entry) if path.len() + 1 + entry.path.len() <= PATH_MAX => {
                        self.gone(path, &entry);
                    }
                    Visit::Skipped {
                        why: Skip::TooManyEntries,
                        ..
                    } => too_many = true,
                    Visit::Entry(_) | Visit::Skipped { .. } => self.found.unseen += 1,
                }
                ControlFlow::Continue(())
            },
        );
        let failed = |kind| FsError::new("read the changes in", path, kind);
        match end {
            Err(FsErrorKind::Permission) => self.found.unseen += 1,
            Err(kind) => return Err(failed(kind)),
            Ok(WalkEnd::EntryLimit) => too_many = true,
            Ok(WalkEnd::Deadline) => return Err(failed(FsErrorKind::Os(Errno::TIMEDOUT))),
            Ok(WalkEnd::Stopped | WalkEnd::Moved) => return Err(failed(FsErrorKind::Contended)),
            Ok(WalkEnd::Complete) => {}
        }
        match too_many {
            true => Err(failed(self.too_many())),
            false => Ok(()),
        }
    }

    fn gone(&mut self, above: &[u8], entry: &WalkEntry<'_>) {
        let target = match entry.stat.kind {
            Kind::Symlink => link_text(entry.at.dir, entry.at.name).ok(),
            _ => None,
        };
        let before = Facts {
            target,
            ..plain_facts(&entry.stat)
        };
        self.found.entries.push(Change {
            path: name(&[above, b"/", entry.path].concat()),
            what: EntryChange::Removed,
            before: Some(before),
            after: None,
            mark: Some(Mark::of(&entry.stat)),
            copied_up: true,
            with_parent: true,
        });
    }

    fn directory(&mut self, entry: &WalkEntry<'_>, below: Option<Stat>) -> FsResult<()> {
        let opened = open(entry, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let marks = self.attributes(&opened, entry.path)?;
        let after = Facts {
            attributes: marks.digest(),
            ..plain_facts(&entry.stat)
        };
        let Some(stat) = below.filter(|stat| stat.kind == Kind::Directory) else {
            let what = appeared(below.as_ref());
            let before = self.before(entry.path, below)?;
            self.push(entry.path, what, before, Some(after), marks.copied_up);
            return Ok(());
        };
        self.merged.insert(entry.path.to_vec());
        let place = Place::below(self.lower, entry.path)?;
        let lower = place.open_directory()?;
        let own = attributes::read(&lower).map_err(place.fault("read the attributes of"))?;
        if own.own != marks.own || stat.mode != entry.stat.mode {
            let before = Facts {
                attributes: own.digest(),
                ..plain_facts(&stat)
            };
            let before = Some((before, stat));
            self.push(entry.path, EntryChange::Touched, before, Some(after), true);
        }
        if !marks.opaque && !self.opaque.contains(split(entry.path).0) {
            return Ok(());
        }
        self.opaque.insert(entry.path.to_vec());
        self.hidden(entry.path, &opened)
    }

    /// A directory that was removed and made anew hides all that lies below it.
    fn hidden(&mut self, path: &[u8], upper: &OwnedFd) -> FsResult<()> {
        let cap = usize::try_from(self.limits.entries).unwrap_or(usize::MAX);
        let listing = self.lower.enter(path)?.list(cap)?;
        if listing.truncated {
            return Err(FsError::new("read the changes in", path, self.too_many()));
        }
        for entry in listing.entries {
            let one = std::ffi::CString::new(entry.name.as_bytes()).unwrap_or_default();
            match stat_name(upper, &one) {
                Err(Errno::NOENT) => {
                    let mut inside = path.to_vec();
                    inside.push(b'/');
                    inside.extend_from_slice(entry.name.as_bytes());
                    self.removed(&inside, Some(entry.stat))?;
                }
                Ok(_) => {}
                Err(errno) => return Err(FsError::os("read the changes in", path, errno)),
            }
        }
        Ok(())
    }

    fn file(&mut self, entry: &WalkEntry<'_>, below: Option<Stat>) -> FsResult<()> {
        let opened = open(entry, READING)?;
        let mut stat = regular(&opened).map_err(|kind| FsError::new("read", entry.path, kind))?;
        stat.mode = entry.stat.mode;
        let marks = self.attributes(&opened, entry.path)?;
        if marks.whiteout && stat.size == 0 {
            return self.removed(entry.path, below);
        }
        let after = Facts {
            digest: self.digest(opened, &stat, entry.path)?,
            attributes: marks.digest(),
            ..plain_facts(&stat)
        };
        let Some(old) = below.filter(|stat| stat.kind == Kind::File) else {
            let what = appeared(below.as_ref());
            let before = self.before(entry.path, below)?;
            self.push(entry.path, what, before, Some(after), marks.copied_up);
            return self.inside_gone(entry.path, below);
        };
        let place = Place::below(self.lower, entry.path)?;
        let (lower, old) = match place.open_file() {
            Ok((file, _)) => (Some(file), old),
            // Ours to replace, if its directory is, and not ours to read.
            Err(error) if error.kind() == FsErrorKind::Permission => (None, old),
            Err(error) => return Err(error),
        };
        let own = match &lower {
            Some(file) => attributes::read(file).map_err(place.fault("read the attributes of"))?,
            None => Attributes::default(),
        };
        let digest = match lower {
            Some(file) => self.digest(file, &old, entry.path)?,
            None => None,
        };
        let same_bytes = digest.is_some() && digest == after.digest;
        let before = Facts {
            digest,
            attributes: own.digest(),
            ..plain_facts(&old)
        };
        // Several names in the upper directory: the program linked it.
        let same = old.mode == stat.mode
            && own.own == marks.own
            && old.modified == stat.modified
            && stat.links == 1;
        let what = match (same_bytes, same) {
            (true, true) => {
                self.found.unchanged += 1;
                return Ok(());
            }
            (true, false) => EntryChange::Touched,
            (false, _) => EntryChange::Modified,
        };
        let copied_up = marks.copied_up;
        self.push(
            entry.path,
            what,
            Some((before, old)),
            Some(after),
            copied_up,
        );
        Ok(())
    }

    fn link(&mut self, entry: &WalkEntry<'_>, below: Option<Stat>) -> FsResult<()> {
        let target = link_text(entry.at.dir, entry.at.name)
            .map_err(|errno| FsError::os("read", entry.path, errno))?;
        let after = Facts {
            target: Some(target),
            ..plain_facts(&entry.stat)
        };
        let before = self.before(entry.path, below)?;
        let what = match &before {
            Some((facts, _)) if facts.kind == Kind::Symlink && facts.target == after.target => {
                self.found.unchanged += 1;
                return Ok(());
            }
            Some((facts, _)) if facts.kind == Kind::Symlink => EntryChange::Modified,
            Some(_) => EntryChange::Replaced,
            None => EntryChange::Created,
        };
        // A link has no attributes that could tell.
        self.push(entry.path, what, before, Some(after), false);
        self.inside_gone(entry.path, below)
    }

    fn attributes(&mut self, file: &OwnedFd, path: &[u8]) -> FsResult<Attributes> {
        let found = attributes::read(file)
            .map_err(|errno| FsError::os("read the attributes of", path, errno))?;
        self.found.dropped_attributes += found.escaped;
        Ok(found)
    }

    fn before(&mut self, path: &[u8], below: Option<Stat>) -> FsResult<Option<(Facts, Stat)>> {
        let facts = |stat: Stat| Ok((self.facts_below(path, &stat)?, stat));
        below.map(facts).transpose()
    }

    fn facts_below(&mut self, path: &[u8], stat: &Stat) -> FsResult<Facts> {
        let mut facts = plain_facts(stat);
        if stat.kind == Kind::Symlink {
            let place = Place::below(self.lower, path)?;
            let text = link_text(place.dir.as_fd(), &place.name);
            facts.target = Some(text.map_err(place.fault("read"))?);
        }
        Ok(facts)
    }

    /// Never more than the size that was seen, which is never more than what is left.
    fn digest(&mut self, file: OwnedFd, stat: &Stat, path: &[u8]) -> FsResult<Option<String>> {
        let Some(left) = self.bytes_left.checked_sub(stat.size) else {
            return Ok(None);
        };
        self.bytes_left = left;
        let mut hasher = blake3::Hasher::new();
        let mut file = File::from(file).take(stat.size);
        let mut chunk = vec![0u8; CHUNK];
        loop {
            let read = file.read(&mut chunk);
            match read.map_err(|error| FsError::new("read", path, from_io(&error)))? {
                0 => return Ok(Some(hasher.finalize().to_hex().to_string())),
                length => hasher.update(&chunk[..length]),
            };
        }
    }

    fn push(
        &mut self,
        path: &[u8],
        what: EntryChange,
        before: Option<(Facts, Stat)>,
        after: Option<Facts>,
        copied_up: bool,
    ) {
        let mark = before.as_ref().map(|(_, stat)| Mark::of(stat));
        self.found.entries.push(Change {
            path: name(path),
            what,
            before: before.map(|(facts, _)| facts),
            after,
            mark,
            copied_up,
            with_parent: false,
        });
    }
}

fn appeared(below: Option<&Stat>) -> EntryChange {
    match below {
        None => EntryChange::Created,
        Some(_) => EntryChange::Replaced,
    }
}

fn plain_facts(stat: &Stat) -> Facts {
    Facts {
        kind: stat.kind,
        size: match stat.kind {
            Kind::Directory => 0,
            _ => stat.size,
        },
        mode: stat.mode,
        digest: None,
        attributes: None,
        target: None,
    }
}

fn name(path: &[u8]) -> ByteString {
    // Names that were read from a directory hold no NUL.
    ByteString::new(path).unwrap_or_default()
}

fn open(entry: &WalkEntry<'_>, flags: OFlags) -> FsResult<OwnedFd> {
    single(
        entry.at.dir,
        entry.at.name.to_bytes(),
        flags | OFlags::NOFOLLOW,
    )
    .map_err(|kind| FsError::new("read the changes in", entry.path, kind))
}

pub(super) fn link_text(dir: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<ByteString> {
    let text = readlinkat(dir, name, Vec::new())?;
    Ok(ByteString::new(text.into_bytes()).unwrap_or_default())
}

/// What the kernel leaves for something that was removed. Nobody inside can make one.
pub(super) fn is_whiteout(dir: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<bool> {
    let facts = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let kind = FileType::from_raw_mode(facts.st_mode);
    Ok(kind == FileType::CharacterDevice && facts.st_rdev == 0)
}
