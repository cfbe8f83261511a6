//! A TCP socket that listens.

use std::net::{SocketAddr, ToSocketAddrs};

use glovebox_model::{Code, Error, Result, Stage};
use tokio::net::TcpListener;

/// `HOST:PORT`; a name is looked up, and its first address that can be bound is taken.
pub(crate) fn bind(listen: &str) -> Result<(TcpListener, SocketAddr)> {
    let refuse = |message: String| Error::new(Code::InvalidArgument, Stage::Parse, message);
    let addresses: Vec<SocketAddr> = listen
        .to_socket_addrs()
        .map_err(|error| {
            refuse(format!("`{listen}` is not an address to listen on"))
                .caused_by(error)
                .hint("write `HOST:PORT`, such as `127.0.0.1:7070` or `[::1]:0`")
        })?
        .collect();
    let bound = std::net::TcpListener::bind(&addresses[..]).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok((TcpListener::from_std(listener)?, address))
    });
    bound.map_err(|error| {
        refuse(format!("cannot listen on `{listen}`"))
            .caused_by(error)
            .hint("another server may run there; `--listen 127.0.0.1:0` takes a free port")
    })
}
