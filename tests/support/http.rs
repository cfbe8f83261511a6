//! A client that can also misbehave: HTTP/1.1 over a plain socket, one connection a request, and
//! raw bytes where a test wants to say something that no good client says.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Longer than any answer takes here.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, Clone)]
pub struct Client {
    address: SocketAddr,
    token: Option<String>,
    headers: Vec<(String, String)>,
    from: Option<Ipv4Addr>,
}

#[derive(Debug, Clone)]
pub struct Response {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Client {
    pub fn new(address: SocketAddr, token: Option<&str>) -> Self {
        Self {
            address,
            token: token.map(str::to_owned),
            headers: Vec::new(),
            from: None,
        }
    }

    /// Comes from this loopback address: to the server it is somebody else.
    #[must_use]
    pub fn from(mut self, address: Ipv4Addr) -> Self {
        self.from = Some(address);
        self
    }

    /// The same at another address: its server was restarted.
    #[must_use]
    pub fn at(&self, address: SocketAddr) -> Self {
        Self {
            address,
            ..self.clone()
        }
    }

    /// With one more header on every request.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub fn get(&self, path: &str) -> Response {
        self.send("GET", path, None)
    }

    pub fn post(&self, path: &str, body: &Value) -> Response {
        self.send("POST", path, Some(body))
    }

    /// # Panics
    /// When the connection fails.
    pub fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Response {
        self.try_send(method, path, body)
            .unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    pub fn try_send(&self, method: &str, path: &str, body: Option<&Value>) -> io::Result<Response> {
        let body = body.map(|body| body.to_string().into_bytes());
        let kind = body.is_some().then_some("application/json");
        self.try_bytes(method, path, kind, &body.unwrap_or_default())
    }

    /// A body of any kind.
    pub fn try_bytes(
        &self,
        method: &str,
        path: &str,
        content_type: Option<&str>,
        body: &[u8],
    ) -> io::Result<Response> {
        let mut request = self.head(method, path).into_bytes();
        if let Some(content_type) = content_type {
            request.extend(format!("Content-Type: {content_type}\r\n").into_bytes());
        }
        if content_type.is_some() || !matches!(method, "GET" | "HEAD") {
            request.extend(format!("Content-Length: {}\r\n", body.len()).into_bytes());
        }
        request.extend(b"Connection: close\r\n\r\n");
        let mut stream = self.connect()?;
        stream.write_all(&request)?;
        // A server that refuses early closes before it has read everything.
        let _ = stream.write_all(body);
        Response::read(&mut BufReader::new(stream), method == "HEAD")
    }

    /// Whatever these bytes are, and whatever comes back until the server closes.
    pub fn raw(&self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut stream = self.connect()?;
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => Err(error),
            _ => Ok(answer),
        }
    }

    /// The stream of an exec's events, from after `after` on.
    pub fn events(&self, exec: &str, after: u64) -> io::Result<Events> {
        self.follow(&format!("/v1/execs/{exec}/events?after={after}"))
    }

    /// Server-sent events of any path.
    pub fn follow(&self, path: &str) -> io::Result<Events> {
        let mut stream = self.connect()?;
        let head = self.head("GET", path) + "Accept: text/event-stream\r\n\r\n";
        stream.write_all(head.as_bytes())?;
        let mut reader = BufReader::new(stream);
        let (status, headers) = read_head(&mut reader)?;
        if status != 200 {
            return Err(io::Error::other(format!("{status} {headers:?}")));
        }
        Ok(Events {
            reader: BufReader::new(Box::new(Chunks::new(reader))),
        })
    }

    pub fn connect(&self) -> io::Result<TcpStream> {
        let stream = match self.from {
            None => TcpStream::connect_timeout(&self.address, PATIENCE)?,
            Some(from) => {
                use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
                let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
                bind(&socket, &SocketAddrV4::new(from, 0))?;
                connect(&socket, &self.address)?;
                TcpStream::from(socket)
            }
        };
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    fn head(&self, method: &str, path: &str) -> String {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !self
            .headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("host"))
        {
            head += &format!("Host: {}\r\n", self.address);
        }
        if let Some(token) = &self.token {
            head += &format!("Authorization: Bearer {token}\r\n");
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head
    }
}

impl Response {
    fn read(reader: &mut BufReader<TcpStream>, head_only: bool) -> io::Result<Self> {
        let (status, headers) = read_head(reader)?;
        let find = |name: &str| {
            headers
                .iter()
                .find(|(it, _)| it == name)
                .map(|(_, it)| it.as_str())
        };
        let mut body = Vec::new();
        if head_only || status == 204 {
        } else if find("transfer-encoding") == Some("chunked") {
            Chunks::new(reader).read_to_end(&mut body)?;
        } else if let Some(length) = find("content-length") {
            let length = length.parse().map_err(io::Error::other)?;
            reader.take(length).read_to_end(&mut body)?;
        } else {
            reader.read_to_end(&mut body)?;
        }
        Ok(Self {
            status,
            headers,
            body,
        })
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// # Panics
    /// When it is no JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.text()))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The code of its error, if it is one.
    pub fn code(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or(Value::Null);
        body["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

fn read_head(reader: &mut impl BufRead) -> io::Result<(u16, Vec<(String, String)>)> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|it| it.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("no status in {line:?}")))?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else {
            return Ok((status, headers));
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

/// A chunked body.
struct Chunks<R> {
    reader: R,
    left: u64,
    over: bool,
}

impl<R: BufRead> Chunks<R> {
    fn new(reader: R) -> Self {
        Self {
            reader,
            left: 0,
            over: false,
        }
    }

    fn next(&mut self) -> io::Result<()> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left = u64::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
        self.over = self.left == 0;
        if self.over {
            self.reader.read_line(&mut line)?;
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Chunks<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !self.over {
            self.next()?;
        }
        if self.over {
            return Ok(0);
        }
        let count = self.reader.by_ref().take(self.left).read(buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= count as u64;
        if self.left == 0 {
            let mut end = String::new();
            self.reader.read_line(&mut end)?;
        }
        Ok(count)
    }
}

/// One server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub seq: u64,
    pub name: String,
    pub data: Value,
}

/// Events as they come; ends with the stream. A connection that breaks is an error, not an end.
#[expect(missing_debug_implementations, reason = "a reader has nothing to show")]
pub struct Events {
    reader: BufReader<Box<dyn Read + Send>>,
}

impl Iterator for Events {
    type Item = io::Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut event = Event {
            seq: 0,
            name: String::new(),
            data: Value::Null,
        };
        let mut any = false;
        loop {
            let mut line = String::new();
            match self.reader.read_line(&mut line) {
                Err(error) => return Some(Err(error)),
                Ok(0) => return None,
                Ok(_) => {}
            }
            match line.trim_end().split_once(": ") {
                Some(("id", seq)) => (event.seq, any) = (seq.parse().unwrap_or(0), true),
                Some(("event", name)) => event.name = name.to_owned(),
                Some(("data", data)) => {
                    event.data = serde_json::from_str(data).unwrap_or(Value::Null);
                }
                _ if line.trim_end().is_empty() && any => return Some(Ok(event)),
                _ => {}
            }
        }
    }
}
