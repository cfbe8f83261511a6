//! HTTP/1 with a simulated program: each request is read whole, told of, and answered from what
//! was given beforehand.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use glovebox_egress::Scheme;
use glovebox_model::{Approach, HostPort, NetCode, Spoken};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use super::fault_injection::{Injected, Outcome};
use super::goal::Goal;
use super::seen::{Answer as Told, Seen};
use super::swallow::swallow;
use super::visit::Visit;
use crate::denial::Denial;
use crate::destination::read_authority;
use crate::exchange::{BUFFER_MOST, NEEDS_ABSOLUTE, NEEDS_TARGET, inspected, named};
use crate::forward::{self, Wish};
use crate::head::Head;
use crate::record::Asked;

/// On every answer: nobody should take one for the real thing.
const MARK: &str = "x-glovebox-simulated";
/// Between requests. Clients that open connections ahead of their requests use them sooner.
const NEXT: Duration = Duration::from_secs(30);

/// Whom the requests of a connection are for.
#[derive(Debug)]
pub(super) enum Route {
    Fixed(Fixed),
    /// Each names its own: the proxy.
    Named,
}

#[derive(Debug)]
pub(super) struct Fixed {
    pub(super) goal: Goal,
    pub(super) scheme: Scheme,
    /// What is wrong with the handshake.
    pub(super) mismatch: Option<Denial>,
    pub(super) server_name: Option<String>,
}

pub(super) struct Requests {
    visit: Arc<Visit>,
    route: Route,
    approach: Approach,
    told: Arc<AtomicBool>,
    tunnel: Mutex<Option<(OnUpgrade, Goal)>>,
}

/// How a connection's requests ended.
pub(super) enum Served {
    Whole,
    Broken,
    Tunnel(OnUpgrade, Goal),
}

/// A connection that ends without an answer.
#[derive(Debug)]
struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection is cut")
    }
}

impl std::error::Error for Cut {}

type Answer = Response<Full<Bytes>>;

/// What is known of a request before its body is read.
struct Judged {
    goal: Goal,
    head: Head,
    asked: Asked,
    denial: Option<Denial>,
    /// The names by which an answer is looked for.
    hosts: Vec<String>,
}

impl Requests {
    pub(super) fn new(
        visit: &Arc<Visit>,
        route: Route,
        approach: Approach,
        told: Arc<AtomicBool>,
    ) -> Arc<Self> {
        Arc::new(Self {
            visit: Arc::clone(visit),
            route,
            approach,
            told,
            tunnel: Mutex::default(),
        })
    }

    pub(super) async fn serve<S>(self: Arc<Self>, stream: S) -> Served
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let service = service_fn(|request| {
            let this = Arc::clone(&self);
            async move { this.answer(request).await }
        });
        let connection = http1::Builder::new()
            .preserve_header_case(true)
            .half_close(true)
            .timer(TokioTimer::new())
            .header_read_timeout(NEXT)
            .max_buf_size(BUFFER_MOST)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let ended = connection.await;
        let mut tunnel = self.tunnel.lock().unwrap_or_else(PoisonError::into_inner);
        match (tunnel.take(), ended) {
            (Some((upgrade, goal)), _) => Served::Tunnel(upgrade, goal),
            (None, Ok(())) => Served::Whole,
            // A request that cannot be read was answered; one that never comes needs no answer.
            (None, Err(error)) if error.is_parse() || error.is_timeout() => Served::Whole,
            (None, Err(_)) => Served::Broken,
        }
    }

    async fn answer(&self, mut request: Request<Incoming>) -> Result<Answer, Cut> {
        let judged = match (&self.route, request.method()) {
            (Route::Named, &Method::CONNECT) => {
                let authority = request.uri().authority().map(|it| it.as_str());
                match authority.and_then(|it| read_authority(it, None)) {
                    Some((host, port)) => {
                        let goal = Goal::named(&self.visit.inside, host, port);
                        let upgrade = hyper::upgrade::on(&mut request);
                        let mut tunnel = self.tunnel.lock().unwrap_or_else(PoisonError::into_inner);
                        *tunnel = Some((upgrade, goal));
                        return Ok(marked(Answer::default()));
                    }
                    None => self.unread(&request, NEEDS_TARGET),
                }
            }
            (Route::Named, _) => match named(&request) {
                Some((host, port)) => {
                    let goal = Goal::named(&self.visit.inside, host, port);
                    self.judge(&request, goal, Scheme::Http, None)
                }
                None => self.unread(&request, NEEDS_ABSOLUTE),
            },
            (Route::Fixed(fixed), _) => {
                let mismatch = fixed.mismatch.clone();
                self.judge(&request, fixed.goal.clone(), fixed.scheme, mismatch)
            }
        };
        self.play(request, judged).await
    }

    /// All that a request is held against for real, in that order.
    fn judge(
        &self,
        request: &Request<Incoming>,
        goal: Goal,
        scheme: Scheme,
        mismatch: Option<Denial>,
    ) -> Judged {
        let term = &self.visit.term;
        let mut parts = head(request);
        let decide = || -> Result<Option<HostPort>, Denial> {
            let rule = goal.judge(term)?;
            if let Some(denial) = mismatch {
                return Err(denial);
            }
            if let Some(destination) = &goal.destination {
                forward::agree(&parts, destination, scheme)?;
                inspected(term, destination, &mut parts)?;
                self.visit.count(&goal)?;
            }
            Ok(rule)
        };
        let decided = decide();
        let secrets = match &goal.destination {
            Some(destination) => term.put_in(destination, scheme),
            None => Vec::new(),
        };
        let mut asked = self.asked(request, &goal, scheme);
        asked.rule = decided.as_ref().ok().cloned().flatten();
        Judged {
            hosts: self.hosts(request, &goal),
            denial: decided.err(),
            head: Head::of(
                request.uri(),
                &forward::compared(request.headers()),
                &secrets,
            ),
            asked,
            goal,
        }
    }

    fn unread(&self, request: &Request<Incoming>, why: &str) -> Judged {
        let target = request.uri().authority().map_or("", |it| it.as_str());
        let goal = Goal::unread(target);
        Judged {
            asked: self.asked(request, &goal, Scheme::Http),
            denial: Some(Denial::of(
                NetCode::InvalidDestination,
                &goal.host,
                goal.port,
                why,
            )),
            head: Head::of(request.uri(), &forward::compared(request.headers()), &[]),
            hosts: Vec::new(),
            goal,
        }
    }

    fn asked(&self, request: &Request<Incoming>, goal: &Goal, scheme: Scheme) -> Asked {
        let spoken = match scheme {
            Scheme::Http => Spoken::Http,
            Scheme::Https => Spoken::Https,
        };
        Asked::new(self.approach, spoken, &goal.host, goal.port)
            .with_request(request.method().as_str(), request.uri().path())
    }

    /// The host that was decided on. Where there is only an address, also the name that is given
    /// with it.
    fn hosts(&self, request: &Request<Incoming>, goal: &Goal) -> Vec<String> {
        let mut hosts = vec![goal.host.clone()];
        if goal.destination.is_none() {
            let header = request.headers().get(HOST).and_then(|it| it.to_str().ok());
            let names = [self.server_name(), header.map(str::to_owned)];
            for text in names.into_iter().flatten() {
                if let Some((host, _)) = read_authority(&text, Some(goal.port)) {
                    hosts.push(host.to_string());
                }
            }
        }
        hosts
    }

    fn server_name(&self) -> Option<String> {
        match &self.route {
            Route::Fixed(fixed) => fixed.server_name.clone(),
            Route::Named => None,
        }
    }

    /// Told before anything waits: a client that gives up has asked all the same.
    async fn play(&self, request: Request<Incoming>, judged: Judged) -> Result<Answer, Cut> {
        let visit = &self.visit;
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let wish = forward::wish(&method, request.version(), request.headers());
        let websocket = wish == Wish::Websocket;
        let mut begun = Begun {
            requests: self,
            judged,
            bytes: 0,
            told: false,
        };
        let Some(digest) = swallow(request.into_body(), &mut begun.bytes).await else {
            return Err(Cut);
        };
        let goal = &begun.judged.goal;
        let outcome = visit.play.next(&goal.host);
        let preset = match websocket || outcome.fault.is_some() {
            true => None,
            false => {
                let simulated = &visit.play.simulated;
                simulated.preset(&begun.judged.hosts, goal.port, &method, &path)
            }
        };
        let answer = match (outcome.fault, preset) {
            (Some(fault), _) => troubled(fault, outcome, goal),
            (None, Some((_, preset))) => {
                let mut answer = Answer::new(preset.body.clone().into());
                *answer.status_mut() = preset.status;
                *answer.headers_mut() = preset.headers.clone();
                Some(answer)
            }
            (None, None) => {
                let denial = begun.judged.denial.as_ref();
                Some(text(StatusCode::BAD_GATEWAY, nobody(goal, denial)))
            }
        };
        let told = Told {
            status: answer.as_ref().map(|it| it.status().as_u16()),
            preset: preset.map(|(number, _)| number),
            fault: outcome.fault,
            delay_ms: outcome.delay_ms,
        };
        begun.tell(digest, Some(told));
        visit.hold(outcome.delay()).await;
        if outcome.fault == Some(Injected::Timeout) {
            visit.given_up().await;
        }
        answer.map(marked).ok_or(Cut)
    }
}

/// A request whose head was read: it is told of, also if its body never comes whole.
struct Begun<'a> {
    requests: &'a Requests,
    judged: Judged,
    bytes: u64,
    told: bool,
}

impl Begun<'_> {
    fn tell(&mut self, digest: Option<String>, answer: Option<Told>) {
        self.told = true;
        let visit = &self.requests.visit;
        if digest.is_none() && visit.term.is_spent() && self.judged.denial.is_none() {
            let most = visit.term.bytes_most();
            self.judged.denial = Some(Denial::limit("egress_bytes", most));
        }
        let denial = self.judged.denial.as_ref();
        let mut seen = Seen::new(&self.judged.asked, denial);
        seen.server_name = self.requests.server_name();
        seen.told_head(&self.judged.head);
        seen.body_bytes = self.bytes;
        seen.body_digest = digest;
        seen.answer = answer;
        self.requests.told.store(true, Ordering::Relaxed);
        visit.tell(self.judged.asked.clone(), denial, &seen);
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if !self.told {
            self.tell(None, None);
        }
    }
}

/// The head alone, for what looks at heads.
fn head(request: &Request<Incoming>) -> Parts {
    let (mut parts, ()) = Request::new(()).into_parts();
    parts.method = request.method().clone();
    parts.uri = request.uri().clone();
    parts.version = request.version();
    parts.headers = request.headers().clone();
    parts
}

/// None: there is no answer.
fn troubled(fault: Injected, outcome: Outcome, goal: &Goal) -> Option<Answer> {
    let at = format!("`{}:{}`", goal.host, goal.port);
    match fault {
        Injected::Error => Some(text(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("this is a simulation, and it lets {at} fail; nothing was sent\n"),
        )),
        Injected::Timeout | Injected::Crash => None,
        Injected::RateLimit => {
            let mut answer = text(
                StatusCode::TOO_MANY_REQUESTS,
                format!(
                    "this is a simulation, and {at} has a rate limit in it; nothing was sent\n"
                ),
            );
            // A part of a second counts as one: earlier would be too early again.
            let left = outcome.retry_after_ms.unwrap_or_default();
            let seconds = left.div_ceil(1000).max(1);
            if let Ok(value) = HeaderValue::from_str(&seconds.to_string()) {
                answer.headers_mut().insert(RETRY_AFTER, value);
            }
            Some(answer)
        }
    }
}

fn nobody(goal: &Goal, denial: Option<&Denial>) -> String {
    let mut text = format!(
        "this is a simulation: nothing was sent to `{}:{}`, and no response was given for it\n",
        goal.host, goal.port
    );
    if let Some(denial) = denial {
        text.push_str(&format!(
            "policy would refuse it: {}\nwhy: {}\n",
            denial.code, denial.why
        ));
        if let Some(hint) = &denial.hint {
            text.push_str(&format!("hint: {hint}\n"));
        }
    }
    text
}

fn text(status: StatusCode, text: String) -> Answer {
    let mut answer = Answer::new(text.into());
    *answer.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, plain);
    answer
}

fn marked(mut answer: Answer) -> Answer {
    answer
        .headers_mut()
        .insert(MARK, HeaderValue::from_static("1"));
    answer
}
