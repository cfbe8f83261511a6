//! HTTP/1.1 over vetted connections. Each request has a connection of its own: nothing is pooled,
//! so no request goes to an address that was vetted for another one. No cookies, no proxy of the
//! environment, no header that the caller did not name.

mod answer;
mod coding;
mod deliver;
mod exchange;
mod fetch;
mod follow;
mod guard;
mod trust;

use std::time::Duration;

pub use answer::{Answer, Body};
pub use deliver::{Delivered, DeliveryRequest};
pub use exchange::AnswerSource;
pub(crate) use exchange::hex;
pub use fetch::{Authorization, Fetch};
pub(crate) use follow::Ask;
pub use follow::{Followed, HopPolicy, RedirectRules, Trail};
pub use trust::Trust;

use crate::vetter::Vetter;

/// One hop's limits. The deadline over everything is given with each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLimits {
    /// For the lookup, the connection and the TLS handshake together.
    pub connect: Duration,
    pub headers: usize,
    /// Of everything before the body: the answer's head and all interim answers together.
    pub head_bytes: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            headers: 100,
            head_bytes: 64 * 1024,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Client {
    pub vetter: Vetter,
    pub trust: Trust,
    pub limits: ClientLimits,
}

impl Client {
    pub fn new(vetter: Vetter, trust: Trust) -> Self {
        Self {
            vetter,
            trust,
            limits: ClientLimits::default(),
        }
    }
}
