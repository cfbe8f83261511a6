//! The sockets that the sandbox's network ends in.

use std::io;
use std::os::fd::OwnedFd;

use tokio::net::{TcpListener, UdpSocket};

/// Made inside the sandbox's network namespace; a socket stays in the namespace of its maker.
#[derive(Debug, Default)]
pub struct GatewaySockets {
    /// Listeners to which every dialled connection is redirected.
    pub transparent: Vec<OwnedFd>,
    /// Listeners for programs that know of a proxy.
    pub proxy: Vec<OwnedFd>,
    /// UDP sockets to which questions to any DNS server are redirected.
    pub dns: Vec<OwnedFd>,
}

#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) transparent: Vec<TcpListener>,
    pub(crate) proxy: Vec<TcpListener>,
    pub(crate) dns: Vec<UdpSocket>,
}

impl GatewaySockets {
    pub(crate) fn open(self) -> io::Result<Open> {
        let tcp = |fds: Vec<OwnedFd>| fds.into_iter().map(listener).collect::<io::Result<_>>();
        Ok(Open {
            transparent: tcp(self.transparent)?,
            proxy: tcp(self.proxy)?,
            dns: self
                .dns
                .into_iter()
                .map(socket)
                .collect::<io::Result<_>>()?,
        })
    }
}

fn listener(fd: OwnedFd) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::from(fd);
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

fn socket(fd: OwnedFd) -> io::Result<UdpSocket> {
    let socket = std::net::UdpSocket::from(fd);
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}
