//! The far side of an exchange: a vetted connection to the host that was decided on.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use glovebox_egress::{Connection, Refusal, RefusalCode, Scheme};
use glovebox_model::NetCode;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::CertificateError;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use crate::connection::Story;
use crate::denial::Denial;
use crate::destination::Destination;
use crate::exchange::BUFFER_MOST;
use crate::exec_session::Term;
use crate::gateway::Shared;
use crate::previewed::Cleared;
use crate::upload::Upload;

/// For the lookup, the connection and the handshake together.
const CONNECT: Duration = Duration::from_secs(15);

/// A connection and where it really leads.
#[derive(Debug)]
pub(crate) struct Far {
    pub(crate) connection: Connection,
    pub(crate) address: Option<IpAddr>,
}

/// Where a request goes, and that it may.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Out<'a> {
    pub(crate) destination: &'a Destination,
    pub(crate) scheme: Scheme,
    pub(crate) cleared: Cleared,
}

/// Looks the name up, vets every address and dials one. The only way to the outside.
pub(crate) async fn dial(
    shared: &Shared,
    term: &Term,
    destination: &Destination,
    _: Cleared,
) -> Result<Far, Denial> {
    term.begin()?;
    let deadline = Instant::now() + CONNECT;
    let vetting = shared.vetter.vet(destination.host(), destination.port());
    let vetted = match timeout_at(deadline, vetting).await {
        Ok(vetted) => vetted.map_err(Denial::unreached)?,
        Err(_) => {
            let why = format!("`{destination}` was not found in time");
            return Err(Denial::unreached(Refusal::new(RefusalCode::DnsFailed, why)));
        }
    };
    let connection = shared.vetter.connect(&vetted, deadline).await;
    let connection = connection.map_err(Denial::unreached)?;
    let address = connection.peer().ok().map(|it| it.ip());
    Ok(Far {
        connection,
        address,
    })
}

/// For a proxy, which says whether a host is there before anything is known of what will be
/// spoken. One whose requests may have to be read is dialled when that is known.
pub(crate) async fn dial_ahead(
    shared: &Shared,
    term: &Term,
    story: &Story,
    destination: &Destination,
) -> Result<Option<Far>, Denial> {
    if term.is_inspected(destination) || term.previews(destination) {
        return Ok(None);
    }
    let cleared = term.clear_connection(story, destination)?;
    dial(shared, term, destination, cleared).await.map(Some)
}

/// The connection that a client's requests go out by, one after the other. Dropping it ends it.
#[derive(Debug, Default)]
pub(crate) struct Upstream {
    open: Option<Open>,
    drivers: JoinSet<()>,
}

#[derive(Debug)]
struct Open {
    destination: Destination,
    sender: SendRequest<Upload>,
    address: Option<IpAddr>,
}

impl Upstream {
    /// Takes a connection that was dialled before.
    pub(crate) async fn adopt(
        &mut self,
        destination: &Destination,
        far: Far,
    ) -> Result<(), Denial> {
        self.shake(destination, far.connection, far.address).await
    }

    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.open.as_ref().and_then(|it| it.address)
    }

    /// Makes sure that there is a connection to send by.
    pub(crate) async fn reach(
        &mut self,
        shared: &Shared,
        term: &Term,
        out: Out<'_>,
    ) -> Result<(), Denial> {
        let Out {
            destination,
            scheme,
            cleared,
        } = out;
        if let Some(open) = &mut self.open {
            let usable = open.destination == *destination && !open.sender.is_closed();
            if usable && open.sender.ready().await.is_ok() {
                return Ok(());
            }
        }
        self.leave();
        let Far {
            connection,
            address,
        } = dial(shared, term, destination, cleared).await?;
        match scheme {
            Scheme::Http => self.shake(destination, connection, address).await,
            Scheme::Https => {
                let stream = secured(shared, destination, connection).await?;
                self.shake(destination, stream, address).await
            }
        }
    }

    /// The request comes back if it was not sent: its connection had been closed meanwhile.
    pub(crate) async fn send(
        &mut self,
        request: Request<Upload>,
    ) -> Result<Response<Incoming>, (Denial, Option<Box<Request<Upload>>>)> {
        let Some(open) = &mut self.open else {
            return Err((failed("there is no connection"), Some(Box::new(request))));
        };
        match open.sender.try_send_request(request).await {
            Ok(response) => Ok(response),
            Err(mut error) => {
                let request = error.take_message().map(Box::new);
                let why = said(error.error());
                let why = format!("`{}` did not answer: {why}", open.destination);
                self.leave();
                Err((failed(&why), request))
            }
        }
    }

    fn leave(&mut self) {
        self.open = None;
        self.drivers.abort_all();
        while self.drivers.try_join_next().is_some() {}
    }

    async fn shake<S>(
        &mut self,
        destination: &Destination,
        stream: S,
        address: Option<IpAddr>,
    ) -> Result<(), Denial>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let made = http1::Builder::new()
            .preserve_header_case(true)
            .max_buf_size(BUFFER_MOST)
            .handshake(TokioIo::new(stream))
            .await;
        let (sender, driver) = made.map_err(|error| failed(said(&error)))?;
        self.drivers.spawn(async move {
            // How it ends is told to whoever waits for the answer.
            let _ = driver.with_upgrades().await;
        });
        self.open = Some(Open {
            destination: destination.clone(),
            sender,
            address,
        });
        Ok(())
    }
}

async fn secured(
    shared: &Shared,
    destination: &Destination,
    connection: Connection,
) -> Result<tokio_rustls::client::TlsStream<Connection>, Denial> {
    let Some(authority) = &shared.inside.authority else {
        return Err(no_authority(destination));
    };
    let name = ServerName::try_from(destination.name().to_owned())
        .map_err(|_| failed("the name cannot stand in a certificate"))?;
    let connector = TlsConnector::from(Arc::clone(authority.upstream()));
    let handshake = connector.connect(name, connection);
    match timeout_at(Instant::now() + CONNECT, handshake).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(distrusted(destination, &error)),
        Err(_) => Err(failed(&format!(
            "TLS to `{destination}` was not ready in time"
        ))),
    }
}

pub(crate) fn no_authority(destination: &Destination) -> Denial {
    Denial::of(
        NetCode::InternalError,
        destination.name(),
        destination.port(),
        "this host is inspected, and the sandbox has no authority for that",
    )
}

/// In words of ours: a program reads them, and what a library calls things says nothing to it.
fn said(error: &hyper::Error) -> &'static str {
    if error.is_parse_too_large() {
        "the head of its answer is too large"
    } else if error.is_parse() {
        "what it said is not HTTP/1.1"
    } else if error.is_incomplete_message() {
        "it closed the connection before it had answered"
    } else if error.is_body_write_aborted() || error.is_user() {
        "the request did not come whole"
    } else {
        "the connection broke"
    }
}

/// Why no TLS came about. A certificate that does not hold has its own way out.
fn distrusted(destination: &Destination, error: &io::Error) -> Denial {
    let inner = error
        .get_ref()
        .and_then(|it| it.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::InvalidCertificate(wrong)) = inner else {
        return failed(&format!("TLS to `{destination}` did not come about"));
    };
    let (why, hint) = match wrong {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            ("is signed by nobody who is trusted", None)
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => (
            "is for another name",
            Some("ask for it by a name that its certificate has"),
        ),
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => (
            "is not valid at this time",
            Some("whoever runs it must renew it; the clock of this machine may be wrong"),
        ),
        _ => (
            "does not hold",
            Some("whoever runs it must give it another one"),
        ),
    };
    let refusal = Refusal::new(
        RefusalCode::TlsError,
        format!("the certificate of `{destination}` {why}"),
    );
    Denial::unreached(match hint {
        Some(hint) => refusal.hint(hint),
        None => refusal,
    })
}

fn failed(why: &str) -> Denial {
    Denial::unreached(Refusal::new(RefusalCode::ConnectionTimeout, why))
}
