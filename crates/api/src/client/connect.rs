//! A connection to a server: a socket, and TLS over it where the address says so.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use glovebox_egress::operator;
use glovebox_model::{Code, Error, Result, Stage};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, CertificateError, ClientConfig, InvalidMessage, RootCertStore};

use super::address::{Address, Scheme};

pub(crate) type Sender = SendRequest<Full<Bytes>>;

/// For the socket and for the handshake, each.
const CONNECT: Duration = Duration::from_secs(5);
const OWN_AUTHORITY: &str = "for a certificate of your own authority: `--ca-file FILE`";
/// What webpki calls it; rustls has no case of its own for it.
const CA_AS_SERVER: &str = "CaUsedAsEndEntity";
const SELF_SIGNED: &str = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
    -days 365 -keyout key.pem -out cert.pem -subj /CN=NAME -addext subjectAltName=DNS:NAME \
    -addext basicConstraints=critical,CA:FALSE";

#[derive(Debug)]
pub(crate) struct Connector {
    address: Address,
    tls: Option<Arc<ClientConfig>>,
}

impl Connector {
    pub(crate) fn new(address: Address, authorities: Option<&Path>) -> Result<Self> {
        let tls = match &address {
            Address::Tcp {
                scheme: Scheme::Tls,
                ..
            } => Some(Arc::new(trust(authorities)?)),
            Address::Tcp { .. } | Address::Unix(_) => None,
        };
        Ok(Self { address, tls })
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// The connection is driven by the runtime for as long as somebody has the sender.
    pub(crate) async fn connect(&self) -> Result<Sender> {
        let connected = match &self.address {
            Address::Unix(path) => operator::unix(path, CONNECT).await.map(TokioIo::new),
            Address::Tcp { host, port, .. } => {
                let stream = operator::tcp(host, *port, CONNECT).await;
                let stream = stream.map_err(|error| self.unreachable(&error))?;
                return match &self.tls {
                    None => self.speak(TokioIo::new(stream)).await,
                    Some(config) => {
                        let name = ServerName::try_from(host.clone())
                            .map_err(|error| self.unreachable(&io::Error::other(error)))?;
                        let connector = TlsConnector::from(Arc::clone(config));
                        let stream = within(connector.connect(name, stream)).await;
                        let stream = stream.map_err(|error| self.distrusted(&error))?;
                        self.speak(TokioIo::new(stream)).await
                    }
                };
            }
        };
        self.speak(connected.map_err(|error| self.unreachable(&error))?)
            .await
    }

    async fn speak(&self, io: impl Read + Write + Unpin + Send + 'static) -> Result<Sender> {
        let (sender, connection) = http1::Builder::new()
            .handshake(io)
            .await
            .map_err(|error| self.unreachable(&io::Error::other(error)))?;
        // What goes wrong with it, the request that waits for an answer hears.
        tokio::spawn(async move { connection.await.ok() });
        Ok(sender)
    }

    fn unreachable(&self, error: &io::Error) -> Error {
        let address = &self.address;
        Error::new(
            Code::StoreUnavailable,
            Stage::Admit,
            format!("cannot reach the server `{address}`"),
        )
        .caused_by(error)
        .hint(match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "this user may not open it; use another address of the server, or be its owner"
            }
            _ => {
                "is it running? `glovebox serve` starts one; \
                 `--server` or `GLOVEBOX_SERVER` names it"
            }
        })
    }

    fn distrusted(&self, error: &io::Error) -> Error {
        let address = &self.address;
        Error::new(
            Code::StoreUnavailable,
            Stage::Admit,
            format!("no trusted connection to `{address}`"),
        )
        .caused_by(error)
        .hint(self.way_to_trust(error))
    }

    fn way_to_trust(&self, error: &io::Error) -> String {
        let tls = error.get_ref().and_then(|it| it.downcast_ref());
        match tls {
            Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
                match self.address.over(Scheme::Plain) {
                    Some(other) => format!("if it speaks plain HTTP: try `{other}`"),
                    None => OWN_AUTHORITY.to_owned(),
                }
            }
            Some(rustls::Error::InvalidCertificate(CertificateError::Other(why)))
                if why.0.to_string() == CA_AS_SERVER =>
            {
                format!(
                    "a certificate that signs itself must say that it is no authority: \
                     make it with `{SELF_SIGNED}`"
                )
            }
            _ => OWN_AUTHORITY.to_owned(),
        }
    }
}

async fn within<T>(doing: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match tokio::time::timeout(CONNECT, doing).await {
        Ok(done) => done,
        Err(_) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no answer within {} seconds", CONNECT.as_secs()),
        )),
    }
}

/// The authorities of the file alone, or those of the system.
fn trust(authorities: Option<&Path>) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    match authorities {
        Some(file) => {
            let failed = |error: String| {
                let shown = file.display();
                Error::new(
                    Code::InvalidArgument,
                    Stage::Parse,
                    format!("`{shown}` holds no certificate of an authority"),
                )
                .caused_by(error)
                .hint("it is a file in PEM form: `-----BEGIN CERTIFICATE-----`")
            };
            let certificates: Vec<_> = CertificateDer::pem_file_iter(file)
                .and_then(Iterator::collect)
                .map_err(|error| failed(error.to_string()))?;
            for certificate in certificates {
                roots
                    .add(certificate)
                    .map_err(|error| failed(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(failed("there is no `BEGIN CERTIFICATE` in it".to_owned()));
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| {
            Error::new(Code::Internal, Stage::Parse, "cannot set up TLS").caused_by(error)
        })?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
