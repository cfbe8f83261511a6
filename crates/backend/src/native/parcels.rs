//! The secrets of one run on their way into the sandbox. They lie in memory files that nobody can
//! change or find by a name, and that are gone with the last descriptor.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use glovebox_cage::{Handle, Parcel};
use glovebox_model::{Code, Error, Result, Stage};
use rustix::fs::{MemfdFlags, SealFlags, SeekFrom, fcntl_add_seals, memfd_create, seek};
use rustix::io::Errno;

use super::sandbox::broken;
use crate::spec::{Secret, SecretForm};

/// Of all secrets of a run together; a key or a certificate has a few thousand.
const BYTES_MAX: usize = 1 << 20;
const FILES_MAX: usize = 256;
/// What fits beside one message, with the standard streams.
const DESCRIPTORS_MAX: usize = 12;

#[derive(Debug, Default)]
pub(super) struct Parcels {
    /// All files, one after the other.
    files: Option<(Vec<Parcel>, OwnedFd)>,
    descriptors: Vec<OwnedFd>,
}

impl Parcels {
    pub(super) fn pack(secrets: &[Secret<'_>]) -> Result<Self> {
        let bytes: usize = secrets.iter().map(|it| it.value.len()).sum();
        if bytes > BYTES_MAX {
            return Err(too_much("the secrets of an exec are larger than 1 MiB"));
        }
        let of = |form: SecretForm| secrets.iter().filter(move |it| it.form == form);
        let files: Vec<&Secret<'_>> = of(SecretForm::File).collect();
        if files.len() > FILES_MAX {
            return Err(too_much("an exec can have 256 secrets as files"));
        }
        let descriptors = of(SecretForm::Descriptor).map(|it| sealed(&[it.value]));
        let descriptors: Vec<OwnedFd> = descriptors
            .collect::<rustix::io::Result<_>>()
            .map_err(|errno| broken(&errno))?;
        if descriptors.len() > DESCRIPTORS_MAX {
            return Err(too_much("an exec can have 12 secrets as descriptors"));
        }
        Ok(Self {
            files: match files.is_empty() {
                true => None,
                false => Some(together(&files)?),
            },
            descriptors,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_none() && self.descriptors.is_empty()
    }

    /// Sends the files ahead of the order, and returns what goes with it: the payload has them from
    /// its descriptor 3 on.
    pub(super) fn deliver(&mut self, handle: &Handle) -> Result<Vec<BorrowedFd<'_>>> {
        if let Some((parcels, content)) = self.files.take() {
            let sent = handle.deliver(parcels, content.as_fd());
            sent.map_err(|errno| broken(&errno))?;
        }
        Ok(self.descriptors.iter().map(AsFd::as_fd).collect())
    }
}

fn together(files: &[&Secret<'_>]) -> Result<(Vec<Parcel>, OwnedFd)> {
    let parcels = files.iter().map(|secret| {
        Ok(Parcel {
            name: CString::new(secret.name.as_str()).map_err(|error| broken(&error))?,
            bytes: secret.value.len() as u64,
        })
    });
    let parcels: Vec<Parcel> = parcels.collect::<Result<_>>()?;
    let values: Vec<&[u8]> = files.iter().map(|it| it.value).collect();
    let content = sealed(&values).map_err(|errno| broken(&errno))?;
    Ok((parcels, content))
}

/// Read from its beginning, and never changed.
fn sealed(values: &[&[u8]]) -> rustix::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create("secret", flags)?;
    for value in values {
        let mut rest = *value;
        while !rest.is_empty() {
            let written = rustix::io::write(&file, rest)?;
            rest = rest.get(written..).ok_or(Errno::IO)?;
        }
    }
    seek(&file, SeekFrom::Start(0))?;
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    fcntl_add_seals(&file, seals)?;
    Ok(file)
}

fn too_much(message: &str) -> Error {
    Error::new(Code::InvalidArgument, Stage::Run, message)
        .hint("give large or many values as input files, or fetch them by one secret")
}
