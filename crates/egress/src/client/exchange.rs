//! One request, one answer, one connection.

use std::error::Error as _;
use std::net::{IpAddr, SocketAddr};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderValue, USER_AGENT};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::Client;
use super::answer::Answer;
use super::guard::{Arrived, HeadGuard, HeadTooLarge};
use crate::host::Host;
use crate::refusal::{Refusal, RefusalCode};
use crate::target::{Scheme, Target};

/// Where an answer came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerSource {
    /// All that the name led to.
    pub addresses: Vec<IpAddr>,
    pub peer: SocketAddr,
    /// SHA-256 of the server's own certificate, in hex.
    pub certificate_sha256: Option<String>,
}

/// Ends the connection with whoever waits for its answer.
#[derive(Debug)]
pub(super) struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(super) struct Outgoing<'a> {
    pub(super) method: Method,
    pub(super) target: &'a Target,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Client {
    /// Looks up, connects, shakes hands, sends, and reads the head of the answer.
    pub(super) async fn exchange(
        &self,
        outgoing: Outgoing<'_>,
        deadline: Instant,
    ) -> Result<Answer, Refusal> {
        let target = outgoing.target;
        let connected = deadline.min(Instant::now() + self.limits.connect);
        let vetting = self.vetter.vet(target.host(), target.port());
        let vetted = timeout_at(connected, vetting).await.map_err(|_| {
            Refusal::new(
                RefusalCode::DnsFailed,
                format!("no address of `{}` in time", target.host()),
            )
        })??;
        let connection = self.vetter.connect(&vetted, connected).await?;
        let peer = connection.peer().map_err(|error| {
            Refusal::new(RefusalCode::ConnectionTimeout, format!("no peer: {error}"))
        })?;
        let mut via = AnswerSource {
            addresses: vetted.addresses().to_vec(),
            peer,
            certificate_sha256: None,
        };
        match target.scheme() {
            Scheme::Http => self.speak(connection, outgoing, via, deadline).await,
            Scheme::Https => {
                let connector = TlsConnector::from(self.trust.config());
                let shaking = connector.connect(server_name(target.host())?, connection);
                let stream = timeout_at(connected, shaking).await.map_err(|_| {
                    Refusal::new(
                        RefusalCode::ConnectionTimeout,
                        format!("no TLS handshake with `{}` in time", target.host()),
                    )
                })?;
                let stream = stream.map_err(|error| distrusted(target.host(), &error))?;
                let certificates = stream.get_ref().1.peer_certificates();
                via.certificate_sha256 = certificates
                    .and_then(<[_]>::first)
                    .map(|it| hex(&Sha256::digest(it)));
                self.speak(stream, outgoing, via, deadline).await
            }
        }
    }

    async fn speak(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        outgoing: Outgoing<'_>,
        via: AnswerSource,
        deadline: Instant,
    ) -> Result<Answer, Refusal> {
        let target = outgoing.target;
        let arrived = Arrived::default();
        let guarded = HeadGuard::new(stream, self.limits.head_bytes, arrived.clone());
        // The parser takes no smaller buffer than this.
        let buffer = self.limits.head_bytes.max(8 * 1024);
        let asking = async {
            let (mut sender, connection) = http1::Builder::new()
                .max_headers(self.limits.headers)
                .max_buf_size(buffer)
                .handshake(TokioIo::new(guarded))
                .await
                .map_err(|error| broken(target.host(), &error))?;
            // What goes wrong with it, the request that waits hears.
            let driver = Driver(tokio::spawn(async move {
                let _ = connection.await;
            }));
            let request = request(outgoing)?;
            let answer = sender.send_request(request).await;
            let answer = answer.map_err(|error| broken(target.host(), &error))?;
            arrived.set();
            Ok(Answer::new(answer, driver, via, deadline))
        };
        timeout_at(deadline, asking).await.map_err(|_| {
            Refusal::new(
                RefusalCode::ReadTimeout,
                format!("no answer of `{}` in time", target.host()),
            )
        })?
    }
}

fn request(outgoing: Outgoing<'_>) -> Result<Request<Full<Bytes>>, Refusal> {
    let unfit = || Refusal::new(RefusalCode::InvalidUrl, "the URL cannot be sent");
    let mut request = Request::builder()
        .method(outgoing.method)
        .uri(outgoing.target.path_and_query())
        .body(Full::new(outgoing.body))
        .map_err(|_| unfit())?;
    let headers = request.headers_mut();
    *headers = outgoing.headers;
    let authority = HeaderValue::try_from(outgoing.target.authority()).map_err(|_| unfit())?;
    headers.insert(HOST, authority);
    headers.insert(USER_AGENT, HeaderValue::from_static("glovebox"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    Ok(request)
}

/// A name is sent as SNI and checked; an address is checked and never sent.
fn server_name(host: &Host) -> Result<ServerName<'static>, Refusal> {
    match host {
        Host::Name(name) => ServerName::try_from(name.as_str().to_owned()).map_err(|_| {
            Refusal::new(
                RefusalCode::TlsError,
                format!("no certificate can be for `{host}`"),
            )
        }),
        Host::V4(address) => Ok(IpAddr::from(*address).into()),
        Host::V6(address) => Ok(IpAddr::from(*address).into()),
    }
}

fn distrusted(host: &Host, error: &std::io::Error) -> Refusal {
    Refusal::new(
        RefusalCode::TlsError,
        format!("no trusted connection to `{host}`: {error}"),
    )
    .hint("there is no way around a certificate that does not hold; `[network] extra_ca` adds an authority")
}

/// What hyper says of a connection that did not bring an answer.
pub(super) fn broken(host: &Host, error: &hyper::Error) -> Refusal {
    if error.is_parse_too_large() || is_head_too_large(error) {
        return Refusal::new(
            RefusalCode::ResponseTooLarge,
            format!("the head of the answer of `{host}` is too large"),
        );
    }
    let cause = error.source().map(|it| format!(": {it}"));
    let why = format!("{error}{}", cause.unwrap_or_default());
    match error.is_parse() {
        true => Refusal::new(
            RefusalCode::DecodeError,
            format!("the answer of `{host}` is not HTTP: {why}"),
        ),
        false => Refusal::new(
            RefusalCode::ReadTimeout,
            format!("the connection to `{host}` ended before its answer: {why}"),
        ),
    }
}

fn is_head_too_large(error: &hyper::Error) -> bool {
    let io = error
        .source()
        .and_then(|it| it.downcast_ref::<std::io::Error>());
    io.and_then(std::io::Error::get_ref)
        .is_some_and(|it| it.is::<HeadTooLarge>())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // A string takes whatever is written to it.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
