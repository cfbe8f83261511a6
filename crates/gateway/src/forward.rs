//! What of a request goes on, and what of a response comes back.

use glovebox_egress::Scheme;
use hyper::header::{
    CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::uri::PathAndQuery;
use hyper::http::{request, response};
use hyper::{Method, StatusCode, Uri, Version};

use crate::denial::Denial;
use crate::destination::{Destination, read_authority};

/// Every name that a request gives for its host must be the one that was decided on. That it is
/// grants nothing.
pub(crate) fn agree(
    parts: &request::Parts,
    destination: &Destination,
    scheme: Scheme,
) -> Result<(), Denial> {
    let mismatch = |why: String| Err(Denial::mismatch(destination, why));
    if parts.method == Method::CONNECT {
        return mismatch(format!(
            "`{destination}` was dialled, and is asked to connect elsewhere"
        ));
    }
    let hosts: Vec<_> = parts.headers.get_all(HOST).iter().collect();
    if hosts.len() > 1 {
        return mismatch("the request has several `Host` headers".to_owned());
    }
    if hosts.is_empty() && parts.version != Version::HTTP_10 {
        return mismatch("the request has no `Host` header".to_owned());
    }
    if parts
        .uri
        .scheme_str()
        .is_some_and(|it| !it.eq_ignore_ascii_case(scheme.as_str()))
    {
        return mismatch(format!("the request is not for `{}`", scheme.as_str()));
    }
    let header = match hosts.first().map(|it| it.to_str()) {
        None => None,
        Some(Ok(text)) => Some(text),
        Some(Err(_)) => return mismatch("the `Host` header is no text".to_owned()),
    };
    let authority = parts.uri.authority().map(|it| it.as_str());
    for text in [header, authority].into_iter().flatten() {
        let named = read_authority(text, Some(scheme.port()));
        let same = named
            .is_some_and(|(host, port)| host == *destination.host() && port == destination.port());
        if !same {
            let shown: String = text.chars().take(80).flat_map(char::escape_debug).collect();
            return mismatch(format!("the request names `{shown}`, not `{destination}`"));
        }
    }
    Ok(())
}

/// Headers that are about one connection and not about the message.
const HOP: [HeaderName; 7] = [
    CONNECTION,
    PROXY_AUTHORIZATION,
    TE,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
];

/// Frameworks take the method or the path from these instead, if they are there.
const OVERRIDES: [&str; 6] = [
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-url",
    "x-override-url",
    "x-rewrite-url",
];

/// For hosts with rules on methods and paths: what was judged is what is meant.
pub(crate) fn without_overrides(headers: &mut HeaderMap) {
    // Some servers read `_` as `-`.
    let meant = |name: &HeaderName| OVERRIDES.contains(&name.as_str().replace('_', "-").as_str());
    let named: Vec<HeaderName> = headers.keys().filter(|it| meant(it)).cloned().collect();
    for name in named {
        headers.remove(name);
    }
}

/// What clients make anew for each run. It is not compared with a simulation, and does not leave
/// with what is held to one.
const VOLATILE: [HeaderName; 7] = [
    hyper::header::DATE,
    HeaderName::from_static("baggage"),
    HeaderName::from_static("npm-session"),
    HeaderName::from_static("sentry-trace"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
    HeaderName::from_static("x-request-id"),
];

/// How long a message is says its body, and whom it is for its destination.
const SAID_ELSEWHERE: [HeaderName; 4] = [
    HOST,
    TRAILER,
    TRANSFER_ENCODING,
    hyper::header::CONTENT_LENGTH,
];

/// The headers that are compared with a simulation, sorted by name: their order and how their names
/// are written say nothing.
pub(crate) fn compared(headers: &HeaderMap) -> HeaderMap {
    let mut left = headers.clone();
    without_overrides(&mut left);
    without_hops(&mut left);
    for name in VOLATILE.iter().chain(&SAID_ELSEWHERE) {
        left.remove(name);
    }
    let mut names: Vec<HeaderName> = left.keys().cloned().collect();
    names.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
    let mut sorted = HeaderMap::with_capacity(left.len());
    for name in names {
        for value in left.get_all(&name) {
            sorted.append(name.clone(), value.clone());
        }
    }
    sorted
}

fn without_hops(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|it| it.to_str().ok())
        .flat_map(|it| it.split(','))
        .filter_map(|it| it.trim().parse().ok())
        .collect();
    // What frames the message cannot be named away: its two ends would disagree on its length.
    let framing =
        |name: &HeaderName| *name == TRANSFER_ENCODING || *name == hyper::header::CONTENT_LENGTH;
    for name in named.iter().filter(|it| !framing(it)).chain(&HOP) {
        headers.remove(name);
    }
}

/// The only protocol that a connection may change to: with others, HTTP/2 above all, requests for
/// other hosts could follow unseen.
pub(crate) fn asks_for_websocket(headers: &HeaderMap) -> bool {
    let mut upgrades = headers.get_all(UPGRADE).iter();
    let (first, second) = (upgrades.next(), upgrades.next());
    second.is_none() && first.is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

fn set_websocket(headers: &mut HeaderMap) {
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    Answer,
    Websocket,
}

/// Makes a request ready for its host. It was found to agree with its destination.
pub(crate) fn outgoing(
    parts: &mut request::Parts,
    destination: &Destination,
    scheme: Scheme,
) -> Result<Wish, Denial> {
    let wish = match asks_for_websocket(&parts.headers) {
        true => Wish::Websocket,
        false => Wish::Answer,
    };
    without_hops(&mut parts.headers);
    if wish == Wish::Websocket {
        set_websocket(&mut parts.headers);
    }
    let host = HeaderValue::from_str(&destination.authority(scheme.port()));
    let host = host.map_err(|_| Denial::mismatch(destination, "the name cannot be sent"))?;
    parts.headers.insert(HOST, host);
    let path = parts.uri.path_and_query().cloned();
    parts.uri = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    parts.version = Version::HTTP_11;
    Ok(wish)
}

/// Makes a response ready for the sandbox. None: the host changes to a protocol that nobody asked
/// for.
pub(crate) fn incoming(parts: &mut response::Parts, wish: Wish) -> Option<()> {
    let switches = parts.status == StatusCode::SWITCHING_PROTOCOLS;
    let to_websocket = asks_for_websocket(&parts.headers);
    without_hops(&mut parts.headers);
    parts.headers.remove(TRANSFER_ENCODING);
    parts.version = Version::HTTP_11;
    if switches {
        if wish != Wish::Websocket || !to_websocket {
            return None;
        }
        set_websocket(&mut parts.headers);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_egress::Host;
    use hyper::Request;

    fn at() -> Destination {
        Destination::new(Host::parse("a.test").unwrap(), 80).unwrap()
    }

    fn request(version: Version, uri: &str, hosts: &[&str]) -> request::Parts {
        let mut builder = Request::get(uri).version(version);
        for host in hosts {
            builder = builder.header(HOST, *host);
        }
        builder.body(()).unwrap().into_parts().0
    }

    #[test]
    fn every_name_in_a_request_must_be_the_one_that_was_dialled() {
        let new = Version::HTTP_11;
        for (version, uri, hosts, good) in [
            (new, "/", &["a.test"][..], true),
            (new, "/", &["A.TEST.:80"], true),
            (new, "http://a.test/x", &["a.test"], true),
            (Version::HTTP_10, "/", &[], true),
            (new, "/", &[], false),
            (new, "/", &["b.test"], false),
            (new, "/", &["a.test:81"], false),
            (new, "/", &["a.test", "a.test"], false),
            (new, "/", &["b.a.test"], false),
            (new, "/", &["127.0.0.1"], false),
            (new, "/", &["a.test@b.test"], false),
            (new, "http://a.test/", &["127.0.0.1"], false),
            (new, "http://b.test/", &["a.test"], false),
            (new, "https://a.test:80/", &["a.test"], false),
            (new, "http://u@a.test/", &["a.test"], false),
        ] {
            let parts = request(version, uri, hosts);
            let agreed = agree(&parts, &at(), Scheme::Http);
            assert_eq!(agreed.is_ok(), good, "{uri} {hosts:?}");
        }
        let connect = Request::connect("b.test:443")
            .body(())
            .unwrap()
            .into_parts()
            .0;
        assert!(agree(&connect, &at(), Scheme::Http).is_err());
    }

    #[test]
    fn only_websockets_are_changed_to() {
        let mut parts = request(Version::HTTP_11, "http://a.test/x?y", &["a.test"]);
        parts.headers.insert(
            CONNECTION,
            "Upgrade, HTTP2-Settings, x-hop".parse().unwrap(),
        );
        parts.headers.insert(UPGRADE, "h2c".parse().unwrap());
        parts
            .headers
            .insert("http2-settings", "AAM".parse().unwrap());
        parts.headers.insert("x-hop", "1".parse().unwrap());
        assert_eq!(
            outgoing(&mut parts, &at(), Scheme::Http).unwrap(),
            Wish::Answer
        );
        assert_eq!(parts.uri, "/x?y");
        let names: Vec<_> = parts.headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["host"]);

        let mut parts = request(Version::HTTP_11, "/", &["a.test"]);
        parts.headers.insert(CONNECTION, "upgrade".parse().unwrap());
        parts.headers.insert(UPGRADE, "WebSocket".parse().unwrap());
        assert_eq!(
            outgoing(&mut parts, &at(), Scheme::Http).unwrap(),
            Wish::Websocket
        );
        assert_eq!(parts.headers[UPGRADE], "websocket");
    }
}
