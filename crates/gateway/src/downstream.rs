//! The sandbox's end of a connection: what was read ahead of it, what it moved, and how it ends.

use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::exec_session::{Term, Way};
use crate::record::Moved;

/// A socket that several parts of the code may hold, one of which reads and writes.
#[derive(Debug, Clone)]
pub(crate) struct Wire(Arc<TcpStream>);

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self(Arc::new(stream))
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.0
    }

    fn shutdown(&self) -> io::Result<()> {
        match SockRef::from(&*self.0).shutdown(Shutdown::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            done => done,
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            ready!(self.0.poll_read_ready(cx))?;
            match self.0.try_read_buf(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done.map(drop)),
            }
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            match self.0.try_write(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            match self.0.try_write_vectored(bufs) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.shutdown())
    }
}

/// Makes sure that a connection which did not end by itself ends with a reset: an orderly end
/// would make cut-off data look complete.
#[derive(Debug)]
pub(crate) struct Ending {
    wire: Wire,
    orderly: bool,
}

/// How long, and for how much, the other side may go on sending after it was told why it is
/// refused. Closing a socket with unread data resets it, and the answer would be lost.
const DRAIN: Duration = Duration::from_millis(500);
const DRAINED_MOST: usize = 256 * 1024;

impl Ending {
    pub(crate) fn of(wire: &Wire) -> Self {
        Self {
            wire: wire.clone(),
            orderly: false,
        }
    }

    /// It has come to its end by itself.
    pub(crate) fn orderly(mut self) {
        self.orderly = true;
    }

    /// All has been said; what still comes in is thrown away, within limits.
    pub(crate) async fn drained(self) {
        if self.wire.shutdown().is_err() {
            return;
        }
        let stream = &self.wire.0;
        let drain = async {
            let mut scrap = BytesMut::with_capacity(8 * 1024);
            let mut most = DRAINED_MOST;
            while most > 0 && stream.readable().await.is_ok() {
                scrap.clear();
                match stream.try_read_buf(&mut scrap) {
                    Ok(0) => return,
                    Ok(bytes) => most = most.saturating_sub(bytes),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
        };
        let _ = timeout(DRAIN, drain).await;
        self.orderly();
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if !self.orderly {
            // A socket that is gone already needs no reset.
            let _ = self.wire.0.set_zero_linger();
        }
    }
}

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    received: AtomicU64,
}

/// Reads count as sent by the sandbox, writes as received by it.
#[derive(Debug)]
pub(crate) struct Near {
    wire: Wire,
    ahead: BytesMut,
    counts: Arc<Counts>,
    /// Whose limits the bytes count against, once the connection is let through.
    term: Option<Arc<Term>>,
}

/// What a connection has moved, for whoever does not hold it.
#[derive(Debug, Clone)]
pub(crate) struct Gauge(Arc<Counts>);

impl Gauge {
    pub(crate) fn read(&self) -> Moved {
        Moved {
            sent: self.0.sent.load(Ordering::Relaxed),
            received: self.0.received.load(Ordering::Relaxed),
        }
    }
}

const AHEAD_STEP: usize = 4 * 1024;

impl Near {
    pub(crate) fn new(wire: Wire) -> Self {
        Self {
            wire,
            ahead: BytesMut::new(),
            counts: Arc::default(),
            term: None,
        }
    }

    pub(crate) fn gauge(&self) -> Gauge {
        Gauge(Arc::clone(&self.counts))
    }

    /// From here on its bytes count, those that were read ahead too.
    pub(crate) fn charge(&mut self, term: &Arc<Term>) -> io::Result<()> {
        if self.term.is_none() {
            let moved = self.gauge().read();
            self.term = Some(Arc::clone(term));
            term.spend(Way::Sent, usize::try_from(moved.sent).unwrap_or(usize::MAX))?;
            let received = usize::try_from(moved.received).unwrap_or(usize::MAX);
            term.spend(Way::Received, received)?;
        }
        Ok(())
    }

    pub(crate) fn wire(&self) -> &Wire {
        &self.wire
    }

    pub(crate) fn take_ahead(&mut self) -> BytesMut {
        std::mem::take(&mut self.ahead)
    }

    pub(crate) fn ahead(&self) -> &[u8] {
        &self.ahead
    }

    /// Throws away what was understood of the bytes read ahead.
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.ahead.advance(bytes.min(self.ahead.len()));
    }

    /// Puts bytes back that somebody else has read.
    pub(crate) fn unread(&mut self, bytes: &[u8]) {
        let mut ahead = BytesMut::with_capacity(bytes.len() + self.ahead.len());
        ahead.extend_from_slice(bytes);
        ahead.extend_from_slice(&self.ahead);
        self.ahead = ahead;
    }

    /// Reads more ahead; 0 at the end. May be dropped while it waits.
    pub(crate) async fn fill(&mut self) -> io::Result<usize> {
        loop {
            self.wire.0.readable().await?;
            self.ahead.reserve(AHEAD_STEP);
            match self.wire.0.try_read_buf(&mut self.ahead) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
                Ok(bytes) => {
                    self.count(Way::Sent, bytes)?;
                    return Ok(bytes);
                }
            }
        }
    }

    /// Counts what somebody has read or written for it. An error: it may not go on.
    pub(crate) fn count(&self, way: Way, bytes: usize) -> io::Result<()> {
        let counter = match way {
            Way::Sent => &self.counts.sent,
            Way::Received => &self.counts.received,
        };
        counter.fetch_add(bytes as u64, Ordering::Relaxed);
        match &self.term {
            Some(term) => term.spend(way, bytes),
            None => Ok(()),
        }
    }

    fn written(&self, done: io::Result<usize>) -> io::Result<usize> {
        let bytes = done?;
        self.count(Way::Received, bytes)?;
        Ok(bytes)
    }
}

impl AsyncRead for Near {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let bytes = self.ahead.len().min(buf.remaining());
            buf.put_slice(&self.ahead[..bytes]);
            self.ahead.advance(bytes);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.wire).poll_read(cx, buf))?;
        // Bytes that are too many are not handed on: they never leave.
        let counted = self.count(Way::Sent, buf.filled().len() - before);
        if counted.is_err() {
            buf.set_filled(before);
        }
        Poll::Ready(counted)
    }
}

impl AsyncWrite for Near {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = ready!(Pin::new(&mut self.wire).poll_write(cx, buf));
        Poll::Ready(self.written(done))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = ready!(Pin::new(&mut self.wire).poll_write_vectored(cx, bufs));
        Poll::Ready(self.written(done))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.wire.shutdown())
    }
}
