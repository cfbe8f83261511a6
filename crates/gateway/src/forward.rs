//! What of a request goes on, and what of a response comes back.

use glovebox_egress::Scheme;
use glovebox_model::NetCode;
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
    // A server that reads other codings than the next one finds another request in the body.
    if !is_chunked_at_most(&parts.headers) {
        return Err(unreadable("request"));
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

/// Servers and frameworks take the method, the path or the host from these instead, if they are there,
/// or act on what they name.
const OVERRIDES: [&str; 18] = [
    "base-url",
    "destination",
    "forwarded",
    "http-host",
    "http-url",
    "next-url",
    "path-info",
    "proxy-host",
    "proxy-url",
    "redirect-url",
    "request-uri",
    "request-url",
    "script-name",
    "uri",
    "url",
    "x-forwarded",
    "x-http-destinationurl",
    "x-script-name",
];
const OVERRIDES_BEGIN: [&str; 6] = [
    "x-envoy-",
    "x-forwarded-",
    "x-host-",
    "x-original-",
    "x-override-",
    "x-rewrite-",
];
/// What says by any of its words that it stands for something else, whoever made it up.
const OVERRIDES_WORDS: [&str; 13] = [
    "middleware",
    "override",
    "reroute",
    "rewrite",
    "rewrites",
    "rewritten",
    "route",
    "routed",
    "router",
    "routes",
    "routing",
    "subrequest",
    "verb",
];
/// Behind `x-` and whatever says whose it is: there are more of them than are written down anywhere.
const OVERRIDES_END: [&str; 8] = [
    "-host",
    "-method",
    "-path",
    "-prefix",
    "-uri",
    "-url",
    "-path-info",
    "override",
];

/// Some servers read `_`, or whatever is no letter and no digit, as `-`.
fn is_override(name: &HeaderName) -> bool {
    let plain = |it: char| if it.is_ascii_alphanumeric() { it } else { '-' };
    let name: String = name.as_str().chars().map(plain).collect();
    OVERRIDES.contains(&name.as_str())
        || OVERRIDES_BEGIN.iter().any(|it| name.starts_with(it))
        || name.split('-').any(|it| OVERRIDES_WORDS.contains(&it))
        || (name.starts_with("x-") && OVERRIDES_END.iter().any(|it| name.ends_with(it)))
}

/// For inspected hosts: what was judged is what is meant. What is said of it behind the body is not
/// sent either.
pub(crate) fn without_overrides(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .keys()
        .filter(|it| is_override(it))
        .cloned()
        .collect();
    for name in named.iter().chain(&[TRAILER]) {
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

/// Whether the head of a message says, in both places, that the connection changes to a websocket. It
/// is the only protocol that one may change to: with others, HTTP/2 above all, requests for other
/// hosts could follow unseen.
fn changes_to_websocket(headers: &HeaderMap) -> bool {
    let mut upgrades = headers.get_all(UPGRADE).iter();
    let (first, second) = (upgrades.next(), upgrades.next());
    let websocket = first.is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"websocket"));
    second.is_none() && websocket && tokens(headers, &CONNECTION).any(|it| it == "upgrade")
}

/// What stands between the commas, in small letters. What is no text is no token.
fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = String> + 'a {
    let values = headers.get_all(name).iter();
    values
        .flat_map(|it| it.as_bytes().split(|byte| *byte == b','))
        .map(|it| String::from_utf8_lossy(it.trim_ascii()).to_ascii_lowercase())
}

/// Another transfer coding than this one would not be undone on the way, but by the reader.
fn is_chunked_at_most(headers: &HeaderMap) -> bool {
    let codings: Vec<String> = tokens(headers, &TRANSFER_ENCODING).collect();
    codings.is_empty() || codings == ["chunked"]
}

fn unreadable(what: &str) -> Denial {
    Denial::new(
        NetCode::Other,
        format!("the {what} has a transfer coding that is not read here"),
        "`chunked` is the only one",
    )
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

/// What a request asks for. A change that is not asked for properly is not passed on.
pub(crate) fn wish(method: &Method, version: Version, headers: &HeaderMap) -> Wish {
    match method == Method::GET && version == Version::HTTP_11 && changes_to_websocket(headers) {
        true => Wish::Websocket,
        false => Wish::Answer,
    }
}

/// Makes a request ready for its host. It was found to agree with its destination.
pub(crate) fn outgoing(
    parts: &mut request::Parts,
    destination: &Destination,
    scheme: Scheme,
    wish: Wish,
) -> Result<(), Denial> {
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
    Ok(())
}

/// Makes a response ready for the sandbox.
pub(crate) fn incoming(parts: &mut response::Parts, wish: Wish) -> Result<(), Denial> {
    if !is_chunked_at_most(&parts.headers) {
        return Err(unreadable("answer"));
    }
    let switches = parts.status == StatusCode::SWITCHING_PROTOCOLS;
    let to_websocket = changes_to_websocket(&parts.headers);
    without_hops(&mut parts.headers);
    parts.headers.remove(TRANSFER_ENCODING);
    parts.version = Version::HTTP_11;
    if switches {
        if wish != Wish::Websocket || !to_websocket {
            return Err(Denial::new(
                NetCode::Other,
                "the host changes the protocol, and that was not asked for, or not to a websocket",
                "only websockets can be changed to, by a `GET` of HTTP/1.1 that asks for one",
            ));
        }
        set_websocket(&mut parts.headers);
    }
    Ok(())
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
        let wish = |it: &request::Parts| wish(&it.method, it.version, &it.headers);
        let answer = wish(&parts);
        assert_eq!(answer, Wish::Answer);
        outgoing(&mut parts, &at(), Scheme::Http, answer).unwrap();
        assert_eq!(parts.uri, "/x?y");
        let names: Vec<_> = parts.headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["host"]);

        let mut parts = request(Version::HTTP_11, "/", &["a.test"]);
        parts.headers.insert(UPGRADE, "WebSocket".parse().unwrap());
        assert_eq!(wish(&parts), Wish::Answer);
        let hops = "keep-alive, Upgrade".parse().unwrap();
        parts.headers.insert(CONNECTION, hops);
        assert_eq!(wish(&parts), Wish::Websocket);
        outgoing(&mut parts, &at(), Scheme::Http, Wish::Websocket).unwrap();
        assert_eq!(parts.headers[UPGRADE], "websocket");
        parts.method = Method::POST;
        assert_eq!(wish(&parts), Wish::Answer);
    }

    #[test]
    fn a_change_needs_both_headers_and_who_asked_for_it() {
        let both = "connection: upgrade|upgrade: websocket";
        for (said, wish, good) in [
            (both, Wish::Websocket, true),
            (both, Wish::Answer, false),
            ("upgrade: websocket", Wish::Websocket, false),
            ("connection: upgrade", Wish::Websocket, false),
            ("connection: upgrade|upgrade: h2c", Wish::Websocket, false),
            (
                "connection: x-upgrade|upgrade: websocket",
                Wish::Websocket,
                false,
            ),
            ("", Wish::Websocket, false),
        ] {
            let mut builder = hyper::Response::builder().status(101);
            for (name, value) in said.split('|').filter_map(|it| it.split_once(": ")) {
                builder = builder.header(name, value);
            }
            let mut parts = builder.body(()).unwrap().into_parts().0;
            assert_eq!(incoming(&mut parts, wish).is_ok(), good, "{said}");
        }
    }

    #[test]
    fn what_takes_the_place_of_the_request_line_is_left_out() {
        for name in [
            "X-Original-URL",
            "X-Rewrite-URL",
            "X_Rewrite_URL",
            "X-HTTP-Method-Override",
            "X-HTTP-Method",
            "X-Method-Override",
            "X-Http-Path-Override",
            "X-Override-URL",
            "X-Forwarded-Uri",
            "X-Forwarded-Prefix",
            "X-Forwarded-Path",
            "X-Forwarded-Host",
            "X-Forwarded-Method",
            "X-Forwarded-Server",
            "X.Forwarded.Host",
            "Forwarded",
            "X-Host",
            "X-HTTP-Host-Override",
            "X-Original-Host",
            "X-Original-Uri",
            "X-Original-Method",
            "X-Envoy-Original-Path",
            "X-Script-Name",
            "X-Request-Uri",
            "Destination",
            "X-Http-DestinationUrl",
            "X-HTTP-MethodOverride",
            "X-Backend-Host",
            "X-Some-Gateway-Path",
            "X-Proxy-Url",
            "X-WAWS-Unencoded-URL",
            "Method-Override",
            "X-HTTP-Verb",
            "X-Verb",
            "X-Middleware-Rewrite",
            "X-Middleware-Subrequest",
            "X-Nextjs-Rewrite",
            "X-Now-Route-Matches",
            "Next-Url",
            "Next-Router-State-Tree",
            "X-Http-Route",
            "X-Route",
            "X_Apache_Rewrite",
            "Trailer",
        ] {
            let mut headers = HeaderMap::new();
            let name: HeaderName = name.parse().unwrap();
            headers.insert(&name, HeaderValue::from_static("/admin"));
            without_overrides(&mut headers);
            assert!(headers.is_empty(), "{name}");
        }
        let mut headers = HeaderMap::new();
        for name in [
            "accept",
            "authorization",
            "x-api-key",
            "x-request-id",
            "x-hostname",
            "referer",
            "link",
            "x-verbose",
            "openai-organization",
            "anthropic-version",
            "x-goog-user-project",
            "x-github-api-version",
            "x-amz-content-sha256",
        ] {
            headers.insert(name, HeaderValue::from_static("x"));
        }
        without_overrides(&mut headers);
        assert_eq!(headers.len(), 13);
    }
}
