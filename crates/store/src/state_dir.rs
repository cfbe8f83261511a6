//! The directory that holds everything durable. Nobody else may write to it.

use std::fs::{self, DirBuilder};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use glovebox_model::{Code, Error, Result, Stage};
use rustix::fs::{Access, AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::failure::Doing;

const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

/// An open state directory: ours, and writable by nobody else.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    keys: PathBuf,
    dir: OwnedFd,
    device: u64,
    inode: u64,
}

impl StateDir {
    /// Opens the directory, and makes it (mode 0700) when it is not there.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let (path, dir, stat) = open_private(path.as_ref(), "state directory")?;
        let shown = path.display().to_string();
        rustix::fs::accessat(
            &dir,
            ".",
            Access::WRITE_OK | Access::EXEC_OK,
            AtFlags::EACCESS,
        )
        .doing(&format!("write to the state directory `{shown}`"))?;
        for name in ["owners", "projects"] {
            match rustix::fs::mkdirat(&dir, name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => Err(error).doing(&format!("make `{shown}/{name}`"))?,
            }
        }
        Ok(Self {
            keys: path.clone(),
            path,
            dir,
            device: stat.st_dev,
            inode: stat.st_ino,
        })
    }

    /// Keeps the keys in another directory: ours, and writable by nobody else. It is made (mode
    /// 0700) when it is not there.
    pub fn with_keys(mut self, dir: impl AsRef<Path>) -> Result<Self> {
        (self.keys, _, _) = open_private(dir.as_ref(), "key directory")?;
        Ok(self)
    }

    /// Where secret keys are kept.
    pub fn keys(&self) -> &Path {
        &self.keys
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn database(&self) -> PathBuf {
        self.path.join("glovebox.db")
    }

    pub fn ledger_key(&self) -> PathBuf {
        self.keys.join("ledger.key")
    }

    pub fn owners(&self) -> PathBuf {
        self.path.join("owners")
    }

    pub fn projects(&self) -> PathBuf {
        self.path.join("projects")
    }

    /// Whether there was a database: its ledger's key is there. Where keys are kept elsewhere they
    /// may have been there before, so something of what ran must be there too.
    pub(crate) fn has_begun(&self) -> Result<bool> {
        let what = "look into the state directory";
        if !self.ledger_key().try_exists().doing(what)? {
            return Ok(false);
        }
        match self.keys == self.path {
            true => Ok(true),
            false => self.has_projects(),
        }
    }

    fn has_projects(&self) -> Result<bool> {
        let what = "look into the state directory";
        let mut left = fs::read_dir(self.projects()).doing(what)?;
        Ok(left.next().transpose().doing(what)?.is_some())
    }

    /// Whether a PostgreSQL had its state before: it has a key and what ran left, and no database
    /// of its own.
    pub(crate) fn was_shared(&self) -> Result<bool> {
        Ok(self.has_begun()? && self.has_projects()? && !self.has_database()?)
    }

    /// As [`StateDir::database_is_gone`].
    pub(crate) fn shared_database_is_gone(&self) -> Error {
        refused(format!(
            "the PostgreSQL database has no tables of Glovebox, and the key `{}` and the projects \
             of a ledger that was in one are there",
            self.ledger_key().display()
        ))
        .hint("restore the database from a copy, or name the right one: `GLOVEBOX_DATABASE`")
        .hint("to begin anew, without what was there: name another `--state-dir`")
    }

    /// One that others may write is refused: what they wrote there would be ours.
    pub(crate) fn has_database(&self) -> Result<bool> {
        let there = match fs::metadata(self.database()) {
            Ok(there) => there,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error).doing("look into the state directory"),
        };
        match there.permissions().mode() & 0o022 {
            0 => Ok(true),
            _ => {
                let shown = self.database().display().to_string();
                let refused = refused(format!("the database `{shown}` can be written by others"));
                Err(refused.hint(format!(
                    "close it, and see what was done to it: `chmod 600 {shown}`, `glovebox audit verify`"
                )))
            }
        }
    }

    /// A new one in its place would begin a new ledger, and hide that the old one is missed.
    pub(crate) fn database_is_gone(&self) -> Error {
        let (database, key) = (self.database(), self.ledger_key());
        refused(format!(
            "the database `{}` is gone or empty, and the key `{}` of its ledger is there",
            database.display(),
            key.display()
        ))
        .hint("restore `glovebox.db` (with its `-wal`) from a copy")
        .hint("if its state is in PostgreSQL, name that: `GLOVEBOX_DATABASE`")
        .hint(format!(
            "to begin anew, without what was there: move `{}` away first",
            self.path.display()
        ))
    }

    /// A short name that no other state directory of this host has at the same time.
    pub fn tag(&self) -> String {
        format!("{:x}-{:x}", self.device, self.inode)
    }

    /// Makes an empty private file unless it is there, *without ever opening it*: closing any
    /// descriptor of a database file drops every lock that SQLite holds on it in this process.
    pub(crate) fn touch(&self, name: &str) -> Result<()> {
        match rustix::fs::mknodat(&self.dir, name, FileType::RegularFile, PRIVATE_FILE, 0) {
            Ok(()) => rustix::fs::fsync(&self.dir).doing("write the state directory"),
            Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error).doing(&format!("make `{}`", self.path.join(name).display())),
        }
    }

    /// Keeps every other process and thread out of [`StateDir::exclusively`] until dropped.
    pub(crate) fn exclusively(&self, patience: Duration) -> Result<OwnedFd> {
        // A descriptor of its own: a lock taken through the shared one would be shared by threads.
        let lock = rustix::fs::openat(
            &self.dir,
            ".",
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .doing("open the state directory")?;
        let since = Instant::now();
        loop {
            match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(lock),
                Err(Errno::WOULDBLOCK) if since.elapsed() < patience => {
                    thread::sleep(Duration::from_millis(2));
                }
                Err(Errno::WOULDBLOCK) => {
                    return Err(Error::new(
                        Code::Busy,
                        Stage::Open,
                        "another process prepares the state directory for too long",
                    ));
                }
                Err(error) => Err(error).doing("lock the state directory")?,
            }
        }
    }
}

/// Opens a directory of our own that nobody else may write, and makes it when it is not there.
fn open_private(path: &Path, noun: &str) -> Result<(PathBuf, OwnedFd, Stat)> {
    let path = std::path::absolute(path).doing(&format!("name the {noun}"))?;
    let shown = path.display().to_string();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = match rustix::fs::open(&path, flags, Mode::empty()) {
        Err(Errno::NOENT) => {
            private_dirs()
                .create(&path)
                .doing(&format!("make the {noun} `{shown}`"))
                .map_err(with_hint)?;
            rustix::fs::open(&path, flags, Mode::empty())
        }
        opened => opened,
    }
    .doing(&format!("open the {noun} `{shown}`"))?;

    let stat = rustix::fs::fstat(&dir).doing(&format!("look at `{shown}`"))?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(refused(format!(
            "the {noun} `{shown}` belongs to user {}",
            stat.st_uid
        ))
        .hint("run as that user, or name a directory of your own with `--state-dir`"));
    }
    if stat.st_mode & 0o022 != 0 {
        return Err(
            refused(format!("the {noun} `{shown}` can be written by others"))
                .hint(format!("close it: `chmod 700 {shown}`")),
        );
    }
    Ok((path, dir, stat))
}

/// Eight random bytes as 16 hexadecimal digits.
pub(crate) fn random_hex() -> Result<String> {
    let mut random = [0; 8];
    getrandom::fill(&mut random)
        .map_err(|error| crate::failure::internal("no random numbers").caused_by(error))?;
    Ok(crate::hex::encode(&random))
}

fn private_dirs() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder
}

fn refused(message: String) -> Error {
    Error::new(Code::StoreUnavailable, Stage::Open, message)
}
fn with_hint(error: glovebox_model::Error) -> glovebox_model::Error {
    if error.hints.is_empty() {
        return error.hint("name a directory that can be made with `--state-dir`");
    }
    error
}
