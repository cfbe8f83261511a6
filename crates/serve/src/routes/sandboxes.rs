//! Sandboxes that outlive an exec.

use axum::Json as Answered;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use glovebox_engine::{Pruned, Recreated, SandboxExplanation, Selection};
use glovebox_model::{Code, Error, Lifetime, Result, Sandbox, SandboxState, Stage};
use serde::Deserialize;
use utoipa::IntoParams;

use super::Path;
use super::visibility::Visibility;
use crate::app::App;
use crate::auth::{ReadsExecs, ReadsPolicy, WritesExecs};
use crate::body::{Json, Mutation, Query};
use crate::failure::{Answer, Failure, discreet};
use crate::idempotency::{Outcome, once};
use crate::order::{sandbox_request, selection};
use glovebox_api::{Id, KeptLifetime, RecreateRequest, SandboxRequest, Sandboxes};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Filter {
    #[param(inline)]
    lifetime: Option<KeptLifetime>,
    /// Only this agent's.
    #[param(inline)]
    agent_id: Option<Id>,
    /// Only this session's.
    #[param(inline)]
    session_id: Option<Id>,
    #[param(inline)]
    state: Option<SandboxState>,
}

impl Filter {
    fn fits(&self, row: &Sandbox) -> bool {
        let is_of = |lifetime: Lifetime, wanted: &Option<Id>| {
            wanted.as_ref().is_none_or(|id| {
                row.lifetime == lifetime && row.scope.as_deref() == Some(id.0.as_str())
            })
        };
        self.lifetime
            .is_none_or(|wanted| row.lifetime == wanted.into())
            && self.state.is_none_or(|wanted| row.state == wanted)
            && is_of(Lifetime::Agent, &self.agent_id)
            && is_of(Lifetime::Session, &self.session_id)
    }
}

/// Create a sandbox
///
/// Answers when it stands. Execs are run in it by its id or name, or by the same `lifetime` on
/// behalf of the same agent or session: `sandbox` in `POST /v1/execs`. One for the same agent or
/// session and the same workspace that is there already is a 409.
#[utoipa::path(
    post, path = "/v1/sandboxes", operation_id = "create_sandbox", tag = "sandboxes",
    request_body = SandboxRequest,
    responses((status = 201, description = "It stands.", body = Sandbox)),
)]
pub(super) async fn create(
    State(app): State<App>,
    WritesExecs(caller): WritesExecs,
    Json { value, mutation }: Json<SandboxRequest>,
) -> Answer<Response> {
    let (request, viewer) = (sandbox_request(value, &caller)?, Visibility::of(&caller));
    viewer.may_decide(&request)?;
    let work_app = app.clone();
    let work = async move {
        let made = work_app.care("create_sandbox", move |dispatcher| {
            if dispatcher.is_closed() {
                return Err(closed());
            }
            let made = dispatcher.create_sandbox(viewer.eyes(), request)?;
            Ok(viewer.show(made))
        });
        Outcome::json(StatusCode::CREATED, &made.await?)
    };
    once(&app, &caller, &mutation, work).await
}

/// List sandboxes
///
/// Those of the token's space. For an agent: its own, those of its sessions, and those that all share,
/// unless `[agents] see` opens more.
#[utoipa::path(
    get, path = "/v1/sandboxes", operation_id = "list_sandboxes", tag = "sandboxes",
    params(Filter),
    responses((status = 200, description = "As they are now.", body = Sandboxes)),
)]
pub(super) async fn list(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Query(filter): Query<Filter>,
) -> Answer<Answered<Sandboxes>> {
    let viewer = Visibility::of(&caller);
    let eyes = viewer.eyes().clone();
    let listed = app.care("sandboxes", move |dispatcher| dispatcher.sandboxes(&eyes));
    let items = listed
        .await?
        .into_iter()
        .filter(|row| filter.fits(row))
        .map(|row| viewer.show(row))
        .collect();
    Ok(Answered(Sandboxes { items }))
}

/// Get a sandbox
#[utoipa::path(
    get, path = "/v1/sandboxes/{id}", operation_id = "get_sandbox", tag = "sandboxes",
    params(("id" = String, Path, description = "The sandbox's id, or its name.")),
    responses((status = 200, description = "As it is now.", body = Sandbox)),
)]
pub(super) async fn get(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path(id): Path<String>,
) -> Answer<Answered<Sandbox>> {
    let viewer = Visibility::of(&caller);
    let shown = app.care("sandbox", move |dispatcher| {
        let found = dispatcher.find_sandbox(viewer.eyes(), &id)?;
        let row = dispatcher.sandbox(viewer.eyes(), &found);
        Ok(viewer.show(row.map_err(gone_meanwhile)?))
    });
    shown.await.map(Answered)
}

/// Remove a sandbox
///
/// With everything that only it had; its workspace stays. While an exec is in it, it is a 503.
#[utoipa::path(
    delete, path = "/v1/sandboxes/{id}", operation_id = "remove_sandbox", tag = "sandboxes",
    params(("id" = String, Path, description = "The sandbox's id, or its name.")),
    responses((status = 200, description = "As it was.", body = Sandbox)),
)]
pub(super) async fn remove(
    State(app): State<App>,
    WritesExecs(caller): WritesExecs,
    Path(id): Path<String>,
    mutation: Mutation,
) -> Answer<Response> {
    let (viewer, work_app) = (Visibility::of(&caller), app.clone());
    let work = async move {
        let removed = work_app.care("remove_sandbox", move |dispatcher| {
            let row = viewer.own(dispatcher, &id)?;
            let gone = dispatcher.remove_sandbox(&row);
            gone.map(|row| viewer.show(row)).map_err(gone_meanwhile)
        });
        Outcome::json(StatusCode::OK, &removed.await?)
    };
    once(&app, &caller, &mutation, work).await
}

/// Make a sandbox anew
///
/// It is taken down, and built from today's configuration when it is next used. While an exec is
/// in it, it is a 503.
#[utoipa::path(
    post, path = "/v1/sandboxes/{id}/recreate", operation_id = "recreate_sandbox", tag = "sandboxes",
    params(("id" = String, Path, description = "The sandbox's id, or its name.")),
    responses((status = 200, description = "As it is now.", body = Sandbox)),
)]
pub(super) async fn recreate_one(
    State(app): State<App>,
    WritesExecs(caller): WritesExecs,
    Path(id): Path<String>,
    mutation: Mutation,
) -> Answer<Response> {
    let (viewer, work_app) = (Visibility::of(&caller), app.clone());
    let work = async move {
        let anew = work_app.care("recreate_sandbox", move |dispatcher| {
            let row = viewer.own(dispatcher, &id)?;
            let which = Selection::One(row.sandbox_id.to_string());
            let done = dispatcher
                .recreate_sandboxes(viewer.eyes(), &which)
                .map_err(gone_meanwhile)?;
            only(done).map(|row| viewer.show(row))
        });
        Outcome::json(StatusCode::OK, &anew.await?)
    };
    once(&app, &caller, &mutation, work).await
}

fn only(done: Recreated) -> Result<Sandbox> {
    match (
        done.recreated.into_iter().next(),
        done.failed.into_iter().next(),
    ) {
        (Some(row), _) => Ok(row),
        (None, Some(trouble)) => Err(trouble.error),
        (None, None) => Err(super::visibility::unknown()),
    }
}

/// Make sandboxes anew
///
/// Each is taken down, and built from today's configuration when it is next used. One that fails
/// does not stop the rest.
#[utoipa::path(
    post, path = "/v1/sandboxes/recreate", operation_id = "recreate_sandboxes", tag = "sandboxes",
    request_body = RecreateRequest,
    responses((status = 200, description = "What was done, and what was not.", body = Recreated)),
)]
pub(super) async fn recreate(
    State(app): State<App>,
    WritesExecs(caller): WritesExecs,
    Json { value, mutation }: Json<RecreateRequest>,
) -> Answer<Response> {
    let (which, viewer) = (selection(value), Visibility::of(&caller));
    may_recreate(&viewer, &which)?;
    let (work_app, shown) = (app.clone(), !app.is_inline());
    let work = async move {
        let done = work_app.care("recreate_sandboxes", move |dispatcher| {
            let mut done = dispatcher.recreate_sandboxes(viewer.eyes(), &which)?;
            done.recreated = done
                .recreated
                .into_iter()
                .map(|row| viewer.show(row))
                .collect();
            for trouble in done.failed.iter_mut().filter(|_| shown) {
                trouble.error = discreet(trouble.error.clone());
            }
            Ok(done)
        });
        Outcome::json(StatusCode::OK, &done.await?)
    };
    once(&app, &caller, &mutation, work).await
}

/// Everybody's at once is for an admin; an agent that is bound has its own and no other's.
fn may_recreate(viewer: &Visibility, which: &Selection) -> Answer<()> {
    let (allowed, message) = match which {
        Selection::All | Selection::Mismatched => (
            viewer.is_admin(),
            "only an admin takes down the sandboxes of others",
        ),
        Selection::Agent(agent) => (viewer.is(agent), "this token speaks for another agent"),
        Selection::Session(_) | Selection::One(_) => (true, ""),
    };
    match allowed {
        true => Ok(()),
        false => Err(Failure::new(Code::Forbidden, message)
            .hint("name an `agent` or a `session`, or use a token with another role")),
    }
}

/// Prune sandboxes
///
/// Of every space: those that nobody used for too long, and those that are too old, as the
/// configuration says. The server does the same by itself from time to time.
#[utoipa::path(
    post, path = "/v1/sandboxes/prune", operation_id = "prune_sandboxes", tag = "sandboxes",
    responses((status = 200, description = "What was removed, and what was not.", body = Pruned)),
)]
pub(super) async fn prune(
    State(app): State<App>,
    WritesExecs(caller): WritesExecs,
    mutation: Mutation,
) -> Answer<Response> {
    caller.operator()?;
    let work_app = app.clone();
    let work = async move {
        let pruned = work_app.care("prune_sandboxes", |dispatcher| dispatcher.prune_sandboxes());
        Outcome::json(StatusCode::OK, &pruned.await?)
    };
    once(&app, &caller, &mutation, work).await
}

/// Explain a sandbox
///
/// The body is that of `POST /v1/sandboxes`: which sandbox such an exec would get, what it is made
/// with and why. None is made.
#[utoipa::path(
    post, path = "/v1/sandboxes/explain", operation_id = "explain_sandbox", tag = "sandboxes",
    request_body = SandboxRequest,
    responses((status = 200, description = "What it would be.", body = SandboxExplanation)),
)]
pub(super) async fn explain(
    State(app): State<App>,
    ReadsPolicy(caller): ReadsPolicy,
    Json { value, .. }: Json<SandboxRequest>,
) -> Answer<Answered<SandboxExplanation>> {
    let (request, viewer) = (sandbox_request(value, &caller)?, Visibility::of(&caller));
    let eyes = viewer.eyes().clone();
    let explained = app.care("explain_sandbox", move |dispatcher| {
        dispatcher.explain_sandbox(&eyes, &request)
    });
    Ok(Answered(viewer.show_explanation(explained.await?)))
}

/// Somebody else was quicker to remove it.
fn gone_meanwhile(error: Error) -> Error {
    match error.code {
        Code::NotFound => super::visibility::unknown(),
        _ => error,
    }
}

fn closed() -> Error {
    Error::new(
        Code::ShuttingDown,
        Stage::Admit,
        "the server is shutting down and takes no new work",
    )
    .hint("try again in a moment, or ask another server")
}
