//! New tokens for the operator at the machine, who needs no server to make one.

use glovebox_model::{Result, TokenId};

use super::key::{TokenKey, random};
use super::secret::Secret;

/// A new secret and what is kept of it. It has no `Debug`: the secret is for one pair of eyes.
#[expect(missing_debug_implementations, reason = "it holds a secret")]
pub struct Issued {
    pub id: TokenId,
    pub secret: String,
    pub hash: [u8; 32],
}

impl TokenKey {
    pub fn issue(&self) -> Result<Issued> {
        let (mut id, mut bits) = ([0; 16], [0; 32]);
        random(&mut id)?;
        random(&mut bits)?;
        let id = TokenId::from_random(id);
        let secret = Secret::of(&id, &bits);
        Ok(Issued {
            hash: self.hash(&secret),
            secret: secret.reveal().to_owned(),
            id,
        })
    }
}
