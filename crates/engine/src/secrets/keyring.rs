//! The key of the secrets in the kernel's keyring of this user, where no file has it.

use glovebox_model::{Code, Error, Result, Stage};
use linux_keyutils::{KeyRing, KeyRingIdentifier};
use zeroize::Zeroizing;

pub(super) const DESCRIPTION: &str = "glovebox:secrets";

/// Longer than any form of a key that is taken.
const MOST: usize = 256;

/// None where there is no such key, or no keyring that can be asked.
pub(super) fn read() -> Result<Option<Zeroizing<Vec<u8>>>> {
    let Ok(ring) = KeyRing::from_special_id(KeyRingIdentifier::User, false) else {
        return Ok(None);
    };
    let Ok(key) = ring.search(DESCRIPTION) else {
        return Ok(None);
    };
    let mut bytes = Zeroizing::new(vec![0; MOST]);
    let read = key.read(&mut *bytes).map_err(|error| unreadable(&error))?;
    // The kernel says how long it is, also when that is more than it gave.
    if read > MOST {
        return Err(unreadable(&"it is too long"));
    }
    bytes.truncate(read);
    Ok(Some(bytes))
}

fn unreadable(why: &dyn std::fmt::Display) -> Error {
    Error::new(
        Code::StoreUnavailable,
        Stage::Open,
        format!("the key `{DESCRIPTION}` in the kernel's keyring cannot be read"),
    )
    .caused_by(why)
    .hint("make it yours in this session: `keyctl link @u @s`")
    .hint("or name a file: `--secrets-key-file FILE`")
}
