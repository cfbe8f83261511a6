//! Copies a tree into another without replacing anything. The source is looked at twice: first to
//! see that it is within its limits, then to copy it, when its sizes are counted and not believed.

use std::ffi::CStr;
use std::fs::File;
use std::io::{Read, Write};
use std::ops::ControlFlow;

use glovebox_model::{ByteString, Code, Error, Result, Stage};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid, fchmod, fchown, readlinkat, symlinkat};
use rustix::io::Errno;

use super::fresh::{Fresh, make_directory};
use super::{SeedLimits, SeedRoom, SeedSkip, SeedSkipped, Seeded, seeding};
use crate::dir::{
    At, Dir, Order, READING, Skip, Visit, WalkEnd, WalkEntry, WalkLimits, from_io, regular, single,
    walk,
};
use crate::fault::{FsError, FsErrorKind, FsResult};
use crate::relpath::{PATH_MAX, RelPath};
use crate::stat::{Kind, Stat};

const COPYING: &str = "copy";
const BUFFER: usize = 64 << 10;
/// What a file system hands out at once: many small files take more than their sizes.
const BLOCK: u64 = 4096;
/// Git keeps no empty directory, so people put this into one.
const KEEPER: &[u8] = b".gitkeep";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rights {
    /// What the template says, but the owner can always write and nobody else ever.
    OfTemplate,
    /// Everybody reads.
    Everyone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flush {
    /// Before it gets its name.
    EachFile,
    /// The caller sees to it, for all of them at once.
    Later,
}

pub(crate) struct Copy<'a> {
    pub(crate) template: &'a Dir,
    pub(crate) target: &'a Dir,
    pub(crate) limits: SeedLimits,
    pub(crate) room: SeedRoom<'a>,
    pub(crate) rights: Rights,
    pub(crate) flush: Flush,
    /// Asked again and again; what was made when it says no is the caller's to remove.
    pub(crate) is_wanted: &'a dyn Fn() -> bool,
}

impl Copy<'_> {
    pub(crate) fn run(self) -> Result<Seeded> {
        let ids = (self.template.id(), self.target.id());
        if let (Ok(template), Ok(target)) = &ids
            && template == target
        {
            return Err(Error::new(
                Code::InvalidArgument,
                Stage::Open,
                "the template is the workspace itself",
            )
            .hint("name another directory as the template"));
        }
        self.survey()?;
        let owner = owner_of(self.target).map_err(seeding)?;
        let mut copier = Copier {
            left: self.limits.bytes,
            made: Made::default(),
            copied: 0,
            refusal: None,
            parent: None,
            seeded: Seeded::default(),
            owner,
            fault: None,
            copy: self,
        };
        let (template, limits) = (copier.copy.template, copier.copy.walk_limits());
        let end = walk(
            template,
            limits,
            Order::ByName,
            &mut |visit| match copier.visit(visit) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    copier.fault = Some(error);
                    ControlFlow::Break(())
                }
            },
        );
        let end = end.map_err(|kind| seeding(FsError::new(COPYING, b"", kind)))?;
        if let Some(refusal) = copier.refusal {
            return Err(refusal);
        }
        match (copier.fault, end) {
            (Some(error), _) => Err(seeding(error)),
            (None, WalkEnd::Complete) => Ok(copier.seeded),
            (None, WalkEnd::Stopped | WalkEnd::EntryLimit | WalkEnd::Deadline | WalkEnd::Moved) => {
                Err(seeding(FsError::new(COPYING, b"", FsErrorKind::Contended)))
            }
        }
    }

    fn walk_limits(&self) -> WalkLimits {
        WalkLimits {
            depth: self.limits.depth,
            path_bytes: PATH_MAX,
            entries: self.limits.entries,
            deadline: None,
        }
    }

    /// What is there already takes no more room.
    fn would_make(&self, entry: &WalkEntry<'_>) -> bool {
        let is_copied = matches!(
            entry.stat.kind,
            Kind::File | Kind::Directory | Kind::Symlink
        );
        let is_missing = || {
            let path = RelPath::new(entry.path);
            path.is_ok_and(|it| self.target.lstat(&it).is_err())
        };
        is_copied && !is_keeper(entry) && is_missing()
    }

    fn go_on(&self) -> Result<(), FsErrorKind> {
        match (self.is_wanted)() {
            true => Ok(()),
            false => Err(Errno::CANCELED.into()),
        }
    }

    fn survey(&self) -> Result<()> {
        let mut bytes = 0u64;
        let mut new = Made::default();
        let mut deep = false;
        let end = walk(
            self.template,
            self.walk_limits(),
            Order::AsRead,
            &mut |visit| {
                match visit {
                    Visit::Entry(entry) => {
                        if entry.stat.kind == Kind::File {
                            bytes = bytes.saturating_add(entry.stat.size);
                        }
                        if self.would_make(&entry) {
                            new.add(entry.stat.kind, entry.stat.size);
                        }
                    }
                    Visit::Skipped { why, .. } => deep |= why == Skip::TooDeep,
                }
                match deep || bytes > self.limits.bytes {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            },
        );
        let fault = |kind| seeding(FsError::new(COPYING, b"", kind));
        let end = end.map_err(fault)?;
        if deep {
            let message = format!(
                "the template is deeper than {} directories",
                self.limits.depth
            );
            return Err(Error::new(Code::InvalidArgument, Stage::Open, message)
                .hint("take directories out of the template, or raise its limits"));
        }
        match end {
            WalkEnd::Complete => (self.room)(new.bytes, new.entries),
            WalkEnd::Stopped => Err(fault(FsErrorKind::TooLarge {
                cap: self.limits.bytes,
            })),
            WalkEnd::EntryLimit => Err(fault(FsErrorKind::TooManyEntries {
                cap: self.limits.entries,
            })),
            WalkEnd::Deadline | WalkEnd::Moved => Err(fault(FsErrorKind::Contended)),
        }
    }
}

/// What the target gets.
#[derive(Debug, Clone, Copy, Default)]
struct Made {
    bytes: u64,
    entries: u64,
}

impl Made {
    fn add(&mut self, kind: Kind, size: u64) {
        let blocks = match kind {
            Kind::Directory => 1,
            Kind::File => size.div_ceil(BLOCK),
            // The rest lies in its inode, or is not copied.
            _ => 0,
        };
        self.bytes = self.bytes.saturating_add(blocks.saturating_mul(BLOCK));
        self.entries += 1;
    }
}

/// Whose the new files are, when we are somebody who can give them away. A sandbox works under the
/// owner of its workspace, and could not write what belongs to root.
type Owner = Option<(Uid, Gid)>;

fn owner_of(target: &Dir) -> FsResult<Owner> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let stat = rustix::fs::fstat(target).map_err(|errno| FsError::os("look at", b"", errno))?;
    Ok(Some((
        Uid::from_raw(stat.st_uid),
        Gid::from_raw(stat.st_gid),
    )))
}

struct Copier<'a> {
    copy: Copy<'a>,
    left: u64,
    made: Made,
    /// Of the last file.
    copied: u64,
    /// Why there was no room after all.
    refusal: Option<Error>,
    /// The directory of the last entry: the next one usually lies beside it. None inside when the
    /// target has something else there.
    parent: Option<(Vec<u8>, Option<OwnedFd>)>,
    seeded: Seeded,
    owner: Owner,
    fault: Option<FsError>,
}

enum Done {
    Made,
    Kept,
    Skipped(SeedSkip),
}

impl Copier<'_> {
    fn visit(&mut self, visit: Visit<'_>) -> FsResult<()> {
        self.copy
            .go_on()
            .map_err(|kind| FsError::new(COPYING, b"", kind))?;
        let (entry, done) = match visit {
            Visit::Entry(entry) if is_keeper(&entry) => return Ok(()),
            Visit::Entry(entry) => {
                let fault = |kind| FsError::new(COPYING, entry.path, kind);
                (entry, self.take(&entry).map_err(fault)?)
            }
            Visit::Skipped { entry, why } => {
                let fault = |kind| Err(FsError::new(COPYING, entry.path, kind));
                let why = match why {
                    Skip::Unreadable => SeedSkip::Unreadable,
                    Skip::OtherFileSystem => SeedSkip::OtherFileSystem,
                    // Neither was so when it was surveyed.
                    Skip::TooDeep => return fault(FsErrorKind::Contended),
                    Skip::TooManyEntries => {
                        return fault(FsErrorKind::TooManyEntries {
                            cap: self.copy.limits.entries,
                        });
                    }
                };
                (entry, Done::Skipped(why))
            }
        };
        let path = ByteString::new(entry.path).unwrap_or_default();
        match done {
            Done::Made => {
                self.made.add(entry.stat.kind, self.copied);
                self.seeded.made.push(path);
            }
            Done::Kept => self.seeded.kept.push(path),
            Done::Skipped(why) => self.seeded.skipped.push(SeedSkipped { path, why }),
        }
        Ok(())
    }

    fn take(&mut self, entry: &WalkEntry<'_>) -> Result<Done, FsErrorKind> {
        let Some(parent) = self.parent_of(entry.path)? else {
            return Ok(Done::Skipped(SeedSkip::InTheWay));
        };
        let parent = parent.as_fd();
        let name = entry.at.name;
        match entry.stat.kind {
            Kind::Directory => self.directory(parent, name, &entry.stat),
            Kind::File => self.file(parent, entry),
            Kind::Symlink => self.link(parent, entry),
            Kind::Fifo | Kind::Socket | Kind::Device | Kind::Unknown => {
                Ok(Done::Skipped(SeedSkip::Special))
            }
        }
    }

    /// One name after the other, none of them a link or a mount.
    fn parent_of(&mut self, path: &[u8]) -> Result<Option<OwnedFd>, FsErrorKind> {
        let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        let above = &path[..end];
        if self.parent.as_ref().is_none_or(|(at, _)| at != above) {
            let opened = self.open(above)?;
            self.parent = Some((above.to_vec(), opened));
        }
        match &self.parent {
            Some((_, Some(fd))) => {
                let copy = fd.try_clone().map_err(|error| from_io(&error))?;
                Ok(Some(copy))
            }
            Some((_, None)) | None => Ok(None),
        }
    }

    fn open(&self, path: &[u8]) -> Result<Option<OwnedFd>, FsErrorKind> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let mut at = single(self.copy.target.as_fd(), b".", flags)?;
        for name in path.split(|byte| *byte == b'/').filter(|it| !it.is_empty()) {
            at = match single(at.as_fd(), name, flags) {
                Ok(fd) => fd,
                Err(
                    FsErrorKind::NotFound
                    | FsErrorKind::NotADirectory
                    | FsErrorKind::Loop
                    | FsErrorKind::OtherFileSystem,
                ) => return Ok(None),
                Err(kind) => return Err(kind),
            };
        }
        Ok(Some(at))
    }

    fn directory(
        &self,
        parent: BorrowedFd<'_>,
        name: &CStr,
        stat: &Stat,
    ) -> Result<Done, FsErrorKind> {
        match make_directory(parent, name, self.mode(stat) | 0o700) {
            Ok(fd) => {
                self.give(&fd)?;
                Ok(Done::Made)
            }
            Err(FsErrorKind::Exists) => {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
                match single(parent, name.to_bytes(), flags) {
                    Ok(_) => Ok(Done::Kept),
                    Err(_) => Ok(Done::Skipped(SeedSkip::InTheWay)),
                }
            }
            Err(kind) => Err(kind),
        }
    }

    fn file(&mut self, parent: BorrowedFd<'_>, entry: &WalkEntry<'_>) -> Result<Done, FsErrorKind> {
        let name = entry.at.name;
        // Saves the reading; what counts is that the name is given exclusively in the end.
        if crate::stat::stat_name(parent, name).is_ok() {
            return Ok(Done::Kept);
        }
        let source = match open_regular(entry.at) {
            Ok(source) => source,
            Err(FsErrorKind::Permission) => return Ok(Done::Skipped(SeedSkip::Unreadable)),
            Err(
                FsErrorKind::NotFound
                | FsErrorKind::Loop
                | FsErrorKind::IsADirectory
                | FsErrorKind::NotRegular(_),
            ) => return Ok(Done::Skipped(SeedSkip::Changed)),
            Err(kind) => return Err(kind),
        };
        let mut fresh = Fresh::new(parent)?;
        self.fill(source, fresh.file())?;
        self.give(fresh.file())?;
        let mode = Mode::from_raw_mode(self.mode(&entry.stat) | 0o600);
        fchmod(fresh.file(), mode)?;
        if self.copy.flush == Flush::EachFile {
            fresh.file().sync_all().map_err(|error| from_io(&error))?;
        }
        match fresh.publish(name)? {
            true => Ok(Done::Made),
            false => Ok(Done::Kept),
        }
    }

    fn fill(&mut self, mut source: File, target: &mut File) -> Result<(), FsErrorKind> {
        let mut buffer = vec![0u8; BUFFER];
        self.copied = 0;
        loop {
            self.copy.go_on()?;
            let read = match source.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(from_io(&error)),
            };
            let cap = self.copy.limits.bytes;
            self.left = self
                .left
                .checked_sub(read as u64)
                .ok_or(FsErrorKind::TooLarge { cap })?;
            self.copied += read as u64;
            let bytes = self.made.bytes.saturating_add(self.copied);
            if let Err(error) = (self.copy.room)(bytes, self.made.entries + 1) {
                self.refusal = Some(error);
                return Err(FsErrorKind::TooLarge { cap: bytes });
            }
            let written = target.write_all(&buffer[..read]);
            written.map_err(|error| from_io(&error))?;
        }
    }

    fn link(&self, parent: BorrowedFd<'_>, entry: &WalkEntry<'_>) -> Result<Done, FsErrorKind> {
        let text = match readlinkat(entry.at.dir, entry.at.name, Vec::new()) {
            Ok(text) => text,
            Err(Errno::INVAL | Errno::NOENT) => return Ok(Done::Skipped(SeedSkip::Changed)),
            Err(errno) => return Err(errno.into()),
        };
        if !stays_inside(entry.path, text.as_bytes()) || self.leads_out(entry.path) {
            return Ok(Done::Skipped(SeedSkip::LeadsOut));
        }
        match symlinkat(&text, parent, entry.at.name) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(Done::Kept),
            Err(errno) => return Err(errno.into()),
        }
        if let Some((uid, gid)) = self.owner {
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            match rustix::fs::chownat(parent, entry.at.name, Some(uid), Some(gid), flags) {
                // Taken away by a program that runs there already.
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(Done::Made)
    }

    /// Through other links, as the kernel sees it.
    fn leads_out(&self, path: &[u8]) -> bool {
        let Ok(path) = RelPath::new(path) else {
            return true;
        };
        match self.copy.template.open_dir(&path) {
            Ok(_) => false,
            Err(error) => !matches!(
                error.kind(),
                FsErrorKind::NotFound | FsErrorKind::NotADirectory
            ),
        }
    }

    fn mode(&self, stat: &Stat) -> u32 {
        match self.copy.rights {
            Rights::OfTemplate => stat.mode & 0o755,
            Rights::Everyone => match (stat.kind, stat.mode & 0o100) {
                (Kind::Directory, _) | (_, 0o100) => 0o755,
                _ => 0o644,
            },
        }
    }

    fn give(&self, fd: impl AsFd) -> Result<(), FsErrorKind> {
        match self.owner {
            Some((uid, gid)) => Ok(fchown(fd, Some(uid), Some(gid))?),
            None => Ok(()),
        }
    }
}

fn open_regular(at: At<'_>) -> Result<File, FsErrorKind> {
    let fd = single(at.dir, at.name.to_bytes(), READING | OFlags::NOFOLLOW)?;
    regular(&fd)?;
    Ok(File::from(fd))
}

fn is_keeper(entry: &WalkEntry<'_>) -> bool {
    let stat = entry.stat;
    entry.at.name.to_bytes() == KEEPER && stat.kind == Kind::File && stat.size == 0
}

/// Whether a link at `path` with this text stays below the top, judged by its text alone: `..` only
/// counts at its start, since behind a name it goes up from wherever that name leads.
fn stays_inside(path: &[u8], text: &[u8]) -> bool {
    if text.starts_with(b"/") {
        return false;
    }
    let mut above = path.iter().filter(|byte| **byte == b'/').count();
    let mut named = false;
    for part in text.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if named || above == 0 => return false,
            b".." => above -= 1,
            _ => named = true,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_stays_inside_by_its_text() {
        for (path, text) in [
            ("a", "b"),
            ("a", "./b/c"),
            ("d/a", "../b"),
            ("d/e/a", "../../b"),
            ("d/a", ".."),
        ] {
            assert!(
                stays_inside(path.as_bytes(), text.as_bytes()),
                "{path} {text}"
            );
        }
        for (path, text) in [
            ("a", "/b"),
            ("a", ".."),
            ("a", "../b"),
            ("d/a", "../../b"),
            ("d/a", "x/../../.."),
            ("a", "x/.."),
        ] {
            assert!(
                !stays_inside(path.as_bytes(), text.as_bytes()),
                "{path} {text}"
            );
        }
    }
}
