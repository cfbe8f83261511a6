//! Who is using a state directory. An owner is a process; it is alive as long as it holds the lock
//! on its file, whatever its pid says. The kernel drops the lock when the process ends in any way.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;

use glovebox_model::Result;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde::Serialize;

use crate::failure::{Doing, internal};
use crate::state_dir::{StateDir, random_hex};

const UNFINISHED: &str = ".new-";
/// Far more than any process has to say.
const NOTES_MAX: u64 = 1 << 20;

/// This process in one state directory. Dropping it gives the identity up.
///
/// The lock belongs to the open file, which a forked child shares: fork helpers first, or close
/// every descriptor in them, else a child that outlives this process keeps it looking alive.
#[derive(Debug)]
pub struct Owner {
    id: String,
    path: PathBuf,
    lock: File,
}

/// For a person who looks into the file; liveness is decided by the lock alone.
#[derive(Serialize)]
struct Identity {
    pid: u32,
    started_ticks: Option<u64>,
    boot_id: Option<String>,
}

impl Owner {
    pub fn claim(state: &StateDir) -> Result<Self> {
        // A recovery that runs right now may take an unfinished file for a leftover, once or twice.
        for _ in 0..16 {
            let id = random_hex()?;
            let path = state.owners().join(&id);
            let unfinished = state.owners().join(format!("{UNFINISHED}{id}"));
            let made = place(&unfinished, &path);
            match made {
                Ok(Some(lock)) => {
                    return Ok(Self { id, path, lock });
                }
                Ok(None) => {}
                Err(error) => {
                    let _ = fs::remove_file(&unfinished);
                    return Err(error).doing(&format!("register in `{}`", path.display()));
                }
            }
        }
        Err(internal("cannot register in the state directory"))
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Gives the identity up before the value goes: it has left nothing to recover. A process may
    /// end with threads that still hold the value.
    pub fn resign(&self) {
        // Still locked: nobody can take it for dead in between. A file that cannot be removed is
        // taken for dead later, which is true by then.
        let _ = fs::remove_file(&self.path);
    }

    /// Writes down, for whoever finds this process dead, what it is about to make outside the state
    /// directory. A killed process loses nothing that it wrote, so no sync is needed.
    pub fn note(&self, line: &[u8]) -> Result<()> {
        let mut text = line.to_vec();
        text.push(b'\n');
        (&self.lock)
            .write_all(&text)
            .doing("write down what may be left")
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.resign();
    }
}

/// Locked before it gets its name, so that no reader ever sees an owner that is not locked.
/// `None` when a recovery was quicker.
fn place(unfinished: &PathBuf, path: &PathBuf) -> io::Result<Option<File>> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let mut file = File::from(rustix::fs::openat(CWD, unfinished, flags, mode)?);
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let identity = Identity {
        pid: std::process::id(),
        started_ticks: started_ticks(),
        boot_id: boot_id(),
    };
    let mut identity = serde_json::to_vec(&identity)?;
    identity.push(b'\n');
    file.write_all(&identity)?;
    match fs::rename(unfinished, path) {
        Ok(()) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn started_ticks() -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may hold anything, so fields are counted from its end: 22 is the
    // start time, the name is 2.
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(22 - 3)?.parse().ok()
}

fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// An owner whose process is gone. As long as this value lives, nobody else gets it.
#[derive(Debug)]
pub struct DeadOwner {
    id: String,
    path: PathBuf,
    lock: File,
}

impl DeadOwner {
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The lines that it noted; a last one that was cut off is left out.
    pub fn notes(&self) -> Result<Vec<Vec<u8>>> {
        let mut text = Vec::new();
        (&self.lock).rewind().doing("read what may be left")?;
        (&self.lock)
            .take(NOTES_MAX)
            .read_to_end(&mut text)
            .doing("read what may be left")?;
        let whole = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        let lines = text[..whole]
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        Ok(lines.skip(1).map(<[u8]>::to_vec).collect())
    }

    /// Forgets the owner, after everything it left was settled. Dropping the value instead leaves
    /// it for the next recovery.
    pub fn settle(self) -> Result<()> {
        fs::remove_file(&self.path).doing(&format!("remove `{}`", self.path.display()))
    }
}

/// The owners whose process is gone, except those that somebody else is recovering right now.
pub fn dead_owners(state: &StateDir, except: Option<&Owner>) -> Result<Vec<DeadOwner>> {
    let owners = state.owners();
    let what = format!("list `{}`", owners.display());
    let mut dead = Vec::new();
    for entry in fs::read_dir(&owners).doing(&what)? {
        let name = entry.doing(&what)?.file_name();
        let Some(name) = name.to_str() else { continue };
        if except.is_some_and(|owner| owner.id == name) {
            continue;
        }
        let path = owners.join(name);
        let Some(lock) = abandoned(&path).doing(&format!("look at `{}`", path.display()))? else {
            continue;
        };
        if name.starts_with(UNFINISHED) {
            fs::remove_file(&path).doing(&format!("remove `{}`", path.display()))?;
        } else if is_id(name) {
            dead.push(DeadOwner {
                id: name.to_owned(),
                path,
                lock,
            });
        }
    }
    Ok(dead)
}

/// Whether the process of this owner is gone, and nobody is recovering what it left.
pub(crate) fn is_dead(state: &StateDir, owner: &str) -> Result<bool> {
    let path = state.owners().join(owner);
    let lock = abandoned(&path).doing(&format!("look at `{}`", path.display()))?;
    Ok(lock.is_some())
}

/// The file, locked, when nobody held it and it still has this name.
fn abandoned(path: &PathBuf) -> io::Result<Option<File>> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT | Errno::LOOP | Errno::ISDIR) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    // Between the opening and the lock it may have been given up or settled, or have got its name.
    let (held, named) = (rustix::fs::fstat(&file)?, rustix::fs::lstat(path));
    match named {
        Ok(named) if (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino) => Ok(Some(file)),
        Ok(_) | Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn is_id(name: &str) -> bool {
    crate::hex::decode::<8>(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_living_owner_is_never_dead_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        let owner = Owner::claim(&state).unwrap();
        assert!(is_id(owner.id()));
        assert!(dead_owners(&state, None).unwrap().is_empty());
        let content = fs::read_to_string(state.owners().join(owner.id())).unwrap();
        assert!(content.contains(&format!("\"pid\":{}", std::process::id())));
        assert!(!content.contains("null"), "{content}");
        drop(owner);
        assert_eq!(fs::read_dir(state.owners()).unwrap().count(), 0);
    }

    #[test]
    fn notes_survive_their_owner() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        let owner = Owner::claim(&state).unwrap();
        owner.note(b"/one").unwrap();
        owner.note(b"/two\xff").unwrap();
        let copy = state.owners().join("00000000000000aa");
        fs::copy(state.owners().join(owner.id()), &copy).unwrap();
        fs::OpenOptions::new()
            .append(true)
            .open(&copy)
            .unwrap()
            .write_all(b"/cut")
            .unwrap();
        let dead = dead_owners(&state, Some(&owner)).unwrap();
        assert_eq!(
            dead[0].notes().unwrap(),
            [b"/one".to_vec(), b"/two\xff".to_vec()]
        );
    }

    #[test]
    fn one_recovery_at_a_time_gets_a_dead_owner() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        let left = state.owners().join("0123456789abcdef");
        fs::write(&left, "{}").unwrap();
        fs::write(state.owners().join("not-an-owner"), "").unwrap();
        fs::write(state.owners().join(".new-fedcba9876543210"), "").unwrap();

        let mine = Owner::claim(&state).unwrap();
        let first = dead_owners(&state, Some(&mine)).unwrap();
        assert_eq!(first.len(), 1);
        assert_eq!(first[0].id(), "0123456789abcdef");
        assert!(dead_owners(&state, Some(&mine)).unwrap().is_empty());
        drop(first);
        let again = dead_owners(&state, Some(&mine)).unwrap();
        assert_eq!(again.len(), 1, "a dropped one is left for the next");
        for owner in again {
            owner.settle().unwrap();
        }
        assert!(!left.exists());
        let mut names: Vec<_> = fs::read_dir(state.owners())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let mut expected = vec![mine.id().to_owned(), "not-an-owner".to_owned()];
        expected.sort();
        assert_eq!(names, expected, "leftovers go, strangers stay");
    }
}
