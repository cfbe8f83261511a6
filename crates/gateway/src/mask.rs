//! The bodies of answers, and how a secret's value is kept from coming back in one.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use glovebox_capture::Secrets;
use glovebox_model::NetCode;
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::ext::ReasonPhrase;
use hyper::header::{
    ACCEPT_CHARSET, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, HeaderName, HeaderValue,
    IF_RANGE, RANGE,
};
use hyper::http::{request, response};
use hyper::{HeaderMap, StatusCode};

use crate::denial::Denial;
use crate::late::{Exchanged, Failure, Late};

/// The body of an answer to the sandbox.
#[derive(Debug)]
pub(crate) enum Reply {
    /// Our own words.
    Text(Full<Bytes>),
    Through(Incoming),
    Masked(Box<Late>),
}

impl Reply {
    pub(crate) fn text(text: String) -> Self {
        Self::Text(Full::new(text.into()))
    }

    pub(crate) fn empty() -> Self {
        Self::Text(Full::new(Bytes::new()))
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        match self.get_mut() {
            Self::Text(body) => Pin::new(body)
                .poll_frame(cx)
                .map(|frame| frame.map(|it| it.map_err(|never| match never {}))),
            Self::Through(body) => Pin::new(body)
                .poll_frame(cx)
                .map(|frame| frame.map(|it| it.map_err(Failure::from))),
            Self::Masked(body) => body.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Text(body) => body.is_end_stream(),
            Self::Through(body) => body.is_end_stream(),
            Self::Masked(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Text(body) => body.size_hint(),
            Self::Through(body) => body.size_hint(),
            Self::Masked(_) => SizeHint::default(),
        }
    }
}

/// Headers without secrets in their names, in their values, or in a name and its value together;
/// whether a name was another one.
pub(crate) fn masked(headers: &HeaderMap, secrets: &Secrets) -> (HeaderMap, bool) {
    let mut all = HeaderMap::with_capacity(headers.len());
    let mut renamed = false;
    for (name, value) in headers {
        let shown = masked_name(name, secrets);
        renamed |= shown != *name;
        all.append(shown, masked_value(name, value, secrets));
    }
    (all, renamed)
}

/// A name has no place for brackets and blanks.
fn masked_name(name: &HeaderName, secrets: &Secrets) -> HeaderName {
    let masked = secrets.redact(name.as_str().as_bytes());
    if *masked == *name.as_str().as_bytes() {
        return name.clone();
    }
    let in_names = |it: &u8| match it.is_ascii_alphanumeric() {
        true => it.to_ascii_lowercase(),
        false => b'-',
    };
    let plain: Vec<u8> = masked.iter().map(in_names).collect();
    HeaderName::from_bytes(&plain).unwrap_or(HeaderName::from_static("x-secret"))
}

const SECRET: HeaderValue = HeaderValue::from_static("[secret]");

fn masked_value(name: &HeaderName, value: &HeaderValue, secrets: &Secrets) -> HeaderValue {
    let masked = secrets.redact(value.as_bytes());
    if *masked != *value.as_bytes() {
        return HeaderValue::from_bytes(&masked).unwrap_or(SECRET);
    }
    // A value with a colon that was written as a line of the head.
    let across = ["", ":", ": "].iter().any(|between| {
        let line = [
            name.as_str().as_bytes(),
            between.as_bytes(),
            value.as_bytes(),
        ]
        .concat();
        secrets.find(&line).is_some() && secrets.find(name.as_str().as_bytes()).is_none()
    });
    match across {
        true => SECRET,
        false => value.clone(),
    }
}

/// Asks for an answer that can be searched: not compressed, whole, and in letters that are known.
pub(crate) fn prepare(parts: &mut request::Parts) {
    let identity = HeaderValue::from_static("identity");
    parts.headers.insert(ACCEPT_ENCODING, identity);
    for name in [
        RANGE,
        IF_RANGE,
        ACCEPT_CHARSET,
        HeaderName::from_static("a-im"),
    ] {
        parts.headers.remove(name);
    }
}

/// An answer that cannot be searched is not given.
pub(crate) fn mask(
    parts: &mut response::Parts,
    body: Incoming,
    secrets: &Secrets,
    of: Exchanged,
) -> Result<Reply, Denial> {
    let plain = |it: &HeaderValue| it.as_bytes().eq_ignore_ascii_case(b"identity");
    if !parts.headers.get_all(CONTENT_ENCODING).iter().all(plain) {
        return Err(Denial::new(
            NetCode::Other,
            "the answer is compressed although `identity` was asked for, so that secrets in it cannot be seen",
            "an exec that holds a brokered secret can only be answered without compression",
        ));
    }
    if parts.status == StatusCode::PARTIAL_CONTENT {
        return Err(Denial::new(
            NetCode::Other,
            "the answer is a part although the whole was asked for, so that secrets in it cannot be seen",
            "an exec that holds a brokered secret can only be answered as a whole",
        ));
    }
    parts.extensions.remove::<ReasonPhrase>();
    let (headers, renamed) = masked(&parts.headers, secrets);
    parts.headers = headers;
    if renamed {
        // It also says how names were written.
        parts.extensions.clear();
    }
    if body.is_end_stream() {
        return Ok(Reply::Through(body));
    }
    parts.headers.remove(CONTENT_LENGTH);
    Ok(Reply::Masked(Box::new(Late::new(body, secrets, of))))
}
