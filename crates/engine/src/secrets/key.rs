//! The key that seals secrets, and where it comes from.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use glovebox_model::{Code, Error, Result, Stage};
use glovebox_store::{MadeBy, PrivateFault, read_private};
use zeroize::Zeroizing;

use super::keyring;
use super::seal::Seal;
use crate::private_key::private_key;

/// The generated one, in the directory of keys.
const OWN: &str = "secrets.key";
/// The one that takes its place, while everything is sealed anew.
const NEXT: &str = "secrets.key.next";

/// Held by whoever exchanges the two.
const LOCK: &str = ".secrets.lock";

/// Text around a key: longer files are something else.
const LONGEST: usize = 256;

/// Where the operator keeps the key.
#[derive(Debug, Default)]
pub enum KeySource {
    /// In this file.
    File(PathBuf),
    /// It was given to this process, which has it in memory behind this descriptor: no fork of it
    /// has a copy.
    Given(OwnedFd),
    /// In the kernel's keyring if it is there, else in a file that is made for it.
    #[default]
    Usual,
}

/// A key that is known by its id.
#[derive(Debug)]
pub(super) struct Key {
    id: String,
    seal: Seal,
}

impl Key {
    pub(super) fn new(bytes: &[u8; 32]) -> Self {
        // Tells nothing of the key, and is the same wherever the key is.
        let digest = Zeroizing::new(blake3::derive_key(
            "glovebox 2026 id of a secrets key",
            bytes,
        ));
        let id = digest[..8].iter().map(|byte| format!("{byte:02x}"));
        Self {
            id: id.collect(),
            seal: Seal::new(bytes),
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn seal(&self) -> &Seal {
        &self.seal
    }
}

/// Hexadecimal, base64, or the 32 bytes themselves.
pub(super) fn parse(bytes: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
    if let Ok(raw) = <[u8; 32]>::try_from(bytes) {
        return Some(Zeroizing::new(raw));
    }
    let text = std::str::from_utf8(bytes).ok()?.trim();
    let decoded = match text.len() {
        64 => unhex(text)?,
        _ => {
            let text = text.trim_end_matches('=');
            let decoded = STANDARD_NO_PAD
                .decode(text)
                .or_else(|_| URL_SAFE_NO_PAD.decode(text));
            Zeroizing::new(decoded.ok()?)
        }
    };
    let mut key = Zeroizing::new([0; 32]);
    if decoded.len() != key.len() {
        return None;
    }
    key.copy_from_slice(&decoded);
    Some(key)
}

fn unhex(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let pairs = text.as_bytes().chunks_exact(2);
    let bytes: Option<Vec<u8>> = pairs
        .map(|pair| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok())
        .collect();
    bytes.map(Zeroizing::new)
}

/// Reads the key that the operator has put there.
pub(super) fn in_file(path: &Path) -> Result<Key> {
    let failed = |error: &dyn std::fmt::Display| {
        let message = format!("cannot use the secrets' key `{}`", path.display());
        Error::new(Code::StoreUnavailable, Stage::Open, message).caused_by(error)
    };
    let elsewhere = "name the right file: `--secrets-key-file FILE`";
    let bytes = match read_private(path, MadeBy::Operator, LONGEST) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Err(failed(&"there is no such file").hint(elsewhere)),
        Err(why @ PrivateFault::Unreadable(_)) => return Err(failed(&why).hint(elsewhere)),
        Err(why @ PrivateFault::Exposed) => {
            return Err(failed(&why).hint(format!(
                "`chmod 600 {}`; if somebody may have read it, make another: \
                 `glovebox secret rotate-key`",
                path.display()
            )));
        }
        Err(why @ (PrivateFault::NotRegular | PrivateFault::Foreign)) => return Err(failed(&why)),
    };
    let key = parse(&bytes).ok_or_else(|| {
        failed(&"it does not hold 32 bytes, hexadecimal or base64")
            .hint("make one: `(umask 077; openssl rand -hex 32 > FILE)`")
    })?;
    Ok(Key::new(&key))
}

fn read_whole(file: File) -> std::io::Result<Zeroizing<Vec<u8>>> {
    // Room from the start: a buffer that grows leaves copies behind.
    let room = LONGEST + 1;
    let mut bytes = Zeroizing::new(Vec::with_capacity(room));
    file.take(room as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn given(descriptor: &OwnedFd) -> Result<Key> {
    let failed = |error: &dyn std::fmt::Display| {
        let message = "cannot use the secrets' key in `GLOVEBOX_SECRETS_KEY`";
        Error::new(Code::StoreUnavailable, Stage::Open, message).caused_by(error)
    };
    let mut file = File::from(descriptor.try_clone().map_err(|error| failed(&error))?);
    file.rewind().map_err(|error| failed(&error))?;
    let bytes = read_whole(file).map_err(|error| failed(&error))?;
    let key = parse(&bytes).ok_or_else(|| {
        failed(&"it does not hold 32 bytes, hexadecimal or base64")
            .hint("make one: `openssl rand -hex 32`")
    })?;
    Ok(Key::new(&key))
}

/// The generated key of a state directory.
#[derive(Debug)]
pub(super) struct OwnKey {
    path: PathBuf,
    next: PathBuf,
    lock: PathBuf,
}

impl OwnKey {
    pub(super) fn of(keys: &Path) -> Self {
        Self {
            path: keys.join(OWN),
            next: keys.join(NEXT),
            lock: keys.join(LOCK),
        }
    }

    /// Nobody else exchanges the key while this is held. Another who wants to waits; it is held for
    /// no longer than one transaction takes.
    pub(super) fn alone(&self) -> Result<OwnedFd> {
        let failed = |error: &dyn std::fmt::Display| {
            let message = format!("cannot lock `{}`", self.lock.display());
            Error::new(Code::StoreUnavailable, Stage::Open, message).caused_by(error)
        };
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&self.lock)
            .map_err(|error| failed(&error))?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)
            .map_err(|error| failed(&error))?;
        Ok(file.into())
    }

    fn read(path: &Path) -> Result<Option<Key>> {
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            _ => in_file(path).map(Some),
        }
    }

    fn create(path: &Path) -> Result<Key> {
        Ok(Key::new(&*private_key(path)?))
    }

    /// Another one, beside the one that is in use, which stays until everything is sealed anew.
    pub(super) fn prepare(&self) -> Result<Key> {
        Self::create(&self.next)
    }

    /// From now on it is the only one. For whoever is [`OwnKey::alone`].
    pub(super) fn replace(&self) -> Result<()> {
        let failed = |error: std::io::Error| {
            let message = format!("cannot put the new key at `{}`", self.path.display());
            Error::new(Code::StoreUnavailable, Stage::Close, message)
                .caused_by(error)
                .hint(format!(
                    "everything is sealed with `{}`: keep it, it is found there too",
                    self.next.display()
                ))
        };
        fs::rename(&self.next, &self.path).map_err(failed)?;
        let directory = self.path.parent().unwrap_or(Path::new("."));
        File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(failed)
    }

    /// The one with this id; made when there is none and none is wanted.
    fn load(&self, wanted: Option<&str>) -> Result<Result<Key, Vec<String>>> {
        let mut found = Vec::new();
        let is_wanted = |key: &Key| wanted.is_none_or(|id| key.id() == id);
        match Self::read(&self.path)? {
            Some(key) if is_wanted(&key) => return Ok(Ok(key)),
            Some(key) => found.push(said(&self.path, &key)),
            None if wanted.is_none() => return Self::create(&self.path).map(Ok),
            None => {}
        }
        let _alone = self.alone()?;
        // A rotation that was cut off after everything was sealed anew.
        match Self::read(&self.next)? {
            Some(key) if is_wanted(&key) => {
                self.replace()?;
                return Ok(Ok(key));
            }
            Some(key) => found.push(said(&self.next, &key)),
            None => {}
        }
        // Unless another process was at it just now.
        match Self::read(&self.path)? {
            Some(key) if is_wanted(&key) => Ok(Ok(key)),
            _ => Ok(Err(found)),
        }
    }
}

fn said(path: &Path, key: &Key) -> String {
    format!("`{}` in `{}`", key.id(), path.display())
}

impl KeySource {
    /// The key with this id; without one, whichever there is.
    pub(super) fn load(&self, keys: &Path, wanted: Option<&str>) -> Result<Key> {
        let (key, place) = match self {
            Self::File(path) => (in_file(path)?, format!("in `{}`", path.display())),
            Self::Given(held) => (given(held)?, "in `GLOVEBOX_SECRETS_KEY`".to_owned()),
            Self::Usual => return usual(keys, wanted),
        };
        match wanted {
            Some(id) if id != key.id() => Err(missing(id, &[format!("`{}` {place}", key.id())])),
            _ => Ok(key),
        }
    }
}

fn usual(keys: &Path, wanted: Option<&str>) -> Result<Key> {
    let mut others = Vec::new();
    if let Some(bytes) = keyring::read()? {
        let key = parse(&bytes).ok_or_else(|| {
            let message = format!(
                "the key `{}` in the kernel's keyring does not hold 32 bytes, hexadecimal or \
                 base64",
                keyring::DESCRIPTION
            );
            Error::new(Code::StoreUnavailable, Stage::Open, message).hint(
                "put another there: `openssl rand -hex 32 | keyctl padd user glovebox:secrets @u`",
            )
        })?;
        let key = Key::new(&key);
        if wanted.is_none_or(|id| id == key.id()) {
            return Ok(key);
        }
        others.push(format!("`{}` in the kernel's keyring", key.id()));
    }
    OwnKey::of(keys).load(wanted)?.map_err(|found| {
        others.extend(found);
        missing(wanted.unwrap_or_default(), &others)
    })
}

fn missing(id: &str, found: &[String]) -> Error {
    let found = match found {
        [] => "there is none".to_owned(),
        some => format!("found was {}", some.join(" and ")),
    };
    Error::new(
        Code::StoreUnavailable,
        Stage::Open,
        format!("the secrets are sealed with the key `{id}`, and {found}"),
    )
    .hint("nothing is lost: name the right one, `--secrets-key-file FILE` or `GLOVEBOX_SECRETS_KEY_FILE`")
    .hint("several servers on one database need the same key: copy it from the one that made it")
    .hint("if it is gone for good: `glovebox secret rm` works without it; then set them anew")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    fn written(dir: &Path, name: &str, contents: &[u8], mode: u32) -> PathBuf {
        let path = dir.join(name);
        fs::write(&path, contents).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_key_is_32_bytes_in_any_of_its_forms() {
        let raw: Vec<u8> = (200..232).collect();
        let hex: String = raw.iter().map(|byte| format!("{byte:02x}")).collect();
        let forms = [
            raw.clone(),
            hex.clone().into_bytes(),
            format!("{}\n", hex.to_uppercase()).into_bytes(),
            base64::engine::general_purpose::STANDARD
                .encode(&raw)
                .into_bytes(),
            format!(" {}\n", URL_SAFE_NO_PAD.encode(&raw)).into_bytes(),
        ];
        for form in forms {
            assert_eq!(parse(&form).unwrap()[..], raw[..], "{form:?}");
        }
        for wrong in [
            &b""[..],
            &raw[1..],
            &hex.as_bytes()[2..],
            format!("{hex}00").as_bytes(),
            hex.replace('c', "x").as_bytes(),
            b"correct horse battery staple",
        ] {
            assert!(parse(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn a_file_that_others_may_read_is_no_key() {
        let dir = tempfile::tempdir().unwrap();
        let hex = "ab".repeat(32);
        let good = written(dir.path(), "good", hex.as_bytes(), 0o600);
        let id = in_file(&good).unwrap().id().to_owned();
        assert_eq!(id.len(), 16);
        assert!(!hex.contains(&id));
        for (name, contents, mode) in [
            ("group", hex.as_str(), 0o640),
            ("world", hex.as_str(), 0o604),
            ("short", "abcd", 0o600),
            ("long", &"ab".repeat(1000), 0o600),
        ] {
            let error = in_file(&written(dir.path(), name, contents.as_bytes(), mode)).unwrap_err();
            assert_eq!(error.code, Code::StoreUnavailable, "{error}");
            assert!(!format!("{error:?}").contains("abab"), "{error:?}");
        }
        assert!(in_file(dir.path()).is_err());
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert!(in_file(&pipe).is_err());
    }

    #[test]
    fn a_missing_key_is_made_only_where_nothing_needs_another() {
        let dir = tempfile::tempdir().unwrap();
        let own = OwnKey::of(dir.path());
        assert!(own.load(Some("0123456789abcdef")).unwrap().is_err());
        assert!(!dir.path().join(OWN).exists());
        let key = own.load(None).unwrap().unwrap();
        assert!(own.load(Some(key.id())).unwrap().is_ok());
        let found = own.load(Some("0123456789abcdef")).unwrap().unwrap_err();
        assert!(found[0].contains(key.id()), "{found:?}");
        let mode = fs::metadata(dir.path().join(OWN)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn while_a_key_is_exchanged_both_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let own = OwnKey::of(dir.path());
        let old = own.load(None).unwrap().unwrap();
        let new = own.prepare().unwrap();
        assert_ne!(old.id(), new.id());
        assert_eq!(own.prepare().unwrap().id(), new.id());
        assert!(own.load(Some(old.id())).unwrap().is_ok());
        assert!(own.load(Some(new.id())).unwrap().is_ok());
        // What needs the new one has put it in the old one's place.
        assert!(own.load(Some(old.id())).unwrap().is_err());
        assert!(!dir.path().join(NEXT).exists());
        assert!(own.load(Some(new.id())).unwrap().is_ok());
    }
}
