//! The body of a request on its way out, which may have been kept back whole before.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};

#[derive(Debug)]
pub(crate) struct Upload {
    /// All of it, if it was kept back.
    whole: Option<Bytes>,
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
    /// More headers follow it.
    Trailed,
}

impl From<Incoming> for Upload {
    fn from(body: Incoming) -> Self {
        Self {
            whole: None,
            rest: Some(body),
        }
    }
}

impl Upload {
    /// Keeps a body back until it is whole, or larger than `most`: then nothing of it is left. The
    /// pieces in which it came are not told on.
    pub(crate) async fn held(mut body: Incoming, most: usize) -> hyper::Result<(Self, Content)> {
        let mut whole = Vec::new();
        let nothing = || Self {
            whole: None,
            rest: None,
        };
        while let Some(frame) = body.frame().await {
            match frame?.into_data() {
                Ok(data) if whole.len() + data.len() > most => {
                    return Ok((nothing(), Content::TooLarge));
                }
                Ok(data) => whole.extend_from_slice(&data),
                Err(_) => return Ok((nothing(), Content::Trailed)),
            }
        }
        let digest = blake3::hash(&whole).to_hex().to_string();
        let whole = (!whole.is_empty()).then(|| whole.into());
        Ok((Self { whole, rest: None }, Content::Whole(digest)))
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(whole) = self.whole.take() {
            return Poll::Ready(Some(Ok(Frame::data(whole))));
        }
        match &mut self.rest {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.whole.is_none() && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.rest {
            Some(body) => body.size_hint(),
            None => SizeHint::with_exact(self.whole.as_ref().map_or(0, |it| it.len() as u64)),
        }
    }
}
