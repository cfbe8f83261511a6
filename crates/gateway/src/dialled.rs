//! Which address a program dialled before its connection was redirected here.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use socket2::SockRef;
use tokio::net::TcpStream;

pub trait Dialled: Send + Sync + fmt::Debug {
    fn destination(&self, stream: &TcpStream) -> io::Result<SocketAddr>;
}

/// As the kernel remembers it. Without a redirect, where a route alone brought the connection
/// here, the socket's own address is the one that was dialled.
#[derive(Debug, Clone, Copy, Default)]
pub struct Redirected;

impl Dialled for Redirected {
    fn destination(&self, stream: &TcpStream) -> io::Result<SocketAddr> {
        let local = stream.local_addr()?;
        let socket = SockRef::from(stream);
        // A listener for both families shows IPv4 as mapped addresses.
        let original = match local.ip().to_canonical() {
            IpAddr::V4(_) => socket.original_dst_v4(),
            IpAddr::V6(_) => socket.original_dst_v6(),
        };
        let original = original.ok().and_then(|it| it.as_socket());
        Ok(original.unwrap_or(local))
    }
}
