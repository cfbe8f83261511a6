//! The key of the token hashes: a file that only its owner may read.

use std::fmt;
use std::path::Path;

use glovebox_model::{Code, Error, Result, Stage};
use glovebox_store::{
    KeyFault, KeyForm, MadeBy, PrivateFault, create_private, load_or_create_key, read_private,
};
use zeroize::Zeroizing;

use super::secret::Secret;

const FILE: &str = "token.key";

#[derive(Clone)]
pub struct TokenKey([u8; 32]);

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey")
    }
}

impl TokenKey {
    /// Reads `token.key` in that directory, or makes it. Several servers may start at once: the
    /// first one's key becomes everybody's.
    pub fn load_or_create(directory: &Path) -> Result<Self> {
        let path = directory.join(FILE);
        match load_or_create_key(&path, KeyForm::Bytes) {
            Ok(key) => Ok(Self(*key)),
            Err(KeyFault::Unfit(fault)) => Err(unfit(&path, fault)),
            Err(KeyFault::Damaged) => Err(damaged(&path)),
            Err(KeyFault::Unmade(error)) => Err(unwritten(&path, error)),
        }
    }

    pub(crate) fn hash(&self, secret: &Secret) -> [u8; 32] {
        *blake3::keyed_hash(&self.0, secret.reveal().as_bytes()).as_bytes()
    }

    /// Bytes that only somebody with the key and with everything in `parts` can make again.
    pub(crate) fn derive(&self, purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        for part in std::iter::once(purpose.as_bytes()).chain(parts.iter().copied()) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        *hasher.finalize().as_bytes()
    }
}

pub(crate) fn random(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(|error| {
        Error::new(Code::Internal, Stage::Open, "no random numbers").caused_by(error)
    })
}

/// None when there is no such file. One that others may read is refused: who could read it has.
pub(super) fn read_own(path: &Path, most: usize) -> Result<Option<Zeroizing<Vec<u8>>>> {
    read_private(path, MadeBy::Glovebox, most).map_err(|fault| unfit(path, fault))
}

/// Whole or not at all, and never over a file that is there: false then.
pub(super) fn create_own(path: &Path, contents: &[u8]) -> Result<bool> {
    create_private(path, contents).map_err(|error| unwritten(path, error))
}

fn unfit(path: &Path, fault: PrivateFault) -> Error {
    match fault {
        PrivateFault::Unreadable(error) => unusable(path, "cannot be read").caused_by(error),
        PrivateFault::NotRegular => unusable(path, "is not a regular file")
            .hint("put the file itself there, not a link to it"),
        PrivateFault::Exposed | PrivateFault::Foreign => unusable(path, "may be read by others")
            .hint("somebody may have copied it: remove it and start again, or `chmod 600` it"),
    }
}

fn unwritten(path: &Path, error: std::io::Error) -> Error {
    unusable(path, "cannot be written").caused_by(error)
}

fn unusable(path: &Path, why: &str) -> Error {
    let message = format!("the file `{}` {why}", path.display());
    Error::new(Code::StoreUnavailable, Stage::Open, message)
}

fn damaged(path: &Path) -> Error {
    unusable(path, "is not a key of 32 bytes")
        .hint("restore it; if it is lost, remove it and make every token again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    #[test]
    fn the_same_key_each_time_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let first = TokenKey::load_or_create(dir.path()).unwrap();
        let second = TokenKey::load_or_create(dir.path()).unwrap();
        assert_eq!(first.0, second.0);
        let path = dir.path().join(FILE);
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(TokenKey::load_or_create(dir.path()).is_err());
    }

    #[test]
    fn parts_cannot_be_shifted_into_each_other() {
        let key = TokenKey([1; 32]);
        assert_ne!(
            key.derive("p", &[b"ab", b"c"]),
            key.derive("p", &[b"a", b"bc"])
        );
    }
}
