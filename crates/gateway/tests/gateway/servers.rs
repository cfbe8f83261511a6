//! Servers of the world outside.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, UPGRADE};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

pub(crate) async fn listen<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
}

/// Says everything back, and ends when its client has.
pub(crate) async fn echo() -> SocketAddr {
    listen(|mut stream| async move {
        let (mut read, mut write) = stream.split();
        let _ = tokio::io::copy(&mut read, &mut write).await;
        let _ = write.shutdown().await;
    })
    .await
}

/// Speaks first, then answers one line.
pub(crate) async fn greeter() -> SocketAddr {
    listen(|mut stream| async move {
        let _ = stream.write_all(b"220 welcome\r\n").await;
        let mut buffer = [0; 64];
        let read = stream.read(&mut buffer).await.unwrap_or(0);
        let _ = stream
            .write_all(&[b"you said ", &buffer[..read]].concat())
            .await;
    })
    .await
}

/// Says only when all has come, after its client has closed its side.
pub(crate) async fn counter() -> SocketAddr {
    listen(|mut stream| async move {
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all).await;
        let _ = stream
            .write_all(format!("{} bytes", all.len()).as_bytes())
            .await;
    })
    .await
}

pub(crate) async fn http() -> SocketAddr {
    listen(http_on).await
}

/// HTTP that says back what it was asked: the request line, the headers, the body. `/ws` turns
/// into an echo; `/close` closes after its answer.
async fn http_on<S>(stream: S)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service_fn(say_back))
        .with_upgrades()
        .await;
}

async fn say_back(mut request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    if path == "/ws" && request.headers().contains_key(UPGRADE) {
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let stream = TokioIo::new(upgrade.await.unwrap());
            let (mut read, mut write) = tokio::io::split(stream);
            let _ = tokio::io::copy(&mut read, &mut write).await;
            let _ = write.shutdown().await;
        });
        let response = Response::builder()
            .status(StatusCode::SWITCHING_PROTOCOLS)
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket");
        return Ok(response.body(Full::default()).unwrap());
    }
    let mut text = format!("{} {}\n", request.method(), request.uri());
    let mut echo = None;
    for (name, value) in request.headers() {
        let value = String::from_utf8_lossy(value.as_bytes());
        if name == "authorization" {
            echo = Some(value.to_string());
        }
        text.push_str(&format!("{name}: {value}\n"));
    }
    let body = request.into_body().collect().await.map(|it| it.to_bytes());
    text.push_str(&String::from_utf8_lossy(&body.unwrap_or_default()));
    if path == "/big" {
        text = "x".repeat(1 << 20);
    }
    let mut response = Response::new(Full::from(text));
    if path == "/close" {
        response
            .headers_mut()
            .insert(CONNECTION, "close".parse().unwrap());
    }
    if let Some(echo) = echo {
        response
            .headers_mut()
            .insert("x-echo", echo.parse().unwrap());
    }
    if path == "/compressed" {
        response
            .headers_mut()
            .insert("content-encoding", "gzip".parse().unwrap());
    }
    Ok(response)
}

/// The authority of the world outside.
pub(crate) struct Trusted {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
}

impl Trusted {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().der().clone();
        Self {
            issuer: Issuer::new(params, key),
            certificate,
        }
    }

    pub(crate) fn client(&self) -> Arc<ClientConfig> {
        client(&self.certificate)
    }

    fn server(&self, names: &[&str]) -> Arc<ServerConfig> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(names).unwrap();
        let leaf = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![leaf], key)
            .unwrap();
        Arc::new(config)
    }

    /// HTTP over TLS in these names.
    pub(crate) async fn https(&self, names: &[&str]) -> SocketAddr {
        let acceptor = TlsAcceptor::from(self.server(names));
        listen(move |stream| {
            let acceptor = acceptor.clone();
            async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    http_on(stream).await;
                }
            }
        })
        .await
    }
}

impl Trusted {
    /// The same, and what it was sent as `authorization` is noted.
    pub(crate) async fn watched(
        &self,
        names: &[&str],
        seen: Arc<Mutex<Vec<String>>>,
    ) -> SocketAddr {
        let acceptor = TlsAcceptor::from(self.server(names));
        listen(move |stream| {
            let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
            async move {
                let Ok(stream) = acceptor.accept(stream).await else {
                    return;
                };
                let service = service_fn(move |request: Request<Incoming>| {
                    if let Some(value) = request.headers().get("authorization") {
                        let value = value.to_str().unwrap().to_owned();
                        seen.lock().unwrap().push(value);
                    }
                    say_back(request)
                });
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            }
        })
        .await
    }
}

impl Trusted {
    /// TLS in these names; each connection is answered once, with what is made of the head of its
    /// request.
    pub(crate) async fn saying(
        &self,
        names: &[&str],
        answer: impl Fn(&str) -> Vec<u8> + Clone + Send + Sync + 'static,
    ) -> SocketAddr {
        let acceptor = TlsAcceptor::from(self.server(names));
        listen(move |stream| {
            let (acceptor, answer) = (acceptor.clone(), answer.clone());
            async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    say(stream, answer).await;
                }
            }
        })
        .await
    }
}

/// The same without TLS.
pub(crate) async fn saying(
    answer: impl Fn(&str) -> Vec<u8> + Clone + Send + Sync + 'static,
) -> SocketAddr {
    listen(move |stream| say(stream, answer.clone())).await
}

async fn say<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, answer: impl Fn(&str) -> Vec<u8>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let _ = stream
        .write_all(&answer(&String::from_utf8_lossy(&head)))
        .await;
    let _ = stream.shutdown().await;
    // One that reads slowly must not be reset.
    let _ = stream.read_to_end(&mut Vec::new()).await;
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A client that trusts one authority.
pub(crate) fn client(authority: &CertificateDer<'static>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

pub(crate) async fn secure(
    stream: TcpStream,
    config: Arc<ClientConfig>,
    name: &str,
) -> std::io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    TlsConnector::from(config).connect(name, stream).await
}
