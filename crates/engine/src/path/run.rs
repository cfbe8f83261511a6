//! Run: the program itself, its streams caught on the way.

use glovebox_backend::{Ended, Order, Remains, Sink, Stream};
use glovebox_model::{Error, Exec, Limits, Result};
use glovebox_workspace::{self as workspace, Dir, ExecFiles, OutputSink};
use jiff::Timestamp;

use super::admit::Lease;
use crate::engine::Io;

/// The files that output goes to, made before the intent is written: after it nothing of ours may
/// fail before the program starts.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(super) stdout: OutputSink,
    pub(super) stderr: OutputSink,
}

impl Streams {
    pub(crate) fn new(files: &ExecFiles, limits: &Limits) -> Result<Self> {
        Ok(Self {
            stdout: files.sink(workspace::Stream::Stdout, limits.stdout_bytes.get())?,
            stderr: files.sink(workspace::Stream::Stderr, limits.stderr_bytes.get())?,
        })
    }
}

/// An exec that is over, one way or another; nothing of it runs any more.
#[derive(Debug)]
pub(crate) struct Exited {
    pub(super) entry: glovebox_store::Opened,
    pub(super) record: Exec,
    pub(super) result: Result<Ended, Error>,
    pub(super) streams: Streams,
    pub(super) artifacts_cap: u64,
    /// Why it was canceled, when it was not the caller who did.
    pub(super) stopped: Option<Error>,
    /// Dropped once the outcome is written: the kernel tidies up meanwhile.
    pub(super) remains: Remains,
}

impl Exited {
    /// The failure to start, if that is how it ended, to be told better.
    pub(crate) fn failure_mut(&mut self) -> Option<&mut Error> {
        self.result.as_mut().err()
    }
}

/// Every byte goes to the file first, then to whoever watches.
struct Tee<'io> {
    streams: Streams,
    live: &'io mut dyn Sink,
}

impl Sink for Tee<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Stdout => self.streams.stdout.push(bytes),
            Stream::Stderr => self.streams.stderr.push(bytes),
        }
        self.live.output(stream, bytes);
    }
}

pub(crate) fn run(
    lease: Lease,
    order: &Order,
    streams: Streams,
    watched: &[&Dir],
    io: Io<'_>,
) -> Exited {
    let Lease {
        approved,
        entry,
        mut record,
        sandbox,
    } = lease;
    let profile = approved.assessed().profile();
    record.isolation = sandbox.isolation().clone();
    record.started_at = Some(Timestamp::now());
    let mut tee = Tee {
        streams,
        live: io.live,
    };
    let (result, remains) = sandbox.run(order, profile, watched, io.stdin, &mut tee, io.cancel);
    tee.live.ended();
    record.ended_at = Some(Timestamp::now());
    let artifacts_cap = profile.limits.artifacts_bytes.get();
    Exited {
        entry,
        record,
        result,
        streams: tee.streams,
        artifacts_cap,
        stopped: io.stopped.and_then(|stopped| stopped()),
        remains,
    }
}
