//! A request with an `Idempotency-Key` is done once. Asked again it gets the first answer, another
//! request with the same key gets a conflict, and one that came while the first is still at work is
//! told to come back.

use std::pin::Pin;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use glovebox_model::Code;
use glovebox_store::{Once, RequestKey, StoredAnswer};
use serde::Serialize;

use crate::app::App;
use crate::auth::Caller;
use crate::body::Mutation;
use crate::failure::{Answer, Failure};

pub(crate) const REPLAYED: &str = "idempotency-replayed";

/// What a mutation answers with: small, so that it can be kept.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
}

impl Outcome {
    pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Answer<Self> {
        let body = serde_json::to_vec(body).map_err(|_| Failure::internal())?;
        Ok(Self { status, body })
    }

    pub(crate) fn empty() -> Self {
        Self {
            status: StatusCode::NO_CONTENT,
            body: Vec::new(),
        }
    }
}

impl IntoResponse for Outcome {
    fn into_response(self) -> Response {
        let empty = self.body.is_empty();
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        if !empty {
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, json);
        }
        response
    }
}

pub(crate) fn replayed(mut response: Response) -> Response {
    let yes = HeaderValue::from_static("true");
    response.headers_mut().insert(REPLAYED, yes);
    response
}

pub(crate) fn request_key(caller: &Caller, mutation: &Mutation) -> Option<RequestKey> {
    Some(RequestKey {
        caller: caller.token().token_id.to_string(),
        key: mutation.key.clone()?,
        fingerprint: mutation.fingerprint,
    })
}

/// Does the work, unless it was done. It goes on when the client goes away: a key that is begun is
/// also finished.
pub(crate) async fn once(
    app: &App,
    caller: &Caller,
    mutation: &Mutation,
    work: impl Future<Output = Answer<Outcome>> + Send + 'static,
) -> Answer<Response> {
    once_erased(app, caller, mutation, Box::pin(work)).await
}

/// Of any type, so that it is compiled once and not for each kind of work.
async fn once_erased(
    app: &App,
    caller: &Caller,
    mutation: &Mutation,
    work: Pin<Box<dyn Future<Output = Answer<Outcome>> + Send>>,
) -> Answer<Response> {
    let Some(key) = request_key(caller, mutation) else {
        return work.await.map(IntoResponse::into_response);
    };
    let (begun, space) = (key.clone(), caller.space().clone());
    let begun = app.ask("begin_once", move |dispatcher| {
        dispatcher
            .store()?
            .begin_once(dispatcher.owner(), &space, &begun)
    });
    match begun.await? {
        Once::Done(answer) => Ok(replayed(again(answer))),
        Once::Busy => Err(Failure::new(
            Code::Busy,
            "the first request with this `Idempotency-Key` is still at work",
        )
        .after(1)),
        Once::Proceed => {
            let (app, space) = (app.clone(), caller.space().clone());
            let task = tokio::spawn(async move {
                let outcome = work.await;
                // A failure frees the key: the same request may be tried again.
                let answer = outcome.as_ref().ok().map(|outcome| StoredAnswer {
                    status: outcome.status.as_u16(),
                    body: outcome.body.clone(),
                    content_type: "application/json".to_owned(),
                });
                let finished = app.ask("finish_once", move |dispatcher| {
                    dispatcher.store()?.finish_once(&space, &key, answer)
                });
                if let Err(failure) = finished.await {
                    tracing::error!(error = %failure.0, "an answer could not be kept for its key");
                }
                outcome
            });
            task.await
                .map_err(|_| Failure::internal())?
                .map(IntoResponse::into_response)
        }
    }
}

fn again(answer: StoredAnswer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    Outcome {
        status,
        body: answer.body,
    }
    .into_response()
}
