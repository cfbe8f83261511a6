//! A gateway, the world outside, and clients inside.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use glovebox_egress::{
    Connection, Dialler, Host, PrivateTargets, Refusal, RefusalCode, Resolver, Vetter,
};
use glovebox_gateway::{Authority, Dialled, Gateway, GatewaySockets, Log, Policy, Seen};
use glovebox_model::{Attempt, HostPort, NetCode, NetworkMode};
use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};
use tokio::runtime::Handle;

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Answers by name, and servers by public address. Every lookup and dial is noted.
#[derive(Debug, Default)]
pub(crate) struct World {
    answers: Mutex<HashMap<String, VecDeque<Vec<IpAddr>>>>,
    servers: Mutex<HashMap<SocketAddr, SocketAddr>>,
    pub(crate) lookups: Mutex<Vec<String>>,
    pub(crate) dials: Mutex<Vec<SocketAddr>>,
}

impl World {
    /// What a name leads to: the first answer first, the last for ever.
    pub(crate) fn answers(&self, name: &str, answers: &[&[&str]]) {
        let parse = |list: &&[&str]| list.iter().map(|it| it.parse().unwrap()).collect();
        let answers = answers.iter().map(parse).collect();
        self.answers
            .lock()
            .unwrap()
            .insert(name.to_owned(), answers);
    }

    /// A server of the world: a name, at a public address of its own.
    pub(crate) fn host(&self, name: &str, port: u16, server: SocketAddr) {
        let mut servers = self.servers.lock().unwrap();
        let [high, low] = u16::try_from(servers.len() + 1).unwrap().to_be_bytes();
        let address = IpAddr::from([93, 184, 216 + high, low]);
        servers.insert(SocketAddr::new(address, port), server);
        let mut answers = self.answers.lock().unwrap();
        answers.insert(name.to_owned(), [vec![address]].into());
    }
}

impl Resolver for World {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, Refusal>> {
        self.lookups.lock().unwrap().push(name.to_owned());
        let mut all = self.answers.lock().unwrap();
        let found = all.get_mut(name).and_then(|answers| match answers.len() {
            0 | 1 => answers.front().cloned(),
            _ => answers.pop_front(),
        });
        let refusal = || Refusal::new(RefusalCode::DnsFailed, "no such name");
        Box::pin(async move { found.ok_or_else(refusal) })
    }
}

impl Dialler for World {
    fn dial<'a>(&'a self, address: SocketAddr) -> BoxFuture<'a, io::Result<Connection>> {
        self.dials.lock().unwrap().push(address);
        let server = self.servers.lock().unwrap().get(&address).copied();
        Box::pin(async move {
            let server = server.ok_or(io::ErrorKind::ConnectionRefused)?;
            let stream = TcpStream::connect(server).await?;
            stream.set_nodelay(true)?;
            Ok(Connection::tcp_towards(stream, address))
        })
    }
}

/// What each client says that it dialled, by its own address.
#[derive(Debug, Default)]
struct Said(Mutex<HashMap<SocketAddr, SocketAddr>>);

impl Dialled for Said {
    fn destination(&self, stream: &TcpStream) -> io::Result<SocketAddr> {
        let said = self.0.lock().unwrap().remove(&stream.peer_addr()?);
        Ok(said.unwrap_or(stream.local_addr()?))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Heard(
    pub(crate) Mutex<Vec<Attempt>>,
    pub(crate) Mutex<Vec<Seen>>,
    /// How often something was seen that could not be told.
    AtomicU64,
);

impl Log for Heard {
    fn attempt(&self, attempt: &Attempt) {
        self.0.lock().unwrap().push(attempt.clone());
    }

    fn simulated(&self, seen: &Seen) {
        self.1.lock().unwrap().push(seen.clone());
    }

    fn untold(&self) {
        self.2.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) struct Ground {
    pub(crate) gateway: Gateway,
    pub(crate) world: Arc<World>,
    pub(crate) heard: Arc<Heard>,
    said: Arc<Said>,
    transparent: SocketAddr,
    pub(crate) proxy: SocketAddr,
    dns: SocketAddr,
}

pub(crate) fn rules(list: &[&str]) -> BTreeSet<HostPort> {
    list.iter().map(|it| it.parse().unwrap()).collect()
}

pub(crate) fn policy(allow: &[&str]) -> Policy {
    Policy {
        mode: NetworkMode::Allowlist,
        allow: rules(allow),
        bytes: 1 << 30,
        connections: 10_000,
        closes: Instant::now() + Duration::from_secs(3600),
        inspect: Vec::new(),
        secrets: Vec::new(),
        simulate: None,
        previewed: None,
    }
}

impl Ground {
    /// With nothing admitted.
    pub(crate) fn closed(authority: Option<Arc<Authority>>, private: &[&str]) -> Self {
        let tcp = || std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (transparent, proxy) = (tcp(), tcp());
        let dns = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addresses = (
            transparent.local_addr().unwrap(),
            proxy.local_addr().unwrap(),
            dns.local_addr().unwrap(),
        );
        let world = Arc::new(World::default());
        let (heard, said) = (Arc::new(Heard::default()), Arc::new(Said::default()));
        let vetter = Vetter {
            resolver: Arc::clone(&world) as _,
            dialler: Arc::clone(&world) as _,
            private: PrivateTargets::parse(private).unwrap(),
        };
        let doors = GatewaySockets {
            transparent: vec![transparent.into()],
            proxy: vec![proxy.into()],
            dns: vec![dns.into()],
        };
        let gateway = Gateway::open_with(
            doors,
            Arc::new(vetter),
            authority,
            Arc::clone(&heard) as _,
            &Handle::current(),
            Arc::clone(&said) as _,
        )
        .unwrap();
        Self {
            gateway,
            world,
            heard,
            said,
            transparent: addresses.0,
            proxy: addresses.1,
            dns: addresses.2,
        }
    }

    pub(crate) fn allowing(allow: &[&str]) -> Self {
        let ground = Self::closed(None, &[]);
        ground.gateway.admit(policy(allow));
        ground
    }

    /// Connects as a redirected program does that dialled `address`.
    pub(crate) async fn dial_address(&self, address: &str, port: u16) -> TcpStream {
        self.try_dial(address, port).await.unwrap()
    }

    /// A connection that is reset at once may never be seen to stand.
    pub(crate) async fn try_dial(&self, address: &str, port: u16) -> io::Result<TcpStream> {
        let address = SocketAddr::new(address.parse().unwrap(), port);
        let socket = TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let me = socket.local_addr()?;
        self.said.0.lock().unwrap().insert(me, address);
        let stream = socket.connect(self.transparent).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Asks the DNS for a name and dials what it says.
    pub(crate) async fn dial(&self, name: &str, port: u16) -> TcpStream {
        let address = self.lookup(name, RecordType::A).await.1;
        let address = address.unwrap_or_else(|| panic!("`{name}` has no address"));
        self.dial_address(&address.to_string(), port).await
    }

    pub(crate) async fn lookup(
        &self,
        name: &str,
        kind: RecordType,
    ) -> (ResponseCode, Option<IpAddr>) {
        let answer = self.ask(&question(name, kind)).await;
        read_answer(&answer)
    }

    pub(crate) async fn ask(&self, question: &[u8]) -> Vec<u8> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        socket.send_to(question, self.dns).await.unwrap();
        let mut buffer = vec![0; 4096];
        let (length, _) = patiently(socket.recv_from(&mut buffer)).await.unwrap();
        buffer.truncate(length);
        buffer
    }

    /// Sends the DNS something that may have no answer.
    pub(crate) async fn toss(&self, socket: &UdpSocket, bytes: &[u8]) {
        socket.send_to(bytes, self.dns).await.unwrap();
    }

    pub(crate) async fn to_proxy(&self) -> TcpStream {
        let stream = TcpStream::connect(self.proxy).await.unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    pub(crate) fn attempts(&self) -> Vec<Attempt> {
        self.heard.0.lock().unwrap().clone()
    }

    /// Waits until the log has such an attempt.
    pub(crate) async fn heard(&self, what: impl Fn(&Attempt) -> bool) -> Attempt {
        let found = until(|| self.attempts().into_iter().find(|it| what(it))).await;
        found.unwrap_or_else(|| panic!("not told; told was {:#?}", self.attempts()))
    }

    pub(crate) fn all_seen(&self) -> Vec<Seen> {
        self.heard.1.lock().unwrap().clone()
    }

    pub(crate) fn untold(&self) -> u64 {
        self.heard.2.load(Ordering::Relaxed)
    }

    /// Waits until a simulation has told of such a thing.
    pub(crate) async fn seen(&self, what: impl Fn(&Seen) -> bool) -> Seen {
        let found = until(|| self.all_seen().into_iter().find(|it| what(it))).await;
        found.unwrap_or_else(|| panic!("not seen; seen was {:#?}", self.all_seen()))
    }

    /// The refusal of a destination: in the log with its hint, and in the record.
    pub(crate) async fn refused(&self, host: &str, port: u16, code: NetCode) -> Attempt {
        let attempt = self
            .heard(|it| it.host == host && it.port == port && it.code == code)
            .await;
        assert!(attempt.hint.is_some(), "{attempt:?}");
        let traffic = self.gateway.traffic();
        let counted = traffic
            .refused
            .iter()
            .any(|it| it.host == host && it.port == port && it.code == code);
        assert!(counted, "{traffic:?}");
        attempt
    }

    pub(crate) fn dials(&self) -> usize {
        self.world.dials.lock().unwrap().len()
    }
}

/// Looks until it is there, or too long.
pub(crate) async fn until<T>(look: impl Fn() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match look() {
            Some(found) => return Some(found),
            None if Instant::now() > deadline => return None,
            None => tokio::task::yield_now().await,
        }
    }
}

pub(crate) async fn patiently<T>(what: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, what).await;
    done.expect("it takes too long")
}

pub(crate) fn question(name: &str, kind: RecordType) -> Vec<u8> {
    let mut message = Message::query();
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
    message.to_vec().unwrap()
}

pub(crate) fn read_answer(answer: &[u8]) -> (ResponseCode, Option<IpAddr>) {
    let message = Message::from_vec(answer).unwrap();
    let address = message.answers.first().and_then(|it| match &it.data {
        RData::A(address) => Some(IpAddr::V4(address.0)),
        RData::AAAA(address) => Some(IpAddr::V6(address.0)),
        _ => None,
    });
    (message.metadata.response_code, address)
}

pub(crate) fn host(name: &str) -> Host {
    Host::parse(name).unwrap()
}

/// Sends text, closes that side, and reads all that comes. None for a reset.
pub(crate) async fn tell<S>(mut stream: S, text: &str) -> Option<String>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    // The other side may have reset it already.
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.flush().await;
    let mut answer = Vec::new();
    match patiently(stream.read_to_end(&mut answer)).await {
        Ok(_) => Some(String::from_utf8_lossy(&answer).into_owned()),
        Err(_) => None,
    }
}

pub(crate) fn get(host: &str, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}

/// Reads one answer with a `content-length`, so that another request can follow.
pub(crate) async fn one_answer<S>(stream: &mut S) -> String
where
    S: tokio::io::AsyncRead + Unpin,
{
    let mut text = Vec::new();
    loop {
        let read = String::from_utf8_lossy(&text).into_owned();
        if let Some((head, body)) = read.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head
                .lines()
                .find_map(|it| it.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |it| it.parse().unwrap());
            if body.len() >= length {
                return read;
            }
        }
        assert_ne!(
            patiently(stream.read_buf(&mut text)).await.unwrap(),
            0,
            "{read}"
        );
    }
}
