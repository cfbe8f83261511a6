//! The only way out: a destination is named, vetted once, dialled as it was vetted, and what comes
//! back is read with limits. Nothing else in the product opens an outbound connection, except to
//! what the operator configured, which goes through [`operator`].
//!
//! [`Vetted`] has no public constructor: an address that nobody vetted cannot be dialled.

pub mod address;
pub mod client;
mod dial;
mod host;
pub mod operator;
mod refusal;
mod resolve;
pub mod retrieve;
mod target;
mod vetter;

use client::hex;
pub use dial::{Connection, Dialler, TcpDialler};
pub use host::{Host, HostName};
pub use refusal::{Refusal, RefusalCode};
pub use resolve::{ListedResolver, Resolver, SystemResolver};
pub use target::{Origin, Scheme, Target, vet_url};
pub use vetter::{PrivateTargets, Vetted, Vetter};
