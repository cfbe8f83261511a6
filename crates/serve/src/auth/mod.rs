//! Who calls. A token is `gb_`, the digits of its id, and 256 random bits; the store has only a
//! keyed hash of the whole. Random bits need no slow hash, and the key, which lies in a file of its
//! own, makes a stolen database useless.

mod bootstrap;
mod caller;
mod host;
mod issue;
mod key;
mod limiter;
mod lookup;
mod secret;

pub use bootstrap::bootstrap;
pub(crate) use caller::*;
pub(crate) use host::{at_host, operator_at_machine, person_at};
pub use issue::Issued;
pub use key::TokenKey;
pub(crate) use key::random;
pub(crate) use lookup::{Authenticator, Given, REMEMBERED_FOR, unauthenticated};
pub(crate) use secret::Secret;
