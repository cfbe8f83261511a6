//! Where a simulated connection leads, as far as it is known.

use std::net::SocketAddr;

use glovebox_egress::Host;
use glovebox_model::HostPort;

use crate::denial::Denial;
use crate::destination::Destination;
use crate::exchange::literal;
use crate::exec_session::Term;
use crate::gateway::Inside;

/// A destination, or what stands in the place of one: an address by itself is never reached for
/// real, and is played all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Goal {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) destination: Option<Destination>,
}

impl Goal {
    /// What a program told the proxy.
    pub(super) fn named(inside: &Inside, host: Host, port: u16) -> Self {
        let shown = host.to_string();
        Self::new(inside.meant(host, port), shown, port)
    }

    /// What a program dialled.
    pub(super) fn dialled(inside: &Inside, address: SocketAddr) -> Self {
        let port = address.port();
        let name = inside.names.name_of(address.ip());
        let shown = address.ip().to_canonical().to_string();
        Self::new(name.and_then(|it| Destination::new(it, port)), shown, port)
    }

    fn new(destination: Option<Destination>, shown: String, port: u16) -> Self {
        Self {
            host: destination
                .as_ref()
                .map_or(shown, |it| it.name().to_owned()),
            port,
            destination,
        }
    }

    /// Nothing that a host could be read from.
    pub(super) fn unread(text: &str) -> Self {
        Self {
            host: super::check::shown(text),
            port: 0,
            destination: None,
        }
    }

    /// What policy says to it, as it would for real.
    pub(super) fn judge(&self, term: &Term) -> Result<Option<HostPort>, Denial> {
        match &self.destination {
            Some(destination) => term.decide(destination),
            None => Err(literal(&self.host, self.port)),
        }
    }
}
