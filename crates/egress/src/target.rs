//! A URL that may be fetched, as far as its text tells.

use std::fmt;

use url::Url;

use crate::host::Host;
use crate::refusal::{Refusal, RefusalCode, shown};
use crate::vetter::PrivateTargets;

const URL_MOST: usize = 8 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    Http,
    Https,
}

impl Scheme {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
    pub const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Who is spoken to. Credentials for one are for no other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    pub scheme: Scheme,
    pub host: Host,
    pub port: u16,
}

/// Made by [`vet_url`] only; its destination is not vetted yet. Shows itself without path and
/// query, which may hold what is nobody's business.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    origin: Origin,
    /// Canonical, without a fragment.
    url: Url,
}

impl Target {
    pub fn origin(&self) -> &Origin {
        &self.origin
    }
    pub fn scheme(&self) -> Scheme {
        self.origin.scheme
    }
    pub fn host(&self) -> &Host {
        &self.origin.host
    }
    pub fn port(&self) -> u16 {
        self.origin.port
    }
    /// The whole, as it is recorded.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }
    /// Path and query, as they are sent.
    pub fn path_and_query(&self) -> String {
        match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        }
    }
    /// What the `Host` header says.
    pub fn authority(&self) -> String {
        match self.origin.port == self.origin.scheme.port() {
            true => self.origin.host.to_string(),
            false => format!("{}:{}", self.origin.host, self.origin.port),
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.origin.scheme.as_str();
        write!(f, "Target({scheme}://{}/…)", self.authority())
    }
}

/// Reads a URL strictly: what one parser would mend and another would not is refused. Ports other
/// than 80 and 443 only where `ports` lists the very `host:port`.
pub fn vet_url(text: &str, ports: &PrivateTargets) -> Result<Target, Refusal> {
    let invalid = |why: &str| {
        Refusal::new(
            RefusalCode::InvalidUrl,
            format!("the URL is refused: {why}"),
        )
        .hint("write it as `https://example.com/path`")
    };
    if text.len() > URL_MOST {
        return Err(invalid("it is longer than 8 KiB"));
    }
    // A fragment is never sent, so what stands in it is not looked at.
    let text = text.split('#').next().unwrap_or_default();
    if text.chars().any(|it| it.is_control() || it.is_whitespace()) {
        return Err(invalid("it has white space or control characters"));
    }
    if text.contains('\\') {
        return Err(invalid("it has a backslash"));
    }
    let (scheme, rest) = scheme(text)?;
    let rest = rest
        .strip_prefix("//")
        .filter(|rest| !rest.starts_with('/'))
        .ok_or_else(|| invalid("`//` and a host must follow the scheme"))?;
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(Refusal::new(
            RefusalCode::UserinfoNotAllowed,
            "the URL has a user name or a password before its host",
        )
        .hint("leave out what stands before the `@`; credentials do not belong into a URL"));
    }
    let (host, port) = split_port(authority).ok_or_else(|| invalid("its port is no port"))?;
    let host = Host::parse(host)?;
    let port = match port {
        None => scheme.port(),
        Some(port) => port,
    };
    let listed = ports.contains(&host, port);
    if !listed && !matches!(port, 80 | 443) {
        return Err(Refusal::new(
            RefusalCode::PortNotAllowed,
            format!("port {port} of `{host}` is not 80 or 443"),
        )
        .hint(format!("an operator can allow `{host}:{port}`")));
    }
    if !listed {
        host.check_name()?;
    }
    let url = Url::parse(text).map_err(|error| invalid(&error.to_string()))?;
    let mut url = without_root_dot(url, &host).ok_or_else(|| invalid("its host is no host"))?;
    url.set_fragment(None);
    // Two readings of the same text must agree, or one of them is wrong.
    let agreed = url.host_str().and_then(|it| Host::parse(it).ok()) == Some(host.clone())
        && url.port_or_known_default() == Some(port)
        && url.scheme() == scheme.as_str()
        && url.username().is_empty()
        && url.password().is_none();
    match agreed {
        true => Ok(Target {
            origin: Origin { scheme, host, port },
            url,
        }),
        false => Err(invalid("it can be read in two ways")),
    }
}

fn scheme(text: &str) -> Result<(Scheme, &str), Refusal> {
    let split = text.split_once(':');
    let Some((scheme, rest)) = split.filter(|(it, _)| is_scheme(it)) else {
        return Err(
            Refusal::new(RefusalCode::InvalidUrl, "the URL has no scheme")
                .hint("it begins with `https://` or `http://`"),
        );
    };
    if scheme.eq_ignore_ascii_case("https") {
        return Ok((Scheme::Https, rest));
    }
    if scheme.eq_ignore_ascii_case("http") {
        return Ok((Scheme::Http, rest));
    }
    Err(Refusal::new(
        RefusalCode::UnsupportedScheme,
        format!("the scheme `{}` is not fetched", shown(scheme)),
    )
    .hint("only `https` and `http` are"))
}

pub(crate) fn is_scheme(text: &str) -> bool {
    text.starts_with(|it: char| it.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'-' | b'.'))
}

/// The host as it stands there, and the port if one does. None: what stands after the colon is no
/// port.
fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    // Colons inside brackets belong to the address.
    let after = authority.rfind(']').map_or(0, |at| at + 1);
    let Some(colon) = authority.get(after..).and_then(|it| it.find(':')) else {
        return Some((authority, None));
    };
    let (host, port) = authority.split_at(after + colon);
    let port = &port[1..];
    if port.is_empty() || !port.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    let port = port.trim_start_matches('0').parse::<u16>().ok()?;
    Some((host, Some(port)))
}

/// `example.com.` is `example.com`: one spelling, or rules, certificates and names differ.
fn without_root_dot(mut url: Url, host: &Host) -> Option<Url> {
    if url.host_str()?.ends_with('.') {
        url.set_host(Some(&host.to_string())).ok()?;
    }
    Some(url)
}
