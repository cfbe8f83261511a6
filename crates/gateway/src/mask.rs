//! The bodies of answers, and how a secret's value is kept from coming back in one.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use glovebox_capture::{Redactor, Secrets};
use http_body_util::Full;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::ext::ReasonPhrase;
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, HeaderValue, IF_RANGE, RANGE,
};
use hyper::http::{request, response};

/// The body of an answer to the sandbox.
#[derive(Debug)]
pub(crate) enum Reply {
    /// Our own words.
    Text(Full<Bytes>),
    Through(Incoming),
    Masked(Box<Masked>),
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
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Self::Text(body) => Pin::new(body)
                .poll_frame(cx)
                .map(|frame| frame.map(|it| it.map_err(|never| match never {}))),
            Self::Through(body) => Pin::new(body).poll_frame(cx),
            Self::Masked(body) => Pin::new(&mut **body).poll_frame(cx),
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

/// A host that knows a secret may send it back, in an echo or an error. What comes from it is
/// searched while it streams.
#[derive(Debug)]
pub(crate) struct Masked {
    body: Incoming,
    secrets: Secrets,
    redactor: Redactor,
    /// None once the end was told.
    open: bool,
    trailers: Option<HeaderMap>,
}

impl Masked {
    fn new(body: Incoming, secrets: &Secrets) -> Self {
        Self {
            body,
            redactor: secrets.redactor(),
            secrets: secrets.clone(),
            open: true,
            trailers: None,
        }
    }
}

impl Body for Masked {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = &mut *self;
        while this.open {
            let mut out = Vec::new();
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.redactor.push(&data, &mut out),
                    Err(frame) => this.trailers = frame.into_trailers().ok(),
                },
                None => {
                    this.open = false;
                    this.redactor.finish(&mut out);
                }
            }
            if !out.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(out.into()))));
            }
        }
        let Some(mut trailers) = this.trailers.take() else {
            return Poll::Ready(None);
        };
        mask_values(&mut trailers, &this.secrets);
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }
}

fn mask_values(headers: &mut HeaderMap, secrets: &Secrets) {
    for value in headers.values_mut() {
        let masked = secrets.redact(value.as_bytes());
        if *masked != *value.as_bytes() {
            let plain = HeaderValue::from_bytes(&masked);
            *value = plain.unwrap_or_else(|_| HeaderValue::from_static("[secret]"));
        }
    }
}

/// Asks for an answer that can be searched: not compressed, and whole.
pub(crate) fn prepare(parts: &mut request::Parts) {
    let identity = HeaderValue::from_static("identity");
    parts.headers.insert(ACCEPT_ENCODING, identity);
    parts.headers.remove(RANGE);
    parts.headers.remove(IF_RANGE);
}

/// Of an answer whose body is not searched, too.
pub(crate) fn mask_head(parts: &mut response::Parts, secrets: &Secrets) {
    parts.extensions.remove::<ReasonPhrase>();
    mask_values(&mut parts.headers, secrets);
}

/// None: the host has compressed it all the same, and nobody can say what is in it.
pub(crate) fn mask(
    parts: &mut response::Parts,
    body: Incoming,
    secrets: &Secrets,
) -> Option<Reply> {
    let plain = |it: &HeaderValue| it.as_bytes().eq_ignore_ascii_case(b"identity");
    if !parts.headers.get_all(CONTENT_ENCODING).iter().all(plain) {
        return None;
    }
    mask_head(parts, secrets);
    if body.is_end_stream() {
        return Some(Reply::Through(body));
    }
    parts.headers.remove(CONTENT_LENGTH);
    Some(Reply::Masked(Box::new(Masked::new(body, secrets))))
}
