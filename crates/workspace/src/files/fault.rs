//! Why something was not done with a file.

use std::fmt;

use glovebox_model::{Code, Error, Stage};

use crate::archive::UnpackError;
use crate::fault::{FsError, FsErrorKind};
use crate::relpath::{RelPath, shown};

pub type FileResult<T> = Result<T, FileError>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileError {
    Fs(FsError),
    /// The file is not the one that the caller knew.
    Changed {
        path: String,
    },
    /// The text to be replaced is not there exactly once.
    Occurs {
        path: String,
        times: u64,
    },
    /// The range begins behind the end.
    Range {
        size: u64,
    },
    /// A directory, and nobody said that everything in it may go.
    NeedsRecursive {
        path: String,
    },
    /// To a place below itself.
    IntoItself {
        path: String,
    },
    Glob {
        pattern: String,
        why: String,
    },
    Regex {
        why: String,
    },
    /// Not one that a page of a listing gave.
    Cursor,
    EmptyNeedle,
    Limit(Bound),
    Archive(UnpackError),
    /// Whoever sends or receives the bytes stopped.
    Stream(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    Entries(u64),
    Bytes(u64),
    Depth(usize),
    Time,
}

impl FileError {
    pub(super) fn changed(path: &RelPath) -> Self {
        Self::Changed {
            path: shown(path.as_bytes()),
        }
    }

    pub(super) fn new(action: &'static str, path: &[u8], kind: FsErrorKind) -> Self {
        Self::Fs(FsError::new(action, path, kind))
    }

    pub fn code(&self) -> Code {
        match self {
            // The path was fine; what stands there is in the way.
            Self::Fs(error) => match error.kind() {
                FsErrorKind::Escapes
                | FsErrorKind::NotADirectory
                | FsErrorKind::IsADirectory
                | FsErrorKind::Symlink
                | FsErrorKind::NotRegular(_)
                | FsErrorKind::OtherFileSystem
                | FsErrorKind::Loop => Code::Conflict,
                FsErrorKind::TooLarge { .. } | FsErrorKind::TooManyEntries { .. } => {
                    Code::PayloadTooLarge
                }
                _ => error.at(Stage::Open).code,
            },
            Self::Changed { .. } | Self::Occurs { .. } | Self::NeedsRecursive { .. } => {
                Code::Conflict
            }
            Self::Limit(Bound::Time) => Code::Busy,
            Self::Limit(_) => Code::PayloadTooLarge,
            Self::Archive(error) => error.at(Stage::Open).code,
            Self::Stream(_) => Code::Canceled,
            Self::Range { .. }
            | Self::IntoItself { .. }
            | Self::Glob { .. }
            | Self::Regex { .. }
            | Self::Cursor
            | Self::EmptyNeedle => Code::InvalidArgument,
        }
    }

    /// The same as users see it.
    pub fn at(&self, stage: Stage) -> Error {
        let mut told = match self {
            Self::Fs(error) => error.at(stage),
            Self::Archive(error) => error.at(stage),
            other => {
                let told = Error::new(other.code(), stage, other.to_string());
                other.way_out().into_iter().fold(told, Error::hint)
            }
        };
        // A code decides whose fault it is and whether to try again, so all come together.
        if told.code != self.code() {
            let hints = std::mem::take(&mut told.hints);
            told = Error::new(self.code(), stage, told.message);
            told.hints = hints;
        }
        told
    }

    fn way_out(&self) -> Option<&'static str> {
        Some(match self {
            Self::Fs(_) | Self::Archive(_) => return None,
            Self::Changed { .. } => "look at the file again, and repeat what still fits",
            Self::Occurs { times: 0, .. } => "read the file and give the text as it stands there",
            Self::Occurs { .. } => "give more of the text around it, or replace all of them",
            Self::Range { .. } => "begin the range before the end of the file",
            Self::NeedsRecursive { .. } => "say `recursive` to remove everything in it too",
            Self::IntoItself { .. } => "choose a place outside of the directory itself",
            Self::Glob { .. } => "`*` and `?` stay within a name, `**` crosses directories",
            Self::Regex { .. } => {
                "see the syntax of the Rust `regex` crate, or search for a literal"
            }
            Self::Cursor => "begin again without a cursor",
            Self::EmptyNeedle => "give at least one byte to look for",
            Self::Limit(_) => "name a smaller part of the workspace",
            Self::Stream(_) => "try again",
        })
    }
}

impl From<FsError> for FileError {
    fn from(error: FsError) -> Self {
        Self::Fs(error)
    }
}

impl From<UnpackError> for FileError {
    fn from(error: UnpackError) -> Self {
        Self::Archive(error)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entries(cap) => write!(f, "there are more than {cap} entries"),
            Self::Bytes(cap) => write!(f, "there are more than {cap} bytes"),
            Self::Depth(cap) => write!(f, "it is more than {cap} directories deep"),
            Self::Time => f.write_str("it takes too long"),
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fs(error) => error.fmt(f),
            Self::Archive(error) => error.fmt(f),
            Self::Changed { path } => write!(f, "`{path}` is not the file that was expected"),
            Self::Occurs { path, times: 0 } => write!(f, "the text does not occur in `{path}`"),
            Self::Occurs { path, times } => {
                write!(f, "the text occurs {times} times in `{path}`, not once")
            }
            Self::Range { size } => {
                write!(
                    f,
                    "the range begins behind the end of the file, at {size} bytes"
                )
            }
            Self::NeedsRecursive { path } => write!(f, "cannot remove `{path}`: it is a directory"),
            Self::IntoItself { path } => {
                write!(f, "cannot put `{path}` into a directory below itself")
            }
            Self::Glob { pattern, why } => write!(f, "`{pattern}` is no pattern: {why}"),
            Self::Regex { why } => write!(f, "the regular expression does not work: {why}"),
            Self::Cursor => f.write_str("the cursor is none of a listing's"),
            Self::EmptyNeedle => f.write_str("there is nothing to look for"),
            Self::Limit(bound) => bound.fmt(f),
            Self::Stream(why) => write!(f, "the other end stopped: {why}"),
        }
    }
}

impl std::error::Error for FileError {}
