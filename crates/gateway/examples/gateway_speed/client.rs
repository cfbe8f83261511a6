//! A client that blocks: as little of its own as possible.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::PATIENCE;
use crate::world::World;

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

pub(crate) struct Client {
    stream: Box<dyn Stream>,
    tcp: Option<TcpStream>,
    host: String,
    /// Before each request. Something that no request begins with makes it raw bytes.
    mark: &'static str,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) fn plain(address: SocketAddr) -> Self {
        Self::on(TcpStream::connect(address).unwrap(), "a.test")
    }

    /// A client whose requests name the host that was dialled.
    pub(crate) fn plain_as(address: SocketAddr, world: &World) -> Self {
        Self::on(
            TcpStream::connect(address).unwrap(),
            &world.host_of(address),
        )
    }

    fn on(stream: TcpStream, host: &str) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            stream: Box::new(stream.try_clone().unwrap()),
            tcp: Some(stream),
            host: host.to_owned(),
            mark: "",
            buffer: vec![0; 256 * 1024],
        }
    }

    pub(crate) fn tunnel(proxy: SocketAddr, target: &str) -> Self {
        let mut client = Self::on(TcpStream::connect(proxy).unwrap(), target);
        let ask = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
        client.stream.write_all(ask.as_bytes()).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.stream.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
        assert!(answer.starts_with(b"HTTP/1.1 200") || answer.starts_with(b"HTTP/1.0 200"));
        client
    }

    pub(crate) fn raw(self) -> Self {
        Self {
            mark: "\x01",
            ..self
        }
    }

    /// One request; the length of its answer's body.
    pub(crate) fn get(&mut self, path: &str) -> usize {
        let (mark, host) = (self.mark, &self.host);
        let request = format!("{mark}GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        self.stream.write_all(request.as_bytes()).unwrap();
        let mut filled = 0;
        let (head, length) = loop {
            let read = self.stream.read(&mut self.buffer[filled..]).unwrap();
            assert_ne!(read, 0, "the connection ended");
            filled += read;
            let text = &self.buffer[..filled];
            if let Some(at) = text.windows(4).position(|it| it == b"\r\n\r\n") {
                let head = std::str::from_utf8(&text[..at]).unwrap();
                assert!(head.starts_with("HTTP/1.1 200"), "{head}");
                let lower = head.to_ascii_lowercase();
                let length = lower
                    .lines()
                    .find_map(|it| it.strip_prefix("content-length: "));
                break (at + 4, length.unwrap().parse::<usize>().unwrap());
            }
        };
        let mut body = filled - head;
        while body < length {
            let read = self.stream.read(&mut self.buffer).unwrap();
            assert_ne!(read, 0, "the connection ended");
            body += read;
        }
        body
    }
}

#[derive(Clone)]
pub(crate) struct Tls(Arc<ClientConfig>);

impl Tls {
    pub(crate) fn trusting(authority: CertificateDer<'static>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(authority).unwrap();
        let mut config = ClientConfig::builder_with_provider(crate::server::provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        // Every connection makes the whole handshake, in all ways alike.
        config.resumption = rustls::client::Resumption::disabled();
        Self(Arc::new(config))
    }

    pub(crate) fn over(&self, mut client: Client, name: &str) -> Client {
        let server = ServerName::try_from(name.to_owned()).unwrap();
        let session = ClientConnection::new(Arc::clone(&self.0), server).unwrap();
        let tcp = client.tcp.take().unwrap();
        Client {
            stream: Box::new(StreamOwned::new(session, tcp)),
            tcp: None,
            host: name.to_owned(),
            mark: client.mark,
            buffer: client.buffer,
        }
    }
}
