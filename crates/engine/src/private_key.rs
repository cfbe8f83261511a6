//! A key of this state directory: 32 random bytes in a file that only its owner may read.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use glovebox_model::{Code, Error, Result, Stage};

const KEY: usize = 32;

/// The key in this file; made when it is not there.
pub(crate) fn private_key(path: &Path) -> Result<[u8; KEY]> {
    let failed = |error: std::io::Error| {
        let message = format!("cannot use the key `{}`", path.display());
        Error::new(Code::StoreUnavailable, Stage::Open, message).caused_by(error)
    };
    let key = match read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            create(path)?;
            read(path)
        }
        key => key,
    };
    key.map_err(failed)
}

fn read(path: &Path) -> std::io::Result<[u8; KEY]> {
    let mut file = File::open(path)?;
    if file.metadata()?.mode() & 0o077 != 0 {
        let why = "others than its owner may use it: `chmod 600` it";
        return Err(std::io::Error::other(why));
    }
    let mut key = [0; KEY];
    file.read_exact(&mut key)?;
    Ok(key)
}

/// Under another name first, so that nobody ever reads half a key.
fn create(path: &Path) -> Result<()> {
    let failed = |error: std::io::Error| {
        let message = format!("cannot make the key `{}`", path.display());
        Error::new(Code::StoreUnavailable, Stage::Open, message).caused_by(error)
    };
    let mut random = [0; KEY + 8];
    getrandom::fill(&mut random).map_err(|error| no_random().caused_by(error))?;
    let (key, name) = random.split_at(KEY);
    let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
    let unfinished = path.with_file_name(format!(".new-{name}"));
    let made = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unfinished)
        .and_then(|mut file| file.write_all(key).and_then(|()| file.sync_all()))
        .and_then(|()| match fs::hard_link(&unfinished, path) {
            // Another server was quicker; its key is as good.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        });
    let _ = fs::remove_file(&unfinished);
    made.map_err(failed)
}

fn no_random() -> Error {
    Error::new(Code::Internal, Stage::Open, "no random numbers")
}
