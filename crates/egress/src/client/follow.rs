//! Redirects: each is a new target, vetted from its text to its peer like the first.

use std::fmt;

use glovebox_model::HostPort;
use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderValue, LOCATION};
use tokio::time::Instant;

use super::answer::Answer;
use super::coding;
use super::exchange::Outgoing;
use super::fetch::Authorization;
use super::{AnswerSource, Client};
use crate::host::Host;
use crate::refusal::{Refusal, RefusalCode};
use crate::target::{Origin, Scheme, Target, is_scheme, vet_url};
use crate::vetter::PrivateTargets;

/// Somebody else's word on where a hop leads; asked before anything is looked up.
pub trait HopPolicy: Send + Sync + fmt::Debug {
    fn check(&self, host: &Host, port: u16) -> Result<(), Refusal>;
}

/// Somebody else's word on a URL as a whole.
pub(crate) type UrlCheck = fn(&str) -> Result<(), Refusal>;

/// What holds for every hop.
#[derive(Debug, Clone, Copy)]
pub struct RedirectRules<'a> {
    /// The `host:port` that may be fetched besides ports 80 and 443.
    pub ports: &'a PrivateTargets,
    /// Lists of what may be reached: each of them must have it.
    pub domains: &'a [&'a [HostPort]],
    pub policy: Option<&'a dyn HopPolicy>,
    /// What the URL of a redirect must pass, beside what every URL must.
    pub url: Option<UrlCheck>,
    pub redirects: usize,
}

/// What was asked so far, also when it ended in a refusal.
#[derive(Debug, Clone, Default)]
pub struct Trail {
    /// The URLs, the first one first.
    pub hops: Vec<String>,
    pub via: Option<AnswerSource>,
    pub status: Option<u16>,
}

impl Trail {
    pub fn redirects(&self) -> usize {
        self.hops.len().saturating_sub(1)
    }
}

#[derive(Debug)]
pub struct Followed {
    pub answer: Answer,
    pub target: Target,
}

/// The headers of a GET. Nothing of a caller's own making can be among them.
pub(crate) struct Ask<'a> {
    pub(crate) accept: &'a str,
    pub(crate) compressed: bool,
    pub(crate) authorization: Option<&'a Authorization>,
}

impl Ask<'_> {
    fn headers(&self, asked: &Origin, target: &Target) -> Result<HeaderMap, Refusal> {
        let mut headers = HeaderMap::new();
        let accept = HeaderValue::from_str(self.accept).map_err(|_| {
            Refusal::new(RefusalCode::InvalidUrl, "the accepted types are no header")
        })?;
        headers.insert(ACCEPT, accept);
        let codings = match self.compressed {
            true => coding::ACCEPTED,
            false => "identity",
        };
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(codings));
        // Scheme, host and port must be those that it was given for.
        if let Some(authorization) = self.authorization
            && target.origin() == asked
        {
            headers.insert(AUTHORIZATION, authorization.header());
        }
        Ok(headers)
    }
}

impl Client {
    pub(crate) async fn follow(
        &self,
        first: Target,
        ask: Ask<'_>,
        rules: RedirectRules<'_>,
        deadline: Instant,
        trail: &mut Trail,
    ) -> Result<Followed, Refusal> {
        let asked = first.origin().clone();
        let mut authorized = true;
        let mut target = first;
        loop {
            let redirected = !trail.hops.is_empty();
            trail.hops.push(target.as_str().to_owned());
            trail.via = None;
            trail.status = None;
            // Once elsewhere, a way back does not bring the credentials back.
            authorized &= *target.origin() == asked;
            let ask = Ask {
                authorization: ask.authorization.filter(|_| authorized),
                ..ask
            };
            let hop = async {
                check_domain(&target, rules.domains)?;
                if let Some(policy) = rules.policy {
                    policy.check(target.host(), target.port())?;
                }
                let outgoing = Outgoing {
                    method: Method::GET,
                    target: &target,
                    headers: ask.headers(&asked, &target)?,
                    body: Bytes::new(),
                };
                self.exchange(outgoing, deadline).await
            };
            let answer = hop.await.map_err(|refusal| match redirected {
                true => as_redirect(refusal),
                false => refusal,
            })?;
            trail.via = Some(answer.via.clone());
            trail.status = Some(answer.status);
            let Some(location) = location(&answer)? else {
                return Ok(Followed { answer, target });
            };
            if trail.redirects() >= rules.redirects {
                return Err(Refusal::new(
                    RefusalCode::RedirectLimitExceeded,
                    format!("more than {} redirects", rules.redirects),
                ));
            }
            target = next(&target, &location, rules.ports).map_err(as_redirect)?;
            rules.url.map_or(Ok(()), |check| check(target.as_str()))?;
        }
    }
}

/// Judged by the name that is asked for; an address is on no list.
fn check_domain(target: &Target, domains: &[&[HostPort]]) -> Result<(), Refusal> {
    let (host, port) = (target.host(), target.port());
    let on = |list: &&[HostPort]| {
        let mut rules = list.iter();
        rules.any(|rule| rule.port() == port && host.is_meant_by(rule))
    };
    match domains.iter().all(on) {
        true => Ok(()),
        false => Err(Refusal::new(
            RefusalCode::DestinationBlocked,
            format!("`{host}:{port}` is not among the allowed destinations"),
        )
        .hint(format!("allow it with `{host}:{port}`"))),
    }
}

fn location(answer: &Answer) -> Result<Option<String>, Refusal> {
    if !matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let mut all = answer.headers.get_all(LOCATION).iter();
    let Some(first) = all.next() else {
        return Ok(None);
    };
    let refuse = |why: &str| Refusal::new(RefusalCode::RedirectBlocked, why);
    if all.next().is_some() {
        return Err(refuse("the answer redirects to two places"));
    }
    let text = std::str::from_utf8(first.as_bytes());
    let text = text.map_err(|_| refuse("the place that the answer redirects to is not text"))?;
    Ok(Some(text.trim_matches([' ', '\t']).to_owned()))
}

/// The target that a redirect means. What has a scheme or a host of its own is read as strictly
/// as a caller's URL is; the rest is resolved, and its result is.
fn next(from: &Target, location: &str, ports: &PrivateTargets) -> Result<Target, Refusal> {
    let unclear = |it: char| it.is_control() || it.is_whitespace() || it == '\\';
    if location.chars().any(unclear) {
        return Err(Refusal::new(
            RefusalCode::InvalidUrl,
            "the place has white space, control characters or a backslash",
        ));
    }
    let has_scheme = location
        .split_once(':')
        .is_some_and(|(scheme, _)| is_scheme(scheme));
    let target = if has_scheme {
        vet_url(location, ports)?
    } else if location.starts_with("//") {
        vet_url(&format!("{}:{location}", from.scheme().as_str()), ports)?
    } else {
        let joined = from.url().join(location);
        let joined =
            joined.map_err(|error| Refusal::new(RefusalCode::InvalidUrl, error.to_string()))?;
        vet_url(joined.as_str(), ports)?
    };
    match (from.scheme(), target.scheme()) {
        (Scheme::Https, Scheme::Http) => Err(Refusal::new(
            RefusalCode::RedirectBlocked,
            format!("from `https` to `http` at `{}`", target.host()),
        )),
        _ => Ok(target),
    }
}

/// A refusal of where a redirect leads, told as such; what went wrong on the way stays what it is.
fn as_redirect(refusal: Refusal) -> Refusal {
    match refusal.code {
        RefusalCode::InvalidUrl
        | RefusalCode::UnsupportedScheme
        | RefusalCode::UserinfoNotAllowed
        | RefusalCode::PortNotAllowed
        | RefusalCode::DestinationBlocked
        | RefusalCode::RedirectBlocked => Refusal {
            code: RefusalCode::RedirectBlocked,
            message: format!("a redirect is not followed: {}", refusal.message),
            ..refusal
        },
        RefusalCode::UnsupportedMethod
        | RefusalCode::DnsFailed
        | RefusalCode::RedirectLimitExceeded
        | RefusalCode::TlsError
        | RefusalCode::ConnectionTimeout
        | RefusalCode::ReadTimeout
        | RefusalCode::ResponseTooLarge
        | RefusalCode::UnsupportedContentType
        | RefusalCode::DecodeError
        | RefusalCode::ExtractFailed
        | RefusalCode::SuspectedSecretInUrl
        | RefusalCode::RateLimited => refusal,
    }
}
