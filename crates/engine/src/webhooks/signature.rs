//! What shows a receiver that a message is ours and fresh: the headers that the Standard Webhooks
//! convention names.

use std::fmt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use glovebox_model::{Code, Error, MessageId, Result, Stage};
use glovebox_store::{MadeBy, PrivateFault, read_private};
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sha2::Sha256;
use zeroize::Zeroizing;

/// What a key begins with that is written in base64.
const PREFIX: &[u8] = b"whsec_";
/// Fewer could be guessed.
const SHORTEST: usize = 24;
const LONGEST: usize = 4096;

/// Never shown.
pub(crate) struct SigningKey(Zeroizing<Vec<u8>>);

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(…)")
    }
}

impl SigningKey {
    /// From `whsec_` and base64, or from the bytes as they are; a line's end behind them is not
    /// part of the key.
    pub(crate) fn parse(bytes: &[u8]) -> std::result::Result<Self, &'static str> {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let key = match bytes.strip_prefix(PREFIX) {
            Some(text) => STANDARD
                .decode(text)
                .map_err(|_| "what follows `whsec_` is no base64")?,
            None => bytes.to_vec(),
        };
        match key.len() < SHORTEST {
            true => Err("it has fewer than 24 bytes"),
            false => Ok(Self(Zeroizing::new(key))),
        }
    }

    pub(crate) fn read(path: &Path) -> Result<Self> {
        let refused = |why: &dyn fmt::Display| {
            Error::new(
                Code::InvalidConfig,
                Stage::Open,
                format!("cannot use the signing key `{}`", path.display()),
            )
            .caused_by(why)
            .hint("make one: `(printf whsec_; head -c 32 /dev/urandom | base64 -w0) > FILE; chmod 600 FILE`")
        };
        let bytes = match read_private(path, MadeBy::Operator, LONGEST) {
            Ok(Some(bytes)) if bytes.len() <= LONGEST => bytes,
            Ok(Some(_)) => return Err(refused(&"it is larger than 4 KiB")),
            Ok(None) => return Err(refused(&"there is no such file")),
            Err(why @ PrivateFault::Exposed) => {
                return Err(refused(&format!("{why}: `chmod 600` it")));
            }
            Err(why) => return Err(refused(&why)),
        };
        Self::parse(&bytes).map_err(|why| refused(&why))
    }

    /// The value of `webhook-signature`.
    pub(crate) fn sign(&self, id: &MessageId, at: Timestamp, body: &[u8]) -> Result<String> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).map_err(|error| {
            Error::new(Code::Internal, Stage::Open, "a message cannot be signed").caused_by(error)
        })?;
        mac.update(format!("{id}.{}.", at.as_second()).as_bytes());
        mac.update(body);
        Ok(format!(
            "v1,{}",
            STANDARD.encode(mac.finalize().into_bytes())
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with another implementation: Python's `hmac`.
    #[test]
    fn a_signature_is_what_others_compute() {
        let key =
            SigningKey::parse(b"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n").unwrap();
        let id = MessageId::from_random([7; 16]);
        let at = Timestamp::from_second(1_700_000_000).unwrap();
        let signature = key.sign(&id, at, br#"{"a":1}"#).unwrap();
        assert_eq!(signature, "v1,ybVw2atACxDoQ+yDA/rEdDaTF1ucn/HKVlegcRP0/bc=");
    }

    #[test]
    fn a_weak_or_broken_key_is_no_key() {
        for bad in [&b""[..], b"short", b"whsec_!!!", b"whsec_c2hvcnQ="] {
            assert!(SigningKey::parse(bad).is_err());
        }
        assert!(SigningKey::parse(&[b'k'; 24]).is_ok());
    }
}
