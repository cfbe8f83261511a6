//! Exchanging the key under which everything is sealed. The new key is on disk before anything is
//! sealed with it, and everything is sealed anew in one transaction: killed anywhere, one key that
//! is there opens everything.

use std::path::PathBuf;
use std::sync::Arc;

use glovebox_model::{Code, Error, Result, Stage};
use glovebox_store::Actor;
use serde::Serialize;

use super::key::{self, KeySource, OwnKey};
use super::vault::{Secrets, bound_to, unopened};
use crate::stage;

/// What takes the place of the present key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewKey {
    /// A random one, kept among the keys of the state directory.
    Generated,
    /// The one in this file, which the operator keeps.
    File(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rotated {
    /// Ids of keys, which tell nothing of them.
    pub from: String,
    pub to: String,
    /// How many values were sealed anew.
    pub values: u64,
    /// Where the key is to be found from now on, when that is not found by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
}

fn refused(code: Code, message: impl Into<String>) -> Error {
    Error::new(code, Stage::Parse, message)
}

impl Secrets<'_> {
    pub fn rotate_key(&self, new: NewKey, by: &Actor) -> Result<Rotated> {
        let (source, keys) = (self.vault().source(), self.vault().keys());
        if new == NewKey::Generated && !matches!(source, KeySource::Usual) {
            return Err(refused(
                Code::InvalidArgument,
                "the present key is kept by you, and so must be the next",
            )
            .hint("make one: `(umask 077; openssl rand -hex 32 > FILE)`")
            .hint("then `glovebox secret rotate-key --new-key-file FILE`"));
        }
        // Also puts right what an earlier rotation left.
        let Some(old) = self.present_key()? else {
            return Err(refused(
                Code::NotFound,
                "nothing is sealed yet, so there is no key to exchange",
            )
            .hint("the first `glovebox secret set` makes one"));
        };
        let own = OwnKey::of(keys);
        let _alone = own.alone()?;
        let (next, key_file) = match new {
            NewKey::Generated => (own.prepare()?, None),
            NewKey::File(path) => (key::in_file(&path)?, Some(path)),
        };
        if next.id() == old.id() {
            return Err(refused(Code::Conflict, "the new key is the present one")
                .hint("make another: `(umask 077; openssl rand -hex 32 > FILE)`"));
        }
        stage::reached("rekey_prepared");
        let next = Arc::new(next);
        let (opener, closer) = (Arc::clone(&old), Arc::clone(&next));
        let values =
            self.store()
                .reseal_secrets(old.id(), next.id(), by, move |place, sealed| {
                    stage::reached("rekey_sealing");
                    let bound = bound_to(place);
                    let plain = opener.seal().open(&bound, sealed);
                    let plain = plain.ok_or_else(|| unopened(place))?;
                    closer.seal().close(&bound, &plain)
                })?;
        stage::reached("rekey_sealed");
        if key_file.is_none() {
            own.replace()?;
        }
        self.vault().remember(Arc::clone(&next));
        Ok(Rotated {
            from: old.id().to_owned(),
            to: next.id().to_owned(),
            values,
            key_file,
        })
    }
}
