//! Everything that will be put into a workspace, complete and on disk, before the first of it is.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::OwnedFd;

use glovebox_model::ByteString;
use rustix::fd::AsFd;
use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, SeekFrom, Statx, StatxFlags, Timespec, Timestamps, Uid, chownat,
    copy_file_range, fchmod, fchown, fsync, ftruncate, futimens, linkat, mkdirat, seek, statx,
    symlinkat, syncfs,
};
use rustix::io::Errno;

use super::attributes;
use super::entry::{Change, Facts};
use super::intent::{Dressing, StageAt, sync_directory};
use super::place::{Place, split};
use super::read::link_text;
use crate::dir::{Dir, single, temporary_name};
use crate::fault::{FsError, FsErrorKind, FsResult};
use crate::stat::{FileId, Kind, Stat};

const NAME: &str = "stage";
/// Fewer are synced one by one; with more, all that the file system has is cheaper.
const FEW: usize = 32;
const CHUNK: usize = 1 << 20;

pub(super) struct Stage {
    pub(super) dir: Dir,
    owner: Option<(Uid, Gid)>,
    /// Directories under construction, by their path in the workspace.
    fresh: HashMap<Vec<u8>, Vec<u8>>,
    /// Files with several names, by the one that was made first.
    linked: HashMap<FileId, Vec<u8>>,
    /// Directories that get their mode when they are full, each before what lies in it.
    closing: Vec<(Vec<u8>, Dressing)>,
    unsynced: Vec<OwnedFd>,
    files: usize,
}

/// Where a rename into the workspace can start.
pub(super) fn choose(home: &Dir, lower: &Dir) -> FsResult<StageAt> {
    match mount_of(home)? == mount_of(lower)? {
        true => Ok(StageAt::Home),
        false => {
            let name = temporary_name().map_err(|kind| FsError::new("stage", b"", kind))?;
            Ok(StageAt::Inside(name.to_string_lossy().into_owned()))
        }
    }
}

/// A rename crosses neither file systems nor mounts.
fn mount_of(dir: &Dir) -> FsResult<(u64, u32, u32)> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    let facts: Statx = statx(dir, c"", AtFlags::EMPTY_PATH, wanted)
        .map_err(|errno| FsError::os("look at", b"", errno))?;
    Ok((facts.stx_mnt_id, facts.stx_dev_major, facts.stx_dev_minor))
}

pub(super) fn open(at: &StageAt, home: &Dir, lower: &Dir) -> FsResult<Dir> {
    match at {
        StageAt::Home => home.open_name(NAME),
        StageAt::Inside(name) => lower.enter(name.as_bytes()),
    }
}

pub(super) fn remove(at: &StageAt, home: &Dir, lower: &Dir) -> FsResult<()> {
    let removed = match at {
        StageAt::Home => home.remove_entry(NAME),
        StageAt::Inside(name) => lower.remove_entry(name),
    };
    match removed {
        Err(error) if error.kind() == FsErrorKind::NotFound => Ok(()),
        done => done,
    }
}

impl Stage {
    pub(super) fn make(at: &StageAt, home: &Dir, lower: &Dir) -> FsResult<Self> {
        let dir = match at {
            StageAt::Home => home.make_new_dir(NAME, 0o700)?,
            StageAt::Inside(name) => lower.make_new_dir(name, 0o700)?,
        };
        let facts = rustix::fs::fstat(lower).map_err(|errno| FsError::os("look at", b"", errno))?;
        // Whoever owns the workspace owns what is put there. An ordinary user can only be itself.
        let owner = rustix::process::geteuid()
            .is_root()
            .then(|| (Uid::from_raw(facts.st_uid), Gid::from_raw(facts.st_gid)));
        Ok(Self {
            dir,
            owner,
            fresh: HashMap::new(),
            linked: HashMap::new(),
            closing: Vec::new(),
            unsynced: Vec::new(),
            files: 0,
        })
    }

    /// Where this one lies in the stage already, as part of a directory that is staged.
    pub(super) fn inside(&self, path: &[u8]) -> Option<Vec<u8>> {
        let (parent, name) = split(path);
        let mut at = self.fresh.get(parent)?.clone();
        at.push(b'/');
        at.extend_from_slice(name);
        Some(at)
    }

    /// Makes the new side of a change at `at`, and says what it is.
    pub(super) fn add(
        &mut self,
        upper: &Dir,
        change: &Change,
        after: &Facts,
        at: Vec<u8>,
    ) -> FsResult<Stat> {
        let source = Place::below(upper, change.path.as_bytes())?;
        let target = Place::below(&self.dir, &at)?;
        match after.kind {
            Kind::Directory => self.directory(&source, &target, (change, after), at)?,
            Kind::Symlink => self.link(&source, &target)?,
            Kind::File => self.file(&source, &target, after.mode, at)?,
            kind @ (Kind::Fifo | Kind::Socket | Kind::Device | Kind::Unknown) => {
                let kind = FsErrorKind::NotRegular(kind);
                return Err(FsError::new("stage", change.path.as_bytes(), kind));
            }
        }
        let made = target.look()?;
        made.ok_or_else(|| FsError::os("stage", change.path.as_bytes(), Errno::NOENT))
    }

    fn directory(
        &mut self,
        source: &Place,
        target: &Place,
        (change, after): (&Change, &Facts),
        at: Vec<u8>,
    ) -> FsResult<()> {
        let fault = target.fault("stage");
        mkdirat(&target.dir, &target.name, Mode::RWXU).map_err(&fault)?;
        let upper = source.open_directory()?;
        let own = attributes::read(&upper).map_err(&fault)?.own;
        let made = target.open_directory()?;
        self.own(&made).map_err(&fault)?;
        self.fresh
            .insert(change.path.as_bytes().to_vec(), at.clone());
        self.closing.push((at, Dressing::new(after.mode, own)));
        Ok(())
    }

    fn link(&mut self, source: &Place, target: &Place) -> FsResult<()> {
        let fault = target.fault("stage");
        let text: ByteString = link_text(source.dir.as_fd(), &source.name).map_err(&fault)?;
        let text = CString::new(text.into_bytes()).map_err(|_| fault(Errno::INVAL))?;
        symlinkat(&text, &target.dir, &target.name).map_err(&fault)?;
        if let Some((uid, gid)) = self.owner {
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            chownat(&target.dir, &target.name, Some(uid), Some(gid), flags).map_err(&fault)?;
        }
        Ok(())
    }

    fn file(&mut self, source: &Place, target: &Place, mode: u32, at: Vec<u8>) -> FsResult<()> {
        let fault = target.fault("stage");
        let (from, stat) = source.open_file()?;
        if let Some(first) = self.linked.get(&stat.id) {
            let first = Place::below(&self.dir, first)?;
            let none = AtFlags::empty();
            return linkat(&first.dir, &first.name, &target.dir, &target.name, none)
                .map_err(&fault);
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let flags = flags | OFlags::CLOEXEC;
        let to = rustix::fs::openat(&target.dir, &target.name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(&fault)?;
        copy(&from, &to, stat.size).map_err(&fault)?;
        let own = attributes::read(&from).map_err(&fault)?.own;
        attributes::set(&to, &own).map_err(&fault)?;
        self.own(&to).map_err(&fault)?;
        // After the owner, which would take bits away; and only the permissions, never a set-id bit.
        fchmod(&to, Mode::from_raw_mode(mode)).map_err(&fault)?;
        let modified = Timespec {
            tv_sec: stat.modified.sec,
            tv_nsec: stat.modified.nsec.into(),
        };
        let times = Timestamps {
            last_access: modified,
            last_modification: modified,
        };
        futimens(&to, &times).map_err(&fault)?;
        if stat.links > 1 {
            self.linked.insert(stat.id, at);
        }
        self.files += 1;
        if self.files <= FEW {
            self.unsynced.push(to);
        }
        Ok(())
    }

    fn own(&self, file: impl AsFd) -> rustix::io::Result<()> {
        match self.owner {
            Some((uid, gid)) => fchown(file, Some(uid), Some(gid)),
            None => Ok(()),
        }
    }

    /// Gives the directories their modes and waits until all of it is on disk. Returns what each
    /// directory at the top of the stage still has to get: one that its owner may not write cannot be
    /// moved by an ordinary user.
    pub(super) fn close(&mut self) -> FsResult<HashMap<Vec<u8>, Dressing>> {
        let mut later = HashMap::new();
        for (at, dressing) in std::mem::take(&mut self.closing).into_iter().rev() {
            let place = Place::below(&self.dir, &at)?;
            let fd = place.open_directory()?;
            let attributes = attributes::set(&fd, &dressing.map());
            attributes.map_err(place.fault("stage"))?;
            let is_top = !at.contains(&b'/');
            let mode = match is_top && dressing.mode & 0o700 != 0o700 {
                false => dressing.mode,
                true => dressing.mode | 0o700,
            };
            fchmod(&fd, Mode::from_raw_mode(mode)).map_err(place.fault("stage"))?;
            if mode != dressing.mode {
                later.insert(at, dressing);
            }
        }
        self.sync()?;
        Ok(later)
    }

    fn sync(&mut self) -> FsResult<()> {
        let fault = |errno| FsError::os("sync", NAME.as_bytes(), errno);
        let files = std::mem::take(&mut self.unsynced);
        if self.files > FEW || !self.fresh.is_empty() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let fd = single(self.dir.as_fd(), b".", flags)
                .map_err(|kind| FsError::new("sync", NAME.as_bytes(), kind))?;
            return syncfs(fd).map_err(fault);
        }
        for file in files {
            fsync(file).map_err(fault)?;
        }
        sync_directory(&self.dir)
    }
}

/// Holes stay holes; never more than the size that was seen.
pub(super) fn copy(from: &OwnedFd, to: &OwnedFd, size: u64) -> rustix::io::Result<()> {
    let mut at = 0;
    while at < size {
        let data = match seek(from, SeekFrom::Data(at)) {
            // Nothing but a hole is left.
            Err(Errno::NXIO) => break,
            // No holes on this file system.
            Err(Errno::INVAL) => at,
            data => data?,
        };
        let end = match seek(from, SeekFrom::Hole(data)) {
            Err(Errno::INVAL | Errno::NXIO) => size,
            end => end?.min(size),
        };
        if data >= size {
            break;
        }
        copy_range(from, to, data, end)?;
        at = end;
    }
    ftruncate(to, size)
}

fn copy_range(from: &OwnedFd, to: &OwnedFd, start: u64, end: u64) -> rustix::io::Result<()> {
    let (mut read, mut written) = (start, start);
    let mut by_kernel = true;
    let mut chunk = Vec::new();
    while read < end {
        let left = usize::try_from(end - read).unwrap_or(usize::MAX);
        if by_kernel {
            let most = left.min(1 << 30);
            match copy_file_range(from, Some(&mut read), to, Some(&mut written), most) {
                Ok(0) => return Ok(()),
                Ok(_) => continue,
                Err(Errno::INTR) => continue,
                Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => {
                    by_kernel = false;
                }
                Err(errno) => return Err(errno),
            }
        }
        chunk.resize(left.min(CHUNK), 0);
        let length = rustix::io::pread(from, chunk.as_mut_slice(), read)?;
        if length == 0 {
            return Ok(());
        }
        let mut done = 0;
        while done < length {
            done += rustix::io::pwrite(to, &chunk[done..length], read + done as u64)?;
        }
        read += length as u64;
        written = read;
    }
    Ok(())
}
