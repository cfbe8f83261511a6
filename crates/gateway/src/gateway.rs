//! One sandbox's gateway: who may come in at its doors, and for how long.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use glovebox_egress::{Host, Vetter};
use glovebox_model::{Approach, Code, Error, NetCode, Result, SecretName, Spoken, Stage, Traffic};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use crate::authority::Authority;
use crate::connection::{self, Finish, Passage, Story};
use crate::denial::Denial;
use crate::destination::Destination;
use crate::dialled::{Dialled, Redirected};
use crate::dns;
use crate::downstream::{Ending, Near, Wire};
use crate::exchange::literal;
use crate::exec_session::{Term, no_network};
use crate::names::Names;
use crate::policy::Policy;
use crate::previewed::Stray;
use crate::proxy;
use crate::record::{Asked, Log, Record};
use crate::simulate::{self, Came};
use crate::sockets::GatewaySockets;

/// At once, refused ones too.
const CONNECTIONS_MOST: usize = 512;

/// The only way out of one sandbox. Without a policy everything is refused.
#[derive(Debug)]
pub struct Gateway {
    inside: Arc<Inside>,
    loops: Vec<AbortHandle>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) inside: Arc<Inside>,
    pub(crate) vetter: Arc<Vetter>,
}

/// All that is known of a sandbox without a way to the outside.
#[derive(Debug)]
pub(crate) struct Inside {
    pub(crate) names: Names,
    pub(crate) authority: Option<Arc<Authority>>,
    pub(crate) record: Record,
    dialled: Arc<dyn Dialled>,
    places: Semaphore,
    admitted: Mutex<Admitted>,
}

#[derive(Debug, Default)]
struct Admitted {
    now: Option<Arc<Term>>,
    /// The same or, after its end, the one that was: its counts are still asked for.
    last: Option<Arc<Term>>,
}

impl Inside {
    pub(crate) fn term(&self) -> Option<Arc<Term>> {
        let admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        admitted.now.clone()
    }

    /// The name that a host stands for. One of our own addresses stands for its name: a program
    /// may have asked for it before it told the proxy.
    pub(crate) fn meant(&self, host: Host, port: u16) -> Option<Destination> {
        let host = match host.address() {
            Some(address) => self.names.name_of(address)?,
            None => host,
        };
        Destination::new(host, port)
    }
}

impl Gateway {
    /// # Errors
    /// If a descriptor is not what its place says.
    pub fn open(
        doors: GatewaySockets,
        vetter: Arc<Vetter>,
        authority: Option<Arc<Authority>>,
        log: Arc<dyn Log>,
        runtime: &Handle,
    ) -> Result<Self> {
        let dialled = Arc::new(Redirected);
        Self::open_with(doors, vetter, authority, log, runtime, dialled)
    }

    /// With another way to learn what was dialled, for where nothing is redirected.
    ///
    /// # Errors
    /// If a descriptor is not what its place says.
    pub fn open_with(
        doors: GatewaySockets,
        vetter: Arc<Vetter>,
        authority: Option<Arc<Authority>>,
        log: Arc<dyn Log>,
        runtime: &Handle,
        dialled: Arc<dyn Dialled>,
    ) -> Result<Self> {
        let _inside = runtime.enter();
        let doors = doors.open().map_err(|error: io::Error| {
            Error::new(
                Code::SetupFailed,
                Stage::Admit,
                format!("the sandbox's network sockets cannot be served: {error}"),
            )
        })?;
        let inside = Arc::new(Inside {
            names: Names::default(),
            authority,
            record: Record::new(log),
            dialled,
            places: Semaphore::new(CONNECTIONS_MOST),
            admitted: Mutex::default(),
        });
        let shared = Arc::new(Shared { inside, vetter });
        let mut loops = Vec::new();
        for listener in doors.transparent {
            loops.push(listen(runtime, &shared, listener, Door::Transparent));
        }
        for listener in doors.proxy {
            loops.push(listen(runtime, &shared, listener, Door::Proxy));
        }
        for socket in doors.dns {
            let inside = Arc::clone(&shared.inside);
            let task = runtime.spawn(async move { dns::serve_udp(&inside, socket).await });
            loops.push(task.abort_handle());
        }
        let inside = Arc::clone(&shared.inside);
        Ok(Self { inside, loops })
    }

    /// From now on this holds. What an earlier policy let through is cut.
    pub fn admit(&self, policy: Policy) {
        let term = Arc::new(Term::new(policy));
        self.inside.record.begin();
        let mut admitted = self.admitted();
        let before = admitted.now.replace(Arc::clone(&term));
        admitted.last = Some(term);
        drop(admitted);
        if let Some(before) = before {
            before.close();
        }
    }

    /// Requests that come after this carry the placeholder on. What was sent is sent.
    pub fn revoke_secret(&self, name: &SecretName) {
        if let Some(term) = self.inside.term() {
            term.revoke(name);
        }
    }

    /// Everything is refused from now on, and what is open is cut.
    pub fn close(&self) {
        if let Some(term) = self.admitted().now.take() {
            term.close();
        }
    }

    /// Waits until what was cut has been told of, but not for ever.
    pub fn settle(&self, patience: Duration) {
        let since = Instant::now();
        while self.inside.places.available_permits() < CONNECTIONS_MOST
            && since.elapsed() < patience
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Since the last policy was admitted.
    pub fn traffic(&self) -> Traffic {
        let (refused, refused_more) = self.inside.record.refused();
        let term = self.admitted().last.clone();
        let count = |of: fn(&Term) -> u64| term.as_deref().map_or(0, of);
        Traffic {
            connections: count(Term::connections),
            sent: count(Term::sent),
            received: count(Term::received),
            refused,
            refused_more,
            strayed: term.and_then(|it| it.stray()).map(|it| it.to_string()),
        }
    }

    /// The first thing that would have left and was not previewed. Everything is refused since.
    pub fn strayed(&self) -> Option<Stray> {
        let term = self.admitted().last.clone();
        term.and_then(|it| it.stray())
    }

    /// The names that the sandbox has asked for.
    pub fn names(&self) -> &Names {
        &self.inside.names
    }

    fn admitted(&self) -> std::sync::MutexGuard<'_, Admitted> {
        self.inside
            .admitted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.close();
        for task in &self.loops {
            task.abort();
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    Transparent,
    Proxy,
}

/// The tasks of a door's connections end with the door.
fn listen(
    runtime: &Handle,
    shared: &Arc<Shared>,
    listener: TcpListener,
    door: Door,
) -> AbortHandle {
    let shared = Arc::clone(shared);
    let task = runtime.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
            };
            let Ok((stream, _)) = accepted else {
                // Out of descriptors, or the client has gone: neither is better at once.
                sleep(Duration::from_millis(10)).await;
                continue;
            };
            connections.spawn(serve(Arc::clone(&shared), stream, door));
        }
    });
    task.abort_handle()
}

async fn serve(shared: Arc<Shared>, stream: TcpStream, door: Door) {
    let _ = stream.set_nodelay(true);
    let inside = &shared.inside;
    let Ok(_place) = inside.places.try_acquire() else {
        let denial = Denial::new(
            NetCode::Other,
            format!("{CONNECTIONS_MOST} connections are open at once"),
            "close some first",
        );
        let asked = Asked::new(approach(door), Spoken::Tcp, "", 0);
        inside.record.refuse(&asked, &denial);
        let _ = stream.set_zero_linger();
        return;
    };
    let came = match door {
        Door::Proxy => Came::ToProxy,
        Door::Transparent => match inside.dialled.destination(&stream) {
            Ok(address) if address.port() == dns::PORT => {
                return dns::serve_tcp(inside, stream).await;
            }
            Ok(address) => Came::Dialled(address),
            Err(_) => {
                let _ = stream.set_zero_linger();
                return;
            }
        },
    };
    let term = inside.term();
    // The one place where a simulation parts from the real thing. It is given what is inside, and
    // the vetter stays here.
    if let Some((term, play)) = term.as_ref().and_then(|it| Some((it, it.play()?))) {
        let (term, play) = (Arc::clone(term), Arc::clone(play));
        return simulate::serve(inside, term, play, stream, came).await;
    }
    match came {
        Came::ToProxy => serve_proxy(&shared, term, stream).await,
        Came::Dialled(address) => serve_transparent(&shared, term, stream, address).await,
    }
}

fn approach(door: Door) -> Approach {
    match door {
        Door::Transparent => Approach::Direct,
        Door::Proxy => Approach::Connect,
    }
}

async fn serve_proxy(shared: &Arc<Shared>, term: Option<Arc<Term>>, stream: TcpStream) {
    let wire = Wire::new(stream);
    let ending = Ending::of(&wire);
    let near = Near::new(wire);
    let story = Arc::new(Story::new(&shared.inside, near.gauge()));
    let work = proxy::serve(shared, term.as_ref(), &story, near);
    connection::within(term.as_ref(), &story, ending, "", 0, work).await;
}

async fn serve_transparent(
    shared: &Arc<Shared>,
    term: Option<Arc<Term>>,
    stream: TcpStream,
    address: SocketAddr,
) {
    let wire = Wire::new(stream);
    let ending = Ending::of(&wire);
    let near = Near::new(wire);
    let story = Arc::new(Story::new(&shared.inside, near.gauge()));
    let shown = name_or_address(&shared.inside, address.ip());
    let work = transparent(shared, term.as_ref(), &story, near, address);
    connection::within(term.as_ref(), &story, ending, &shown, address.port(), work).await;
}

fn name_or_address(inside: &Inside, address: IpAddr) -> String {
    match inside.names.name_of(address) {
        Some(host) => host.to_string(),
        None => address.to_canonical().to_string(),
    }
}

async fn transparent(
    shared: &Arc<Shared>,
    term: Option<&Arc<Term>>,
    story: &Arc<Story>,
    near: Near,
    address: SocketAddr,
) -> Finish {
    let port = address.port();
    let name = shared.inside.names.name_of(address.ip());
    let destination = name.and_then(|it| Destination::new(it, port));
    let decided = match (&destination, term) {
        (_, None) => Err(no_network(
            &name_or_address(&shared.inside, address.ip()),
            port,
        )),
        (None, Some(_)) => Err(literal(&address.ip().to_canonical().to_string(), port)),
        (Some(destination), Some(term)) => term
            .decide(destination)
            .map(|rule| (destination, term, rule)),
    };
    match decided {
        Ok((destination, term, rule)) => {
            let passage = Passage {
                shared: Arc::clone(shared),
                term: Arc::clone(term),
                destination: destination.clone(),
                rule,
                approach: Approach::Direct,
                story: Arc::clone(story),
            };
            passage.carry(near, None).await
        }
        Err(denial) => {
            let shown = name_or_address(&shared.inside, address.ip());
            let asked = Asked::new(Approach::Direct, Spoken::Tcp, &shown, port);
            connection::refuse(&shared.inside, near, asked, &denial).await
        }
    }
}
