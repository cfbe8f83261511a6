//! A small HTTP server on this machine whose answers a test writes: a receiver of messages, a page,
//! or something that behaves badly.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

/// Whoever sends nothing for so long is gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// What somebody asked.
#[derive(Debug, Clone)]
pub struct Asked {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Asked {
    /// # Panics
    /// When it is not there.
    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(it, _)| it == name);
        found.map_or_else(|| panic!("no {name}: {self:?}"), |(_, it)| it.as_str())
    }

    /// # Panics
    /// When it is no JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

/// What it is answered: the bytes after the status line's version, or nothing at all.
#[derive(Debug, Clone)]
pub enum Said {
    Answer {
        status: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    },
    /// The connection stays open without a word until the site is gone.
    Silence,
}

impl Said {
    pub fn status(status: u16) -> Self {
        Self::Answer {
            status,
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    pub fn page(kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::Answer {
            status: 200,
            headers: vec![("Content-Type".to_owned(), kind.to_owned())],
            body: body.into(),
        }
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        if let Self::Answer { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }
}

type Answering = dyn Fn(&Asked) -> Said + Send + Sync;

#[expect(
    missing_debug_implementations,
    reason = "a function has nothing to show"
)]
pub struct Site {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    over: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl Site {
    /// # Panics
    /// When no port is free.
    pub fn open(answer: impl Fn(&Asked) -> Said + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let over = Arc::new(AtomicBool::new(false));
        let answer: Arc<Answering> = Arc::new(answer);
        let (all, ended) = (Arc::clone(&asked), Arc::clone(&over));
        let listening = std::thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                if ended.load(Ordering::SeqCst) {
                    break;
                }
                let (answer, all) = (Arc::clone(&answer), Arc::clone(&all));
                let ended = Arc::clone(&ended);
                open.push(std::thread::spawn(move || {
                    serve(stream, &all, &*answer, &ended)
                }));
            }
            drop(listener);
            for it in open {
                let _ = it.join();
            }
        });
        Self {
            address,
            asked,
            over,
            listening: Some(listening),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Everything that was asked so far, in the order in which it came.
    ///
    /// # Panics
    /// When an answer panicked.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("what was asked").clone()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes whoever waits for a connection.
        let _ = TcpStream::connect(self.address);
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
    }
}

fn serve(stream: TcpStream, all: &Mutex<Vec<Asked>>, answer: &Answering, over: &AtomicBool) {
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let Some(asked) = read(&stream) else { return };
    all.lock().expect("what was asked").push(asked.clone());
    let said = answer(&asked);
    let Said::Answer {
        status,
        headers,
        body,
    } = said
    else {
        // Until either side is gone.
        let _ = stream.set_read_timeout(Some(Duration::from_millis(50)));
        let mut stream = stream;
        while !over.load(Ordering::SeqCst) {
            match stream.read(&mut [0; 64]) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
        return;
    };
    let mut head = format!("HTTP/1.1 {status} x\r\nConnection: close\r\n");
    for (name, value) in &headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("Content-Length: {}\r\n\r\n", body.len());
    let mut stream = stream;
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(&body);
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, it)| it.parse().ok()).unwrap_or(0);
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body).ok()?;
    Some(Asked {
        method,
        path,
        headers,
        body,
    })
}
