//! Where sessions are found: a directory for each in the state directory, with the socket of its keeper
//! while it runs, and the newest of its output afterwards.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use glovebox_model::{Code, Error, ExecId, Result, Stage};
use rustix::fs::{Mode, OFlags};

const SESSIONS: &str = "sessions";
const SOCKET: &str = "socket";
const TAIL: &str = "tail";

#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// An address of a socket is short; the path of a state directory need not be.
    dir: OwnedFd,
}

impl Directory {
    pub(super) fn make(state: &Path, exec: &ExecId) -> Result<Self> {
        let mut private = fs::DirBuilder::new();
        private.recursive(true).mode(0o700);
        let path = state.join(SESSIONS).join(exec.as_str());
        private
            .create(&path)
            .map_err(|error| cannot("make", error))?;
        Self::open(path).map_err(|error| cannot("open", error))
    }

    /// None: there is no such session on this machine, or it was removed.
    pub(super) fn find(state: &Path, exec: &ExecId) -> Result<Option<Self>> {
        match Self::open(state.join(SESSIONS).join(exec.as_str())) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(cannot("open", error)),
            Ok(found) => Ok(Some(found)),
        }
    }

    pub(super) fn all(state: &Path) -> Result<Vec<ExecId>> {
        let entries = match fs::read_dir(state.join(SESSIONS)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(cannot("read", error)),
            Ok(entries) => entries,
        };
        let names = entries.flatten().map(|entry| entry.file_name());
        let id = |name: OsString| name.to_str().and_then(|name| name.parse().ok());
        Ok(names.filter_map(id).collect())
    }

    fn open(path: PathBuf) -> std::io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = rustix::fs::open(&path, flags, Mode::empty())?;
        Ok(Self { path, dir })
    }

    fn address(&self) -> PathBuf {
        let dir = self.dir.as_fd().as_raw_fd();
        PathBuf::from(format!("/proc/self/fd/{dir}/{SOCKET}"))
    }

    pub(super) fn listen(&self) -> Result<UnixListener> {
        UnixListener::bind(self.address()).map_err(|error| cannot("listen in", error))
    }

    /// None: its keeper is gone.
    #[expect(
        clippy::disallowed_methods,
        reason = "a socket of the state directory, which only its owner may use"
    )]
    pub(super) fn connect(&self) -> Result<Option<UnixStream>> {
        match UnixStream::connect(self.address()) {
            Ok(socket) => Ok(Some(socket)),
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::ConnectionRefused => Ok(None),
                _ => Err(cannot("connect to the keeper in", error)),
            },
        }
    }

    pub(super) fn close_socket(&self) {
        // What is not there needs no removal.
        let _ = fs::remove_file(self.path.join(SOCKET));
    }

    /// Whole or not at all.
    pub(super) fn write_tail(&self, sealed: &[u8]) -> Result<()> {
        let part = self.path.join("tail.part");
        let mut options = fs::OpenOptions::new();
        let written = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&part)
            .and_then(|mut file| std::io::Write::write_all(&mut file, sealed))
            .and_then(|()| fs::rename(&part, self.path.join(TAIL)));
        written.map_err(|error| cannot("write into", error))
    }

    pub(super) fn tail(&self) -> Result<Option<Vec<u8>>> {
        match fs::read(self.path.join(TAIL)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(cannot("read", error)),
            Ok(sealed) => Ok(Some(sealed)),
        }
    }

    /// When something in it was last made or replaced.
    pub(super) fn changed(&self) -> Result<SystemTime> {
        let changed = fs::metadata(&self.path).and_then(|it| it.modified());
        changed.map_err(|error| cannot("look at", error))
    }

    pub(super) fn remove(self) -> Result<()> {
        fs::remove_dir_all(&self.path).map_err(|error| cannot("remove", error))
    }
}

fn cannot(what: &str, error: std::io::Error) -> Error {
    let message = format!("cannot {what} the directory of a session");
    Error::new(Code::StoreUnavailable, Stage::Open, message).caused_by(error)
}
