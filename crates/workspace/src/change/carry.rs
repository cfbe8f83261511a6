//! A tree copied into another directory as it is: from memory to disk with the marks of the kernel and
//! names that stand for nothing, or from a workspace to ground of an exec's own; holes and several
//! names of one file as well. It is a program's tree like any other: nothing in it is followed, nothing
//! is opened but regular files, and no size is believed.

use std::collections::HashMap;
use std::ops::ControlFlow;

use rustix::fd::AsFd;
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags, chownat, fchmod,
    fchown, fsetxattr, fstat, futimens, linkat, mkdirat, mknodat, openat, statat, symlinkat,
};
use rustix::io::Errno;

use super::attributes;
use super::place::Place;
use super::read::{is_whiteout, link_text};
use super::stage;
use crate::dir::{Dir, Order, READING, Skip, Visit, WalkEnd, WalkEntry, WalkLimits};
use crate::dir::{regular, single, walk};
use crate::fault::{FsError, FsErrorKind, FsResult};
use crate::relpath::PATH_MAX;
use crate::stat::{FileId, Kind, Stat};

const CARRYING: &str = "carry to disk";
/// Whoever reads it later takes no more either.
const ENTRIES: u64 = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marks {
    /// Extended attributes of users too, the kernel's own among them.
    Carried,
    Left,
}

/// Which entries of a tree are left out, by path and by what stands there.
pub type LeftOut<'test> = &'test dyn Fn(&[u8], &Stat) -> bool;

/// Fills `to`, which is empty and ours alone. All of it or an error; whoever is told of one removes
/// what was made.
pub(crate) fn carry(from: &Dir, to: &Dir, marks: Marks) -> FsResult<()> {
    fill(from, to, Kept::All(marks))
}

/// A copy of a workspace as its programs see it: with the owners that its files have, without
/// devices, which no sandbox shows. What may not be read is an empty file that may not be either.
pub(super) fn copy_workspace(from: &Dir, to: &Dir, left_out: LeftOut<'_>) -> FsResult<()> {
    fill(from, to, Kept::Seen(left_out))
}

#[derive(Clone, Copy)]
enum Kept<'test> {
    All(Marks),
    Seen(LeftOut<'test>),
}

fn fill(from: &Dir, to: &Dir, kept: Kept<'_>) -> FsResult<()> {
    let facts = rustix::fs::fstat(to).map_err(|errno| FsError::os(CARRYING, b"", errno))?;
    // As root a sandbox has an id of its own; on disk everything belongs to whoever has the directory.
    let owner = rustix::process::geteuid()
        .is_root()
        .then(|| (Uid::from_raw(facts.st_uid), Gid::from_raw(facts.st_gid)));
    let mut carrier = Carrier {
        to,
        kept,
        owner,
        linked: HashMap::new(),
        closing: Vec::new(),
    };
    let mut fault = None;
    let limits = WalkLimits {
        depth: PATH_MAX / 2,
        path_bytes: PATH_MAX,
        entries: ENTRIES,
        deadline: None,
    };
    let end = walk(
        from,
        limits,
        Order::ByName,
        &mut |visit| match carrier.visit(visit) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                fault = Some(error);
                ControlFlow::Break(())
            }
        },
    );
    let failed = |kind| FsError::new(CARRYING, b"", kind);
    match (end.map_err(failed)?, fault) {
        (_, Some(fault)) => Err(fault),
        (WalkEnd::Complete, None) => carrier.close(),
        (WalkEnd::EntryLimit, None) => Err(failed(FsErrorKind::TooManyEntries { cap: ENTRIES })),
        (WalkEnd::Deadline | WalkEnd::Stopped | WalkEnd::Moved, None) => {
            Err(failed(FsErrorKind::Contended))
        }
    }
}

struct Carrier<'to> {
    to: &'to Dir,
    kept: Kept<'to>,
    owner: Option<(Uid, Gid)>,
    /// Files with several names, by the one that was made first.
    linked: HashMap<FileId, Vec<u8>>,
    /// Directories get their modes when everything is in them.
    closing: Vec<(Vec<u8>, u32)>,
}

impl Carrier<'_> {
    fn visit(&mut self, visit: Visit<'_>) -> FsResult<()> {
        match visit {
            Visit::Entry(entry) => self.entry(&entry),
            Visit::Skipped { entry, why } => {
                let kind = match why {
                    Skip::TooDeep => FsErrorKind::NameTooLong,
                    Skip::TooManyEntries => FsErrorKind::TooManyEntries { cap: ENTRIES },
                    Skip::Unreadable => FsErrorKind::Permission,
                    Skip::OtherFileSystem => FsErrorKind::OtherFileSystem,
                };
                Err(FsError::new(CARRYING, entry.path, kind))
            }
        }
    }

    fn entry(&mut self, entry: &WalkEntry<'_>) -> FsResult<()> {
        let fault = |errno: Errno| FsError::os(CARRYING, entry.path, errno);
        if entry.path.len() > PATH_MAX {
            return Err(fault(Errno::NAMETOOLONG));
        }
        if let Kept::Seen(left_out) = self.kept {
            let is_device = matches!(entry.stat.kind, Kind::Device | Kind::Unknown);
            if is_device || left_out(entry.path, &entry.stat) {
                return Ok(());
            }
        }
        let target = Place::below(self.to, entry.path)?;
        match entry.stat.kind {
            Kind::Directory => self.directory(entry, &target),
            Kind::File => self.file(entry, &target),
            Kind::Symlink => {
                let text = link_text(entry.at.dir, entry.at.name).map_err(fault)?;
                symlinkat(text.as_bytes(), &target.dir, &target.name).map_err(fault)?;
                self.own_name(entry, &target).map_err(fault)
            }
            Kind::Device if is_whiteout(entry.at.dir, entry.at.name).map_err(fault)? => {
                self.node(entry, &target, FileType::CharacterDevice, 0)
            }
            Kind::Fifo => self.node(entry, &target, FileType::Fifo, entry.stat.mode),
            Kind::Socket => self.node(entry, &target, FileType::Socket, entry.stat.mode),
            // Nobody inside can make one.
            kind @ (Kind::Device | Kind::Unknown) => Err(FsError::new(
                CARRYING,
                entry.path,
                FsErrorKind::NotRegular(kind),
            )),
        }
    }

    fn directory(&mut self, entry: &WalkEntry<'_>, target: &Place) -> FsResult<()> {
        let fault = |errno: Errno| FsError::os(CARRYING, entry.path, errno);
        mkdirat(&target.dir, &target.name, Mode::RWXU).map_err(fault)?;
        let made = target.open_directory()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let from = single(entry.at.dir, entry.at.name.to_bytes(), flags)
            .map_err(|kind| FsError::new(CARRYING, entry.path, kind))?;
        self.mark(&from, &made).map_err(fault)?;
        self.own(&from, &made).map_err(fault)?;
        self.closing.push((entry.path.to_vec(), entry.stat.mode));
        Ok(())
    }

    fn file(&mut self, entry: &WalkEntry<'_>, target: &Place) -> FsResult<()> {
        let fault = |errno: Errno| FsError::os(CARRYING, entry.path, errno);
        let failed = |kind| FsError::new(CARRYING, entry.path, kind);
        let name = entry.at.name.to_bytes();
        let from = match single(entry.at.dir, name, READING | OFlags::NOFOLLOW) {
            Err(FsErrorKind::Permission) if matches!(self.kept, Kept::Seen(_)) => {
                return self.unreadable(target).map_err(fault);
            }
            from => from.map_err(failed)?,
        };
        let stat = regular(&from).map_err(failed)?;
        if let Some(first) = self.linked.get(&stat.id) {
            let first = Place::below(self.to, first)?;
            let none = AtFlags::empty();
            return linkat(&first.dir, &first.name, &target.dir, &target.name, none).map_err(fault);
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        let made = openat(&target.dir, &target.name, flags | OFlags::CLOEXEC, mode);
        let made = made.map_err(fault)?;
        stage::copy(&from, &made, stat.size).map_err(fault)?;
        self.mark(&from, &made).map_err(fault)?;
        self.own(&from, &made).map_err(fault)?;
        fchmod(&made, Mode::from_raw_mode(stat.mode)).map_err(fault)?;
        let modified = Timespec {
            tv_sec: stat.modified.sec,
            tv_nsec: stat.modified.nsec.into(),
        };
        let times = Timestamps {
            last_access: modified,
            last_modification: modified,
        };
        futimens(&made, &times).map_err(fault)?;
        if stat.links > 1 {
            self.linked.insert(stat.id, entry.path.to_vec());
        }
        Ok(())
    }

    fn unreadable(&self, target: &Place) -> rustix::io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        openat(
            &target.dir,
            &target.name,
            flags | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map(drop)
    }

    fn node(
        &self,
        entry: &WalkEntry<'_>,
        target: &Place,
        kind: FileType,
        mode: u32,
    ) -> FsResult<()> {
        let mode = Mode::from_raw_mode(mode);
        let made = mknodat(&target.dir, &target.name, kind, mode, 0);
        made.and_then(|()| self.own_name(entry, target))
            .map_err(target.fault(CARRYING))
    }

    fn own(&self, from: impl AsFd, made: impl AsFd) -> rustix::io::Result<()> {
        match (self.owner, self.kept) {
            (None, _) => Ok(()),
            (Some((uid, gid)), Kept::All(_)) => fchown(made, Some(uid), Some(gid)),
            (Some(_), Kept::Seen(_)) => {
                let facts = fstat(from)?;
                let (uid, gid) = (Uid::from_raw(facts.st_uid), Gid::from_raw(facts.st_gid));
                fchown(made, Some(uid), Some(gid))
            }
        }
    }

    fn own_name(&self, entry: &WalkEntry<'_>, target: &Place) -> rustix::io::Result<()> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let (uid, gid) = match (self.owner, self.kept) {
            (None, _) => return Ok(()),
            (Some(owner), Kept::All(_)) => owner,
            (Some(_), Kept::Seen(_)) => {
                let facts = statat(entry.at.dir, entry.at.name, flags)?;
                (Uid::from_raw(facts.st_uid), Gid::from_raw(facts.st_gid))
            }
        };
        chownat(&target.dir, &target.name, Some(uid), Some(gid), flags)
    }

    fn mark(&self, from: impl AsFd, to: impl AsFd) -> rustix::io::Result<()> {
        let marks = match self.kept {
            Kept::All(Marks::Left) => return Ok(()),
            Kept::All(Marks::Carried) => attributes::all(from)?,
            Kept::Seen(_) => attributes::read(from)?.own,
        };
        for (name, value) in marks {
            fsetxattr(&to, name.as_slice(), &value, XattrFlags::empty())?;
        }
        Ok(())
    }

    /// The deepest first: a directory that may not be entered keeps nobody from those below it.
    fn close(self) -> FsResult<()> {
        for (path, mode) in self.closing.iter().rev() {
            let place = Place::below(self.to, path)?;
            let made = place.open_directory()?;
            fchmod(&made, Mode::from_raw_mode(*mode)).map_err(place.fault(CARRYING))?;
        }
        Ok(())
    }
}
