//! The key of the secrets, as it is given to this process.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use glovebox_engine::KeySource;
use glovebox_model::{Code, Error, Result, Stage};
use rustix::fs::MemfdFlags;
use zeroize::Zeroizing;

/// Text around a key: a longer one is something else.
const LONGEST: usize = 256;

static GIVEN: OnceLock<OwnedFd> = OnceLock::new();

/// Takes the key out of the environment, into memory that only a descriptor leads to: what is
/// forked from this process closes it, and what it starts never sees it. To be called before
/// anything that might start a thread.
pub(crate) fn take() -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| {
        let message = "cannot take `GLOVEBOX_SECRETS_KEY` out of the environment";
        Error::new(Code::Internal, Stage::Parse, message)
            .caused_by(error)
            .hint("use `GLOVEBOX_SECRETS_KEY_FILE` instead")
    };
    let taken = glovebox_engine::take_variable(c"GLOVEBOX_SECRETS_KEY");
    let Some(value) = taken.map_err(|error| failed(&error))?.map(Zeroizing::new) else {
        return Ok(());
    };
    // A variable that is empty is not set.
    if value.is_empty() {
        return Ok(());
    }
    hold(value.to_vec())
}

/// Keeps a key that was given otherwise.
pub(crate) fn hold(value: Vec<u8>) -> Result<()> {
    let value = Zeroizing::new(value);
    let held =
        rustix::fs::memfd_create("secrets-key", MemfdFlags::CLOEXEC).map_err(std::io::Error::from);
    let held = held.and_then(|held| {
        let mut held = File::from(held);
        held.write_all(&value).map(|()| held)
    });
    let held = held.map_err(|error| {
        let message = "the key of secrets cannot be kept in memory";
        Error::new(Code::Internal, Stage::Parse, message).caused_by(error)
    })?;
    let _ = GIVEN.set(held.into());
    Ok(())
}

/// What was given to this process, for one that it starts.
pub(crate) fn given() -> Result<Option<OsString>> {
    let Some(held) = GIVEN.get() else {
        return Ok(None);
    };
    let mut value = vec![0; LONGEST];
    let read = rustix::io::pread(held, &mut value, 0).map_err(|errno| {
        let message = "cannot use `GLOVEBOX_SECRETS_KEY`";
        Error::new(Code::Internal, Stage::Parse, message).caused_by(errno)
    })?;
    value.truncate(read);
    Ok(Some(OsString::from_vec(value)))
}

/// What was named, in the order of how plainly it was.
pub(crate) fn source(file: Option<PathBuf>) -> Result<KeySource> {
    if let Some(file) = file {
        return Ok(KeySource::File(file));
    }
    match GIVEN.get() {
        None => Ok(KeySource::Usual),
        Some(held) => held.try_clone().map(KeySource::Given).map_err(|error| {
            Error::new(
                Code::Internal,
                Stage::Parse,
                "cannot use `GLOVEBOX_SECRETS_KEY`",
            )
            .caused_by(error)
        }),
    }
}
