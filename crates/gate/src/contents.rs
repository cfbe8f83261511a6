//! What files hold that a record and its effects only name.

use std::fmt;

use glovebox_model::ByteString;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content<'c> {
    Stdout,
    Stderr,
    Artifact(&'c ByteString),
    /// A path of the workspace as it is without the changes that are judged.
    Before(&'c ByteString),
    /// The same with them.
    After(&'c ByteString),
}

/// The beginning of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beginning {
    /// With marks where stored secrets stood, so that its length does not tell how much it is.
    pub bytes: Vec<u8>,
    /// How many bytes of the file that is.
    pub length: u64,
}

pub trait Contents: fmt::Debug {
    /// At most so many bytes. None when there is no such file, or nobody can read it.
    fn read(&self, content: Content<'_>, most: usize) -> Option<Beginning>;
}

/// Of what only examples and tests tell: there are no files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoContents;

impl Contents for NoContents {
    fn read(&self, _: Content<'_>, _: usize) -> Option<Beginning> {
        None
    }
}
