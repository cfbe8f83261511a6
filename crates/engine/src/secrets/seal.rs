//! Authenticated encryption with a key of our own: what was sealed opens only for what it was
//! bound to.

use std::fmt;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use glovebox_model::{Code, Error, Result, Stage};
use zeroize::Zeroizing;

/// Long enough to be random each time.
const NONCE: usize = 24;

pub(crate) struct Seal(XChaCha20Poly1305);

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Self(XChaCha20Poly1305::new(Key::from_slice(key)))
    }

    pub(crate) fn close(&self, bound_to: &[u8], plain: &[u8]) -> Result<Vec<u8>> {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(|error| failed().caused_by(error))?;
        let payload = Payload {
            msg: plain,
            aad: bound_to,
        };
        let sealed = self.0.encrypt(&XNonce::from(nonce), payload);
        let mut bytes = nonce.to_vec();
        bytes.extend(sealed.map_err(|_| failed())?);
        Ok(bytes)
    }

    /// None for whatever was not closed with this key, for this very purpose.
    pub(crate) fn open(&self, bound_to: &[u8], bytes: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE>()?;
        let payload = Payload {
            msg: sealed,
            aad: bound_to,
        };
        let plain = self.0.decrypt(&XNonce::from(*nonce), payload);
        plain.ok().map(Zeroizing::new)
    }
}

fn failed() -> Error {
    Error::new(Code::Internal, Stage::Admit, "it cannot be sealed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_with_its_key_for_its_purpose_alone() {
        let (seal, other) = (Seal::new(&[1; 32]), Seal::new(&[2; 32]));
        let sealed = seal.close(b"here", b"a private value").unwrap();
        assert!(!sealed.windows(7).any(|part| part == b"private"));
        assert_eq!(&*seal.open(b"here", &sealed).unwrap(), b"a private value");
        assert!(seal.open(b"there", &sealed).is_none());
        assert!(other.open(b"here", &sealed).is_none());
        for place in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[place] ^= 1;
            assert!(seal.open(b"here", &changed).is_none());
        }
        assert!(seal.open(b"here", &sealed[..NONCE - 1]).is_none());
        let again = seal.close(b"here", b"a private value").unwrap();
        assert_ne!(sealed, again);
    }
}
