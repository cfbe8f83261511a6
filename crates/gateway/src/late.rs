//! The body of an answer that may bring a secret back, and when each byte of it goes on.
//!
//! A program can have any host that it reaches say what the program likes, a little at a time. If what may
//! begin a secret waited longer than the rest, it would read the secret from the pauses. So every byte
//! waits alike: a fixed time, or until the body ends.

use std::collections::VecDeque;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use glovebox_capture::{Secrets, Window};
use glovebox_model::NetCode;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, Incoming};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::denial::Denial;
use crate::gateway::Inside;
use crate::mask::masked;
use crate::record::Asked;
use crate::unpack::{Finding, Unpacked};

/// Why a body ends before its end.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// How long a byte waits for what comes after it. A host that pauses longer inside a secret gives away
/// what stood before the pause; people hardly notice a stream that is this late.
const DELAY: Duration = Duration::from_millis(200);
/// What comes within this time goes on together: all that waits is looked through each time.
const TICK: Duration = Duration::from_millis(25);
/// What waits at most, of secrets of an ordinary length. Half of it goes on then, whatever it is.
const WAITING_MOST: usize = 256 * 1024;

/// Whose answer it is, to be told when it is cut.
#[derive(Debug)]
pub(crate) struct Exchanged {
    pub(crate) inside: Arc<Inside>,
    pub(crate) asked: Asked,
}

/// Bytes that came together.
#[derive(Debug)]
struct Together {
    due: Instant,
    count: usize,
}

/// What a host has of a secret may come back, in an echo or an error. What comes is searched while it
/// waits, and what it holds in a compressed form too; that cannot be masked, so it is cut.
#[derive(Debug)]
pub(crate) struct Late {
    body: Incoming,
    secrets: Secrets,
    window: Window,
    waiting_most: usize,
    since: Instant,
    queue: VecDeque<Together>,
    timer: Pin<Box<Sleep>>,
    unpacked: Unpacked,
    end: End,
    of: Exchanged,
}

#[derive(Debug)]
enum End {
    /// It goes on. What is said behind a body comes before its end.
    Not(Option<HeaderMap>),
    Trailers(HeaderMap),
    Broken(Failure),
    Told,
}

impl Late {
    pub(crate) fn new(body: Incoming, secrets: &Secrets, of: Exchanged) -> Self {
        let window = secrets.window();
        let since = Instant::now();
        Self {
            body,
            secrets: secrets.clone(),
            waiting_most: WAITING_MOST.max(2 * window.reach()),
            window,
            since,
            queue: VecDeque::new(),
            timer: Box::pin(sleep_until(since)),
            unpacked: Unpacked::new(secrets),
            end: End::Not(None),
            of,
        }
    }

    fn take_in(&mut self, data: &[u8]) {
        self.window.push(data);
        let ticks = self.since.elapsed().as_nanos() / TICK.as_nanos() + 1;
        let ticks = u32::try_from(ticks).unwrap_or(u32::MAX);
        let due = self.since + TICK.saturating_mul(ticks) + DELAY;
        match self.queue.back_mut() {
            Some(last) if last.due == due => last.count += data.len(),
            _ => self.queue.push_back(Together {
                due,
                count: data.len(),
            }),
        }
    }

    /// How many bytes may go on now.
    fn due(&mut self) -> usize {
        let now = Instant::now();
        let mut count = 0;
        while let Some(first) = self.queue.pop_front_if(|it| it.due <= now) {
            count += first.count;
        }
        let left = self.window.waiting() - count;
        if left <= self.waiting_most {
            return count;
        }
        let mut more = left - self.waiting_most / 2;
        count += more;
        while let Some(first) = self.queue.front_mut() {
            let taken = first.count.min(more);
            first.count -= taken;
            more -= taken;
            if first.count > 0 {
                break;
            }
            self.queue.pop_front();
        }
        count
    }

    /// The next bytes, unless what they decode to holds a secret.
    fn release(&mut self, count: usize) -> Option<Result<Frame<Bytes>, Failure>> {
        if let Err(cut) = self.judge() {
            self.end = End::Told;
            return Some(Err(cut));
        }
        let mut out = Vec::with_capacity(count);
        self.window.release(count, &mut out);
        (!out.is_empty()).then(|| Ok(Frame::data(out.into())))
    }

    fn judge(&mut self) -> Result<(), Failure> {
        let why = match self.unpacked.finding() {
            Finding::Nothing => return Ok(()),
            Finding::Unreadable => "is compressed so that it cannot be searched",
            Finding::Secret => "holds a secret in a compressed form",
        };
        let denial = Denial::new(
            NetCode::Other,
            format!("the answer {why}, and was cut"),
            "ask its host for an answer without compression",
        );
        self.of.inside.record.refuse(&self.of.asked, &denial);
        Err(denial.why.into())
    }

    /// All of it is here, or as much as will come.
    fn finish(&mut self, end: End) -> Option<Result<Frame<Bytes>, Failure>> {
        if let End::Broken(_) = &end {
            self.timer.as_mut().reset(Instant::now() + TICK);
        }
        self.end = end;
        self.queue.clear();
        self.unpacked.finish();
        self.release(self.window.waiting())
    }

    /// What comes behind the last byte.
    fn last(&mut self) -> Option<Result<Frame<Bytes>, Failure>> {
        match std::mem::replace(&mut self.end, End::Told) {
            End::Not(_) | End::Told => None,
            End::Trailers(trailers) => {
                let (masked, _) = masked(&trailers, &self.secrets);
                Some(Ok(Frame::trailers(masked)))
            }
            End::Broken(why) => Some(Err(why)),
        }
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        while let End::Not(trailers) = &mut self.end {
            let released = match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => {
                        self.unpacked.push(&data);
                        self.take_in(&data);
                        None
                    }
                    Err(frame) => {
                        *trailers = frame.into_trailers().ok();
                        None
                    }
                },
                Poll::Ready(Some(Err(error))) => self.finish(End::Broken(error.into())),
                Poll::Ready(None) => {
                    let end = trailers.take().map_or(End::Told, End::Trailers);
                    self.finish(end)
                }
                Poll::Pending => {
                    ready!(self.poll_due(cx));
                    None
                }
            };
            if let Some(frame) = released {
                return Poll::Ready(Some(frame));
            }
            if !matches!(self.end, End::Not(_)) {
                break;
            }
            let count = self.due();
            if count > 0
                && let Some(frame) = self.release(count)
            {
                return Poll::Ready(Some(frame));
            }
        }
        if let End::Broken(_) = &self.end {
            // Who hears of it together with the last bytes throws those away.
            ready!(self.timer.as_mut().poll(cx));
        }
        Poll::Ready(self.last())
    }

    /// Ready when the first bytes have waited long enough.
    fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(first) = self.queue.front() else {
            return Poll::Pending;
        };
        if self.timer.deadline() != first.due {
            self.timer.as_mut().reset(first.due);
        }
        self.timer.as_mut().poll(cx)
    }
}
