//! A workspace's first files, copied from a template. What is there already is never touched, not
//! even when it was cut off half-way: a file appears whole or not at all. Neither tree is trusted.

mod copy;
mod fresh;
mod reset;

use glovebox_model::{ByteString, Error, Result, Stage};

use crate::dir::Dir;
use crate::fault::{FsError, FsErrorKind};
use crate::layout::{Project, WorkKind};

pub(crate) use copy::{Copy, Flush, Rights};
pub(crate) use fresh::make_directory;
pub use reset::{Reset, ResetDone};

/// Of the template. One that is larger is refused before anything is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeedLimits {
    pub entries: u64,
    pub bytes: u64,
    pub depth: usize,
}

impl Default for SeedLimits {
    fn default() -> Self {
        Self {
            entries: 10_000,
            bytes: 256 << 20,
            depth: 32,
        }
    }
}

/// Asked with the bytes and the entries that the workspace would get, before anything is made and
/// again while files are copied. What it refuses is refused with its error.
pub type SeedRoom<'a> = &'a dyn Fn(u64, u64) -> Result<()>;

/// Paths are relative to the workspace, in the order in which they were looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seeded {
    pub made: Vec<ByteString>,
    /// Something of that name was there.
    pub kept: Vec<ByteString>,
    pub skipped: Vec<SeedSkipped>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedSkipped {
    pub path: ByteString,
    pub why: SeedSkip,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SeedSkip {
    /// A symbolic link of the template that is absolute or leads above it.
    LeadsOut,
    /// A FIFO, a socket or a device.
    Special,
    Unreadable,
    /// Another file system is mounted there in the template.
    OtherFileSystem,
    /// The workspace has a file, a link or a mount where the template has a directory.
    InTheWay,
    /// It was removed or exchanged while it was copied.
    Changed,
}

impl SeedSkip {
    pub const fn why(self) -> &'static str {
        match self {
            Self::LeadsOut => "it is a link that leads out of the template",
            Self::Special => "it is no file, directory or link",
            Self::Unreadable => "it cannot be read",
            Self::OtherFileSystem => "it is on another file system than the template",
            Self::InTheWay => "the workspace has something else than a directory there",
            Self::Changed => "it changed while it was copied",
        }
    }
}

/// Copies what `work` does not have. An empty file `.gitkeep` only keeps a directory in git and is
/// not copied.
pub fn seed(template: &Dir, work: &Dir, limits: SeedLimits, room: SeedRoom<'_>) -> Result<Seeded> {
    Copy {
        template,
        target: work,
        limits,
        room,
        rights: Rights::OfTemplate,
        flush: Flush::EachFile,
        is_wanted: &|| true,
    }
    .run()
}

impl Project {
    pub fn seed(&self, template: &Dir, limits: SeedLimits, room: SeedRoom<'_>) -> Result<Seeded> {
        match (self.kind(), self.work()) {
            (WorkKind::Managed | WorkKind::Adopted, Some(work)) => {
                seed(template, work, limits, room)
            }
            (WorkKind::Scratch, _) | (_, None) => Err(reset::nothing_on_disk()),
        }
    }
}

pub(crate) fn seeding(error: FsError) -> Error {
    match error.kind() {
        FsErrorKind::TooManyEntries { .. } | FsErrorKind::TooLarge { .. } => error
            .at(Stage::Open)
            .hint("take files out of the template, or raise its limits"),
        _ => error.at(Stage::Open),
    }
}
