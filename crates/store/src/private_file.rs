//! Files that only their owner may read: keys, and a server's own token. All of them are read and made
//! here. What an unfit file means to people is said by the caller, who knows what it is for.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use zeroize::Zeroizing;

use crate::hex;

const KEY_BYTES: usize = 32;
/// Room for white space behind the digits.
const HEX_BYTES_MAX: usize = 128;

/// Who put a file where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MadeBy {
    /// Glovebox itself, in a directory of its own: the file is never a link, and belongs to this user.
    Glovebox,
    /// The operator: the name may be a link, and the file may be root's.
    Operator,
}

/// Why a file cannot be used. It never holds the contents.
#[derive(Debug)]
pub enum PrivateFault {
    Unreadable(io::Error),
    NotRegular,
    /// Others than its owner may read or write it.
    Exposed,
    /// It belongs to another user, who may have written it.
    Foreign,
}

impl fmt::Display for PrivateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => error.fmt(f),
            Self::NotRegular => f.write_str("it is not a regular file"),
            Self::Exposed => f.write_str("others than its owner may use it"),
            Self::Foreign => f.write_str("it belongs to another user"),
        }
    }
}

/// `None` when there is no such file. Of a longer file one byte more than `most` is given, so that the
/// caller can tell.
pub fn read_private(
    path: &Path,
    made_by: MadeBy,
    most: usize,
) -> Result<Option<Zeroizing<Vec<u8>>>, PrivateFault> {
    // A pipe without a writer must not hold us up.
    let flags = match made_by {
        MadeBy::Glovebox => OFlags::NONBLOCK | OFlags::NOFOLLOW,
        MadeBy::Operator => OFlags::NONBLOCK,
    };
    let opened = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        // What `NOFOLLOW` answers to a link.
        Err(error) if made_by == MadeBy::Glovebox && is_loop(&error) => {
            return Err(PrivateFault::NotRegular);
        }
        Err(error) => return Err(PrivateFault::Unreadable(error)),
    };
    let facts = file.metadata().map_err(PrivateFault::Unreadable)?;
    if !facts.is_file() {
        return Err(PrivateFault::NotRegular);
    }
    if facts.mode() & 0o077 != 0 {
        return Err(PrivateFault::Exposed);
    }
    let own = facts.uid() == rustix::process::geteuid().as_raw();
    match made_by {
        MadeBy::Glovebox if own => {}
        MadeBy::Operator if own || facts.uid() == 0 => {}
        MadeBy::Glovebox | MadeBy::Operator => return Err(PrivateFault::Foreign),
    }
    // Room from the start: a buffer that grows leaves copies behind.
    let room = most.saturating_add(1);
    let mut bytes = Zeroizing::new(Vec::with_capacity(room));
    file.take(room as u64)
        .read_to_end(&mut bytes)
        .map_err(PrivateFault::Unreadable)?;
    Ok(Some(bytes))
}

fn is_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

/// Writes a whole private file under a name that must not exist; `false` when it does. No other process
/// ever sees a part of it, and it is on disk when this returns.
pub fn create_private(path: &Path, contents: &[u8]) -> io::Result<bool> {
    let parent = path.parent().unwrap_or(Path::new("."));
    let mut random = [0; 8];
    fill_random(&mut random)?;
    let temporary = parent.join(format!(".new-{}", hex::encode(&random)));
    let write = || -> io::Result<bool> {
        let mut file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(contents)?;
        file.sync_all()?;
        match fs::hard_link(&temporary, path) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
            Err(error) => return Err(error),
        }
        File::open(parent)?.sync_all()?;
        Ok(true)
    };
    let written = write();
    let cleared = fs::remove_file(&temporary);
    let created = written?;
    cleared?;
    Ok(created)
}

fn fill_random(bytes: &mut [u8]) -> io::Result<()> {
    getrandom::fill(bytes).map_err(|error| io::Error::other(format!("no random numbers: {error}")))
}

/// How the 32 bytes of a key are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyForm {
    Bytes,
    /// Lower-case hexadecimal digits, and a line's end.
    Hex,
}

pub type Key = Zeroizing<[u8; KEY_BYTES]>;

#[derive(Debug)]
pub enum KeyFault {
    Unfit(PrivateFault),
    /// It does not hold 32 bytes in its form.
    Damaged,
    Unmade(io::Error),
}

impl fmt::Display for KeyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfit(why) => why.fmt(f),
            Self::Damaged => f.write_str("it does not hold a key of 32 bytes"),
            Self::Unmade(error) => error.fmt(f),
        }
    }
}

/// A key that Glovebox made; `None` when there is none yet.
pub fn load_key(path: &Path, form: KeyForm) -> Result<Option<Key>, KeyFault> {
    let most = match form {
        KeyForm::Bytes => KEY_BYTES,
        KeyForm::Hex => HEX_BYTES_MAX,
    };
    let Some(bytes) = read_private(path, MadeBy::Glovebox, most).map_err(KeyFault::Unfit)? else {
        return Ok(None);
    };
    let key = match form {
        KeyForm::Bytes => bytes.as_slice().try_into().ok(),
        KeyForm::Hex => std::str::from_utf8(&bytes)
            .ok()
            .and_then(|text| hex::decode(text.trim_end())),
    };
    key.map(|key| Some(Zeroizing::new(key)))
        .ok_or(KeyFault::Damaged)
}

/// The first of several processes makes the key; all get the same.
pub fn load_or_create_key(path: &Path, form: KeyForm) -> Result<Key, KeyFault> {
    if let Some(key) = load_key(path, form)? {
        return Ok(key);
    }
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    fill_random(&mut *key).map_err(KeyFault::Unmade)?;
    let contents = match form {
        KeyForm::Bytes => Zeroizing::new(key.to_vec()),
        KeyForm::Hex => Zeroizing::new(format!("{}\n", hex::encode(&*key)).into_bytes()),
    };
    create_private(path, &contents).map_err(KeyFault::Unmade)?;
    load_key(path, form)?.ok_or_else(|| KeyFault::Unmade(io::Error::other("it vanished")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    fn written(dir: &Path, name: &str, contents: &[u8], mode: u32) -> PathBuf {
        let path = dir.join(name);
        fs::write(&path, contents).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_key_is_made_once_private_and_in_its_form() {
        let dir = tempfile::tempdir().unwrap();
        for (form, length) in [(KeyForm::Bytes, 32), (KeyForm::Hex, 65)] {
            let path = dir.path().join(format!("{length}.key"));
            assert!(load_key(&path, form).unwrap().is_none());
            let made = load_or_create_key(&path, form).unwrap();
            assert_eq!(load_or_create_key(&path, form).unwrap(), made);
            assert_eq!(load_key(&path, form).unwrap(), Some(made));
            let facts = fs::metadata(&path).unwrap();
            assert_eq!((facts.mode() & 0o777, facts.len()), (0o600, length));
            assert!(!create_private(&path, b"another").unwrap());
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn many_who_begin_at_once_get_one_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let make = || load_or_create_key(&path, KeyForm::Bytes).unwrap();
        let keys: Vec<Key> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
            threads.into_iter().map(|it| it.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|it| *it == keys[0]));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_others_may_use_or_have_put_there_is_unfit() {
        let dir = tempfile::tempdir().unwrap();
        let key = [7; 32];
        let path = |name: &str| dir.path().join(name);
        for mode in [0o640, 0o604, 0o620, 0o601] {
            let exposed = written(dir.path(), &format!("{mode:o}"), &key, mode);
            for made_by in [MadeBy::Glovebox, MadeBy::Operator] {
                let found = read_private(&exposed, made_by, 32);
                assert!(matches!(found, Err(PrivateFault::Exposed)), "{mode:o}");
            }
        }
        let good = written(dir.path(), "good", &key, 0o600);
        symlink(&good, path("link")).unwrap();
        let found = read_private(&path("link"), MadeBy::Glovebox, 32);
        assert!(matches!(found, Err(PrivateFault::NotRegular)));
        let found = read_private(&path("link"), MadeBy::Operator, 32).unwrap();
        assert_eq!(found.unwrap()[..], key);
        symlink(path("nothing"), path("loose")).unwrap();
        let found = load_or_create_key(&path("loose"), KeyForm::Bytes);
        assert!(matches!(
            found,
            Err(KeyFault::Unfit(PrivateFault::NotRegular))
        ));
        let private = rustix::fs::Mode::from_raw_mode(0o600);
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), fifo, private, 0).unwrap();
        for made_by in [MadeBy::Glovebox, MadeBy::Operator] {
            for name in ["pipe", "."] {
                let found = read_private(&path(name), made_by, 32);
                assert!(matches!(found, Err(PrivateFault::NotRegular)), "{name}");
            }
        }
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&good, Some(12345), None).unwrap();
            for made_by in [MadeBy::Glovebox, MadeBy::Operator] {
                let found = read_private(&good, made_by, 32);
                assert!(matches!(found, Err(PrivateFault::Foreign)), "{made_by:?}");
            }
        }
    }

    #[test]
    fn a_key_of_another_length_is_damaged_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        for (name, form, contents) in [
            ("empty", KeyForm::Bytes, &b""[..]),
            ("short", KeyForm::Bytes, &[7; 31]),
            ("long", KeyForm::Bytes, &[7; 33]),
            ("words", KeyForm::Hex, b"correct horse"),
            ("binary", KeyForm::Hex, &[0xff; 64]),
            ("capital", KeyForm::Hex, &[b'A'; 64]),
        ] {
            let path = written(dir.path(), name, contents, 0o600);
            let found = load_or_create_key(&path, form);
            assert!(matches!(found, Err(KeyFault::Damaged)), "{name}");
            assert_eq!(fs::read(&path).unwrap(), contents, "{name}");
        }
    }

    #[test]
    fn what_is_longer_can_be_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = written(dir.path(), "file", &[7; 100], 0o600);
        let read = |most| {
            let found = read_private(&path, MadeBy::Operator, most).unwrap();
            found.unwrap().len()
        };
        assert_eq!((read(100), read(99), read(10)), (100, 100, 11));
    }
}
