//! A Unix socket that only its owner may use.

use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use glovebox_model::{Code, Error, Result, Stage};
use rustix::fs::Mode;
use tokio::net::UnixListener;

/// Removes its file when the server ends.
#[derive(Debug)]
pub(crate) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Best effort: a stale file is replaced by the next server anyway.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A socket file that nobody listens on is left over from a server that was killed, and replaced;
/// anything else that stands there is not ours to remove.
#[expect(
    clippy::disallowed_methods,
    reason = "asks whether a socket of its own name still has a listener"
)]
pub(crate) fn bind(path: &Path) -> Result<(UnixListener, SocketFile)> {
    let refuse = |why: &str| {
        let message = format!("cannot listen on the socket `{}`: {why}", path.display());
        Error::new(Code::InvalidArgument, Stage::Parse, message)
    };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(refuse("it cannot be looked at").caused_by(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(refuse("another file is there").hint("name a path that is free"));
        }
        Ok(_) => match std::os::unix::net::UnixStream::connect(path) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path)
                    .map_err(|error| refuse("the old one cannot be removed").caused_by(error))?;
            }
            Ok(_) | Err(_) => {
                return Err(refuse("another server listens there")
                    .hint("stop that server, or name another path"));
            }
        },
    }
    // The umask is the process's own, so it is set around the one call; the mode is then right
    // from the first moment on, and nobody else can connect in between.
    let before = rustix::process::umask(Mode::XUSR | Mode::RWXG | Mode::RWXO);
    let bound = std::os::unix::net::UnixListener::bind(path);
    rustix::process::umask(before);
    let listener = bound
        .and_then(|listener| {
            listener.set_nonblocking(true)?;
            UnixListener::from_std(listener)
        })
        .map_err(|error| {
            refuse("it cannot be made")
                .caused_by(error)
                .hint("the directory must exist and the path be shorter than 108 bytes")
        })?;
    Ok((listener, SocketFile(path.to_owned())))
}
