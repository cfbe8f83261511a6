//! Where an import happens before anybody can see it. What a dead process left is removed by the
//! next one that opens the images.

use glovebox_model::{Code, Result};

use super::lock::{Lock, Sharing};
use super::storing;
use crate::dir::{Dir, temporary_name};
use crate::fault::{FsError, FsErrorKind};

const OWNER: &str = "owner";
const MOST: usize = 100_000;

/// Removed with everything in it when it is dropped.
#[derive(Debug)]
pub(super) struct Staging {
    shelf: Dir,
    name: String,
    pub(super) dir: Dir,
    _owner: Lock,
}

impl Staging {
    /// `_store` shows that the store's lock is held: nobody removes the directory before it has
    /// its owner.
    pub(super) fn new(shelf: &Dir, _store: &Lock) -> Result<Self> {
        let name = fresh_name()?;
        let shelf = shelf.try_clone().map_err(storing)?;
        let dir = shelf.make_new_dir(&name, 0o700).map_err(storing)?;
        let owner = Lock::attempt(&dir, OWNER, Sharing::Alone)?
            .ok_or_else(|| storing(FsError::new("lock", OWNER.as_bytes(), FsErrorKind::Exists)))?;
        Ok(Self {
            shelf,
            name,
            dir,
            _owner: owner,
        })
    }

    /// Removes what no living process owns.
    pub(super) fn sweep(shelf: &Dir, _store: &Lock) -> Result<()> {
        let listing = shelf.list(MOST).map_err(storing)?;
        for entry in listing.entries {
            match reclaim(shelf, &entry.name.display()) {
                // Its owner was removing it meanwhile: that needs no lock.
                Err(error) if error.code == Code::NotFound => {}
                done => done?,
            }
        }
        Ok(())
    }
}

fn reclaim(shelf: &Dir, name: &str) -> Result<()> {
    let alive = match shelf.open_name(name) {
        // No directory, so nobody's. That one cannot be opened says nothing.
        Err(error) if error.kind() == FsErrorKind::NotADirectory => false,
        opened => {
            let dir = opened.map_err(storing)?;
            Lock::attempt(&dir, OWNER, Sharing::Alone)?.is_none()
        }
    };
    if !alive {
        shelf.remove_entry(name).map_err(storing)?;
    }
    Ok(())
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What cannot be removed now is found by the next sweep.
        let _ = self.shelf.remove_entry(&self.name);
    }
}

pub(super) fn fresh_name() -> Result<String> {
    let name = temporary_name();
    let name = name.map_err(|kind| storing(FsError::new("make the directory", b"", kind)))?;
    Ok(name.to_string_lossy().into_owned())
}
