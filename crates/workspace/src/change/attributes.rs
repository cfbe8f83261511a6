//! Extended attributes of the user's name space.
//!
//! `user.overlay.` belongs to the kernel: its marks say what is removed and what is opaque. A program
//! on a layer cannot set them, the kernel stores its attempts under `user.overlay.overlay.`. Neither
//! is ever carried into a workspace, where the next layer would take it for the kernel's own word.

use std::collections::BTreeMap;
use std::ffi::CStr;

use rustix::fd::AsFd;
use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr};
use rustix::io::{Errno, Result};

const OF_USERS: &[u8] = b"user.";
const OF_LAYERS: &[u8] = b"user.overlay.";
const ESCAPED: &[u8] = b"user.overlay.overlay.";
/// What the kernel takes at most, for a list as for a value.
const MOST: usize = 64 << 10;

pub(super) type Map = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) own: Map,
    /// Names that a program tried to set in the kernel's name space.
    pub(super) escaped: u64,
    pub(super) opaque: bool,
    /// It was copied here from below.
    pub(super) copied_up: bool,
    /// A file that stands for nothing.
    pub(super) whiteout: bool,
}

impl Attributes {
    /// BLAKE3 of what is carried over; none when that is nothing.
    pub(super) fn digest(&self) -> Option<String> {
        if self.own.is_empty() {
            return None;
        }
        let mut hasher = blake3::Hasher::new();
        for part in self.own.iter().flat_map(|(name, value)| [name, value]) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Some(hasher.finalize().to_hex().to_string())
    }
}

/// Of an open file or directory.
pub(super) fn read(file: impl AsFd) -> Result<Attributes> {
    let mut found = Attributes::default();
    let mut list = vec![0u8; MOST];
    let length = match flistxattr(&file, list.as_mut_slice()) {
        Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(found),
        length => length?,
    };
    let mut value = vec![0u8; MOST];
    let names = list[..length].split_inclusive(|byte| *byte == 0);
    for name in names.filter_map(|name| CStr::from_bytes_with_nul(name).ok()) {
        let bytes = name.to_bytes();
        if !bytes.starts_with(OF_USERS) {
            continue;
        }
        if bytes.starts_with(ESCAPED) {
            found.escaped += 1;
            continue;
        }
        match bytes.strip_prefix(OF_LAYERS) {
            Some(b"opaque") => {
                let length = fgetxattr(&file, name, value.as_mut_slice())?;
                found.opaque = &value[..length] == b"y";
            }
            Some(b"origin") => found.copied_up = true,
            Some(b"whiteout") => found.whiteout = true,
            Some(_) => {}
            None => {
                let length = fgetxattr(&file, name, value.as_mut_slice())?;
                found.own.insert(bytes.to_vec(), value[..length].to_vec());
            }
        }
    }
    Ok(found)
}

/// Every one of the user's name space as it is stored, the kernel's marks among them.
pub(super) fn all(file: impl AsFd) -> Result<Map> {
    let mut found = Map::new();
    let mut list = vec![0u8; MOST];
    let length = match flistxattr(&file, list.as_mut_slice()) {
        Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(found),
        length => length?,
    };
    let mut value = vec![0u8; MOST];
    let names = list[..length].split_inclusive(|byte| *byte == 0);
    for name in names.filter_map(|name| CStr::from_bytes_with_nul(name).ok()) {
        if name.to_bytes().starts_with(OF_USERS) {
            let length = fgetxattr(&file, name, value.as_mut_slice())?;
            found.insert(name.to_bytes().to_vec(), value[..length].to_vec());
        }
    }
    Ok(found)
}

/// Makes them what they should be; those of the kernel's and of other name spaces stay.
pub(super) fn set(file: impl AsFd, wanted: &Map) -> Result<()> {
    let now = read(&file)?.own;
    for name in now.keys().filter(|name| !wanted.contains_key(*name)) {
        fremovexattr(&file, name.as_slice())?;
    }
    for (name, value) in wanted {
        if now.get(name) != Some(value) {
            fsetxattr(&file, name.as_slice(), value, XattrFlags::empty())?;
        }
    }
    Ok(())
}
