//! The life of a server: open the doors, answer, close them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use glovebox_engine::{Dispatcher, Drained};
use glovebox_model::{Code, Error, Result, Stage};
use glovebox_policy::Config;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::auth::Authenticator;
use crate::listen::{Acceptor, Listener, acceptor, bind_tcp, bind_unix};
use crate::metrics::Metrics;
use crate::options::Options;
use crate::origin_check::Hosts;
use crate::routes;

/// How long answers that are under way may take once everything else is done.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// Where a server listens.
#[derive(Debug, Clone)]
pub struct Listening {
    pub address: SocketAddr,
    pub tls: bool,
    pub socket: Option<PathBuf>,
}

impl Listening {
    /// `http://127.0.0.1:7070`
    pub fn url(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }
}

/// How a server ended.
#[derive(Debug, Clone, Copy)]
pub struct Summary {
    pub drained: Drained,
}

/// Asks a running server to end, as a signal does; a second time, to hurry.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<Asked>);

#[derive(Debug, Default)]
struct Asked {
    again: AtomicBool,
    told: Notify,
    once: AtomicBool,
}

impl Stop {
    pub fn ask(&self) {
        if self.0.once.swap(true, Ordering::AcqRel) {
            self.0.again.store(true, Ordering::Release);
        }
        self.0.told.notify_one();
    }

    fn hurries(&self) -> bool {
        self.0.again.load(Ordering::Acquire)
    }

    async fn asked(&self) {
        while !self.0.once.load(Ordering::Acquire) {
            self.0.told.notified().await;
        }
    }
}

/// Reads the configuration anew.
pub type Reread<'run> = &'run dyn Fn() -> Result<Config>;

/// Serves until SIGTERM, SIGINT or [`Stop::ask`]. On SIGHUP the configuration is read anew, where
/// `reread` says how; one that cannot be used leaves the old one in force. `ready` is called once,
/// when requests are answered. Blocks; it makes its own runtime, so it must not be called from one.
pub fn run(
    options: Options,
    dispatcher: Arc<Dispatcher>,
    stop: Stop,
    reread: Option<Reread<'_>>,
    ready: impl FnOnce(&Listening),
) -> Result<Summary> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("glovebox-serve")
        .build()
        .map_err(|error| cannot("start the runtime").caused_by(error))?;
    let summary = runtime.block_on(serve(options, dispatcher, stop, reread, ready));
    // What still reads or writes now has had its time.
    runtime.shutdown_timeout(Duration::from_secs(1));
    summary
}

async fn serve(
    options: Options,
    dispatcher: Arc<Dispatcher>,
    stop: Stop,
    reread: Option<Reread<'_>>,
    ready: impl FnOnce(&Listening),
) -> Result<Summary> {
    let tls = options.tls.as_ref().map(acceptor).transpose()?;
    let auth = Authenticator::new(&options.keys, options.bad_tokens);
    auth.key()?;
    let (listener, address) = bind_tcp(&options.listen)?;
    ensure_answerable(dispatcher.approves_by_itself(), address)?;
    let mut listeners = vec![Listener::Tcp(listener, tls.clone())];
    let mut socket_file = None;
    if let Some(path) = &options.socket {
        let (listener, file) = bind_unix(path)?;
        listeners.push(Listener::Unix(listener));
        socket_file = Some(file);
    }
    let signals = (
        listen_for(SignalKind::terminate())?,
        listen_for(SignalKind::interrupt())?,
    );
    // Without a way to read it anew a signal that hangs up ends the process, as ever.
    let mut hangup = match reread {
        Some(_) => Some(listen_for(SignalKind::hangup())?),
        None => None,
    };
    let metrics = Arc::new(Metrics::new());
    count_ends(&dispatcher, &metrics);
    let app = App::new(
        Arc::clone(&dispatcher),
        auth,
        Hosts::new(Some(address), &options.allow_hosts, tls.is_some()),
        Arc::clone(&metrics),
        options.times,
        // Whose host it is that asks, a server cannot know.
        dispatcher.elicitation().unwrap_or(false),
    );
    let hush = CancellationToken::new();
    let mcp = crate::mcp::router(&app, options.mcp, hush.clone())?;
    let (close, closing) = watch::channel(false);
    let places = Arc::new(Semaphore::new(options.connections));
    let hall = Acceptor {
        router: routes::router(app, mcp),
        times: options.times,
        places: Arc::clone(&places),
        metrics,
        closing,
    };
    for listener in listeners {
        tokio::spawn(hall.clone().receive(listener));
    }
    tokio::spawn(relay(signals, stop.clone()));
    ready(&Listening {
        address,
        tls: tls.is_some(),
        socket: options.socket,
    });

    loop {
        tokio::select! {
            () = stop.asked() => break,
            () = fenced(&dispatcher) => break,
            () = hung_up(hangup.as_mut()) => {}
        }
        if let Some(reread) = reread {
            tokio::task::block_in_place(|| reload(&dispatcher, address, reread));
        }
    }
    tracing::info!("closing");
    let cut_off = Arc::clone(&dispatcher);
    // The doors stay open meanwhile: whoever waits for an exec can still ask how it ended.
    let hurry = stop.clone();
    let drained = tokio::task::spawn_blocking(move || {
        dispatcher.drain(options.patience, &|| hurry.hurries())
    });
    let drained = drained
        .await
        .map_err(|error| cannot("close").caused_by(error))??;
    // Nothing is left that a host could be told of.
    hush.cancel();
    // Nobody is left to hear it when all are gone.
    let _ = close.send(true);
    let all = u32::try_from(options.connections).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(LAST_ANSWERS, places.acquire_many(all)).await;
    drop(socket_file);
    tracing::info!(?drained, "closed");
    if cut_off.is_fenced() {
        return Err(Error::new(
            Code::Lost,
            Stage::Run,
            "the server was cut off from its database, and another may have taken over",
        )
        .hint("start it anew when the database can be reached"));
    }
    Ok(Summary { drained })
}

/// Approvals that answer themselves are for the machine of whoever develops.
fn ensure_answerable(automatic: bool, address: SocketAddr) -> Result<()> {
    if !automatic || address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    Err(Error::new(
        Code::InvalidConfig,
        Stage::Open,
        format!("`{address}` can be reached from other machines, and approvals are automatic"),
    )
    .hint("take `auto = true` out of `[approvals]`, so that people are asked")
    .hint("or listen on `127.0.0.1`, for development"))
}

fn reload(dispatcher: &Dispatcher, address: SocketAddr, reread: Reread<'_>) {
    let reloaded = reread().and_then(|config| {
        ensure_answerable(config.approvals().auto, address)?;
        dispatcher.reconfigure(config)
    });
    match reloaded {
        Ok(()) => tracing::info!("the configuration was read anew"),
        Err(error) => {
            tracing::error!(%error, hints = ?error.hints, "the configuration stays as it was");
        }
    }
}

async fn hung_up(hangup: Option<&mut Signal>) {
    match hangup {
        Some(hangup) => drop(hangup.recv().await),
        None => std::future::pending().await,
    }
}

/// Until another server has taken over: this one can do nothing more, and should be
/// started anew.
async fn fenced(dispatcher: &Dispatcher) {
    while !dispatcher.is_fenced() {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

pub(crate) fn count_ends(dispatcher: &Dispatcher, metrics: &Arc<Metrics>) {
    let metrics = Arc::clone(metrics);
    dispatcher.on_end(move |exec, waited| {
        let backend = exec.backend.map_or("none", |backend| backend.as_str());
        let ran = exec.duration_ms.map(Duration::from_millis);
        metrics.exec_ended(exec.status.as_str(), backend, ran, Some(waited));
    });
}

fn listen_for(kind: SignalKind) -> Result<Signal> {
    signal(kind).map_err(|error| cannot("listen for signals").caused_by(error))
}

async fn relay((mut terminate, mut interrupt): (Signal, Signal), stop: Stop) {
    loop {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.ask();
    }
}

fn cannot(what: &str) -> Error {
    Error::new(
        Code::Internal,
        Stage::Open,
        format!("the server cannot {what}"),
    )
}
