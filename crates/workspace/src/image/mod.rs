//! Images that were brought in from outside: unpacked once, then only read. They come as an OCI
//! layout, as what `docker save` writes, or as the archive of a root directory; nothing is fetched.
//!
//! ```text
//! images/lock             held for moments, while one of the following changes
//!        names.json       which name means which image
//!        <sha256>/rootfs  the unpacked image
//!        <sha256>/use     locked by whoever runs something in it
//!        tmp/<random>/    an import on its way; its owner holds a lock in it
//! ```
//!
//! An image's digest is that of its configuration, which names the digests of its layers, all of
//! which are checked; of a root directory's archive it is that of the archive itself. Owners,
//! set-id bits and attributes are not kept: every file belongs to whoever imported it.

mod bundle;
mod docker;
mod import;
mod layer;
mod lock;
mod name;
mod oci;
mod record;
mod slice;
mod staging;
mod store;

pub use import::{ImageFormat, ImageSource, Progress};
pub use name::{ImageDigest, ImageName};
pub use record::{ImageConfig, ImageRecord, Removed};
pub use store::{Held, Images};

use glovebox_model::{Code, Error, Stage};

use crate::fault::FsError;

/// An import stands outside the path of an exec; this is where its files would be opened.
const STAGE: Stage = Stage::Open;

/// The image itself is at fault.
fn unfit(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, STAGE, message)
}

fn damaged(message: impl Into<String>) -> Error {
    unfit(message).hint("the image is incomplete or was changed; export it again")
}

fn storing(error: FsError) -> Error {
    error.at(STAGE)
}
