//! Secrets: sealed at rest under a key that the database does not have, given by name, and looked
//! for in everything that programs say. How a program gets one is not decided here.

mod access;
mod exec_secrets;
mod hold;
mod key;
mod keyring;
mod known;
mod masks;
mod open;
mod revoked;
mod rotation;
mod seal;
mod vault;

pub use hold::Hold;
pub use key::KeySource;
pub use known::LogMask;
pub use masks::Masks;
pub use open::{KnownSecret, OpenedSecret};
pub use revoked::{Removal, Revocation, Revoked, RevokedWatch};
pub use rotation::{NewKey, Rotated};
pub use vault::{GRANT_MOST, GrantSecret, Secrets, SetSecret, Vault};

pub(crate) use access::SecretAccess;
pub(crate) use exec_secrets::{ExecSecrets, ensure_deliverable};
pub(crate) use known::Known;
pub(crate) use seal::Seal;
