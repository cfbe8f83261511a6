//! One connection: its requests, one after the other, and its end.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tower::ServiceExt;

use super::guarded::{Guarded, Phase};
use super::handover::{Handover, Line};
use super::{HEAD_BYTES, HEAD_LINES};
use crate::options::Times;

/// How long the rest of a refused request is read, so that its sender gets to see the answer.
const LINGER: Duration = Duration::from_secs(1);
/// And how much of it: enough for what was on its way when the answer was.
const LINGER_BYTES: usize = 4 << 20;

/// Who is at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Peer {
    Address(IpAddr),
    /// A Unix socket: the owner of the server.
    Owner,
}

pub(super) async fn serve<S>(
    stream: S,
    peer: Peer,
    router: Router,
    times: Times,
    mut closing: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let handover = Handover::default();
    let phase = Arc::new(Phase::default());
    let io = TokioIo::new(Guarded::new(stream, Arc::clone(&phase), times));
    let service = {
        let (phase, closing) = (Arc::clone(&phase), closing.clone());
        let handover = handover.clone();
        hyper::service::service_fn(move |request: Request<Incoming>| {
            let (phase, closing) = (Arc::clone(&phase), closing.clone());
            let (router, handover) = (router.clone(), handover.clone());
            Box::pin(answer(request, peer, router, phase, closing, handover))
        })
    };
    let mut connection = hyper::server::conn::http1::Builder::new()
        .max_headers(HEAD_LINES)
        .max_header_size(HEAD_BYTES)
        .header_read_timeout(None)
        .serve_connection(io, service);
    let run = std::future::poll_fn(|cx| connection.poll_without_shutdown(cx));
    let ended = tokio::select! {
        ended = run => Some(ended),
        _ = closing.wait_for(|closing| *closing) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            Pin::new(&mut connection).graceful_shutdown();
            std::future::poll_fn(|cx| connection.poll_without_shutdown(cx)).await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
    let parts = connection.into_parts();
    let guarded = parts.io.into_inner();
    match handover.take() {
        // The times between requests do not run: there are none any more.
        Some(go_on) => {
            let _answering = phase.answer();
            let line = Line {
                wire: Box::new(guarded),
                early: parts.read_buf,
            };
            go_on(line).await;
        }
        None => linger(guarded.into_inner()).await,
    }
}

async fn answer(
    request: Request<Incoming>,
    peer: Peer,
    router: Router,
    phase: Arc<Phase>,
    closing: watch::Receiver<bool>,
    handover: Handover,
) -> Result<Response<Body>, Infallible> {
    let answering = phase.answer();
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(peer);
    let mut response = router.oneshot(request).await?;
    let goes_on = response.extensions_mut().remove::<Handover>();
    if let Some(goes_on) = goes_on
        && response.status() == StatusCode::SWITCHING_PROTOCOLS
    {
        goes_on.pass(&handover);
    } else if phase.is_last() || *closing.borrow() {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    // The answer lasts until its last byte is out.
    Ok(response.map(|body| Body::new(crate::held::Held::new(body, answering))))
}

/// Closing with unread bytes would reset the connection, and the answer could be lost with it.
pub(crate) async fn linger(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let read = async {
        if stream.shutdown().await.is_ok() {
            let (mut rest, mut left) = (vec![0; 16 << 10], LINGER_BYTES);
            while let Ok(count @ 1..) = stream.read(&mut rest).await
                && left > 0
            {
                left = left.saturating_sub(count);
            }
        }
    };
    // Best effort: whoever goes on sending is cut off.
    let _ = tokio::time::timeout(LINGER, read).await;
}
