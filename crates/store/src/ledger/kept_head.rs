//! Where the operator's chain was at its last checkpoint, in a file beside `ledger.key`. The heads of
//! all other spaces are in the operator's chain; its own is in no other, so whoever writes the
//! database could put it back to any state that was once signed.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

use glovebox_model::{Error, Result, SpaceId};
use serde::{Deserialize, Serialize};

use super::chain::Head;
use crate::failure::{Doing, tampered};
use crate::hex;
use crate::sql::{Session, values};

/// One for each kind of database that a state directory may have had.
const NAME: &str = "ledger.head";
const SHARED: &str = "ledger.shared.head";

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KeptHead {
    /// The hash of the first entry: keys may be kept where those of another ledger are.
    begins: String,
    pub(super) seq: u64,
    pub(super) hash: String,
}

impl KeptHead {
    /// `None` when there is none, or one that a crash left empty: then less is known.
    pub(crate) fn read(key: &Path, shared: bool) -> Result<Option<Self>> {
        let path = key.with_file_name(name(shared));
        match fs::read(&path) {
            Ok(text) => Ok(serde_json::from_slice(&text).ok()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).doing(&format!("read `{}`", path.display())),
        }
    }

    /// After the commit that made it true. Never synced: what a crash takes of it is written again at
    /// the next checkpoint.
    pub(crate) fn write(session: &Session, key: &Path, apart: bool, head: Head) -> Result<()> {
        let Some(begins) = first(session)? else {
            return Ok(());
        };
        let shared = session.is_shared();
        // One that the chain has no more says that it was put back, and stays.
        if let Some(kept) = Self::read(key, shared)?
            && kept.is_of(session, apart)?
            && (kept.seq >= head.seq || kept.ensure_reached(session).is_err())
        {
            return Ok(());
        }
        let kept = Self {
            begins,
            seq: head.seq,
            hash: hex::encode(&head.hash),
        };
        let text = serde_json::to_vec(&kept).unwrap_or_default();
        let path = key.with_file_name(name(shared));
        let parent = path.parent().unwrap_or(Path::new("."));
        let what = format!("write `{}`", path.display());
        let mut file = tempfile_in(parent).doing(&what)?;
        let written = file.0.write_all(&text);
        let written = written.and_then(|()| fs::rename(&file.1, &path));
        if written.is_err() {
            let _ = fs::remove_file(&file.1);
        }
        written.doing(&what)
    }

    /// Whether it is of the chain that begins so. One in a directory of keys alone may be another's,
    /// and so may one of a database elsewhere.
    pub(crate) fn is_of(&self, session: &Session, apart: bool) -> Result<bool> {
        let may_be_anothers = apart || session.is_shared();
        Ok(!may_be_anothers || first(session)?.as_ref() == Some(&self.begins))
    }

    /// That the operator's chain has this entry.
    pub(crate) fn ensure_reached(&self, session: &Session) -> Result<()> {
        let there: Option<Vec<u8>> = session
            .row(
                "SELECT hash FROM ledger_entries WHERE space_id = ?1 AND seq = ?2",
                values![SpaceId::local().as_str(), self.seq.cast_signed()],
                |row| row.get(0),
            )
            .doing("read the operator's ledger")?;
        match there.is_some_and(|hash| hex::encode(&hash) == self.hash) {
            true => Ok(()),
            false => Err(self.missed()),
        }
    }

    fn missed(&self) -> Error {
        let seq = self.seq;
        tampered(format!(
            "the operator's ledger had entry {seq}, as `{NAME}` says, and has it no more: it was put back"
        ))
        .hint(format!(
            "if you restored an older copy on purpose: restore `{NAME}` with it, or remove that file"
        ))
    }
}

fn name(shared: bool) -> &'static str {
    match shared {
        true => SHARED,
        false => NAME,
    }
}

fn first(session: &Session) -> Result<Option<String>> {
    let hash: Option<Vec<u8>> = session
        .row(
            "SELECT hash FROM ledger_entries WHERE space_id = ?1 AND seq = 1",
            values![SpaceId::local().as_str()],
            |row| row.get(0),
        )
        .doing("read the operator's ledger")?;
    Ok(hash.map(|hash| hex::encode(&hash)))
}

/// A private file with a name that nobody else has.
fn tempfile_in(parent: &Path) -> std::io::Result<(fs::File, std::path::PathBuf)> {
    use std::os::unix::fs::OpenOptionsExt;
    let random = crate::state_dir::random_hex().map_err(std::io::Error::other)?;
    let path = parent.join(format!(".new-{random}"));
    let mut options = fs::OpenOptions::new();
    let file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    Ok((file, path))
}
