//! From a socket to requests. The accept loop is our own, since what it must refuse, a general one
//! lets pass: slow heads, slow readers, and requests whose end two parsers would see differently.

mod accept;
mod connection;
mod framing;
mod guarded;
mod handover;
mod tcp;
mod tls;
mod unix;

pub(crate) use accept::{Acceptor, Listener};
pub(crate) use connection::{Peer, linger};
pub(crate) use handover::{Handover, Line, Wire};
pub(crate) use tcp::bind as bind_tcp;
pub(crate) use tls::acceptor;
pub(crate) use unix::bind as bind_unix;

/// The most that the head of a request may hold, and how many lines.
pub(crate) const HEAD_BYTES: usize = 16 << 10;
pub(crate) const HEAD_LINES: usize = 64;
