//! How much a workspace may still take of what is written to it from outside its execs.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use glovebox_model::{Blame, Bytes, Code, Count, Error, Limits, ProjectId, Result, SpaceId, Stage};
use glovebox_snapshot::Counts;
use glovebox_workspace::{Dir, Kind, Occupied, Project, RelPath, UsageLimits};

use super::Workspace;
use crate::workspaces::Workspaces;

/// A workspace that cannot be measured in this gets no more while it has a quota.
const MEASURED: UsageLimits = UsageLimits {
    entries: 10_000_000,
    time: Duration::from_secs(30),
};
/// What a file system hands out at once.
const BLOCK: u64 = 4096;

/// Two who measure at the same moment would both find the same room; so the writers of one
/// workspace take turns where there is a quota, and wait for nobody else's.
static TURNS: LazyLock<Turns> = LazyLock::new(Turns::default);

/// A workspace of a state directory.
type Whose = (PathBuf, SpaceId, ProjectId);

#[derive(Debug, Default)]
struct Turns {
    taken: Mutex<HashSet<Whose>>,
    given_back: Condvar,
}

#[derive(Debug)]
struct Turn(Whose);

impl Turn {
    fn take(whose: Whose) -> Self {
        let mut taken = TURNS.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while !taken.insert(whose.clone()) {
            let waited = TURNS.given_back.wait(taken);
            taken = waited.unwrap_or_else(PoisonError::into_inner);
        }
        Self(whose)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut taken = TURNS.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.remove(&self.0);
        TURNS.given_back.notify_all();
    }
}

/// Without a quota there is room for everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuotaLeft {
    bytes: Option<Left>,
    files: Option<Left>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Left {
    most: u64,
    left: u64,
}

/// Whether what waits to be kept counts as well. For whoever keeps it, it is about to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layers {
    Counted,
    Apart,
}

/// Somebody who writes files of a workspace beside its execs. Nobody changes the whole of it
/// meanwhile.
#[derive(Debug)]
pub struct Writing<'workspace> {
    work: &'workspace Dir,
    room: QuotaLeft,
    _inside: Occupied,
    _turn: Option<Turn>,
}

impl Workspace<'_> {
    /// Waits while somebody changes the whole of it.
    pub fn writing(&self) -> Result<Writing<'_>> {
        let inside = self.enter()?;
        let work = self.work()?;
        let has_quota = self.workspaces.has_quota();
        // Before it is measured.
        let turn = has_quota.then(|| self.turn());
        let writing = Writing {
            work,
            room: self.workspaces.room(&self.project, Layers::Counted)?,
            _inside: inside,
            _turn: turn,
        };
        Ok(writing)
    }

    fn turn(&self) -> Turn {
        let state = self.workspaces.instance.state().path().to_owned();
        Turn::take((state, self.space.clone(), self.project.id().clone()))
    }

    /// Refuses a snapshot that does not fit into this workspace, emptied, beside the changes that
    /// wait; holes in files count.
    pub(super) fn fits(&self, counts: &Counts) -> Result<()> {
        if !self.workspaces.has_quota() {
            return Ok(());
        }
        let waiting = self.project.held_usage(MEASURED)?;
        let used = match waiting.complete {
            true => (waiting.bytes, waiting.inodes),
            false => (u64::MAX, u64::MAX),
        };
        self.workspaces.room_beside(used).take_all(counts)
    }

    /// The same for a workspace that is about to be made.
    pub(super) fn fits_anew(&self, counts: &Counts) -> Result<()> {
        self.workspaces.room_anew().take_all(counts)
    }
}

impl Workspaces {
    fn has_quota(&self) -> bool {
        let settings = self.instance.policy.workspace_settings();
        settings.max_bytes.is_some() || settings.max_files.is_some()
    }

    /// What the quota leaves of a workspace as it is now. One that cannot be measured has no room:
    /// things can be removed from it all the same.
    pub(super) fn room(&self, project: &Project, layers: Layers) -> Result<QuotaLeft> {
        let (Some(work), true) = (project.work(), self.has_quota()) else {
            return Ok(QuotaLeft::default());
        };
        let mut usage = work
            .usage(MEASURED)
            .map_err(|error| error.at(Stage::Open))?;
        if layers == Layers::Counted {
            let held = project.held_usage(MEASURED)?;
            usage.bytes = usage.bytes.saturating_add(held.bytes);
            usage.inodes = usage.inodes.saturating_add(held.inodes);
            usage.complete &= held.complete;
        }
        Ok(self.room_beside(match usage.complete {
            true => (usage.bytes, usage.inodes),
            false => (u64::MAX, u64::MAX),
        }))
    }

    /// What the quota leaves of a workspace that holds nothing yet.
    pub(super) fn room_anew(&self) -> QuotaLeft {
        self.room_beside((0, 0))
    }

    /// What the quota leaves beside so many bytes and files.
    fn room_beside(&self, used: (u64, u64)) -> QuotaLeft {
        let left = |most: Option<u64>, used: u64| {
            most.map(|most| Left {
                most,
                left: most.saturating_sub(used),
            })
        };
        let settings = self.instance.policy.workspace_settings();
        QuotaLeft {
            bytes: left(settings.max_bytes.map(Bytes::get), used.0),
            files: left(settings.max_files.map(Count::get), used.1),
        }
    }
}

impl Writing<'_> {
    pub fn work(&self) -> &Dir {
        self.work
    }

    pub fn room(&self) -> QuotaLeft {
        self.room
    }

    /// Whether a file of this size may be put there, with the directories above it.
    pub fn fits(&self, path: &RelPath, bytes: u64) -> Result<()> {
        let old = given_back(self.work, path);
        let made = missing(self.work, path);
        // What has another name stays, so the new one is one more.
        let files = made + u64::from(made == 0 && old.is_none());
        let above = made.saturating_sub(1).saturating_mul(BLOCK);
        let bytes = blocks(bytes).saturating_add(above);
        self.room
            .take(bytes.saturating_sub(old.unwrap_or(0)), files)
    }

    /// How large a file may get that stands there or is put there.
    pub fn largest_at(&self, path: &RelPath) -> u64 {
        let old = given_back(self.work, path).unwrap_or(0);
        self.room.bytes().saturating_add(old)
    }

    /// How many names are not there yet of a path: its own, and those of the directories above it.
    pub fn missing(&self, path: &RelPath) -> u64 {
        missing(self.work, path)
    }
}

/// What is free again when the file that stands there is replaced: what it really takes, and nothing
/// while it has another name.
fn given_back(work: &Dir, path: &RelPath) -> Option<u64> {
    let stat = work.lstat(path).ok()?;
    (stat.kind == Kind::File && stat.links == 1).then_some(stat.allocated)
}

fn missing(work: &Dir, path: &RelPath) -> u64 {
    let text = path.to_byte_string();
    let bytes = text.as_bytes();
    let ends = (0..bytes.len()).filter(|at| bytes[*at] == b'/');
    let names = ends
        .chain([bytes.len()])
        .map(|end| RelPath::new(&bytes[..end]));
    let is_missing = |it: &RelPath| work.lstat(it).is_err();
    names.flatten().filter(is_missing).count() as u64
}

impl QuotaLeft {
    /// Bytes that may be added; as many as there are numbers without a quota.
    pub fn bytes(&self) -> u64 {
        self.bytes.map_or(u64::MAX, |it| it.left)
    }

    /// Files and directories that may be added.
    pub fn files(&self) -> u64 {
        self.files.map_or(u64::MAX, |it| it.left)
    }

    /// The same with no more than this.
    pub(super) fn at_most(self, bytes: u64, files: u64) -> Self {
        let least = |it: Option<Left>, most: u64| {
            Some(match it {
                Some(it) => Left {
                    left: it.left.min(most),
                    ..it
                },
                None => Left { most, left: most },
            })
        };
        Self {
            bytes: least(self.bytes, bytes),
            files: least(self.files, files),
        }
    }

    /// An exec gets no more than is left.
    pub(crate) fn narrow(&self, limits: &mut Limits) {
        limits.disk_bytes = Bytes(limits.disk_bytes.get().min(self.bytes()));
        limits.disk_files = Count(limits.disk_files.get().min(self.files()));
    }

    fn take_all(&self, counts: &Counts) -> Result<()> {
        let files = counts.files + counts.directories + counts.symlinks + counts.fifos;
        self.take(counts.bytes, files)
    }

    pub fn take(&self, bytes: u64, files: u64) -> Result<()> {
        if let Some(it) = self.bytes.filter(|it| bytes > it.left) {
            return Err(full(&format!("{} bytes", it.most), it.left, "max_bytes"));
        }
        if let Some(it) = self.files.filter(|it| files > it.left) {
            return Err(full(&format!("{} files", it.most), it.left, "max_files"));
        }
        Ok(())
    }

    /// What stopped at the room that was left, said as what it is.
    pub fn passed(&self) -> Error {
        match (self.bytes, self.files) {
            (Some(it), None) => full(&format!("{} bytes", it.most), it.left, "max_bytes"),
            (None, Some(it)) => full(&format!("{} files", it.most), it.left, "max_files"),
            (bytes, files) => {
                let most = |it: Option<Left>| it.map_or(u64::MAX, |it| it.most);
                let both = format!("{} bytes in {} files", most(bytes), most(files));
                full(&both, self.bytes(), "max_bytes` and `max_files")
            }
        }
    }
}

fn blocks(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK).saturating_mul(BLOCK)
}

/// Not the host's fault, and waiting does not help.
fn full(most: &str, left: u64, field: &str) -> Error {
    let message = format!("the workspace may hold {most}, and has room for {left} more");
    let mut error = Error::new(Code::DiskFull, Stage::Open, message)
        .hint("remove files that nobody needs any more")
        .hint(format!(
            "the operator sets `{field}` in `[workspace]` of the configuration"
        ));
    error.blame = Blame::Policy;
    error.retry.allowed = false;
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_the_quota_is_refused_as_policy() {
        let none = QuotaLeft::default();
        none.take(u64::MAX, u64::MAX).unwrap();
        let room = QuotaLeft {
            bytes: Some(Left {
                most: 10_000,
                left: 5000,
            }),
            files: Some(Left { most: 3, left: 0 }),
        };
        room.take(5000, 0).unwrap();
        for (bytes, files) in [(5001, 0), (0, 1)] {
            let error = room.take(bytes, files).unwrap_err();
            assert_eq!((error.code, error.blame), (Code::DiskFull, Blame::Policy));
        }
    }

    #[test]
    fn only_what_is_really_given_back_is_given_back() {
        let place = tempfile::tempdir().unwrap();
        let work = Dir::open_trusted(place.path()).unwrap();
        let at = |name: &str| place.path().join(name);
        let path = |name: &str| RelPath::new(name).unwrap();
        let full = std::fs::write(at("full"), vec![1u8; 10_000]);
        full.unwrap();
        let holes = std::fs::File::create(at("holes")).unwrap();
        holes.set_len(1 << 30).unwrap();
        std::fs::write(at("linked"), vec![1u8; 10_000]).unwrap();
        std::fs::hard_link(at("linked"), at("second")).unwrap();
        assert_eq!(given_back(&work, &path("full")), Some(12_288));
        assert_eq!(given_back(&work, &path("holes")), Some(0));
        assert_eq!(given_back(&work, &path("linked")), None);
        assert_eq!(given_back(&work, &path("nothing")), None);
        std::fs::create_dir(at("d")).unwrap();
        let names = ["full", "d/x", "d/e/x", "a/b/c/x"];
        let missing = names.map(|name| missing(&work, &path(name)));
        assert_eq!(missing, [0, 1, 2, 4]);
    }

    #[test]
    fn writers_of_one_workspace_take_turns_and_wait_for_no_other() {
        use std::sync::mpsc::channel;
        let whose = |space: &str, project: &str| -> Whose {
            let (space, project) = (space.parse().unwrap(), project.parse().unwrap());
            (PathBuf::from("turns"), space, project)
        };
        let first = Turn::take(whose("s", "p"));
        // More than there ever were locks to share.
        let others: Vec<Turn> = (0..200)
            .map(|number| Turn::take(whose("t", &format!("p{number}"))))
            .collect();
        let (told, heard) = channel();
        let second = std::thread::spawn(move || {
            let turn = Turn::take(whose("s", "p"));
            told.send(()).unwrap();
            drop(turn);
        });
        assert!(heard.recv_timeout(Duration::from_millis(100)).is_err());
        drop(first);
        heard.recv_timeout(Duration::from_secs(60)).unwrap();
        second.join().unwrap();
        drop(others);
        let taken = TURNS.taken.lock().unwrap();
        assert!(taken.iter().all(|it| it.0.as_os_str() != "turns"));
    }
}
