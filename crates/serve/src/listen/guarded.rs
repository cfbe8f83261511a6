//! A connection under watch: where requests end, and how long anything takes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::framing::Framing;
use crate::options::Times;

const PIECE: usize = 16 << 10;
/// No parser takes it, wherever in a head it stands: the answer is 400, and the end.
const POISON: &[u8] = b"\0\r\n\r\n";

/// What the connection and the request that it carries tell each other.
#[derive(Debug, Default)]
pub(super) struct Phase {
    answering: AtomicBool,
    last: AtomicBool,
}

impl Phase {
    pub(super) fn answer(self: &Arc<Self>) -> Answering {
        self.answering.store(true, Ordering::Release);
        Answering(Arc::clone(self))
    }

    /// Whether the connection must end after this answer.
    pub(super) fn is_last(&self) -> bool {
        self.last.load(Ordering::Acquire)
    }
}

/// Held as long as a request is being answered; the times between requests do not run meanwhile.
#[derive(Debug)]
pub(super) struct Answering(Arc<Phase>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.answering.store(false, Ordering::Release);
    }
}

/// A time by which something must have happened.
#[derive(Debug)]
struct Deadline {
    sleep: Pin<Box<Sleep>>,
    armed: bool,
}

impl Deadline {
    fn new() -> Self {
        Self {
            sleep: Box::pin(tokio::time::sleep(Duration::ZERO)),
            armed: false,
        }
    }

    fn arm(&mut self, after: Duration) {
        self.sleep.as_mut().reset(Instant::now() + after);
        self.armed = true;
    }

    fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
        self.armed && self.sleep.as_mut().poll(cx).is_ready()
    }
}

#[derive(Debug)]
pub(super) struct Guarded<S> {
    inner: S,
    /// Read, and not yet handed on.
    held: BytesMut,
    framing: Framing,
    phase: Arc<Phase>,
    times: Times,
    reading: Deadline,
    writing: Deadline,
    poisoned: bool,
}

impl<S> Guarded<S> {
    pub(super) fn new(inner: S, phase: Arc<Phase>, times: Times) -> Self {
        let mut reading = Deadline::new();
        // Who connects has something to say.
        reading.arm(times.head);
        Self {
            inner,
            held: BytesMut::new(),
            framing: Framing::new(),
            phase,
            times,
            reading,
            writing: Deadline::new(),
            poisoned: false,
        }
    }

    pub(super) fn into_inner(self) -> S {
        self.inner
    }

    fn hand_on(&mut self, out: &mut ReadBuf<'_>) {
        let most = self.held.len().min(out.remaining());
        match self.framing.take(&self.held[..most]) {
            Ok(count) => {
                out.put_slice(&self.held[..count]);
                self.held.advance(count);
                if self.framing.is_last() {
                    self.phase.last.store(true, Ordering::Release);
                }
            }
            Err(_) => {
                self.poisoned = true;
                self.held.clear();
                let most = POISON.len().min(out.remaining());
                out.put_slice(&POISON[..most]);
            }
        }
    }

    fn watch_reading(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.phase.answering.load(Ordering::Acquire) && !self.framing.is_in_head() {
            self.reading.armed = false;
        } else if !self.reading.armed {
            self.reading.arm(self.times.idle);
        }
        match self.reading.is_over(cx) {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(()),
        }
    }

    /// What came of an attempt to write; one that waits has until the deadline to get anywhere.
    fn watch_writing<T>(
        &mut self,
        cx: &mut Context<'_>,
        attempt: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match attempt {
            Poll::Ready(done) => {
                self.writing.armed = false;
                Poll::Ready(done)
            }
            Poll::Pending => {
                if !self.writing.armed {
                    self.writing.arm(self.times.write);
                }
                match self.writing.is_over(cx) {
                    true => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
                    false => Poll::Pending,
                }
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.poisoned || out.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        if this.held.is_empty() {
            this.watch_reading(cx)?;
            let mut piece = [0; PIECE];
            let mut piece = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut this.inner).poll_read(cx, &mut piece))?;
            if piece.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.held.extend_from_slice(piece.filled());
        }
        let before = this.framing.is_in_head();
        this.hand_on(out);
        match (before, this.framing.is_in_head()) {
            (false, true) => this.reading.arm(this.times.head),
            (true, true) => {}
            (_, false) => this.reading.armed = false,
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let attempt = Pin::new(&mut this.inner).poll_write(cx, bytes);
        this.watch_writing(cx, attempt)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let attempt = Pin::new(&mut this.inner).poll_flush(cx);
        this.watch_writing(cx, attempt)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let attempt = Pin::new(&mut this.inner).poll_shutdown(cx);
        this.watch_writing(cx, attempt)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let attempt = Pin::new(&mut this.inner).poll_write_vectored(cx, bytes);
        this.watch_writing(cx, attempt)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    const SHORT: Duration = Duration::from_millis(50);

    fn pair(times: Times) -> (Guarded<DuplexStream>, DuplexStream, Arc<Phase>) {
        let (ours, theirs) = duplex(1 << 10);
        let phase = Arc::new(Phase::default());
        (Guarded::new(ours, Arc::clone(&phase), times), theirs, phase)
    }

    /// A host that has no time for this now gets more of it, twice.
    const UNITS: [Duration; 3] = [SHORT, Duration::from_millis(400), Duration::from_secs(2)];

    fn hasty() -> Times {
        Times {
            head: SHORT,
            idle: SHORT,
            write: SHORT,
            ..Times::default()
        }
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_cut() {
        let (mut guarded, theirs, _) = pair(hasty());
        let written = guarded.write_all(&[0; 4 << 10]).await;
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(theirs);
    }

    #[tokio::test]
    async fn a_client_that_takes_its_time_is_not() {
        for unit in UNITS {
            let (mut guarded, mut theirs, _) = pair(Times {
                write: unit * 8,
                ..hasty()
            });
            let reader = tokio::spawn(async move {
                let (mut piece, mut count) = ([0; 512], 0);
                // Longer in all than the whole limit, each time far less.
                while count < 8 << 10 {
                    tokio::time::sleep(unit).await;
                    count += match theirs.read(&mut piece).await.unwrap() {
                        0 => break,
                        some => some,
                    };
                }
            });
            let written = guarded.write_all(&[0; 8 << 10]).await;
            drop(guarded);
            reader.await.unwrap();
            if written.is_ok() {
                return;
            }
        }
        panic!("it was cut");
    }

    #[tokio::test]
    async fn a_head_that_drips_is_cut_however_often_it_drips() {
        for unit in UNITS {
            let (mut guarded, mut theirs, _) = pair(Times {
                head: unit * 8,
                ..hasty()
            });
            let dripping = tokio::spawn(async move {
                while theirs.write_all(b"x").await.is_ok() {
                    tokio::time::sleep(unit / 10).await;
                }
            });
            let mut all = Vec::new();
            let read = guarded.read_to_end(&mut all).await;
            assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
            drop(guarded);
            dripping.await.unwrap();
            if all.len() > 1 {
                return;
            }
        }
        panic!("nothing dripped");
    }

    #[tokio::test]
    async fn silence_is_cut_unless_somebody_waits_for_an_answer() {
        let (mut guarded, theirs, phase) = pair(hasty());
        let answering = phase.answer();
        let waited = tokio::time::timeout(SHORT * 4, guarded.read_u8()).await;
        assert!(waited.is_err(), "cut while it is answered: {waited:?}");
        drop(answering);
        let read = guarded.read_u8().await;
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(theirs);
    }
}
