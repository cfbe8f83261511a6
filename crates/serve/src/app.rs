//! What every handler can reach.

use std::sync::Arc;
use std::time::{Duration, Instant};

use glovebox_engine::Dispatcher;
use glovebox_model::{Code, Error, Result, Stage};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::auth::Authenticator;
use crate::body::Room;
use crate::doors::Hosts;
use crate::failure::{Answer, Failure};
use crate::metrics::Metrics;
use crate::options::Times;
use crate::readers::Readers;

/// Work that waits for the disk at one time. What must answer even then (health, cancel, reading)
/// does not stand in this line.
const SUBMISSIONS: usize = 64;

const PULSE: Duration = Duration::from_secs(1);
/// A store that takes longer is not well: whoever asks if we are ready does not wait for it.
const PULSE_WITHIN: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub(crate) struct App(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    dispatcher: Arc<Dispatcher>,
    auth: Authenticator,
    hosts: Hosts,
    metrics: Arc<Metrics>,
    room: Room,
    readers: Readers,
    times: Times,
    submissions: Semaphore,
    pulse: tokio::sync::Mutex<Pulse>,
}

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
    ) -> Self {
        Self(Arc::new(Parts {
            dispatcher,
            auth,
            hosts,
            metrics,
            room: Room::new(),
            readers: Readers::default(),
            times,
            submissions: Semaphore::new(SUBMISSIONS),
            pulse: tokio::sync::Mutex::default(),
        }))
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

    pub(crate) fn readers(&self) -> &Readers {
        &self.0.readers
    }

    pub(crate) fn times(&self) -> Times {
        self.0.times
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
        let began = Instant::now();
        let dispatcher = Arc::clone(&self.0.dispatcher);
        let span = tracing::Span::current();
        let asked = tokio::task::spawn_blocking(move || span.in_scope(|| question(&dispatcher)));
        let asked = asked.await;
        self.0.metrics.store(what, began.elapsed());
        match asked {
            Ok(answer) => answer.map_err(Failure::from),
            // It panicked; the log has why.
            Err(error) => {
                tracing::error!(%error, what, "the engine failed");
                Err(Failure::internal())
            }
        }
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
        let place = self.0.submissions.acquire().await;
        let _place = place.map_err(|_| {
            Error::new(
                Code::ShuttingDown,
                Stage::Admit,
                "the server is shutting down",
            )
        })?;
        self.ask("submit", work).await
    }
}
