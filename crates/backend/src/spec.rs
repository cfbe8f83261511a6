//! What a sandbox is asked to be, and what to run in it.

use std::ffi::CString;
use std::path::PathBuf;

use glovebox_model::{Access, ByteString, Profile};
use glovebox_workspace::Dir;

/// A directory of the host's, given by handle so that nobody can exchange it under way.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'dir> {
    pub directory: &'dir Dir,
    pub access: Access,
}

/// A directory or file of the host's shown read-only at a path of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolchainMount {
    pub host: PathBuf,
    pub guest: PathBuf,
}

/// A link in the sandbox's own root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolchainLink {
    pub guest: PathBuf,
    pub target: PathBuf,
}

#[derive(Debug)]
pub struct Spec<'dir> {
    pub profile: &'dir Profile,
    /// Without one the working directory is part of the scratch space.
    pub work: Option<Tree<'dir>>,
    pub inputs: Option<Tree<'dir>>,
    pub artifacts: Tree<'dir>,
    pub toolchains: Vec<ToolchainMount>,
    pub links: Vec<ToolchainLink>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub argv: Vec<ByteString>,
    /// Complete: nothing is inherited.
    pub env: Vec<(ByteString, ByteString)>,
    /// Absolute, inside.
    pub cwd: ByteString,
    /// Where commands are looked for, inside.
    pub path: Vec<ByteString>,
}

/// Types without NUL on both sides make this conversion total.
pub(crate) fn c_string(bytes: &ByteString) -> CString {
    CString::new(bytes.as_bytes()).unwrap_or_default()
}
