//! Carrying changes into a workspace: everything is staged and noted first, then exchanged name by
//! name. Whoever is killed on the way leaves a note by which [`recover`] finishes the work, or takes
//! it back where somebody else has been meanwhile.

use std::collections::{BTreeSet, HashSet};

use glovebox_model::ByteString;
use rustix::fd::AsFd;
use rustix::fs::{Mode, OFlags, RenameFlags, fchmod, renameat_with, syncfs};
use rustix::io::Errno;

use super::attributes;
use super::base::Base;
use super::entry::Changes;
use super::intent::{Dressing, Identity, Intent, Mark, Op, Phase, StageAt, sync_directory};
use super::place::{Place, directory, leads_nowhere, split};
use super::plan;
use super::stage::{self, Stage};
use crate::dir::{Dir, single};
use crate::fault::{FsError, FsErrorKind, FsResult};
use crate::stat::{FileTime, Kind, Stat, stat_fd};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Applied(Applied),
    /// Nothing was changed: these are not what they were when the exec began.
    Conflict {
        paths: Vec<ByteString>,
    },
}

/// How much was done; a directory that came as a whole counts once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Applied {
    pub put: u64,
    pub removed: u64,
    pub set: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveredChange {
    /// Nothing was begun, or nothing was touched yet.
    Nothing,
    /// All changes are in the workspace.
    Completed,
    /// None is: these were changed by somebody else in between.
    RolledBack { paths: Vec<ByteString> },
}

/// Carries `changes`, which were just read from `lower` and `upper`, into `lower`. `home` is a
/// directory of ours that keeps the note; a note that says they were carried over before is the
/// same answer again.
pub fn apply(
    home: &Dir,
    lower: &Dir,
    upper: &Dir,
    changes: &Changes,
    base: &Base,
) -> FsResult<Outcome> {
    if recover(home, lower)? == RecoveredChange::Completed {
        return Ok(Outcome::Applied(Applied::default()));
    }
    let paths = plan::conflicts(changes, lower, base)?;
    if !paths.is_empty() {
        return Ok(Outcome::Conflict { paths });
    }
    let at = stage::choose(home, lower)?;
    let mut intent = Intent {
        stage: at,
        base: base.clone(),
        phase: Phase::Staging,
        staged_at: None,
    };
    intent.save(home)?;
    pass("noted");
    let prepared = stage_all(&intent.stage, home, lower, upper, changes);
    let ops = match prepared {
        Ok(ops) => ops,
        Err(error) => {
            // The first fault is the one to report.
            let _ = withdraw(&intent, home, lower);
            return Err(error);
        }
    };
    intent.phase = Phase::Applying(ops);
    let now = FileTime::now();
    intent.staged_at = Some((now.sec, now.nsec));
    intent.save(home)?;
    pass("intent");
    match Work::of(&intent, home, lower)?.carry_out(home)? {
        RecoveredChange::Completed => Ok(Outcome::Applied(intent.applied())),
        RecoveredChange::RolledBack { paths } => Ok(Outcome::Conflict { paths }),
        RecoveredChange::Nothing => Ok(Outcome::Applied(Applied::default())),
    }
}

fn stage_all(
    at: &StageAt,
    home: &Dir,
    lower: &Dir,
    upper: &Dir,
    changes: &Changes,
) -> FsResult<Vec<Op>> {
    let mut stage = Stage::make(at, home, lower)?;
    pass("stage");
    plan::prepare(changes, lower, upper, &mut stage)
}

/// Finishes what a process had begun that was killed. `home` and `lower` are the same as then.
pub fn recover(home: &Dir, lower: &Dir) -> FsResult<RecoveredChange> {
    let Some(intent) = Intent::load(home)? else {
        return Ok(RecoveredChange::Nothing);
    };
    match &intent.phase {
        Phase::Staging => {
            withdraw(&intent, home, lower)?;
            Ok(RecoveredChange::Nothing)
        }
        Phase::Applying(_) => Work::of(&intent, home, lower)?.carry_out(home),
        Phase::Applied => {
            stage::remove(&intent.stage, home, lower)?;
            Ok(RecoveredChange::Completed)
        }
    }
}

/// Nothing of it is left, and it may be tried again.
fn withdraw(intent: &Intent, home: &Dir, lower: &Dir) -> FsResult<()> {
    stage::remove(&intent.stage, home, lower)?;
    pass("unstaged");
    Intent::forget(home)
}

impl Intent {
    fn applied(&self) -> Applied {
        let mut sum = Applied::default();
        if let Phase::Applying(ops) = &self.phase {
            for op in ops {
                match op {
                    Op::Put { .. } => sum.put += 1,
                    Op::Take { .. } => sum.removed += 1,
                    Op::Set { .. } => sum.set += 1,
                }
            }
        }
        sum
    }
}

/// How one step ended.
#[derive(PartialEq, Eq)]
enum Step {
    Done,
    /// Somebody else was there; this step changed nothing.
    Conflict,
}

struct Work<'work> {
    lower: &'work Dir,
    stage: Dir,
    intent: &'work Intent,
    ops: &'work [Op],
    /// Files that these renames moved: another name of one has a new change time by our own hand.
    touched: HashSet<u64>,
}

impl<'work> Work<'work> {
    fn of(intent: &'work Intent, home: &Dir, lower: &'work Dir) -> FsResult<Self> {
        let ops = match &intent.phase {
            Phase::Applying(ops) => ops.as_slice(),
            Phase::Staging | Phase::Applied => &[],
        };
        Ok(Self {
            lower,
            stage: stage::open(&intent.stage, home, lower)?,
            intent,
            ops,
            touched: HashSet::new(),
        })
    }

    fn carry_out(mut self, home: &Dir) -> FsResult<RecoveredChange> {
        for op in self.ops {
            if let (
                Op::Put {
                    before: Some(before),
                    ..
                }
                | Op::Take { before, .. },
                true,
            ) = (op, self.is_done(op)?)
            {
                self.touched.insert(before.ino);
            }
        }
        for (index, op) in self.ops.iter().enumerate() {
            let step = match self.is_done(op)? {
                true => Ok(Step::Done),
                false => self.step(op),
            };
            match step {
                Ok(Step::Done) => pass("step"),
                Ok(Step::Conflict) => {
                    self.take_back(index)?;
                    withdraw(self.intent, home, self.lower)?;
                    let paths = vec![op.path().clone()];
                    return Ok(RecoveredChange::RolledBack { paths });
                }
                Err(error) => {
                    // What cannot be done as a whole is not done at all.
                    self.take_back(index)?;
                    withdraw(self.intent, home, self.lower)?;
                    return Err(error);
                }
            }
        }
        self.sync()?;
        pass("synced");
        let finished = Intent {
            stage: self.intent.stage.clone(),
            base: self.intent.base.clone(),
            phase: Phase::Applied,
            staged_at: self.intent.staged_at,
        };
        finished.save(home)?;
        pass("applied");
        stage::remove(&self.intent.stage, home, self.lower)?;
        pass("cleared");
        Ok(RecoveredChange::Completed)
    }

    /// The stage is ours, so it says what was moved out of it and into it, whatever became of the
    /// workspace since.
    fn is_done(&self, op: &Op) -> FsResult<bool> {
        Ok(match op {
            Op::Put { staged, new, .. } => {
                let found = self.at_stage(*staged)?.look()?;
                found.is_none_or(|stat| Identity::of(&stat) != *new)
            }
            Op::Take { staged, .. } => self.staged(*staged)?.is_some(),
            // Setting it twice is the same.
            Op::Set { .. } => false,
        })
    }

    fn staged(&self, number: u64) -> FsResult<Option<u64>> {
        let found = self.at_stage(number)?.look()?;
        Ok(found.map(|stat| stat.id.ino))
    }

    fn at_stage(&self, number: u64) -> FsResult<Place> {
        Place::below(&self.stage, number.to_string().as_bytes())
    }

    fn step(&mut self, op: &Op) -> FsResult<Step> {
        let place = match Place::below(self.lower, op.path().as_bytes()) {
            Err(error) if leads_nowhere(error.kind()) => return Ok(Step::Conflict),
            place => place?,
        };
        match op {
            Op::Put {
                staged,
                before: None,
                ..
            } => self.put_new(&place, *staged),
            Op::Put {
                staged,
                before: Some(before),
                ..
            } => self.exchange(&place, *staged, before),
            Op::Take { staged, before, .. } => self.take(&place, *staged, before),
            Op::Set { ino, new, .. } => set(&place, *ino, new),
        }
    }

    fn put_new(&self, place: &Place, staged: u64) -> FsResult<Step> {
        let from = self.at_stage(staged)?;
        match rename(&from, place, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => Ok(Step::Conflict),
            done => done.map(|()| Step::Done).map_err(place.fault("put")),
        }
    }

    fn exchange(&mut self, place: &Place, staged: u64, before: &Mark) -> FsResult<Step> {
        if !self.is_still(place, before)? {
            return Ok(Step::Conflict);
        }
        let from = self.at_stage(staged)?;
        let both = |from: &Place, to: &Place| rename(from, to, RenameFlags::EXCHANGE);
        unlocking(place, before, || both(&from, place)).map_err(place.fault("put"))?;
        self.touched.insert(before.ino);
        // What came out is what was looked at; a name can be given to another file in between.
        match self.is_what_was(staged, before)? {
            true => Ok(Step::Done),
            false => {
                both(&from, place).map_err(place.fault("put back"))?;
                Ok(Step::Conflict)
            }
        }
    }

    fn take(&mut self, place: &Place, staged: u64, before: &Mark) -> FsResult<Step> {
        if !self.is_still(place, before)? {
            return Ok(Step::Conflict);
        }
        let to = self.at_stage(staged)?;
        let away = || rename(place, &to, RenameFlags::NOREPLACE);
        unlocking(place, before, away).map_err(place.fault("remove"))?;
        self.touched.insert(before.ino);
        match self.is_what_was(staged, before)? {
            true => Ok(Step::Done),
            false => {
                rename(&to, place, RenameFlags::NOREPLACE).map_err(place.fault("put back"))?;
                Ok(Step::Conflict)
            }
        }
    }

    fn is_still(&self, place: &Place, before: &Mark) -> FsResult<bool> {
        let Some(now) = place.look()? else {
            return Ok(false);
        };
        let ours = self.touched.contains(&before.ino) && before.same_contents(&now);
        Ok(ours || Mark::of(&now) == *before)
    }

    fn is_what_was(&self, staged: u64, before: &Mark) -> FsResult<bool> {
        let Some(now) = self.at_stage(staged)?.look()? else {
            return Ok(false);
        };
        if before.kind == Kind::Directory && now.kind == Kind::Directory {
            let path = staged.to_string();
            let moved = plan::inside_moved(&self.stage, path.as_bytes(), &self.intent.base)?;
            return Ok(now.id.ino == before.ino && !moved);
        }
        Ok(before.same_contents(&now))
    }

    /// Undoes the first so many, last first. Where somebody else has been meanwhile, what is there
    /// stays.
    fn take_back(&self, count: usize) -> FsResult<()> {
        for op in self.ops[..count].iter().rev() {
            pass("back");
            let place = match Place::below(self.lower, op.path().as_bytes()) {
                Err(error) if leads_nowhere(error.kind()) => continue,
                place => place?,
            };
            let fault = place.fault("put back");
            match op {
                Op::Put {
                    staged,
                    new,
                    before,
                    made,
                    ..
                } => {
                    let still = place.look()?.filter(|it| Identity::of(it) == *new);
                    let Some(now) = still else { continue };
                    if self.is_edited(op, &now, made.as_ref())? {
                        continue;
                    }
                    let from = self.at_stage(*staged)?;
                    let flags = match before {
                        None => RenameFlags::NOREPLACE,
                        Some(_) => RenameFlags::EXCHANGE,
                    };
                    rename(&place, &from, flags).map_err(&fault)?;
                }
                Op::Take { staged, before, .. } => {
                    if self.staged(*staged)? != Some(before.ino) {
                        continue;
                    }
                    match rename(&self.at_stage(*staged)?, &place, RenameFlags::NOREPLACE) {
                        Err(Errno::EXIST) => {}
                        done => done.map_err(&fault)?,
                    }
                }
                Op::Set { ino, old, .. } => {
                    set(&place, *ino, old)?;
                }
            }
        }
        self.sync()
    }

    /// Whether somebody has worked on what was put there, or on anything in it.
    fn is_edited(&self, op: &Op, now: &Stat, made: Option<&Mark>) -> FsResult<bool> {
        let Some((sec, nsec)) = self.intent.staged_at else {
            return Ok(false);
        };
        let staged_at = FileTime { sec, nsec };
        match now.kind {
            // A rename of ours changes the change time of a file under its other names, too.
            Kind::Directory => plan::any_inside(self.lower, op.path().as_bytes(), |stat| {
                stat.changed > staged_at && (stat.links == 1 || stat.modified > staged_at)
            }),
            _ => Ok(made.is_some_and(|made| !made.same_contents(now))),
        }
    }

    /// Every directory in which a name changed.
    fn sync(&self) -> FsResult<()> {
        let parents: BTreeSet<&[u8]> = self
            .ops
            .iter()
            .map(|op| split(op.path().as_bytes()).0)
            .collect();
        for parent in parents {
            match directory(self.lower, parent) {
                Ok(dir) => match sync_directory(&dir) {
                    Err(error) if error.kind() == FsErrorKind::Permission => self.sync_all()?,
                    synced => synced?,
                },
                Err(kind) if leads_nowhere(kind) => {}
                Err(FsErrorKind::Permission) => self.sync_all()?,
                Err(kind) => return Err(FsError::new("sync", parent, kind)),
            }
        }
        sync_directory(&self.stage)
    }

    /// For a directory that was closed, also to an ordinary user who runs us, by these very changes.
    fn sync_all(&self) -> FsResult<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let fd = single(self.lower.as_fd(), b".", flags);
        let fd = fd.map_err(|kind| FsError::new("sync", b"", kind))?;
        syncfs(fd).map_err(|errno| FsError::os("sync", b"", errno))
    }
}

fn rename(from: &Place, to: &Place, flags: RenameFlags) -> rustix::io::Result<()> {
    renameat_with(&from.dir, &from.name, &to.dir, &to.name, flags)
}

/// A directory that its owner may not write cannot be moved by that owner, who may change this. It
/// is on its way out.
fn unlocking(
    place: &Place,
    before: &Mark,
    act: impl Fn() -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    match act() {
        Err(Errno::ACCESS) if before.kind == Kind::Directory => {
            let fd = place.open_directory().map_err(|_| Errno::ACCESS)?;
            let mode = stat_fd(&fd)?.mode;
            fchmod(&fd, Mode::from_raw_mode(mode | 0o700))?;
            act()
        }
        done => done,
    }
}

/// On the directory itself, which no name can exchange any more.
fn set(place: &Place, ino: Option<u64>, dressing: &Dressing) -> FsResult<Step> {
    let fd = match place.open_directory() {
        Err(error) if leads_nowhere(error.kind()) => return Ok(Step::Conflict),
        fd => fd?,
    };
    let fault = place.fault("set the mode of");
    let stat = stat_fd(fd.as_fd()).map_err(&fault)?;
    if ino.is_some_and(|ino| ino != stat.id.ino) {
        return Ok(Step::Conflict);
    }
    attributes::set(&fd, &dressing.map()).map_err(&fault)?;
    fchmod(&fd, Mode::from_raw_mode(dressing.mode)).map_err(&fault)?;
    Ok(Step::Done)
}

/// A moment at which a test may end this process. Not in release builds.
#[cfg(debug_assertions)]
pub(super) fn pass(_moment: &str) {
    use std::sync::atomic::{AtomicU64, Ordering};
    static PASSED: AtomicU64 = AtomicU64::new(1);
    let Some(at) = std::env::var_os("GLOVEBOX_KILL_AT") else {
        return;
    };
    let passed = PASSED.fetch_add(1, Ordering::Relaxed);
    if at.to_str().and_then(|it| it.parse().ok()) == Some(passed) {
        let own = rustix::process::getpid();
        let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
    }
}

#[cfg(not(debug_assertions))]
pub(super) const fn pass(_moment: &str) {}
