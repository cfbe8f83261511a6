//! The accept loop, and how many connections there may be.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use super::connection::{self, Peer};
use crate::metrics::Metrics;
use crate::options::Times;

const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(crate) enum Listener {
    Tcp(TcpListener, Option<TlsAcceptor>),
    Unix(UnixListener),
}

/// What every connection of a server shares.
#[derive(Clone)]
pub(crate) struct Acceptor {
    pub(crate) router: Router,
    pub(crate) times: Times,
    pub(crate) places: Arc<Semaphore>,
    pub(crate) metrics: Arc<Metrics>,
    /// True once the server closes its doors.
    pub(crate) closing: watch::Receiver<bool>,
}

impl Acceptor {
    /// Takes connections until the server closes. A place is taken before the connection is: who
    /// finds none waits in the kernel's queue and costs nothing.
    pub(crate) async fn receive(self, listener: Listener) {
        let mut closing = self.closing.clone();
        let mut pause = SHORTEST_PAUSE;
        loop {
            let next = async {
                let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
                Some((place, listener.accept().await))
            };
            let next = tokio::select! {
                next = next => next,
                _ = closing.wait_for(|closing| *closing) => None,
            };
            match next {
                None => return,
                Some((place, Ok(stream))) => {
                    pause = SHORTEST_PAUSE;
                    self.clone().welcome(place, stream);
                }
                // Out of descriptors, or the client was gone already: trying again at once could
                // spin for as long as it lasts.
                Some((_, Err(error))) => {
                    tracing::warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    fn welcome(self, place: OwnedSemaphorePermit, stream: Stream) {
        tokio::spawn(async move {
            let _place = place;
            let _counted = self.metrics.connection();
            let Self {
                router,
                times,
                closing,
                ..
            } = self;
            match stream {
                Stream::Plain(stream, peer) => {
                    connection::serve(stream, peer, router, times, closing).await;
                }
                Stream::Tls(stream, peer, tls) => {
                    match tokio::time::timeout(times.head, tls.accept(stream)).await {
                        Ok(Ok(stream)) => {
                            connection::serve(stream, peer, router, times, closing).await;
                        }
                        Ok(Err(error)) => tracing::debug!(%error, "no TLS with a client"),
                        Err(_) => tracing::debug!("a TLS handshake took too long"),
                    }
                }
                Stream::Unix(stream) => {
                    connection::serve(stream, Peer::Owner, router, times, closing).await;
                }
            }
        });
    }
}

enum Stream {
    Plain(tokio::net::TcpStream, Peer),
    Tls(tokio::net::TcpStream, Peer, TlsAcceptor),
    Unix(tokio::net::UnixStream),
}

impl Listener {
    async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener, tls) => {
                let (stream, address) = listener.accept().await?;
                stream.set_nodelay(true)?;
                let peer = Peer::Address(address.ip().to_canonical());
                Ok(match tls {
                    Some(tls) => Stream::Tls(stream, peer, tls.clone()),
                    None => Stream::Plain(stream, peer),
                })
            }
            Self::Unix(listener) => Ok(Stream::Unix(listener.accept().await?.0)),
        }
    }
}
