//! Counts what comes before an answer's body. The parser limits one head; a server that sends
//! interim answers without end is stopped here.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Set once the head is there; from then on the reader of the body counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Arrived(Arc<AtomicBool>);

impl Arrived {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
}

#[derive(Debug)]
pub(super) struct HeadGuard<S> {
    stream: S,
    arrived: Arrived,
    left: usize,
}

impl<S> HeadGuard<S> {
    pub(super) fn new(stream: S, most: usize, arrived: Arrived) -> Self {
        Self {
            stream,
            arrived,
            left: most,
        }
    }
}

/// Told apart from other failures of the connection.
#[derive(Debug)]
pub(super) struct HeadTooLarge;

impl std::fmt::Display for HeadTooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("too much came before the body")
    }
}

impl std::error::Error for HeadTooLarge {}

impl<S: AsyncRead + Unpin> AsyncRead for HeadGuard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let counting = !self.arrived.0.load(Ordering::Acquire);
        // One read may go past the limit, since it may hold the begin of the body as well.
        if counting && self.left == 0 {
            return Poll::Ready(Err(io::Error::other(HeadTooLarge)));
        }
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        let read = buf.filled().len() - before;
        self.left = self.left.saturating_sub(read);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeadGuard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
