//! A connection of the sandbox to a destination, from the first byte to the end.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use glovebox_egress::{Connection, Scheme};
use glovebox_model::{Approach, HostPort, Spoken};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional_with_sizes};
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;

use crate::denial::Denial;
use crate::destination::Destination;
use crate::downstream::{Ending, Gauge, Near, Wire};
use crate::exchange::{Exchange, Route, Served};
use crate::exec_session::{Cut, Term};
use crate::gateway::{Inside, Shared};
use crate::record::{Asked, Moved};
use crate::sniff::{First, sniff};
use crate::splice;
use crate::spoken;
use crate::upstream::{Far, Upstream, dial, no_authority};

/// Each way, where bytes come up here.
pub(crate) const COPY_BYTES: usize = 64 * 1024;
/// Clients that speak first do so at once. After this the host is dialled, in case that it does.
const CLIENT_FIRST: Duration = Duration::from_millis(200);
/// A connection on which nothing moves for one to two of these is given up.
pub(crate) const IDLE: Duration = Duration::from_secs(300);
/// How long a refused client is waited for, to be answered in its own language.
const REFUSED_FIRST: Duration = Duration::from_millis(200);
/// A host that is inspected is not dialled before something can be read.
const INSPECTED_FIRST: Duration = Duration::from_secs(30);
/// How long a connection that strayed from a preview may take to read why it is refused.
const KEPT: Duration = Duration::from_secs(5);
/// A fatal `access_denied` before any key is agreed on.
const ALERT: [u8; 7] = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x31];

/// What is told of one connection of the sandbox: each request that was let through, and what
/// moved to each host, when that is over.
#[derive(Debug)]
pub(crate) struct Story {
    inside: Arc<Inside>,
    gauge: Gauge,
    open: Mutex<Option<(Asked, Moved)>>,
    kept: AtomicBool,
}

impl Story {
    pub(crate) fn new(inside: &Arc<Inside>, gauge: Gauge) -> Self {
        Self {
            inside: Arc::clone(inside),
            gauge,
            open: Mutex::default(),
            kept: AtomicBool::new(false),
        }
    }

    /// What is said on it must still be read, although nothing may go on.
    pub(crate) fn keep(&self) {
        self.kept.store(true, Ordering::Release);
    }

    fn is_kept(&self) -> bool {
        self.kept.load(Ordering::Acquire)
    }

    pub(crate) fn let_through(&self, asked: Asked) {
        self.inside.record.let_through(&asked);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |it: &Asked| it.host == asked.host && it.port == asked.port;
        if open.as_ref().is_some_and(|(it, _)| same(it)) {
            return;
        }
        // What was read ahead of the first decision belongs to it.
        let from = match &*open {
            Some(_) => self.gauge.read(),
            None => Moved::default(),
        };
        let before = open.replace((asked, from));
        drop(open);
        self.tell_end(before, None);
    }

    /// With a denial if it was cut.
    pub(crate) fn end(&self, denial: Option<&Denial>) {
        let open = self
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        self.tell_end(open, denial);
    }

    fn tell_end(&self, open: Option<(Asked, Moved)>, denial: Option<&Denial>) {
        let Some((mut asked, from)) = open else {
            return;
        };
        asked.request = None;
        let now = self.gauge.read();
        let moved = Moved {
            sent: now.sent - from.sent,
            received: now.received - from.received,
        };
        self.inside.record.end(&asked, denial, moved);
    }
}

/// How a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    Orderly,
    /// An answer was given that the client must be able to read.
    Drained,
    Reset,
}

/// Runs what serves a connection until it ends, or must.
pub(crate) async fn within(
    term: Option<&Arc<Term>>,
    story: &Story,
    ending: Ending,
    host: &str,
    port: u16,
    work: impl Future<Output = Finish>,
) {
    // One that comes too late is refused in words; only one that came in time is cut.
    let cuts = term.filter(|it| it.state(host, port).is_ok());
    let over = async {
        match cuts {
            Some(term) => {
                let cut = term.over().await;
                if story.is_kept() {
                    sleep(KEPT).await;
                }
                cut
            }
            None => std::future::pending().await,
        }
    };
    let finish = tokio::select! {
        biased;
        cut = over => {
            let expired = || term.and_then(|it| it.state(host, port).err());
            let denial = match cut {
                Cut::Closed => None,
                Cut::Expired => expired(),
            };
            story.end(denial.as_ref());
            return;
        }
        () = idle(&story.gauge) => Finish::Reset,
        finish = work => finish,
    };
    let spent = term.filter(|it| it.is_spent() && finish != Finish::Orderly);
    let denial = spent.map(|it| Denial::limit("egress_bytes", it.bytes_most()));
    story.end(denial.as_ref());
    match finish {
        Finish::Orderly => ending.orderly(),
        Finish::Drained => ending.drained().await,
        Finish::Reset => drop(ending),
    }
}

async fn idle(gauge: &Gauge) {
    let mut before = gauge.read();
    loop {
        sleep(IDLE).await;
        let now = gauge.read();
        if now.sent == before.sent && now.received == before.received {
            return;
        }
        before = now;
    }
}

/// A connection that may not go on: it is told so as far as its protocol allows.
pub(crate) async fn refuse(
    inside: &Inside,
    mut near: Near,
    asked: Asked,
    denial: &Denial,
) -> Finish {
    let first = sniff(&mut near, REFUSED_FIRST).await;
    refuse_as(inside, near, first.as_ref().ok(), asked, denial).await
}

async fn refuse_as(
    inside: &Inside,
    mut near: Near,
    first: Option<&First>,
    mut asked: Asked,
    denial: &Denial,
) -> Finish {
    asked.spoken = match first {
        Some(First::Tls(_)) => Spoken::Tls,
        Some(First::Http | First::Http2) => Spoken::Http,
        _ => Spoken::Tcp,
    };
    inside.record.refuse(&asked, denial);
    let answer = match first {
        Some(First::Tls(_)) => ALERT.to_vec(),
        Some(First::Http) => page(&asked, denial),
        _ => return Finish::Reset,
    };
    match near.write_all(&answer).await {
        Ok(()) => Finish::Drained,
        Err(_) => Finish::Reset,
    }
}

fn page(asked: &Asked, denial: &Denial) -> Vec<u8> {
    let text = denial.text(&asked.host, asked.port);
    let status = denial.status();
    let head = format!(
        "HTTP/1.1 {} {}\r\ncontent-type: text/plain; charset=utf-8\r\nx-glovebox-code: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        status.as_u16(),
        status.canonical_reason().unwrap_or_default(),
        denial.code,
        text.len(),
    );
    [head.as_bytes(), text.as_bytes()].concat()
}

/// A destination that was allowed, on its way.
pub(crate) struct Passage {
    pub(crate) shared: Arc<Shared>,
    pub(crate) term: Arc<Term>,
    pub(crate) destination: Destination,
    pub(crate) rule: Option<HostPort>,
    pub(crate) approach: Approach,
    pub(crate) story: Arc<Story>,
}

/// Why a passage ended before bytes were copied.
enum Stop {
    Refused(First, Denial),
    Broken,
    Over,
}

impl From<io::Error> for Stop {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

impl Passage {
    fn asked(&self, spoken: Spoken) -> Asked {
        let mut asked = Asked::to(self.approach, spoken, &self.destination);
        asked.rule = self.rule.clone();
        asked
    }

    /// Looks at what is spoken, checks it against the destination, and carries it. `far` is there
    /// if the host was dialled before, for a proxy's answer.
    pub(crate) async fn carry(&self, mut near: Near, far: Option<Far>) -> Finish {
        if near.charge(&self.term).is_err() {
            return Finish::Reset;
        }
        let done = if self.term.is_inspected(&self.destination) {
            self.inspect(&mut near).await.map(|first| (first, None))
        } else if self.term.preview().is_some() {
            self.preview(&mut near).await
        } else {
            self.open(&mut near, far).await
        };
        match done {
            Err(Stop::Over) => Finish::Orderly,
            Err(Stop::Broken) => Finish::Reset,
            Err(Stop::Refused(first, denial)) => {
                let asked = self.asked(Spoken::Tcp);
                refuse_as(&self.shared.inside, near, Some(&first), asked, &denial).await
            }
            Ok((First::Http, far)) => self.exchange(near, far, Scheme::Http).await,
            Ok((First::Tls(_), None)) => self.open_tls(near).await,
            Ok((_, Some(far))) => copy(near, far.connection).await,
            Ok((_, None)) => Finish::Reset,
        }
    }

    /// That what is spoken agrees with the destination, and can be held to a preview.
    fn check(&self, first: &First) -> Result<Spoken, Denial> {
        let spoken = spoken::check(&self.destination, first)?;
        if *first == First::Bare {
            self.term.clear_unread(&self.story, &self.destination)?;
        }
        Ok(spoken)
    }

    /// Waits for something that can be read. What cannot be is refused, since no rule could be
    /// held against it. A host is dialled when the first request is known.
    async fn inspect(&self, near: &mut Near) -> Result<First, Stop> {
        let first = sniff(near, INSPECTED_FIRST).await?;
        match spoken::check_inspected(&self.destination, &first) {
            Ok(()) if first == First::End => Err(Stop::Over),
            Ok(()) => Ok(first),
            Err(denial) => Err(Stop::Refused(first, denial)),
        }
    }

    /// Held to a preview: HTTP is read and TLS is opened, whatever was shown. What is neither is a
    /// connection, and must have been shown as one.
    async fn preview(&self, near: &mut Near) -> Result<(First, Option<Far>), Stop> {
        let term = &self.term;
        let only_requests = term.previews_requests(&self.destination)
            && !term.previews_connections(&self.destination);
        let patience = match only_requests {
            true => INSPECTED_FIRST,
            false => CLIENT_FIRST,
        };
        let first = sniff(near, patience).await?;
        let spoken = self
            .check(&first)
            .map_err(|denial| Stop::Refused(first.clone(), denial))?;
        match first {
            First::End => Err(Stop::Over),
            First::Http | First::Tls(_) => Ok((first, None)),
            _ => self.reach(near, first, spoken, None).await,
        }
    }

    /// Finds out what is spoken and dials. HTTP goes on with or without a dialled host, all else
    /// with one.
    async fn open(&self, near: &mut Near, far: Option<Far>) -> Result<(First, Option<Far>), Stop> {
        let first = sniff(near, CLIENT_FIRST).await?;
        let spoken = spoken::check(&self.destination, &first)
            .map_err(|denial| Stop::Refused(first.clone(), denial))?;
        match first {
            First::Http => Ok((first, far)),
            _ => self.reach(near, first, spoken, far).await,
        }
    }

    async fn dial(&self) -> Result<Far, Denial> {
        let destination = &self.destination;
        let cleared = self.term.clear_connection(&self.story, destination)?;
        dial(&self.shared, &self.term, destination, cleared).await
    }

    /// Dials, unless that was done, and waits until it is known who speaks first.
    async fn reach(
        &self,
        near: &mut Near,
        first: First,
        spoken: Spoken,
        far: Option<Far>,
    ) -> Result<(First, Option<Far>), Stop> {
        let mut far = match far {
            Some(far) => far,
            None => match self.dial().await {
                Ok(far) => far,
                Err(denial) => return Err(Stop::Refused(first, denial)),
            },
        };
        let mut asked = self.asked(spoken);
        asked.address = far.address;
        if first != First::Nothing {
            self.story.let_through(asked);
            return Ok((first, Some(far)));
        }
        // It may be that the host speaks first. The client's first bytes are looked at all the
        // same, whenever they come.
        let mut host_spoke = false;
        let mut buffer = vec![0; 16 * 1024];
        loop {
            tokio::select! {
                biased;
                first = sniff(near, IDLE) => {
                    let first = first?;
                    let spoken = match self.check(&first) {
                        Ok(spoken) => spoken,
                        Err(denial) => return Err(Stop::Refused(first, denial)),
                    };
                    match first {
                        First::Nothing => return Err(Stop::Broken),
                        // A request to a host that has spoken already cannot be followed.
                        First::Http if host_spoke => {
                            let why = "a request follows what the host has said by itself";
                            let denial = Denial::mismatch(&self.destination, why);
                            return Err(Stop::Refused(First::Other, denial));
                        }
                        First::Http => {}
                        // Nor can TLS be opened then; otherwise it is, on a connection of its own.
                        First::Tls(_) if self.term.preview().is_some() => {
                            if host_spoke
                                && let Err(denial) =
                                    self.term.clear_unread(&self.story, &self.destination)
                            {
                                return Err(Stop::Refused(first, denial));
                            }
                            return Ok((first, None));
                        }
                        _ if host_spoke => {}
                        _ => {
                            asked.spoken = spoken;
                            self.story.let_through(asked);
                        }
                    }
                    return Ok((first, Some(far)));
                }
                read = far.connection.read(&mut buffer) => {
                    let bytes = read?;
                    if !host_spoke {
                        host_spoke = true;
                        self.story.let_through(asked.clone());
                    }
                    if bytes == 0 {
                        near.shutdown().await?;
                        return Err(Stop::Over);
                    }
                    near.write_all(&buffer[..bytes]).await?;
                }
            }
        }
    }

    async fn exchange(&self, near: Near, far: Option<Far>, scheme: Scheme) -> Finish {
        let mut upstream = Upstream::default();
        if let Some(far) = far
            && upstream.adopt(&self.destination, far).await.is_err()
        {
            return Finish::Reset;
        }
        self.serve(near, upstream, scheme).await
    }

    async fn serve<S>(&self, stream: S, upstream: Upstream, scheme: Scheme) -> Finish
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
    {
        let exchange = Arc::new(Exchange {
            shared: Arc::clone(&self.shared),
            term: Some(Arc::clone(&self.term)),
            route: Route::Fixed {
                destination: self.destination.clone(),
                scheme,
            },
            approach: self.approach,
            story: Arc::clone(&self.story),
            upstream: upstream.into(),
            turned: Mutex::default(),
        });
        match exchange.serve(stream).await {
            Served::Whole => Finish::Drained,
            Served::Broken | Served::Tunnel(..) => Finish::Reset,
        }
    }

    /// TLS is answered here in the host's name.
    async fn open_tls(&self, near: Near) -> Finish {
        let refused = |denial: &Denial| {
            self.shared
                .inside
                .record
                .refuse(&self.asked(Spoken::Tls), denial);
            Finish::Reset
        };
        let Some(authority) = &self.shared.inside.authority else {
            return refused(&no_authority(&self.destination));
        };
        let Ok(config) = authority.server(self.destination.name()) else {
            return refused(&no_authority(&self.destination));
        };
        match TlsAcceptor::from(config).accept(near).await {
            Ok(stream) => self.serve(stream, Upstream::default(), Scheme::Https).await,
            Err(error) => refused(&spoken::broken_off(&error)),
        }
    }
}

async fn copy(mut near: Near, far: Connection) -> Finish {
    let copied = match far.into_tcp() {
        Ok(stream) => {
            let wire = Wire::new(stream);
            let ending = Ending::of(&wire);
            let copied = splice::both(&mut near, &wire).await;
            if copied.is_ok() {
                ending.orderly();
            }
            copied
        }
        Err(mut far) => copy_bidirectional_with_sizes(&mut near, &mut far, COPY_BYTES, COPY_BYTES)
            .await
            .map(drop),
    };
    match copied {
        Ok(()) => Finish::Orderly,
        Err(_) => Finish::Reset,
    }
}
