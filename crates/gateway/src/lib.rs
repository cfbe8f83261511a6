//! A sandbox's way out. The sandbox has no interface but loopback; whatever it dials or asks the
//! DNS ends in sockets that were made inside and are served here. Every name is answered with an
//! address of its own, so that a connection says by its address which name was meant; what may be
//! reached is decided by name and port, and only then is the real address looked up, vetted and
//! dialled, by [`glovebox_egress`].
//!
//! What is seen on a connection can refuse it and never grants anything: the name in a TLS
//! handshake and in every plain request must be the name that was decided on. Inside TLS that is
//! not opened here nothing is seen: a host that serves several names under one certificate can be
//! asked for another one there, and an encrypted ClientHello shows its outer name only. Hosts for
//! which this matters are inspected.
//!
//! An exec can be simulated: its policy is decided by as always and only recorded, every program is
//! answered from responses that were given beforehand, and nobody is asked or dialled. The code
//! that does it has no vetter. What was tried is told as [`Seen`]; faults come from [`FaultInjection`].
//!
//! An exec can be held to what a simulation showed, by [`Previewed`]: beside all else, a request or
//! a connection must be one of those, and be left. The first that is not is refused before any of
//! it leaves, and nothing gets out from there on. Nothing is dialled without having been held
//! against it. A request is compared whole: its query, its headers and its body, which is kept back for
//! that. What cannot be compared is refused.

mod authority;
mod broker;
mod budget;
mod connection;
mod decode;
mod denial;
mod destination;
mod dialled;
mod dns;
mod downstream;
mod exchange;
mod exec_session;
mod forward;
mod frames;
mod gateway;
mod head;
mod late;
mod mask;
mod names;
mod path;
mod policy;
mod previewed;
mod proxy;
mod record;
mod simulate;
mod sniff;
mod sockets;
mod socks;
mod splice;
mod spoken;
mod unpack;
mod upload;
mod upstream;

pub use authority::Authority;
pub use denial::hint_for;
pub use dialled::{Dialled, Redirected};
pub use gateway::Gateway;
pub use head::Unmasked;
pub use names::{Names, RESOLVER, Synthetic};
pub use path::PathPattern;
pub use policy::{Brokered, Inspect, Policy};
pub use previewed::{Previewed, Stray};
pub use record::Log;
pub use simulate::{Answer, FaultInjection, Injected, Outcome, Seen, Simulated, Try};
pub use sockets::GatewaySockets;
