//! Taking an exec on.

use std::sync::Arc;

use axum::Json as Answered;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use glovebox_engine::{Dispatcher, Seen, Submission, Submitted};
use glovebox_model::{Code, Error, Exec, Placement, ProjectId, Result, Stage, Status};
use glovebox_store::RequestKey;

use super::wait::settle;
use crate::app::App;
use crate::auth::{Caller, WritesExecs};
use crate::body::{Json, Mutation};
use crate::failure::{Answer, Failure, clash};
use crate::idempotency::{replayed, request_key};
use crate::order::Order;
use glovebox_api::ExecRequest;

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
    exec: Seen<Exec>,
    replayed: bool,
}

impl Taken {
    pub(super) fn exec(&self) -> &Seen<Exec> {
        &self.exec
    }

    pub(super) fn answer<T: serde::Serialize>(self, shape: impl FnOnce(Exec) -> T) -> Response {
        let status = match self.exec.status.is_final() {
            true => StatusCode::OK,
            false => StatusCode::ACCEPTED,
        };
        let response = (status, Answered(shape(self.exec.into_inner()))).into_response();
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
    let wait = request.value.wait;
    let asked = Asked::of(request, caller)?;
    let taken = send(app, caller, wait, move |dispatcher| {
        asked.put(dispatcher, |submission| dispatcher.submit(submission))
    });
    taken.await
}

/// An exec or a session that somebody asks for.
#[derive(Debug)]
pub(super) struct Asked {
    submission: Submission,
    project: Option<ProjectId>,
    /// What is wrong with it is no matter of its form.
    may_clash: bool,
}

impl Asked {
    pub(super) fn of(request: Json<ExecRequest>, caller: &Caller) -> Answer<Self> {
        let Json { value, mutation } = request;
        let is_task = value.sandbox_config.is_some();
        let key = key(caller, &mutation, value.request_id.clone());
        let order = Order::of_exec(value, caller)?;
        let is_shared = order.project.is_some() && order.project.as_ref() == caller.shared();
        let may_clash = is_task
            || !order.call.secrets.is_empty()
            || order.call.simulation.is_some()
            || order.call.session.is_some()
            || is_shared;
        let submission = Submission {
            call: order.call,
            stdin: order.stdin,
            objection: order.objection,
            key,
            by: caller.party(),
            eyes: caller.eyes(),
        };
        Ok(Self {
            submission,
            project: order.project,
            may_clash,
        })
    }

    pub(super) fn put<T>(
        self,
        dispatcher: &Dispatcher,
        put: impl FnOnce(Submission) -> Result<T>,
    ) -> Result<T> {
        may_enter(dispatcher, &self.submission, self.project.as_ref())?;
        put(self.submission).map_err(|error| match self.may_clash {
            true => clash(error),
            false => error,
        })
    }
}

/// Takes on what `submit` makes, and waits for its end if it is wished for.
pub(super) async fn send(
    app: &App,
    caller: &Caller,
    wait: bool,
    submit: impl FnOnce(&Arc<Dispatcher>) -> Result<Submitted> + Send + 'static,
) -> Answer<Taken> {
    let submitted = app.submit(submit).await?;
    let mut exec = submitted.exec;
    if wait && !exec.status.is_final() {
        exec = settle(app, &caller.eyes(), exec, app.times().wait).await?;
    }
    match exec.status {
        Status::PolicyDenied => Err(denied(exec.into_inner())),
        _ => Ok(Taken {
            exec,
            replayed: submitted.replayed,
        }),
    }
}

/// A sandbox that is named is there for the caller, and works on the workspace that is named.
pub(super) fn may_enter(
    dispatcher: &Dispatcher,
    submission: &Submission,
    project: Option<&ProjectId>,
) -> Result<()> {
    let Placement::Named(name) = &submission.call.placement else {
        return Ok(());
    };
    // Who asks again gets the first answer, also when the sandbox is gone.
    if let Some(key) = &submission.key
        && dispatcher
            .store()?
            .replay(submission.eyes.space(), key)?
            .is_some()
    {
        return Ok(());
    }
    let row = dispatcher.find_sandbox(&submission.eyes, name)?;
    match project.filter(|project| **project != row.project_id) {
        None => Ok(()),
        Some(project) => Err(Error::new(
            Code::Conflict,
            Stage::Parse,
            format!(
                "the sandbox works on `{}`, not on `{project}`",
                row.project_id
            ),
        )
        .hint("leave out `project_id`, or `sandbox`")),
    }
}

/// A refusal is an error for the client, and a record that can be read under the id in it.
fn denied(exec: Exec) -> Failure {
    let id = exec.exec_id;
    match exec.error {
        Some(error) => Failure::from(error.of_exec(id)),
        None => Failure::from(
            Error::new(
                Code::PolicyDenied,
                Stage::Resolve,
                "policy does not allow it",
            )
            .of_exec(id),
        ),
    }
}

/// The body's `request_id` is another name of the header, which counts when both are there.
pub(super) fn key(
    caller: &Caller,
    mutation: &Mutation,
    request_id: Option<String>,
) -> Option<RequestKey> {
    request_key(caller, mutation).or_else(|| {
        Some(RequestKey {
            caller: caller.token().token_id.to_string(),
            key: request_id?,
            fingerprint: mutation.fingerprint,
        })
    })
}
