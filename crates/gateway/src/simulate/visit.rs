//! One connection of a simulated program, from its first byte to its end.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use glovebox_egress::{Host, Scheme};
use glovebox_model::{Approach, Spoken};
use hyper_util::rt::TokioIo;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::fault_injection::Injected;
use super::goal::Goal;
use super::play::Play;
use super::requests::{Fixed, Requests, Route, Served};
use super::seen::Seen;
use super::untold::Untold;
use crate::connection::{Finish, IDLE, Story};
use crate::denial::Denial;
use crate::downstream::{Ending, Gauge, Near, Wire};
use crate::exec_session::Term;
use crate::gateway::Inside;
use crate::record::Asked;
use crate::sniff::{First, sniff};
use crate::socks::{self, Reply};
use crate::spoken;

/// A client that waits for a host to speak first, or says no more, is not answered: there is
/// nobody who could.
const QUIET: Duration = Duration::from_secs(5);
/// For the first bytes to a proxy, and for a handshake.
const FIRST: Duration = Duration::from_secs(30);
/// How often a client that is kept waiting is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// How a connection came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Came {
    Dialled(SocketAddr),
    ToProxy,
}

/// What the parts of one connection share.
#[derive(Debug)]
pub(super) struct Visit {
    pub(super) inside: Arc<Inside>,
    pub(super) term: Arc<Term>,
    pub(super) play: Arc<Play>,
    story: Story,
    wire: Wire,
    /// Whether an answer is kept back on purpose: nothing moves then, and nobody is idle.
    held: AtomicBool,
    /// Where the connection would have been dialled to last.
    counted: Mutex<Option<Goal>>,
}

/// Serves a connection with no way to the outside.
pub(crate) async fn serve(
    inside: &Arc<Inside>,
    term: Arc<Term>,
    play: Arc<Play>,
    stream: TcpStream,
    came: Came,
) {
    let wire = Wire::new(stream);
    let ending = Ending::of(&wire);
    let near = Near::new(wire.clone());
    let gauge = near.gauge();
    let visit = Arc::new(Visit {
        inside: Arc::clone(inside),
        story: Story::new(inside, near.gauge()),
        term,
        play,
        wire,
        held: AtomicBool::new(false),
        counted: Mutex::default(),
    });
    let work = async {
        match came {
            Came::Dialled(address) => {
                let goal = Goal::dialled(inside, address);
                visit.converse(near, goal, Approach::Direct).await
            }
            Came::ToProxy => visit.proxy(near).await,
        }
    };
    let finish = tokio::select! {
        biased;
        () = visit.term.closed() => Finish::Reset,
        () = visit.idle(&gauge) => Finish::Reset,
        finish = work => finish,
    };
    let spent = visit.term.is_spent() && finish == Finish::Reset;
    let denial = spent.then(|| Denial::limit("egress_bytes", visit.term.bytes_most()));
    visit.story.end(denial.as_ref());
    match finish {
        Finish::Orderly => ending.orderly(),
        Finish::Drained => ending.drained().await,
        Finish::Reset => drop(ending),
    }
}

impl Visit {
    async fn idle(&self, gauge: &Gauge) {
        let mut before = gauge.read();
        loop {
            sleep(IDLE).await;
            let now = gauge.read();
            let still = now.sent == before.sent && now.received == before.received;
            if still && !self.held.load(Ordering::Relaxed) {
                return;
            }
            before = now;
        }
    }

    pub(super) fn tell(&self, asked: Asked, denial: Option<&Denial>, seen: &Seen) {
        match denial {
            None => self.story.let_through(asked),
            Some(denial) => self.inside.record.refuse(&asked, denial),
        }
        self.inside.record.simulated(seen);
    }

    /// Counts a connection that would have been made, once for each time that the host changes.
    pub(super) fn count(&self, goal: &Goal) -> Result<(), Denial> {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.as_ref() != Some(goal) {
            self.term.begin()?;
            *counted = Some(goal.clone());
        }
        Ok(())
    }

    pub(super) async fn hold(&self, delay: Duration) {
        if !delay.is_zero() {
            self.held.store(true, Ordering::Relaxed);
            sleep(delay).await;
            self.held.store(false, Ordering::Relaxed);
        }
    }

    /// Returns when the client has given up.
    pub(super) async fn given_up(&self) {
        self.held.store(true, Ordering::Relaxed);
        loop {
            match self.wire.stream().ready(Interest::READABLE).await {
                Ok(ready) if !ready.is_read_closed() => sleep(LOOK).await,
                Ok(_) | Err(_) => return,
            }
        }
    }

    async fn proxy(self: &Arc<Self>, mut near: Near) -> Finish {
        match timeout(FIRST, near.fill()).await {
            Ok(Ok(1..)) => {}
            Ok(Ok(0)) => return Finish::Orderly,
            Ok(Err(_)) | Err(_) => return Finish::Reset,
        }
        if near.charge(&self.term).is_err() {
            return Finish::Reset;
        }
        match near.ahead().first() {
            Some(&socks::VERSION) => self.socks(near).await,
            _ => self.http_proxy(near).await,
        }
    }

    async fn socks(self: &Arc<Self>, mut near: Near) -> Finish {
        let wanted = match socks::greet(&mut near).await {
            Ok(Some(wanted)) => wanted,
            Ok(None) => {
                let denial = socks::not_served();
                let asked = Asked::new(Approach::Socks, Spoken::Tcp, "", 0);
                let seen = Seen::new(&asked, Some(&denial));
                self.tell(asked, Some(&denial), &seen);
                return Finish::Drained;
            }
            Err(_) => return Finish::Reset,
        };
        if socks::answer(&mut near, Reply::Succeeded).await.is_err() {
            return Finish::Reset;
        }
        let goal = Goal::named(&self.inside, wanted.host, wanted.port);
        self.converse(near, goal, Approach::Socks).await
    }

    async fn http_proxy(self: &Arc<Self>, near: Near) -> Finish {
        let told = Arc::default();
        let requests = Requests::new(self, Route::Named, Approach::Proxied, told);
        let (upgrade, goal) = match requests.serve(near).await {
            Served::Tunnel(upgrade, goal) => (upgrade, goal),
            Served::Whole => return Finish::Drained,
            Served::Broken => return Finish::Reset,
        };
        let Ok(upgraded) = upgrade.await else {
            return Finish::Reset;
        };
        let Ok(parts) = upgraded.downcast::<TokioIo<Near>>() else {
            return Finish::Reset;
        };
        let mut near = parts.io.into_inner();
        near.unread(&parts.read_buf);
        self.converse(near, goal, Approach::Connect).await
    }

    /// Looks at what is spoken, and answers in it.
    async fn converse(self: &Arc<Self>, mut near: Near, goal: Goal, approach: Approach) -> Finish {
        let mut untold = Untold::new(self, &near, &goal, approach);
        if near.charge(&self.term).is_err() {
            return Finish::Reset;
        }
        let Ok(first) = sniff(&mut near, QUIET).await else {
            return Finish::Reset;
        };
        if let Some(destination) = &goal.destination {
            let checked = match self.term.is_inspected(destination) {
                true => spoken::check_inspected(destination, &first),
                false => spoken::check(destination, &first).map(drop),
            };
            untold.mismatch = checked.err();
        }
        match first {
            First::Http => {
                untold.spoken = Spoken::Http;
                self.requests(near, goal, Scheme::Http, &untold).await
            }
            First::Tls(name) => {
                untold.spoken = Spoken::Tls;
                untold.server_name = name;
                self.open_tls(near, goal, untold).await
            }
            First::End => Finish::Orderly,
            First::Http2 => {
                untold.spoken = Spoken::Http;
                self.raw(near, &goal, untold).await
            }
            First::Nothing | First::Bare | First::Other | First::Unreadable(_) => {
                self.raw(near, &goal, untold).await
            }
        }
    }

    async fn requests<S>(
        self: &Arc<Self>,
        stream: S,
        goal: Goal,
        scheme: Scheme,
        untold: &Untold,
    ) -> Finish
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
    {
        let route = Route::Fixed(Fixed {
            goal,
            scheme,
            mismatch: untold.mismatch.clone(),
            server_name: untold.server_name.clone(),
        });
        let told = Arc::clone(&untold.told);
        let requests = Requests::new(self, route, untold.approach(), told);
        match requests.serve(stream).await {
            Served::Whole => Finish::Drained,
            Served::Broken | Served::Tunnel(..) => Finish::Reset,
        }
    }

    /// Answers in the name that the handshake asks for: that is what the client compares with.
    async fn open_tls(self: &Arc<Self>, near: Near, goal: Goal, mut untold: Untold) -> Finish {
        let asked = untold.server_name.as_deref();
        let name = match asked.filter(|it| Host::parse(it).is_ok()) {
            Some(name) => name.to_owned(),
            None => goal.host.trim_matches(['[', ']']).to_owned(),
        };
        let config = self.inside.authority.as_ref().map(|it| it.server(&name));
        let Some(Ok(config)) = config else {
            return Finish::Reset;
        };
        match timeout(FIRST, TlsAcceptor::from(config).accept(near)).await {
            Ok(Ok(stream)) => self.requests(stream, goal, Scheme::Https, &untold).await,
            Ok(Err(error)) => {
                // For real only the TLS of inspected hosts is opened, and broken off so.
                let inspected = |it| self.term.is_inspected(it);
                if untold.mismatch.is_none() && goal.destination.as_ref().is_some_and(inspected) {
                    untold.mismatch = Some(spoken::broken_off(&error));
                }
                Finish::Reset
            }
            Err(_) => Finish::Reset,
        }
    }

    /// Takes what is sent, until the client ends or says no more.
    async fn raw(&self, mut near: Near, goal: &Goal, mut untold: Untold) -> Finish {
        let outcome = self.play.next(&goal.host);
        untold.outcome = Some(outcome);
        self.hold(outcome.delay()).await;
        match outcome.fault {
            None => {}
            Some(Injected::Timeout) => {
                self.given_up().await;
                return Finish::Reset;
            }
            Some(Injected::Error | Injected::Crash | Injected::RateLimit) => {
                return Finish::Reset;
            }
        }
        if near.ahead().is_empty() {
            // It was waited for already.
            return Finish::Drained;
        }
        loop {
            drop(near.take_ahead());
            match timeout(QUIET, near.fill()).await {
                Ok(Ok(1..)) => {}
                Ok(Ok(0)) => return Finish::Orderly,
                Ok(Err(_)) => return Finish::Reset,
                Err(_) => return Finish::Drained,
            }
        }
    }
}
