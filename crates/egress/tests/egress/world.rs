//! A small world: names, roads from public addresses to servers on loopback, and the servers.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use glovebox_egress::client::{Client, Trust};
use glovebox_egress::retrieve::{RetrieveRequest, Retrieved, Retriever};
use glovebox_egress::{
    Connection, Dialler, PrivateTargets, Refusal, RefusalCode, Resolver, Vetter,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

pub(crate) const PUBLIC: &str = "93.184.216.34";
pub(crate) const PUBLIC_6: &str = "2606:2800:220:1:248:1893:25c8:1946";

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Answers in turn, the last one for ever. Names that are not here do not exist; a name without
/// answers never answers.
#[derive(Debug, Default)]
pub(crate) struct Names {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    pub(crate) fn set(&self, name: &str, answers: &[&[&str]]) {
        let answers = answers
            .iter()
            .map(|it| it.iter().map(|it| ip(it)).collect())
            .collect();
        self.answers
            .lock()
            .unwrap()
            .insert(name.to_owned(), answers);
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Resolver for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, Refusal>> {
        self.asked.lock().unwrap().push(name.to_owned());
        let answer = match self.answers.lock().unwrap().get_mut(name) {
            None => Some(Err(Refusal::new(RefusalCode::DnsFailed, "no such name"))),
            Some(answers) if answers.is_empty() => None,
            Some(answers) if answers.len() == 1 => Some(Ok(answers[0].clone())),
            Some(answers) => Some(Ok(answers.remove(0))),
        };
        Box::pin(async move {
            match answer {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    }
}

/// Where a public address really leads.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Road {
    To(SocketAddr),
    /// Connects there and reports this peer.
    Reports(SocketAddr, SocketAddr),
    /// Nobody ever answers.
    Nowhere,
}

#[derive(Debug, Default)]
pub(crate) struct Roads {
    roads: Mutex<HashMap<SocketAddr, Road>>,
    dialled: Mutex<Vec<SocketAddr>>,
}

impl Roads {
    pub(crate) fn set(&self, from: &str, port: u16, road: Road) {
        let from = SocketAddr::new(ip(from), port);
        self.roads.lock().unwrap().insert(from, road);
    }

    pub(crate) fn dialled(&self) -> Vec<SocketAddr> {
        self.dialled.lock().unwrap().clone()
    }
}

impl Dialler for Roads {
    fn dial<'a>(&'a self, address: SocketAddr) -> BoxFuture<'a, io::Result<Connection>> {
        self.dialled.lock().unwrap().push(address);
        let road = self.roads.lock().unwrap().get(&address).copied();
        Box::pin(async move {
            let (to, peer) = match road {
                None => return Err(io::ErrorKind::ConnectionRefused.into()),
                Some(Road::To(to)) => (to, address),
                Some(Road::Reports(to, peer)) => (to, peer),
                Some(Road::Nowhere) => std::future::pending().await,
            };
            let stream = TcpStream::connect(to).await?;
            Ok(Connection::tcp_towards(stream, peer))
        })
    }
}

/// A server that is gone with its handle.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// `answer` gets each connection with the head of its request.
    pub(crate) async fn start<F>(answer: F) -> Self
    where
        F: Fn(TcpStream, String) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let answer = Arc::new(answer);
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (answer, noted) = (Arc::clone(&answer), Arc::clone(&noted));
                tokio::spawn(async move {
                    let head = head(&mut stream).await;
                    noted.lock().unwrap().push(head.clone());
                    answer(stream, head).await;
                });
            }
        });
        Self {
            address,
            seen,
            task,
        }
    }

    pub(crate) fn of(address: SocketAddr, task: JoinHandle<()>) -> Self {
        Self {
            address,
            seen: Arc::default(),
            task,
        }
    }

    /// Says the same to everybody and closes.
    pub(crate) async fn saying(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes: Arc<[u8]> = bytes.into().into();
        Self::start(move |mut stream, _| {
            let bytes = Arc::clone(&bytes);
            Box::pin(async move {
                // The client may have had enough before.
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
            })
        })
        .await
    }

    /// Says it again and again, without an end.
    pub(crate) async fn repeating(begin: &'static str, piece: Vec<u8>, every: Duration) -> Self {
        let piece: Arc<[u8]> = piece.into();
        Self::start(move |mut stream, _| {
            let piece = Arc::clone(&piece);
            Box::pin(async move {
                let mut written = stream.write_all(begin.as_bytes()).await;
                while written.is_ok() {
                    written = stream.write_all(&piece).await;
                    if !every.is_zero() {
                        tokio::time::sleep(every).await;
                    }
                }
            })
        })
        .await
    }

    /// Accepts and says nothing.
    pub(crate) async fn silent() -> Self {
        Self::start(|stream, _| {
            Box::pin(async move {
                std::future::pending::<()>().await;
                drop(stream);
            })
        })
        .await
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

pub(crate) async fn head(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && head.len() < 64 * 1024 {
        match stream.read(&mut byte).await {
            Ok(1) => head.push(byte[0]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

pub(crate) fn ok(content_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

pub(crate) fn redirect(status: u16, to: &str) -> String {
    format!("HTTP/1.1 {status} Elsewhere\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
}

pub(crate) struct World {
    pub(crate) names: Arc<Names>,
    pub(crate) roads: Arc<Roads>,
    pub(crate) retriever: Retriever,
}

impl World {
    /// `ok.test` is at a public address that leads to `server` for plain HTTP.
    pub(crate) fn with(server: &Server) -> Self {
        let world = Self::empty();
        world.names.set("ok.test", &[&[PUBLIC]]);
        world.roads.set(PUBLIC, 80, Road::To(server.address));
        world
    }

    pub(crate) fn empty() -> Self {
        let names = Arc::new(Names::default());
        let roads = Arc::new(Roads::default());
        let vetter = Vetter {
            resolver: names.clone(),
            dialler: roads.clone(),
            private: PrivateTargets::none(),
        };
        let trust = Trust::only(crate::tls::authority().pem().as_bytes()).unwrap();
        let mut retriever = Retriever::new(Client::new(vetter, trust));
        retriever.limits.bytes = 1 << 20;
        Self {
            names,
            roads,
            retriever,
        }
    }

    pub(crate) async fn get(&self, url: &str) -> Retrieved {
        self.retriever.get("me", RetrieveRequest::of(url)).await
    }

    pub(crate) async fn code(&self, url: &str) -> Option<RefusalCode> {
        self.get(url).await.error_code
    }

    pub(crate) fn vetter(&self) -> &Vetter {
        &self.retriever.client.vetter
    }
}
