//! Taking an exec on.

use axum::Json as Answered;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use glovebox_engine::Submission;
use glovebox_model::{Code, Exec, Status};
use glovebox_store::RequestKey;

use super::settle::settle;
use crate::app::App;
use crate::auth::{Caller, WritesExecs};
use crate::body::{Json, Mutation};
use crate::failure::{Answer, Failure};
use crate::once::{replayed, request_key};
use crate::wire::ExecRequest;

/// Run something
///
/// Answers with the record when it has ended, whatever its status; with `wait: false`, or when the
/// wait has lasted ten minutes, with the record so far. A client that goes away stops nothing.
#[utoipa::path(
    post, path = "/v1/execs", operation_id = "create_exec", tag = "execs",
    request_body = ExecRequest,
    responses(
        (status = 200, description = "It has ended.", body = Exec),
        (status = 202, description = "It waits or runs.", body = Exec),
    ),
)]
pub(super) async fn create(
    State(app): State<App>,
    WritesExecs(caller): WritesExecs,
    request: Json<ExecRequest>,
) -> Answer<Response> {
    let taken = take_on(&app, &caller, request).await?;
    Ok(taken.answer(|exec| exec))
}

#[derive(Debug)]
pub(super) struct Taken {
    exec: Exec,
    replayed: bool,
}

impl Taken {
    pub(super) fn answer<T: serde::Serialize>(self, shape: impl FnOnce(Exec) -> T) -> Response {
        let status = match self.exec.status.is_final() {
            true => StatusCode::OK,
            false => StatusCode::ACCEPTED,
        };
        let response = (status, Answered(shape(self.exec))).into_response();
        match self.replayed {
            true => replayed(response),
            false => response,
        }
    }
}

pub(super) async fn take_on(
    app: &App,
    caller: &Caller,
    request: Json<ExecRequest>,
) -> Answer<Taken> {
    let Json { value, mutation } = request;
    let wait = value.wait;
    let key = key(caller, &mutation, value.request_id.clone());
    let order = value.order(caller)?;
    let submission = Submission {
        call: order.call,
        stdin: order.stdin,
        objection: order.objection,
        key,
    };
    let submitted = app
        .submit(move |dispatcher| dispatcher.submit(submission))
        .await?;
    let mut exec = submitted.exec;
    if wait && !exec.status.is_final() {
        exec = settle(app, caller.space(), &exec.exec_id, app.times().wait).await?;
    }
    match exec.status {
        Status::PolicyDenied => Err(denied(exec)),
        _ => Ok(Taken {
            exec,
            replayed: submitted.replayed,
        }),
    }
}

/// A refusal is an error for the client, and a record that can be read under the id in it.
fn denied(exec: Exec) -> Failure {
    let id = exec.exec_id;
    match exec.error {
        Some(error) => Failure::from(error.of_exec(id)),
        None => Failure::from(
            glovebox_model::Error::new(
                Code::PolicyDenied,
                glovebox_model::Stage::Resolve,
                "policy does not allow it",
            )
            .of_exec(id),
        ),
    }
}

/// The body's `request_id` is another name of the header, which counts when both are there.
fn key(caller: &Caller, mutation: &Mutation, request_id: Option<String>) -> Option<RequestKey> {
    request_key(caller, mutation).or_else(|| {
        Some(RequestKey {
            caller: caller.token().token_id.to_string(),
            key: request_id?,
            fingerprint: mutation.fingerprint,
        })
    })
}
