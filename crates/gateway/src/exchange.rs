//! HTTP/1 between a sandbox and a host, request by request. Each is judged by itself: what the
//! first one was says nothing of the second.

use std::convert::Infallible;
use std::sync::{Arc, Mutex as Slot, PoisonError};

use glovebox_egress::{Host, Scheme};
use glovebox_model::{Approach, NetCode, Spoken};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::http::request;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes};
use tokio::sync::Mutex;

use crate::broker;
use crate::connection::{COPY_BYTES, Story};
use crate::denial::Denial;
use crate::destination::{Destination, read_authority};
use crate::exec_session::{Term, no_network};
use crate::forward::{self, Wish};
use crate::frames::Framed;
use crate::gateway::Shared;
use crate::head::Head;
use crate::late::Exchanged;
use crate::mask::{self, Reply};
use crate::path::Plain;
use crate::previewed::{BODY_MOST, Cleared, Leaving};
use crate::record::Asked;
use crate::upload::{Content, Upload};
use crate::upstream::{Far, Out, Upstream, dial_ahead};

/// The head of a message, and what is read of a body at once.
pub(crate) const BUFFER_MOST: usize = 128 * 1024;

/// Why the proxy cannot tell where a request should go.
pub(crate) const NEEDS_ABSOLUTE: &str = "a proxy needs `CONNECT name:port` or `GET http://name/`";
pub(crate) const NEEDS_TARGET: &str = "`CONNECT` needs `name:port`";

/// Whom the requests of a connection may be for.
#[derive(Debug)]
pub(crate) enum Route {
    /// The one destination that was decided on before.
    Fixed {
        destination: Destination,
        scheme: Scheme,
    },
    /// Each request names its own, and is decided on by itself: the proxy.
    Named,
}

pub(crate) struct Exchange {
    pub(crate) shared: Arc<Shared>,
    pub(crate) term: Option<Arc<Term>>,
    pub(crate) route: Route,
    pub(crate) approach: Approach,
    pub(crate) story: Arc<Story>,
    pub(crate) upstream: Mutex<Upstream>,
    pub(crate) turned: Slot<Option<Turned>>,
}

/// What a connection has turned into.
pub(crate) enum Turned {
    Websocket(OnUpgrade, OnUpgrade),
    /// The proxy was asked for a connection. It is there, unless requests are read first.
    Tunnel(OnUpgrade, Destination, Option<Far>),
}

/// How a connection's exchanges ended.
pub(crate) enum Served {
    Whole,
    Broken,
    Tunnel(OnUpgrade, Destination, Option<Far>),
}

/// What became of a request that was let through.
struct Answered {
    response: Response<Incoming>,
    wish: Wish,
    asked: Asked,
}

impl Exchange {
    /// Serves until the connection ends, or turns into a tunnel of the proxy.
    pub(crate) async fn serve<S>(self: &Arc<Self>, stream: S) -> Served
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let service = service_fn(|request| {
            let this = Arc::clone(self);
            async move { Ok::<_, Infallible>(this.answer(request).await) }
        });
        let connection = http1::Builder::new()
            .preserve_header_case(true)
            .half_close(true)
            .max_buf_size(BUFFER_MOST)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let ended = connection.await;
        let turned = self
            .turned
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match turned {
            Some(Turned::Websocket(near, far)) => {
                let (Ok(near), Ok(far)) = tokio::join!(near, far) else {
                    return Served::Broken;
                };
                let (mut near, mut far) = (Framed::new(TokioIo::new(near)), TokioIo::new(far));
                let copied =
                    copy_bidirectional_with_sizes(&mut near, &mut far, COPY_BYTES, COPY_BYTES);
                match copied.await {
                    Ok(_) => Served::Whole,
                    Err(_) => Served::Broken,
                }
            }
            Some(Turned::Tunnel(upgrade, destination, far)) => {
                Served::Tunnel(upgrade, destination, far)
            }
            // A request that cannot be read was answered. Whatever else goes wrong leaves an
            // answer incomplete.
            None => match ended {
                Ok(()) => Served::Whole,
                Err(error) if error.is_parse() => Served::Whole,
                Err(_) => Served::Broken,
            },
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Reply> {
        match (&self.route, request.method()) {
            (Route::Named, &Method::CONNECT) => self.connect(request).await,
            (Route::Named, _) => {
                let Some((host, port)) = named(&request) else {
                    return self.refuse_text(&request, NEEDS_ABSOLUTE);
                };
                match self.shared.inside.meant(host.clone(), port) {
                    Some(destination) => self.exchange(request, &destination, Scheme::Http).await,
                    None => self.refuse_address(&request, &host, port),
                }
            }
            (
                Route::Fixed {
                    destination,
                    scheme,
                },
                _,
            ) => {
                let (destination, scheme) = (destination.clone(), *scheme);
                self.exchange(request, &destination, scheme).await
            }
        }
    }

    async fn exchange(
        &self,
        request: Request<Incoming>,
        destination: &Destination,
        scheme: Scheme,
    ) -> Response<Reply> {
        let spoken = match scheme {
            Scheme::Http => Spoken::Http,
            Scheme::Https => Spoken::Https,
        };
        let asked = Asked::to(self.approach, spoken, destination)
            .with_request(request.method().as_str(), request.uri().path());
        let done = self.pass(request, destination, scheme, asked.clone()).await;
        let denial = match done {
            Ok(response) => return response,
            Err(denial) => denial,
        };
        self.shared.inside.record.refuse(&asked, &denial);
        refusal(&denial, destination.name(), destination.port())
    }

    async fn pass(
        &self,
        mut request: Request<Incoming>,
        destination: &Destination,
        scheme: Scheme,
        mut asked: Asked,
    ) -> Result<Response<Reply>, Denial> {
        let Some(term) = &self.term else {
            return Err(no_network(destination.name(), destination.port()));
        };
        asked.rule = term.decide(destination)?;
        let near = hyper::upgrade::on(&mut request);
        let (mut parts, body) = request.into_parts();
        forward::agree(&parts, destination, scheme)?;
        inspected(term, destination, &mut parts)?;
        let wish = forward::wish(&parts.method, parts.version, &parts.headers);
        changes_allowed(term, wish)?;
        let at = (destination, scheme);
        let (cleared, body) = self.clear(term, at, &mut parts, body).await?;
        forward::outgoing(&mut parts, destination, scheme, wish)?;
        if term.is_guarded() {
            term.masks()?;
            let secrets = term.put_in(destination, scheme);
            let usable: Vec<_> = secrets
                .into_iter()
                .filter(|it| !term.is_revoked(&it.name))
                .collect();
            broker::put(&mut parts.headers, &usable)?;
            mask::prepare(&mut parts);
        }
        let request = Request::from_parts(parts, body);
        let out = Out {
            destination,
            scheme,
            cleared,
        };
        let response = self.send(term, request, out, asked.clone()).await?;
        let answered = Answered {
            response,
            wish,
            asked,
        };
        self.bring_back(term, answered, near)
    }

    async fn send(
        &self,
        term: &Term,
        mut request: Request<Upload>,
        out: Out<'_>,
        mut asked: Asked,
    ) -> Result<Response<Incoming>, Denial> {
        let mut upstream = self.upstream.lock().await;
        // A host may close a connection that it kept at the very moment at which it is used
        // again. The request was not sent then, and is on a new one.
        for again in [true, false] {
            upstream.reach(&self.shared, term, out).await?;
            if again {
                asked.address = upstream.address();
                self.story.let_through(asked.clone());
            }
            match upstream.send(request).await {
                Ok(response) => return Ok(response),
                Err((_, Some(unsent))) if again => request = *unsent,
                Err((denial, _)) => return Err(denial),
            }
        }
        let destination = out.destination;
        Err(no_network(destination.name(), destination.port()))
    }

    /// Holds a request against the preview, if there is one, before anything of it leaves. What
    /// leaves then is what was compared, and nothing beside.
    async fn clear(
        &self,
        term: &Term,
        (destination, scheme): (&Destination, Scheme),
        parts: &mut request::Parts,
        body: Incoming,
    ) -> Result<(Cleared, Upload), Denial> {
        if let Some(cleared) = term.clear_unheld() {
            return Ok((cleared, body.into()));
        }
        let headers = forward::compared(&parts.headers);
        let secrets = term.put_in(destination, scheme);
        let leaving = Leaving {
            is_secure: scheme == Scheme::Https,
            method: parts.method.as_str(),
            path: parts.uri.path(),
            head: &Head::of(&parts.uri, &headers, &secrets),
        };
        let (upload, content) = match term.previews_head(destination, leaving) {
            false => (body.into(), Content::Unread),
            true => Upload::held(body, BODY_MOST).await.map_err(|error| {
                Denial::new(
                    NetCode::Other,
                    format!("the body of the request did not come whole: {error}"),
                    "send it again",
                )
            })?,
        };
        let cleared = term.clear_request(&self.story, destination, leaving, &content)?;
        parts.headers = headers;
        // How the names of its headers were written.
        parts.extensions.clear();
        Ok((cleared, upload))
    }

    fn bring_back(
        &self,
        term: &Term,
        answered: Answered,
        near: OnUpgrade,
    ) -> Result<Response<Reply>, Denial> {
        let Answered {
            mut response,
            wish,
            asked,
        } = answered;
        let far = (response.status() == StatusCode::SWITCHING_PROTOCOLS)
            .then(|| hyper::upgrade::on(&mut response));
        let (mut parts, body) = response.into_parts();
        forward::incoming(&mut parts, wish)?;
        let reply = match (&far, term.is_guarded()) {
            (Some(_), _) => Reply::empty(),
            (None, false) => Reply::Through(body),
            (None, true) => {
                let inside = Arc::clone(&self.shared.inside);
                let of = Exchanged { inside, asked };
                mask::mask(&mut parts, body, term.masks()?, of)?
            }
        };
        if let Some(far) = far {
            self.turn(Turned::Websocket(near, far));
        }
        Ok(Response::from_parts(parts, reply))
    }

    fn turn(&self, turned: Turned) {
        let mut slot = self.turned.lock().unwrap_or_else(PoisonError::into_inner);
        *slot = Some(turned);
    }

    /// The host is dialled before the answer, so that the answer is true.
    async fn connect(&self, mut request: Request<Incoming>) -> Response<Reply> {
        let authority = request.uri().authority().map(|it| it.as_str().to_owned());
        let read = authority.as_deref().and_then(|it| read_authority(it, None));
        let Some((host, port)) = read else {
            return self.refuse_text(&request, NEEDS_TARGET);
        };
        let asked = |host: &str| Asked::new(Approach::Connect, Spoken::Tcp, host, port);
        let Some(destination) = self.shared.inside.meant(host.clone(), port) else {
            let shown = host.to_string();
            let denial = literal(&shown, port);
            self.shared.inside.record.refuse(&asked(&shown), &denial);
            return refusal(&denial, &shown, port);
        };
        let dialled = async {
            let Some(term) = &self.term else {
                return Err(no_network(destination.name(), port));
            };
            term.decide(&destination)?;
            dial_ahead(&self.shared, term, &self.story, &destination).await
        };
        match dialled.await {
            Ok(far) => {
                self.turn(Turned::Tunnel(
                    hyper::upgrade::on(&mut request),
                    destination,
                    far,
                ));
                Response::new(Reply::empty())
            }
            Err(denial) => {
                self.shared
                    .inside
                    .record
                    .refuse(&asked(destination.name()), &denial);
                refusal(&denial, destination.name(), port)
            }
        }
    }

    fn refuse_text(&self, request: &Request<Incoming>, why: &str) -> Response<Reply> {
        let target = request.uri().authority().map_or("", |it| it.as_str());
        let shown: String = target
            .chars()
            .take(80)
            .flat_map(char::escape_debug)
            .collect();
        let denial = Denial::of(NetCode::InvalidDestination, &shown, 0, why);
        let asked = Asked::new(self.approach, Spoken::Http, &shown, 0)
            .with_request(request.method().as_str(), request.uri().path());
        self.shared.inside.record.refuse(&asked, &denial);
        refusal(&denial, &shown, 0)
    }

    fn refuse_address(
        &self,
        request: &Request<Incoming>,
        host: &Host,
        port: u16,
    ) -> Response<Reply> {
        let shown = host.to_string();
        let denial = literal(&shown, port);
        let asked = Asked::new(self.approach, Spoken::Http, &shown, port)
            .with_request(request.method().as_str(), request.uri().path());
        self.shared.inside.record.refuse(&asked, &denial);
        refusal(&denial, &shown, port)
    }
}

/// The host of a request in absolute form.
pub(crate) fn named(request: &Request<Incoming>) -> Option<(Host, u16)> {
    let authority = request.uri().authority()?.as_str();
    if !request.uri().scheme_str()?.eq_ignore_ascii_case("http") {
        return None;
    }
    read_authority(authority, Some(80))
}

pub(crate) fn literal(shown: &str, port: u16) -> Denial {
    let why = format!("`{shown}` is an address, and only names are reached");
    Denial::of(NetCode::InvalidDestination, shown, port, why)
}

/// A protocol that is changed to is not read here.
fn changes_allowed(term: &Term, wish: Wish) -> Result<(), Denial> {
    match wish {
        Wish::Answer => Ok(()),
        Wish::Websocket if term.preview().is_some() => Err(Denial::new(
            NetCode::NotPreviewed,
            "a request that changes the protocol cannot be held to a simulation",
            "run it without one, with the network that it needs",
        )),
        // It could bring a value back, and cannot be searched.
        Wish::Websocket if term.is_guarded() => Err(Denial::new(
            NetCode::Other,
            "an exec that holds a brokered secret cannot change the protocol",
            "get a ticket by a plain request, and open the websocket in an exec without the secret",
        )),
        Wish::Websocket => Ok(()),
    }
}

/// Rules for an inspected host: any one of them must let the request through.
pub(crate) fn inspected(
    term: &Term,
    destination: &Destination,
    parts: &mut request::Parts,
) -> Result<(), Denial> {
    if term.is_inspected(destination) {
        forward::without_overrides(&mut parts.headers);
    }
    let rules = term.inspections(destination);
    if rules.is_empty() {
        return Ok(());
    }
    let path = Plain::read(parts.uri.path());
    let passes = rules.iter().any(|rule| {
        let method = rule
            .methods
            .as_ref()
            .is_none_or(|it| it.contains(parts.method.as_str()));
        method
            && match (&rule.paths, &path) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(paths), Some(path)) => path.is_allowed_by(paths),
            }
    });
    if passes {
        return Ok(());
    }
    let what = format!("{} {}", parts.method, parts.uri.path());
    let shown: String = what.chars().take(200).collect();
    Err(Denial::new(
        NetCode::NotInAllowlist,
        format!("no rule for `{destination}` lets `{shown}` through"),
        format!(
            "the host is inspected; a rule for `{destination}` must name the method and the path of `{shown}`"
        ),
    ))
}

fn refusal(denial: &Denial, host: &str, port: u16) -> Response<Reply> {
    let mut response = Response::new(Reply::text(denial.text(host, port)));
    *response.status_mut() = denial.status();
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers.insert(
        "x-glovebox-code",
        HeaderValue::from_static(denial.code.as_str()),
    );
    response
}
