//! Unpacking tar and ZIP archives that nobody vouches for: bounded, and written through a
//! directory handle alone; and packing. Only the format's fields come from a crate; where a name leads is
//! decided by the kernel, which resolves every path beneath the target and refuses the rest.
//!
//! What an entry cannot do: leave the target, be written through a link, become a device, carry a
//! set-id bit, an owner or an extended attribute, or make the reader and another program disagree
//! on where the next entry begins.

mod digest;
mod member;
mod pack;
mod pax;
mod place;
mod purge;
mod refusal;
mod root;
mod stream;
mod unpack;
mod zip;

pub use refusal::{Limit, Refusal, UnpackError, UnpackResult};
pub use unpack::{Unpacked, unpack_new, unpack_over};
pub use zip::{Seekable, unpack_zip_over};

pub(crate) use digest::Digested;
pub(crate) use member::{Entry, Members};
pub(crate) use pack::{Compressed, Exactly, Packer, tar_packer, zip_packer};
pub(crate) use root::{Root, make_directory};
pub(crate) use stream::{Flow, Stopped, from_reading};
pub(crate) use unpack::{Unpacking, entry_path};

/// What the archive is for, which decides what is ordinary in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Files for a workspace. Absolute names, links that lead out and special files are refused.
    Files,
    /// A root directory, or a layer of one. A leading `/` means the root itself; links may point
    /// anywhere, since they are only ever followed with that directory as the root; special files
    /// are skipped and counted; `.wh.` names take away what an earlier layer brought.
    Image,
}

/// Everything is counted while it streams, so a lie in a header costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnpackLimits {
    pub entries: u64,
    /// Of the archive once decompressed, headers and padding too.
    pub total_bytes: u64,
    pub file_bytes: u64,
    /// Names in one path.
    pub depth: usize,
    pub path_bytes: usize,
    /// Decompressed bytes for each compressed one, once there are `ratio_from_bytes` of them.
    pub ratio: u64,
    pub ratio_from_bytes: u64,
}

impl UnpackLimits {
    /// What somebody uploads into a workspace.
    pub const FILES: Self = Self {
        entries: 100_000,
        total_bytes: 2 << 30,
        file_bytes: 1 << 30,
        depth: 64,
        path_bytes: 2048,
        ratio: 100,
        ratio_from_bytes: 32 << 20,
    };

    /// Large enough for the largest images in use, with toolchains and models in them.
    pub const IMAGE: Self = Self {
        entries: 2_000_000,
        total_bytes: 20 << 30,
        file_bytes: 8 << 30,
        depth: 128,
        path_bytes: 4095,
        ratio: 200,
        ratio_from_bytes: 1 << 30,
    };
}
