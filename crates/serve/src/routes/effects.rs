//! What an exec did or would do, and what becomes of it.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use glovebox_api::{DecidedAnswer, EffectPage, TaskResult};
use glovebox_engine::{Submission, Submitted};
use glovebox_model::{Code, Correlation, Error, Exec, Role, Stage, Token};
use serde::Deserialize;
use utoipa::IntoParams;

use super::Path;
use super::changes::decide;
use super::submit::send;
use super::wait::find;
use crate::app::App;
use crate::auth::{ReadsExecs, ReadsFiles, WritesExecs, WritesFiles};
use crate::body::{Mutation, Query};
use crate::failure::Answer;
use crate::idempotency::request_key;

const AT_ONCE: usize = 500;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct From {
    /// A place in the log: `next` of the page before.
    #[param(minimum = 0, maximum = 9007199254740991i64, default = 0)]
    after: Option<u64>,
}

/// What an exec did
///
/// The effects of a simulation or a transactional exec, in the order in which they were seen, with
/// differences of text. While it runs, what is only known at its end is not there; the exec's
/// events tell of each as it is seen.
#[utoipa::path(
    get, path = "/v1/execs/{id}/effects", operation_id = "get_exec_effects", tag = "execs",
    params(("id" = String, Path, description = "The exec's id, or its client id."), From),
    responses((status = 200, description = "The effects from there on.", body = EffectPage)),
)]
pub(super) async fn get(
    State(app): State<App>,
    ReadsFiles(caller): ReadsFiles,
    Path(id): Path<String>,
    Query(from): Query<From>,
) -> Answer<Json<EffectPage>> {
    let exec = find(&app, &caller.eyes(), &id).await?;
    let after = from.after.unwrap_or(0);
    let page = app.ask("effects", move |dispatcher| {
        let (effects, next, whole) = dispatcher.effects(&exec, after, AT_ONCE)?;
        Ok(EffectPage {
            complete: exec.status.is_final() && whole,
            effects,
            next,
        })
    });
    page.await.map(Json)
}

/// A task's result
///
/// The record as workflow engines want it: success, data and metadata with side effects and what
/// the gates said.
#[utoipa::path(
    get, path = "/v1/execs/{id}/result", operation_id = "get_exec_result", tag = "execs",
    params(("id" = String, Path, description = "The exec's id, or its client id.")),
    responses((status = 200, description = "As it is now.", body = TaskResult)),
)]
pub(super) async fn result(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path(id): Path<String>,
) -> Answer<Json<TaskResult>> {
    let exec = find(&app, &caller.eyes(), &id).await?;
    Ok(Json(TaskResult::of(exec.into_inner())))
}

/// Who is bound to an id does nothing in another's name.
fn speaks_for(token: &Token, ids: &Correlation) -> glovebox_model::Result<()> {
    let other = |own: Option<&str>, of: &Option<String>| own.is_some() && own != of.as_deref();
    if other(token.user_id.as_deref(), &ids.user_id)
        || other(token.conversation_id.as_deref(), &ids.conversation_id)
        || other(token.agent(), &ids.agent_id)
    {
        let message = "this token speaks for somebody else than who simulated it";
        return Err(Error::new(Code::Forbidden, Stage::Parse, message)
            .hint("simulate it yourself, or use a token that is bound to nobody"));
    }
    Ok(())
}

/// Make a simulation true
///
/// Keeps exactly the files that it wrote, all or none; what has changed there since is a 409 that
/// names it. An agent can keep by itself only what policy would let it do without asking; the
/// rest is for people who may write files (`files:write`), such as an admin.
#[utoipa::path(
    post, path = "/v1/execs/{id}/apply", operation_id = "apply_exec", tag = "execs",
    params(("id" = String, Path, description = "The exec's id, or its client id.")),
    responses((status = 200, description = "It is part of the workspace.", body = DecidedAnswer)),
)]
pub(super) async fn apply(
    State(app): State<App>,
    WritesFiles(caller): WritesFiles,
    Path(id): Path<String>,
    mutation: Mutation,
) -> Answer<Response> {
    let is_agent = caller.token().role == Role::Agent;
    let kept = decide(app, caller, id, &mutation, "apply", move |it, exec| {
        it.apply(exec, is_agent)
    });
    kept.await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Patience {
    /// Answer when it has ended (200), or as soon as it is taken on (202).
    #[param(default = true)]
    wait: Option<bool>,
}

/// Do a simulation for real
///
/// Runs it again, held to what it showed: policy decides and people are asked as for any exec, a
/// script that has changed is a 409, and the first request that the simulation did not show, with its
/// query, headers and body, is not let out. What it writes is kept if it succeeds, is what was shown
/// and the gates agree; `held` otherwise. The answer is the new exec.
#[utoipa::path(
    post, path = "/v1/execs/{id}/rerun", operation_id = "rerun_exec", tag = "execs",
    params(("id" = String, Path, description = "The exec's id, or its client id."), Patience),
    responses(
        (status = 200, description = "It has ended.", body = Exec),
        (status = 202, description = "It waits or runs.", body = Exec),
    ),
)]
pub(super) async fn rerun(
    State(app): State<App>,
    WritesExecs(caller): WritesExecs,
    Path(id): Path<String>,
    Query(patience): Query<Patience>,
    mutation: Mutation,
) -> Answer<Response> {
    let exec = find(&app, &caller.eyes(), &id).await?;
    let key = request_key(&caller, &mutation);
    let (eyes, by) = (caller.eyes(), caller.party());
    let token = caller.token().clone();
    let wait = patience.wait.unwrap_or(true);
    let taken = send(&app, &caller, wait, move |dispatcher| {
        // Who asks again gets the first answer; a simulation can be done once.
        if let Some(key) = &key
            && let Some(id) = dispatcher.store()?.replay(eyes.space(), key)?
        {
            return Ok(Submitted {
                exec: dispatcher.find(&eyes, id.as_str())?,
                replayed: true,
            });
        }
        let rehearsed = dispatcher.rehearsed(&exec)?;
        speaks_for(&token, &rehearsed.call.ids)?;
        dispatcher.submit(Submission {
            call: rehearsed.call,
            stdin: rehearsed.stdin,
            objection: None,
            key,
            by,
            eyes,
        })
    });
    Ok(taken.await?.answer(|exec| exec))
}
