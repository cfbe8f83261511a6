//! The key of the token hashes: a file that only its owner may read.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use glovebox_model::{Code, Error, Result, Stage};

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
        match read_private(&path, 32) {
            Ok(Some(bytes)) => {
                let bytes = bytes.try_into();
                bytes.map(Self).map_err(|_| damaged(&path))
            }
            Ok(None) => {
                let mut key = [0; 32];
                random(&mut key)?;
                match create_private(&path, &key)? {
                    true => Ok(Self(key)),
                    false => Self::load_or_create(directory),
                }
            }
            Err(error) => Err(error),
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
pub(super) fn read_private(path: &Path, most: u64) -> Result<Option<Vec<u8>>> {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(nofollow())
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(path, "cannot be read").caused_by(error)),
    };
    let about = file
        .metadata()
        .map_err(|error| unusable(path, "cannot be read").caused_by(error))?;
    if !about.is_file() || about.mode() & 0o077 != 0 {
        return Err(unusable(path, "may be read by others")
            .hint("somebody may have copied it: remove it and start again, or `chmod 600` it"));
    }
    let mut bytes = Vec::new();
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unusable(path, "cannot be read").caused_by(error))?;
    Ok(Some(bytes))
}

/// Whole or not at all, and never over a file that is there: false then.
pub(super) fn create_private(path: &Path, contents: &[u8]) -> Result<bool> {
    let fault = |error: std::io::Error| unusable(path, "cannot be written").caused_by(error);
    let mut random_part = [0; 8];
    random(&mut random_part)?;
    let name = format!(".new-{}", super::secret::hex(&random_part));
    let temporary = path.with_file_name(name);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| {
            file.write_all(contents)?;
            file.sync_all()
        });
    let linked = written.and_then(|()| std::fs::hard_link(&temporary, path));
    // Best effort: it has a name that nothing looks for.
    let _ = std::fs::remove_file(&temporary);
    match linked {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(fault(error)),
    }
}

fn nofollow() -> i32 {
    // Bits of a flag, not a quantity.
    rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()
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
    use std::os::unix::fs::PermissionsExt;

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
