//! Connections, and what makes them. A test puts its own in place of the network.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::address;

pub trait Dialler: Send + Sync + fmt::Debug {
    fn dial<'a>(&'a self, address: SocketAddr) -> BoxFuture<'a, io::Result<Connection>>;
}

/// What the vetter dials with: the kernel.
#[derive(Debug, Clone, Copy, Default)]
pub struct TcpDialler;

impl Dialler for TcpDialler {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that dials what was vetted"
    )]
    fn dial<'a>(&'a self, address: SocketAddr) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            // The kernel answers for every address of its own, public ones too: what listens there
            // trusts this machine, and no wall stands in front of it.
            if address::blocked(address.ip()).is_none()
                && stream.local_addr()?.ip() == stream.peer_addr()?.ip()
            {
                return Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    "it is an address of this very machine",
                ));
            }
            stream.set_nodelay(true)?;
            Ok(Connection::tcp(stream))
        })
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

enum Inner {
    Tcp(TcpStream),
    Other(Box<dyn Stream>),
}

/// An open connection and who is at its other end.
pub struct Connection {
    inner: Inner,
    /// Who the dialler says is there, where the socket itself cannot know.
    reported: Option<SocketAddr>,
}

impl Connection {
    pub fn tcp(stream: TcpStream) -> Self {
        Self {
            inner: Inner::Tcp(stream),
            reported: None,
        }
    }

    /// A connection that leads to `peer` by another way than its socket shows.
    pub fn tcp_towards(stream: TcpStream, peer: SocketAddr) -> Self {
        Self {
            inner: Inner::Tcp(stream),
            reported: Some(peer),
        }
    }

    pub fn other(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        peer: SocketAddr,
    ) -> Self {
        Self {
            inner: Inner::Other(Box::new(stream)),
            reported: Some(peer),
        }
    }

    pub fn peer(&self) -> io::Result<SocketAddr> {
        match (&self.reported, &self.inner) {
            (Some(peer), _) => Ok(*peer),
            (None, Inner::Tcp(stream)) => stream.peer_addr(),
            (None, Inner::Other(_)) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// The socket, for whoever copies bytes between sockets.
    pub fn into_tcp(self) -> Result<TcpStream, Self> {
        match self.inner {
            Inner::Tcp(stream) => Ok(stream),
            inner @ Inner::Other(_) => Err(Self { inner, ..self }),
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connection")
            .field(&self.peer().ok())
            .finish()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Inner::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Inner::Other(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.inner {
            Inner::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            Inner::Other(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Inner::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Inner::Other(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Inner::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Inner::Other(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
