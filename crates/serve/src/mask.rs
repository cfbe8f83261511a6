//! Nothing that is secret in a space leaves through the API's own words: records, listings, errors,
//! events. What somebody downloads is bytes of theirs, and is passed on as it is.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::Response;
use glovebox_capture::{Redactor, Secrets};
use glovebox_model::{Correlation, Role};
use http_body::{Frame, SizeHint};

use crate::auth::Caller;

/// Whose secrets must not be in what a caller is told: for an agent those that it was granted, for
/// people all of the space.
pub(crate) fn whose(caller: &Caller) -> Correlation {
    let token = caller.token();
    let own = token.agent().filter(|_| token.role == Role::Agent);
    Correlation {
        agent_id: own.map(str::to_owned),
        ..Correlation::of_space(caller.space().clone())
    }
}

/// The answer without what must not be in it.
pub(crate) fn masked(response: Response, secrets: &Arc<Secrets>) -> Response {
    let is_ours = response.headers().get(CONTENT_TYPE).is_some_and(|kind| {
        let kind = kind.as_bytes();
        [
            "application/json",
            "text/event-stream",
            "application/x-asciicast",
        ]
        .iter()
        .any(|ours| kind.starts_with(ours.as_bytes()))
    });
    if secrets.is_empty() || !is_ours {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    let body = Masked {
        body,
        redactor: secrets.redactor(),
        ended: false,
    };
    Response::from_parts(parts, Body::new(body))
}

struct Masked {
    body: Body,
    redactor: Redactor,
    ended: bool,
}

impl http_body::Body for Masked {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        loop {
            if self.ended {
                return Poll::Ready(None);
            }
            let mut clean = Vec::new();
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.redactor.push(&data, &mut clean),
                    // Trailers come last, and there are none after text.
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    self.ended = true;
                    self.redactor.finish(&mut clean);
                }
            }
            if !clean.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(clean.into()))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
