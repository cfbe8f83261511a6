//! An exec that this server has taken on and that has not ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use glovebox_backend::{Cancel, Canceler, Sink};
use glovebox_model::{
    Code, Effect, Error, Exec, ExecId, Limits, ProjectId, Result, SpaceId, Stage, Status, Stream,
};
use glovebox_workspace::{Happened, Journal};
use jiff::Timestamp;
use tokio::sync::watch;

use super::admission::Account;
use super::locked;
use crate::effects::Listener;
use crate::sessions::SessionIo;
use crate::visibility::Seen;

/// How far an exec has come, for whoever watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Events so far.
    pub events: u64,
    /// Its record is final.
    pub ended: bool,
}

/// Who asked it to stop, if anybody but its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The server is being shut down.
    Shutdown,
    /// This server may not speak for its execs any more.
    LeaseLost,
}

#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) space: SpaceId,
    pub(crate) exec: ExecId,
    pub(crate) project: ProjectId,
    pub(crate) account: Account,
    canceler: Canceler,
    stop: OnceLock<Stop>,
    /// It has a sandbox, or is about to.
    has_begun: AtomicBool,
    progress: watch::Sender<Progress>,
    /// Its final record, once that is durable.
    closed: OnceLock<Exec>,
}

/// An exec that this server has taken on, for whoever waits for its end.
#[derive(Debug)]
pub struct Attended {
    live: Arc<Live>,
    progress: watch::Receiver<Progress>,
}

impl Attended {
    pub(super) fn new(live: Arc<Live>) -> Self {
        let progress = live.watch();
        Self { live, progress }
    }

    pub fn has_ended(&self) -> bool {
        self.progress.borrow().ended
    }

    /// Returns when it has ended.
    pub async fn end(&mut self) {
        // An error means that nobody is left to tell of it, which is an end, too.
        let _ = self.progress.wait_for(|progress| progress.ended).await;
    }

    /// The final record as it was written down. None: it has not ended, or its end was not written
    /// here; the store knows more.
    pub fn record(&self) -> Option<Seen<Exec>> {
        self.live.closed.get().cloned().map(Seen::own)
    }
}

impl Live {
    pub(crate) fn new(
        (space, exec): (SpaceId, ExecId),
        project: ProjectId,
        account: Account,
    ) -> Result<(Self, Cancel)> {
        let (cancel, canceler) = Cancel::new().map_err(|errno| {
            Error::new(Code::Busy, Stage::Admit, "no descriptors are left").caused_by(errno)
        })?;
        let live = Self {
            space,
            exec,
            project,
            account,
            canceler,
            stop: OnceLock::new(),
            has_begun: AtomicBool::new(false),
            progress: watch::Sender::new(Progress::default()),
            closed: OnceLock::new(),
        };
        Ok((live, cancel))
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Once asks politely; a second time ends at once.
    pub(crate) fn cancel(&self) {
        self.canceler.cancel();
    }

    pub(crate) fn begin(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    pub(crate) fn stop(&self, why: Stop) {
        // The first reason is the one.
        let _ = self.stop.set(why);
        self.cancel();
    }

    /// Why it was stopped, as its record tells it.
    pub(crate) fn stopped(&self) -> Option<Error> {
        let (code, message) = match self.stop.get()? {
            Stop::Shutdown => (
                Code::ShuttingDown,
                "the server was shut down before it ended",
            ),
            Stop::LeaseLost => (Code::Lost, "the server lost its lease on the database"),
        };
        let error = Error::new(code, Stage::Run, message);
        Some(error.hint("look at the workspace before running it again"))
    }

    pub(crate) fn tell(&self, events: u64) {
        self.progress
            .send_modify(|progress| progress.events = events);
    }

    /// Before its end is told: what whoever waits is given.
    pub(crate) fn close(&self, record: Exec) {
        let _ = self.closed.set(record);
    }

    pub(crate) fn end(&self) {
        self.progress.send_modify(|progress| progress.ended = true);
    }
}

/// The journal of a live exec: every event is on file before anybody hears of it.
#[derive(Debug)]
pub(crate) struct Reporter<'live> {
    live: &'live Arc<Live>,
    journal: Arc<Mutex<Journal>>,
    stdout: Told,
    stderr: Told,
    /// Whoever talks to the program, where it is a session's.
    session: Option<Arc<SessionIo>>,
    /// Of a session: when all of its output was last told.
    told_at: Option<Instant>,
}

/// How much of a stream was told, and how much of it is kept at all.
#[derive(Debug)]
struct Told {
    stream: Stream,
    cap: u64,
    seen: u64,
    told: u64,
    over: bool,
}

impl Told {
    fn waits(&self) -> bool {
        self.seen.min(self.cap) > self.told
    }
}

/// From so many events on, small pieces of output wait for more: a program that writes single
/// bytes would otherwise cost more to account for than to run.
const PLENTY: u64 = 4096;
const PIECE: u64 = 64 << 10;
/// But so long at most in a session: somebody follows it, and its recording has their times. Twice as long
/// after each so many events, so that a day adds 10 MiB at most to the journal.
const PAUSE: Duration = Duration::from_millis(100);
const SLOWER: u64 = 1 << 16;

/// After so many events of a session.
fn pause(events: u64) -> Duration {
    PAUSE * (1 << (events / SLOWER).min(16))
}

impl<'live> Reporter<'live> {
    pub(crate) fn new(live: &'live Arc<Live>, journal: Journal, limits: &Limits) -> Self {
        let told = |stream, cap| Told {
            stream,
            cap,
            seen: 0,
            told: 0,
            over: false,
        };
        Self {
            live,
            journal: Arc::new(Mutex::new(journal)),
            stdout: told(Stream::Stdout, limits.stdout_bytes.get()),
            stderr: told(Stream::Stderr, limits.stderr_bytes.get()),
            session: None,
            told_at: None,
        }
    }

    pub(crate) fn beside(self, session: Option<Arc<SessionIo>>) -> Self {
        let told_at = session.is_some().then(Instant::now);
        Self {
            session,
            told_at,
            ..self
        }
    }

    pub(crate) fn state(&mut self, status: Status) {
        let happened = Happened::State {
            status,
            queue_position: None,
        };
        self.add(happened);
    }

    fn told(&mut self, stream: Stream) -> &mut Told {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    fn tell_rest(&mut self, stream: Stream) {
        let told = self.told(stream);
        let (stream, offset) = (told.stream, told.told);
        let end = told.seen.min(told.cap);
        let over = told.seen > told.cap && !told.over;
        told.told = end;
        told.over |= over;
        if let Ok(length @ 1..) = u32::try_from(end - offset) {
            self.add(Happened::Output {
                stream,
                offset,
                length,
            });
        }
        if over {
            self.add(Happened::Truncated { stream });
        }
    }

    fn tell_all(&mut self) {
        self.tell_rest(Stream::Stdout);
        self.tell_rest(Stream::Stderr);
    }

    fn add(&mut self, happened: Happened) {
        note(self.live, &self.journal, happened);
    }

    /// For effects, which are seen on other threads too.
    pub(crate) fn listener(&self) -> Arc<dyn Listener> {
        Arc::new(EffectReporter {
            live: Arc::clone(self.live),
            journal: Arc::clone(&self.journal),
        })
    }
}

struct EffectReporter {
    live: Arc<Live>,
    journal: Arc<Mutex<Journal>>,
}

impl Listener for EffectReporter {
    fn effect(&self, _: &Effect, (offset, length): (u64, u32)) {
        let happened = Happened::Effect { offset, length };
        note(&self.live, &self.journal, happened);
    }
}

fn note(live: &Live, journal: &Mutex<Journal>, happened: Happened) {
    let mut journal = locked(journal);
    journal.add(Timestamp::now(), happened);
    live.tell(journal.written());
}

impl Sink for Reporter<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        if let Some(session) = &self.session {
            session.put_out(stream, bytes);
        }
        let plenty = locked(&self.journal).written() >= PLENTY;
        let told = self.told(stream);
        told.seen = told.seen.saturating_add(bytes.len() as u64);
        if !plenty || told.seen - told.told >= PIECE || told.seen > told.cap {
            self.tell_rest(stream);
        } else if self.told_at.is_some() {
            self.look(Instant::now());
        }
    }

    fn started(&mut self) {
        if let Some(session) = &self.session {
            session.begin();
        }
    }

    fn has_room(&self) -> bool {
        self.session.as_ref().is_none_or(|it| it.has_room())
    }

    /// When what a session's program put out is told, if no more of it comes.
    fn next_look(&self) -> Option<Instant> {
        let told_at = self.told_at?;
        let waits = [&self.stdout, &self.stderr].iter().any(|it| it.waits());
        waits.then(|| told_at + pause(locked(&self.journal).written()))
    }

    fn look(&mut self, now: Instant) {
        if self.next_look().is_some_and(|due| due <= now) {
            self.tell_all();
            self.told_at = Some(now);
        }
    }

    /// What was held back is told before the end is.
    fn ended(&mut self) {
        self.tell_all();
    }
}

#[cfg(test)]
mod tests {
    use glovebox_policy::{HostFacts, Surface, System};
    use glovebox_workspace::{Dir, JournalReader, Layout};

    use super::*;

    struct Ground {
        _dir: tempfile::TempDir,
        live: Arc<Live>,
        limits: Limits,
        layout: Layout,
    }

    impl Ground {
        fn open() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let layout = Layout::open(Dir::open_trusted(dir.path()).unwrap()).unwrap();
            let account = Account {
                space: SpaceId::local(),
                user: None,
            };
            let ids = (SpaceId::local(), ExecId::from_random([7; 16]));
            let (live, _) = Live::new(ids, "p".parse().unwrap(), account).unwrap();
            let host = HostFacts {
                memory_bytes: 1 << 30,
                cpus: 1,
            };
            Self {
                _dir: dir,
                live: Arc::new(live),
                limits: *System::new(Surface::Server, host).defaults(),
                layout,
            }
        }

        /// One that has told plenty, a byte each.
        fn busy(&self, told_at: Option<Instant>) -> Reporter<'_> {
            let project = self.layout.project(&self.live.project).unwrap();
            let journal = project.journal(&self.live.exec).unwrap();
            let mut reporter = Reporter::new(&self.live, journal, &self.limits);
            reporter.told_at = told_at;
            for _ in 0..PLENTY {
                reporter.output(Stream::Stdout, b"a");
            }
            assert_eq!(self.told(), (PLENTY, PLENTY));
            reporter
        }

        fn journal(&self) -> JournalReader {
            let (project, exec) = (&self.live.project, &self.live.exec);
            self.layout.journal(project, exec).unwrap().unwrap()
        }

        /// Events, and the bytes of the standard output in them.
        fn told(&self) -> (u64, u64) {
            let journal = self.journal();
            let (mut events, mut bytes) = (0, 0);
            for entry in journal.read(0, 10_000).unwrap() {
                events = entry.seq;
                if let Happened::Output {
                    stream: Stream::Stdout,
                    offset,
                    length,
                } = entry.happened
                {
                    assert_eq!(offset, bytes, "without gaps");
                    bytes += u64::from(length);
                }
            }
            (events, bytes)
        }
    }

    #[test]
    fn of_a_session_nothing_waits_for_long_however_much_was_told() {
        let ground = Ground::open();
        // Its pauses end when this test says so.
        let later = Instant::now() + Duration::from_secs(1000);
        let mut reporter = ground.busy(Some(later));
        assert_eq!(reporter.next_look(), None);
        reporter.output(Stream::Stdout, b"pro");
        reporter.output(Stream::Stdout, b"mpt");
        reporter.output(Stream::Stderr, b"error");
        assert_eq!(ground.told(), (PLENTY, PLENTY));
        assert_eq!(reporter.next_look(), Some(later + PAUSE));
        reporter.look(later);
        assert_eq!(ground.told(), (PLENTY, PLENTY));
        reporter.look(later + PAUSE);
        assert_eq!(ground.told(), (PLENTY + 2, PLENTY + 6));
        assert_eq!(reporter.next_look(), None);
        // What comes after a pause does not wait at all.
        reporter.told_at = Instant::now().checked_sub(PAUSE);
        reporter.output(Stream::Stdout, b"key");
        assert_eq!(ground.told(), (PLENTY + 3, PLENTY + 9));
        reporter.output(Stream::Stdout, b"end");
        reporter.ended();
        assert_eq!(ground.told(), (PLENTY + 4, PLENTY + 12));
    }

    #[test]
    fn of_another_exec_small_pieces_wait_for_more() {
        let ground = Ground::open();
        let mut reporter = ground.busy(None);
        reporter.output(Stream::Stdout, b"b");
        assert_eq!(reporter.next_look(), None);
        reporter.look(Instant::now() + PAUSE);
        assert_eq!(ground.told(), (PLENTY, PLENTY));
        reporter.output(Stream::Stdout, &vec![b'c'; 64 << 10]);
        assert_eq!(ground.told(), (PLENTY + 1, PLENTY + 1 + PIECE));
    }

    #[test]
    fn a_day_of_output_makes_no_large_journal() {
        const ENTRY: u64 = 32;
        let day = Duration::from_secs(24 * 3600);
        let (mut events, mut time) = (PLENTY, Duration::ZERO);
        while time < day {
            time += pause(events);
            // One of each stream.
            events += 2;
        }
        assert!(events * ENTRY < 10 << 20, "{events}");
    }
}
