//! What every handler can reach.

use std::any::Any;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use glovebox_capture::Secrets;
use glovebox_engine::Dispatcher;
use glovebox_model::{Code, Correlation, Error, Result, Stage, Vouched};
use glovebox_skill::Catalogue;
use glovebox_snapshot::{Progress, Watch};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::auth::Authenticator;
use crate::body::Room;
use crate::failure::{Answer, Failure};
use crate::metrics::Metrics;
use crate::options::Times;
use crate::origin_check::Hosts;
use crate::per_space_limit::Places;
use crate::watches::Watches;

/// Work that waits for the disk at one time. What must answer even then (health, cancel, reading)
/// does not stand in this line.
const SUBMISSIONS: usize = 64;
/// Sandboxes that are made, taken down or looked at outside of an exec at one time. Each may take
/// seconds, so they have a line of their own.
const CARE: usize = 16;
/// Whole workspaces that are read or written at one time: snapshots, restores, archives.
const HAULS: usize = 8;
/// Of one space at one time.
const READERS: usize = 4;
const ARCHIVES: usize = 4;
const LISTENERS: usize = 16;
const VIEWERS: usize = 512;

const PULSE: Duration = Duration::from_secs(1);
/// A store that takes longer is not well: whoever asks if we are ready does not wait for it.
const PULSE_WITHIN: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub(crate) struct App(Arc<Parts>);

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("App")
    }
}

struct Parts {
    dispatcher: Arc<Dispatcher>,
    auth: Authenticator,
    hosts: Hosts,
    metrics: Arc<Metrics>,
    room: Room,
    readers: Places,
    archives: Places,
    listeners: Places,
    viewers: Places,
    watches: Watches,
    times: Times,
    elicits: bool,
    skills: Arc<Catalogue>,
    submissions: Semaphore,
    care: Arc<Semaphore>,
    hauls: Arc<Semaphore>,
    pulse: tokio::sync::Mutex<Pulse>,
    /// In a command of one person.
    is_inline: bool,
    /// What blocks does so where it is asked for, and starts no thread.
    blocks_here: bool,
    progress: Option<LocalProgress>,
}

/// Told how far long work is, by a command of this machine.
pub type LocalProgress = Arc<Mutex<dyn Watch + Send>>;

/// How the store is.
#[derive(Debug, Default)]
struct Pulse {
    /// What it said last, and when.
    known: Option<(Instant, bool)>,
    /// What it was asked and has not answered: it is not asked a second time meanwhile.
    asked: Option<JoinHandle<bool>>,
}

impl App {
    pub(crate) fn new(
        dispatcher: Arc<Dispatcher>,
        auth: Authenticator,
        hosts: Hosts,
        metrics: Arc<Metrics>,
        times: Times,
        elicits: bool,
    ) -> Self {
        let skills = dispatcher.skill_settings();
        let skills = Catalogue::new(glovebox_skill::Settings {
            dir: skills.dir.clone(),
            shipped: skills.shipped,
            pin: skills.pin.clone(),
        });
        Self(Arc::new(Parts {
            skills: Arc::new(skills),
            dispatcher,
            auth,
            hosts,
            metrics,
            room: Room::new(),
            readers: Places::new(
                READERS,
                "the ledger of this space is read",
                "wait for an export or a verification to end",
            ),
            archives: Places::new(
                ARCHIVES,
                "archives of this space are on their way",
                "wait for one of them to end",
            ),
            listeners: Places::new(
                LISTENERS,
                "approvals of this space are listened to",
                "close one of the connections",
            ),
            viewers: Places::new(
                VIEWERS,
                "sessions of this space are followed",
                "close one of the streams",
            ),
            watches: Watches::default(),
            times,
            elicits,
            submissions: Semaphore::new(SUBMISSIONS),
            care: Arc::new(Semaphore::new(CARE)),
            hauls: Arc::new(Semaphore::new(HAULS)),
            pulse: tokio::sync::Mutex::default(),
            is_inline: false,
            blocks_here: false,
            progress: None,
        }))
    }

    /// For a command of one person, before anything else has it.
    pub(crate) fn inline(mut self, progress: Option<LocalProgress>) -> Self {
        if let Some(parts) = Arc::get_mut(&mut self.0) {
            parts.is_inline = true;
            // The client of PostgreSQL waits in a runtime of its own, which cannot be entered here.
            let store = parts.dispatcher.store();
            parts.blocks_here = store.is_ok_and(|store| !store.is_shared());
            parts.progress = progress;
        }
        self
    }

    pub(crate) fn is_inline(&self) -> bool {
        self.0.is_inline
    }

    pub(crate) fn auth(&self) -> &Authenticator {
        &self.0.auth
    }

    pub(crate) fn hosts(&self) -> &Hosts {
        &self.0.hosts
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.0.metrics
    }

    pub(crate) fn room(&self) -> &Room {
        &self.0.room
    }

    /// Who reads a whole ledger.
    pub(crate) fn readers(&self) -> &Places {
        &self.0.readers
    }

    /// Who is sent an archive.
    pub(crate) fn archives(&self) -> &Places {
        &self.0.archives
    }

    /// Who is told of approvals as they come.
    pub(crate) fn listeners(&self) -> &Places {
        &self.0.listeners
    }

    /// Who follows a session as it goes on.
    pub(crate) fn viewers(&self) -> &Places {
        &self.0.viewers
    }

    pub(crate) fn watches(&self) -> &Watches {
        &self.0.watches
    }

    pub(crate) fn times(&self) -> Times {
        self.0.times
    }

    /// Whether an answer that an agent's host brings counts as a person's.
    pub(crate) fn elicits(&self) -> bool {
        self.0.elicits
    }

    pub(crate) fn skills(&self) -> &Arc<Catalogue> {
        &self.0.skills
    }

    /// Only for what never touches the disk; everything else goes through [`App::ask`].
    pub(crate) fn dispatcher(&self) -> &Arc<Dispatcher> {
        &self.0.dispatcher
    }

    /// Asks the engine on a thread of its own: everything there blocks.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        what: &'static str,
        question: impl FnOnce(&Arc<Dispatcher>) -> Result<T> + Send + 'static,
    ) -> Answer<T> {
        match self.0.blocks_here {
            true => Ok(question(&self.0.dispatcher)?),
            false => self.ask_on_thread(what, question).await,
        }
    }

    /// The same for what goes on while its answer is read.
    pub(crate) async fn ask_on_thread<T: Send + 'static>(
        &self,
        what: &'static str,
        question: impl FnOnce(&Arc<Dispatcher>) -> Result<T> + Send + 'static,
    ) -> Answer<T> {
        let began = Instant::now();
        let dispatcher = Arc::clone(&self.0.dispatcher);
        let span = tracing::Span::current();
        let asked = on_a_thread(what, move || span.in_scope(|| question(&dispatcher))).await;
        self.0.metrics.store(what, began.elapsed());
        asked?.map_err(Failure::from)
    }

    /// What must not be in any answer to this space, or to this agent of it. Known without asking the
    /// store, but the first time.
    pub(crate) async fn secrets_of(&self, ids: &Correlation) -> Answer<Arc<Secrets>> {
        if let Some(known) = self.0.dispatcher.known_masks(ids, Vouched::default()) {
            return Ok(known);
        }
        let ids = ids.clone();
        let read = self.ask("masks", move |dispatcher| {
            dispatcher.masks_for(&ids, Vouched::default())
        });
        read.await
    }

    /// Whether the store can be written. Everybody may ask, so it is found out once a second.
    pub(crate) async fn store_answers(&self) -> bool {
        let mut pulse = self.0.pulse.lock().await;
        if let Some((_, well)) = pulse.known.filter(|(since, _)| since.elapsed() < PULSE) {
            return well;
        }
        let mut asked = pulse.asked.take().unwrap_or_else(|| {
            let app = self.clone();
            tokio::spawn(async move {
                let asked = app.ask("ping", |dispatcher| dispatcher.store()?.ping());
                asked.await.is_ok()
            })
        });
        let well = match tokio::time::timeout(PULSE_WITHIN, &mut asked).await {
            Ok(answer) => answer.unwrap_or(false),
            Err(_) => {
                pulse.asked = Some(asked);
                false
            }
        };
        pulse.known = Some((Instant::now(), well));
        well
    }

    /// The same for new work, of which only so much is taken on at once.
    pub(crate) async fn submit<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Dispatcher>) -> Result<T> + Send + 'static,
    ) -> Answer<T> {
        let _place = self.0.submissions.acquire().await.map_err(|_| closing())?;
        self.ask("submit", work).await
    }

    /// The same for what is done with sandboxes and backends beside execs.
    pub(crate) async fn care<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&Arc<Dispatcher>) -> Result<T> + Send + 'static,
    ) -> Answer<T> {
        let line = Arc::clone(&self.0.care);
        let place = line.acquire_owned().await.map_err(|_| closing())?;
        // The work goes on when the client goes away, and keeps its place until it is done.
        self.ask(what, move |dispatcher| {
            let _place = place;
            work(dispatcher)
        })
        .await
    }

    /// The same for what goes through a whole workspace, and is given up when nobody waits for it
    /// any more.
    pub(crate) async fn haul<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&Arc<Dispatcher>, &mut dyn Watch) -> Result<T> + Send + 'static,
    ) -> Answer<T> {
        let line = Arc::clone(&self.0.hauls);
        let place = line.acquire_owned().await.map_err(|_| closing())?;
        let (waiting, wanted) = Wanted::new();
        let progress = self.0.progress.clone();
        let done = self.ask(what, move |dispatcher| {
            let _place = place;
            let mut watch = |now: Progress| match &progress {
                Some(local) => local.lock().unwrap_or_else(PoisonError::into_inner).on(now),
                None => wanted.go_on(),
            };
            work(dispatcher, &mut watch)
        });
        let done = done.await;
        drop(waiting);
        done
    }
}

/// Runs what blocks on a thread of its own.
///
/// The task is of one type for all work: one for each of the three hundred kinds of work made 40 % of
/// this crate's functions.
pub(crate) async fn on_a_thread<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Answer<T> {
    let done = run_erased(what, Box::new(|| Box::new(work()))).await?;
    done.downcast()
        .map_or_else(|_| Err(Failure::internal()), |done| Ok(*done))
}

type Erased = Box<dyn Any + Send>;

async fn run_erased(
    what: &'static str,
    work: Box<dyn FnOnce() -> Erased + Send>,
) -> Answer<Erased> {
    // It panicked; the log has why.
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, what, "the engine failed");
        Failure::internal()
    })
}

/// Held by whoever waits for something; dropped with the request when the client goes away.
struct Waiting(Arc<AtomicBool>);

struct Wanted(Arc<AtomicBool>);

impl Wanted {
    fn new() -> (Waiting, Self) {
        let gone = Arc::new(AtomicBool::new(false));
        (Waiting(Arc::clone(&gone)), Self(gone))
    }

    fn go_on(&self) -> ControlFlow<()> {
        match self.0.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn closing() -> Error {
    Error::new(
        Code::ShuttingDown,
        Stage::Admit,
        "the server is shutting down",
    )
}
