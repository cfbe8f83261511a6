//! The errors of a store, as users see them.

use glovebox_model::{Code, Error, SnapshotId, Stage};
use glovebox_workspace::FsError;
use rustix::io::Errno;

use crate::bytes::shown;

/// Snapshots stand outside the path of an exec; this is where its files would be opened.
pub(crate) const STAGE: Stage = Stage::Open;

pub(crate) fn storing(error: FsError) -> Error {
    error.at(STAGE)
}

pub(crate) fn os(action: &'static str, path: &[u8], errno: Errno) -> Error {
    storing(FsError::os(action, path, errno))
}

pub(crate) fn io(action: &'static str, path: &[u8], error: &std::io::Error) -> Error {
    os(
        action,
        path,
        Errno::from_io_error(error).unwrap_or(Errno::IO),
    )
}

/// What lies in the store is not what was put there. Trying again does not help.
pub(crate) fn damaged(message: impl Into<String>) -> Error {
    let mut error = Error::new(Code::StoreUnavailable, STAGE, message)
        .hint("`glovebox snapshot verify` lists what is damaged and which snapshots it hurts");
    error.retry.allowed = false;
    error
}

pub(crate) fn internal(message: impl Into<String>) -> Error {
    Error::new(Code::Internal, STAGE, message)
}

/// The same fault with the place where it hurts in front.
pub(crate) fn hurting(id: &SnapshotId, path: Option<&[u8]>, fault: Error) -> Error {
    let place = match path {
        Some(path) => format!("cannot read `{}` of snapshot `{id}`", shown(path)),
        None => format!("cannot read the manifest of snapshot `{id}`"),
    };
    let cause = fault.to_string();
    Error {
        message: place,
        causes: vec![cause],
        ..fault
    }
}

pub(crate) fn too_much(what: String, way_out: &str) -> Error {
    Error::new(Code::PayloadTooLarge, STAGE, what).hint(way_out)
}
