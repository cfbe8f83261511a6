//! What can go wrong with a file: typed, so that a caller can tell a refusal from a full disk.

use std::fmt;

use glovebox_model::{Code, Error, Stage};
use rustix::io::Errno;

use crate::relpath::{PathError, shown};
use crate::stat::Kind;

pub type FsResult<T> = Result<T, FsError>;

/// What was tried, on what, and why it did not happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsError {
    action: &'static str,
    path: String,
    kind: FsErrorKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FsErrorKind {
    Path(PathError),
    /// Resolution left the directory: through `..` or through a symbolic link.
    Escapes,
    NotFound,
    NotADirectory,
    IsADirectory,
    /// The last part is a symbolic link, and this operation never goes through one.
    Symlink,
    /// Only regular files have contents here.
    NotRegular(Kind),
    TooLarge {
        cap: u64,
    },
    TooManyEntries {
        cap: u64,
    },
    NameTooLong,
    Exists,
    OtherFileSystem,
    Permission,
    ReadOnly,
    NoSpace,
    /// Somebody kept renaming directories for as long as we were willing to try.
    Contended,
    /// A loop of symbolic links, or a magic link of `/proc`.
    Loop,
    /// `openat2` is missing or forbidden. There is no weaker way that we would take instead.
    ResolverMissing,
    Os(Errno),
}

impl FsError {
    pub(crate) fn new(action: &'static str, path: &[u8], kind: FsErrorKind) -> Self {
        Self {
            action,
            path: shown(path),
            kind,
        }
    }

    pub fn os(action: &'static str, path: &[u8], errno: Errno) -> Self {
        Self::new(action, path, errno.into())
    }

    pub fn kind(&self) -> FsErrorKind {
        self.kind
    }

    /// The same fault as users see it.
    pub fn at(&self, stage: Stage) -> Error {
        let error = Error::new(self.kind.code(), stage, self.to_string());
        match self.kind.way_out() {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

impl FsErrorKind {
    const fn code(self) -> Code {
        match self {
            Self::Path(_)
            | Self::Escapes
            | Self::NotADirectory
            | Self::IsADirectory
            | Self::Symlink
            | Self::NotRegular(_)
            | Self::TooLarge { .. }
            | Self::TooManyEntries { .. }
            | Self::NameTooLong
            | Self::OtherFileSystem
            | Self::Loop => Code::InvalidArgument,
            Self::NotFound => Code::NotFound,
            Self::Exists => Code::Conflict,
            Self::NoSpace => Code::DiskFull,
            Self::Contended => Code::Busy,
            Self::ResolverMissing => Code::SetupFailed,
            Self::Permission | Self::ReadOnly | Self::Os(_) => Code::StoreUnavailable,
        }
    }

    fn way_out(self) -> Option<String> {
        let hint = match self {
            Self::Path(error) => error.way_out(),
            Self::Escapes | Self::Symlink | Self::Loop => {
                "name the file itself; links that lead out of the workspace are never followed"
            }
            Self::NotRegular(_) => "only regular files can be read and written",
            Self::TooLarge { cap } => {
                return Some(format!("the limit here is {cap} bytes"));
            }
            Self::NoSpace => "free some space, or raise the quota",
            Self::Permission => "check the owner and the mode of the directory",
            Self::Contended => "something keeps renaming directories here; stop it and try again",
            Self::ResolverMissing => {
                "needs Linux 5.6 or newer, and a seccomp profile that allows `openat2`"
            }
            Self::NotFound
            | Self::NotADirectory
            | Self::IsADirectory
            | Self::TooManyEntries { .. }
            | Self::NameTooLong
            | Self::Exists
            | Self::OtherFileSystem
            | Self::ReadOnly
            | Self::Os(_) => return None,
        };
        Some(hint.to_owned())
    }
}

/// For every call but `openat2`, where `EXDEV`, `EAGAIN` and `EPERM` mean something of their own.
impl From<Errno> for FsErrorKind {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::NotFound,
            Errno::NOTDIR => Self::NotADirectory,
            Errno::ISDIR => Self::IsADirectory,
            Errno::NAMETOOLONG => Self::NameTooLong,
            Errno::EXIST | Errno::NOTEMPTY => Self::Exists,
            Errno::XDEV => Self::OtherFileSystem,
            Errno::ACCESS | Errno::PERM => Self::Permission,
            Errno::ROFS => Self::ReadOnly,
            Errno::NOSPC | Errno::DQUOT => Self::NoSpace,
            Errno::LOOP => Self::Loop,
            // No driver behind a device node; also what opening a socket answers.
            Errno::NXIO => Self::NotRegular(Kind::Socket),
            other => Self::Os(other),
        }
    }
}

impl fmt::Display for FsErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Path(error) => return write!(f, "it {error}"),
            Self::NotRegular(kind) => return write!(f, "it is {kind}, not a regular file"),
            Self::TooLarge { cap } => return write!(f, "it is larger than {cap} bytes"),
            Self::TooManyEntries { cap } => return write!(f, "it has more than {cap} entries"),
            Self::Os(errno) => return write!(f, "{errno}"),
            Self::Escapes => "it leads out of its directory",
            Self::NotFound => "no such file or directory",
            Self::NotADirectory => "it is not a directory",
            Self::IsADirectory => "it is a directory",
            Self::Symlink => "it is a symbolic link",
            Self::NameTooLong => "the name is too long",
            Self::Exists => "it is already there",
            Self::OtherFileSystem => "it is on another file system",
            Self::Permission => "permission denied",
            Self::ReadOnly => "the file system is read-only",
            Self::NoSpace => "no space is left",
            Self::Contended => "its directories kept moving",
            Self::Loop => "it goes through a loop of links, or a magic link",
            Self::ResolverMissing => "the kernel does not let us open paths safely (`openat2`)",
        };
        f.write_str(text)
    }
}

impl fmt::Display for FsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot {} `{}`: {}",
            self.action,
            if self.path.is_empty() {
                "."
            } else {
                &self.path
            },
            self.kind
        )
    }
}

impl std::error::Error for FsError {}
