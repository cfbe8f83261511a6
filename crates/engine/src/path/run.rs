//! Run: the program itself, its streams caught on the way.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use glovebox_backend::{Ended, Notice, Order, Run, Sink, TeardownGuard};
use glovebox_capture::{Redactor, Secrets};
use glovebox_model::{Error, Exec, Limits, Result, Stream, Traffic};
use glovebox_workspace::{Dir, ExecFiles, OutputSink};
use jiff::Timestamp;

use super::admit::Lease;
use crate::engine::Io;
use crate::network::Passage;
use crate::patience::Wait;
use crate::secrets::ExecSecrets;
use crate::workspaces::QuotaLeft;

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
            stdout: files.sink(Stream::Stdout, limits.stdout_bytes.get())?,
            stderr: files.sink(Stream::Stderr, limits.stderr_bytes.get())?,
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
    pub(super) remains: TeardownGuard,
    /// What was looked for in everything that it said and left.
    pub(super) masks: Arc<Secrets>,
}

impl Exited {
    /// What the supervisor saw and could not tell.
    pub(crate) fn unnoticed(&self) -> u64 {
        self.result.as_ref().map_or(0, |it| it.notices_dropped)
    }

    /// The failure to start, if that is how it ended, to be told better.
    pub(crate) fn failure_mut(&mut self) -> Option<&mut Error> {
        self.result.as_mut().err()
    }
}

/// Everything that one run needs beside its sandbox.
pub(crate) struct RunInputs<'run> {
    pub(crate) order: &'run Order,
    pub(crate) watched: &'run [&'run Dir],
    pub(crate) room: Option<QuotaLeft>,
    pub(crate) given: &'run ExecSecrets,
    pub(crate) passage: Option<Passage>,
    pub(crate) masks: Arc<Secrets>,
    /// Who is told what the supervisor sees.
    pub(crate) observer: Option<&'run mut dyn FnMut(Notice)>,
}

/// How long what may begin a secret is held back from a session: its client waits for the answer to what
/// was typed, and on a terminal for each letter.
const HELD_FROM_TERMINAL: Duration = Duration::from_millis(50);
const HELD_FROM_PIPE: Duration = Duration::from_millis(500);
/// And so many bytes of one, which nothing else begins with by chance.
const HELD_LONG: (usize, Duration) = (8, Duration::from_secs(2));

/// Every byte goes to the file first, then to whoever watches; what is secret to neither.
struct Tee<'io, 'run> {
    streams: Streams,
    live: &'io mut dyn Sink,
    /// For each stream, when there is anything to look for.
    masks: Option<[Redactor; 2]>,
    clean: Vec<u8>,
    /// Of a session: how long output may wait, and since when some does.
    held_at_most: Option<Duration>,
    held_since: Option<Instant>,
    observer: Option<&'run mut dyn FnMut(Notice)>,
}

impl Tee<'_, '_> {
    fn pass(&mut self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Stdout => self.streams.stdout.push(bytes),
            Stream::Stderr => self.streams.stderr.push(bytes),
        }
        self.live.output(stream, bytes);
    }

    /// When what is held back goes on.
    fn release(&self) -> Option<Instant> {
        let (enough, long) = HELD_LONG;
        let is_much = self.masks.iter().flatten().any(|it| it.held() >= enough);
        let at_most = self.held_at_most?;
        Some(self.held_since? + if is_much { at_most.max(long) } else { at_most })
    }

    fn finish_masks(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            self.masked(stream, Redactor::finish);
        }
    }

    fn masked(&mut self, stream: Stream, mask: impl FnOnce(&mut Redactor, &mut Vec<u8>)) {
        let Some([stdout, stderr]) = &mut self.masks else {
            return;
        };
        let mut clean = std::mem::take(&mut self.clean);
        clean.clear();
        match stream {
            Stream::Stdout => mask(stdout, &mut clean),
            Stream::Stderr => mask(stderr, &mut clean),
        }
        if !clean.is_empty() {
            self.pass(stream, &clean);
        }
        self.clean = clean;
    }
}

impl Sink for Tee<'_, '_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        match self.masks {
            None => self.pass(stream, bytes),
            Some(_) => {
                self.masked(stream, |redactor, clean| redactor.push(bytes, clean));
                let mut masks = self.masks.iter().flatten();
                let is_held = self.held_at_most.is_some() && masks.any(|it| it.held() > 0);
                self.held_since = is_held.then(Instant::now);
            }
        }
    }

    fn started(&mut self) {
        self.live.started();
    }

    fn has_room(&self) -> bool {
        self.live.has_room()
    }

    fn next_look(&self) -> Option<Instant> {
        let looks = [self.release(), self.live.next_look()];
        looks.into_iter().flatten().min()
    }

    fn look(&mut self, now: Instant) {
        // Nothing followed what may have begun a secret.
        if self.release().is_some_and(|due| due <= now) {
            for stream in [Stream::Stdout, Stream::Stderr] {
                self.masked(stream, Redactor::release);
            }
            self.held_since = None;
        }
        self.live.look(now);
    }

    fn noticed(&mut self, notice: Notice) {
        if let Some(observer) = &mut self.observer {
            observer(notice);
        }
    }

    fn ended(&mut self) {
        self.finish_masks();
        self.live.ended();
    }
}

/// Refusals that are worth a line; the log has them all.
const TOLD: usize = 3;

/// What its network refused, for whoever sees only what a program made of it.
fn refusals(traffic: Option<&Traffic>) -> impl Iterator<Item = String> {
    let refused = traffic.map_or(&[][..], |traffic| &traffic.refused);
    let told = refused.iter().take(TOLD).map(|it| {
        let hint = it
            .hint
            .as_deref()
            .unwrap_or("`glovebox logs --network` has more");
        format!("`{}:{}` was refused, {}: {hint}", it.host, it.port, it.code)
    });
    let rest = refused.len().saturating_sub(TOLD);
    let rest = (rest > 0).then(|| {
        format!("{rest} more destinations were refused; `glovebox logs --network` has them")
    });
    told.chain(rest)
}

pub(crate) fn run(lease: Lease, inputs: RunInputs<'_>, streams: Streams, io: Io<'_>) -> Exited {
    let Lease {
        approved,
        entry,
        mut record,
        sandbox,
    } = lease;
    let RunInputs {
        order,
        watched,
        room,
        given,
        passage,
        masks,
        observer,
    } = inputs;
    let mut profile = Cow::Borrowed(approved.assessed().profile());
    if let Some(room) = room {
        room.narrow(&mut profile.to_mut().limits);
        // The record says what really held.
        if let Some(recorded) = &mut record.policy_snapshot {
            room.narrow(&mut recorded.limits);
        }
    }
    let profile = profile.as_ref();
    record.isolation = sandbox.isolation().clone();
    record.started_at = Some(Timestamp::now());
    record.secrets = given.recorded();
    let mut tee = Tee {
        streams,
        live: io.live,
        masks: (!masks.is_empty()).then(|| [masks.redactor(), masks.redactor()]),
        clean: Vec::new(),
        held_at_most: record.session.map(|it| match it.terminal {
            Some(_) => Wait::Held.within(HELD_FROM_TERMINAL),
            None => Wait::Held.within(HELD_FROM_PIPE),
        }),
        held_since: None,
        observer,
    };
    let way = passage.map(Passage::enter);
    let (result, remains) = sandbox.run(Run {
        order,
        profile,
        watched,
        stdin: io.stdin,
        secrets: &given.handed(),
        sink: &mut tee,
        cancel: io.cancel,
        terminal: record.session.and_then(|it| it.terminal),
        control: io.control,
    });
    record.traffic = way.map(|way| way.close());
    record.notes.extend(refusals(record.traffic.as_ref()));
    tee.ended();
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
        masks,
    }
}
