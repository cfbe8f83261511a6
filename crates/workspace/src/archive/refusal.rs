//! Why an archive was not unpacked: which entry, what about it, and the way out.

use std::fmt;

use glovebox_model::{Code, Error, Stage};

use crate::fault::{FsError, FsErrorKind};
use crate::relpath::{PathError, shown};

pub type UnpackResult<T> = Result<T, UnpackError>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpackError {
    /// As it is shown to people; None when the fault is not one entry's.
    entry: Option<String>,
    why: Refusal,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    Path(PathError),
    /// `..` in the name, wherever it would lead.
    Climbs,
    /// The text of a symbolic link.
    LinkLeaves,
    LinkText,
    /// A directory on the way is a symbolic link.
    ThroughLink,
    /// A directory on the way is a symbolic link to nothing inside.
    DanglingLink,
    /// A directory on the way is a file.
    ParentNotADirectory,
    /// A directory with something in it stands there already.
    Occupied,
    HardLinkLeaves,
    HardLinkMissing,
    HardLinkNotAFile,
    Special(&'static str),
    UnknownType(u8),
    Sparse,
    /// Negative, or more than a file can have.
    Size,
    /// Two headers of one entry say different things.
    Disagree(&'static str),
    /// Readers differ on whether contents follow.
    ContentsWithoutFile,
    Whiteout,
    Extension,
    Header,
    Truncated,
    NotAnArchive,
    NotAZip,
    Compression,
    /// A name that is a path on another system.
    Backslash,
    /// A ZIP with the same name twice.
    Duplicate,
    /// Two entries of a ZIP share bytes, or one lies in the directory.
    Overlap,
    /// Bytes of a ZIP that belong to no entry: another reader may find one there.
    Gap,
    /// A ZIP in several parts.
    Volumes,
    Encrypted,
    /// A compression of ZIP that is not unpacked here.
    Method(u16),
    Limit(Limit),
    Files(FsError),
    /// The source could not be read.
    Source(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    Entries(u64),
    TotalBytes(u64),
    FileBytes(u64),
    Depth(usize),
    PathBytes(usize),
    Ratio(u64),
    /// Long names and PAX records of one entry.
    ExtensionBytes(u64),
}

impl UnpackError {
    pub(crate) fn of_entry(entry: &[u8], why: Refusal) -> Self {
        Self {
            entry: Some(shown(entry)),
            why,
        }
    }

    pub(crate) fn of_archive(why: Refusal) -> Self {
        Self { entry: None, why }
    }

    pub fn why(&self) -> &Refusal {
        &self.why
    }

    pub fn entry(&self) -> Option<&str> {
        self.entry.as_deref()
    }

    /// The same as users see it.
    pub fn at(&self, stage: Stage) -> Error {
        let code = match &self.why {
            Refusal::Limit(_) => Code::PayloadTooLarge,
            // What stands at its code there is the store's trouble, not the archive's.
            Refusal::Files(error) => error.at(stage).code,
            _ => Code::InvalidArgument,
        };
        Error::new(code, stage, self.to_string()).hint(self.why.way_out())
    }
}

impl Refusal {
    fn way_out(&self) -> &'static str {
        match self {
            Self::Path(error) => error.way_out(),
            Self::Climbs => "make the archive again from inside the directory, without `..`",
            Self::LinkLeaves | Self::LinkText => {
                "links must be relative and lead to something in the archive itself"
            }
            Self::ThroughLink | Self::DanglingLink | Self::ParentNotADirectory => {
                "make the archive again; each entry's directory must be a directory"
            }
            Self::Occupied => "unpack into a new directory, or remove what stands there first",
            Self::HardLinkLeaves | Self::HardLinkMissing | Self::HardLinkNotAFile => {
                "a hard link must name a regular file that came before it"
            }
            Self::Special(_) | Self::UnknownType(_) | Self::Sparse => {
                "leave it out; only files, directories and links are unpacked"
            }
            Self::Size
            | Self::Disagree(_)
            | Self::ContentsWithoutFile
            | Self::Whiteout
            | Self::Extension
            | Self::Duplicate
            | Self::Overlap
            | Self::Gap
            | Self::Header => "the archive is damaged or made to mislead; make it again",
            Self::Truncated | Self::Compression => "fetch it again and compare its digest",
            Self::NotAnArchive => "give a tar archive, plain or compressed with gzip or zstd",
            Self::NotAZip => "give a ZIP archive, whole and in one file",
            Self::Backslash => "make the archive again with `/` between names",
            Self::Volumes => "join the parts into one archive",
            Self::Encrypted => "make the archive again without a password",
            Self::Method(_) => "make the archive again with `deflate` or without compression",
            Self::Limit(_) => "unpack something smaller",
            Self::Files(error) => match error.kind() {
                FsErrorKind::NoSpace => "free some space, or raise the quota",
                _ => "check the directory that it is unpacked to",
            },
            Self::Source(_) => "check where the archive comes from and try again",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entries(cap) => write!(f, "there are more than {cap} entries"),
            Self::TotalBytes(cap) => write!(f, "it unpacks to more than {cap} bytes"),
            Self::FileBytes(cap) => write!(f, "it is larger than {cap} bytes"),
            Self::Depth(cap) => write!(f, "it is more than {cap} directories deep"),
            Self::PathBytes(cap) => write!(f, "its path is longer than {cap} bytes"),
            Self::Ratio(cap) => write!(f, "it unpacks to more than {cap} times its size"),
            Self::ExtensionBytes(cap) => {
                write!(f, "its extended header is larger than {cap} bytes")
            }
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Path(error) => return write!(f, "its path {error}"),
            Self::Special(what) => return write!(f, "it is {what}"),
            Self::UnknownType(byte) => return write!(f, "its type 0x{byte:02x} is not known"),
            Self::Disagree(what) => return write!(f, "its headers disagree on its {what}"),
            Self::Method(method) => {
                return write!(f, "its compression method {method} is not known");
            }
            Self::Limit(limit) => return limit.fmt(f),
            Self::Files(error) => return error.fmt(f),
            Self::Source(error) => return write!(f, "it cannot be read: {error}"),
            Self::Climbs => "its path holds `..`",
            Self::LinkLeaves => "it is a link that leads out of the archive",
            Self::LinkText => "it is a link without a proper target",
            Self::ThroughLink => "its path goes through a symbolic link",
            Self::DanglingLink => "its path goes through a symbolic link that leads nowhere",
            Self::ParentNotADirectory => "its path goes through something that is no directory",
            Self::Occupied => "a directory that is not empty stands there",
            Self::HardLinkLeaves => "it is a hard link that leads out of the archive",
            Self::HardLinkMissing => "it is a hard link to something that is not there",
            Self::HardLinkNotAFile => "it is a hard link to something that is no regular file",
            Self::Sparse => "it is a sparse file",
            Self::Size => "its size is not a size",
            Self::ContentsWithoutFile => "it has contents and is no file",
            Self::Whiteout => "it takes away something that has no proper name",
            Self::Extension => "its extended header is malformed",
            Self::Header => "its header is malformed",
            Self::Truncated => "it ends too early",
            Self::NotAnArchive => "it is no tar archive",
            Self::NotAZip => "it is no ZIP archive",
            Self::Compression => "its compressed data is damaged",
            Self::Backslash => "its path holds a backslash",
            Self::Duplicate => "its path is in the archive twice",
            Self::Overlap => "it shares bytes with something else in the archive",
            Self::Gap => "there are bytes in the archive that belong to nothing",
            Self::Volumes => "it is one of several parts",
            Self::Encrypted => "it is encrypted",
        };
        f.write_str(text)
    }
}

impl fmt::Display for UnpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.entry {
            Some(entry) => write!(f, "cannot unpack entry `{entry}`: {}", self.why),
            None => write!(f, "cannot unpack the archive: {}", self.why),
        }
    }
}

impl std::error::Error for UnpackError {}
