//! The body of a request on its way out, of which the beginning may have been read before.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};

#[derive(Debug)]
pub(crate) struct Upload {
    ahead: VecDeque<Frame<Bytes>>,
    /// None once it has ended.
    rest: Option<Incoming>,
}

/// What is known of a body before any of it leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    Unread,
    /// BLAKE3 in hexadecimal.
    Whole(String),
    /// It has more bytes than are kept back.
    TooLarge,
}

impl From<Incoming> for Upload {
    fn from(body: Incoming) -> Self {
        Self {
            ahead: VecDeque::new(),
            rest: Some(body),
        }
    }
}

impl Upload {
    /// Keeps a body back until it is whole, or larger than `most`.
    pub(crate) async fn held(mut body: Incoming, most: u64) -> hyper::Result<(Self, Content)> {
        let mut ahead = VecDeque::new();
        let mut hasher = blake3::Hasher::new();
        let mut bytes = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame?;
            if let Some(data) = frame.data_ref() {
                hasher.update(data);
                bytes += data.len() as u64;
            }
            ahead.push_back(frame);
            if bytes > most {
                let rest = Some(body);
                return Ok((Self { ahead, rest }, Content::TooLarge));
            }
        }
        let digest = hasher.finalize().to_hex().to_string();
        Ok((Self { ahead, rest: None }, Content::Whole(digest)))
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(frame) = self.ahead.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        match &mut self.rest {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.is_empty() && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let ahead = self.ahead.iter().filter_map(Frame::data_ref);
        let ahead: u64 = ahead.map(|it| it.len() as u64).sum();
        let rest = self.rest.as_ref().map(Body::size_hint);
        let rest = rest.unwrap_or_else(|| SizeHint::with_exact(0));
        let mut hint = SizeHint::new();
        hint.set_lower(ahead + rest.lower());
        if let Some(upper) = rest.upper() {
            hint.set_upper(ahead + upper);
        }
        hint
    }
}
