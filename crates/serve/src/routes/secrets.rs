//! Secrets by name. A value comes in, and nothing that is answered, logged or kept for a replay
//! has any of it.

use axum::Json as Answered;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use glovebox_engine::{Removal, Revocation};
use glovebox_model::{Code, Correlation, GrantId, Page, Secret, SecretGrant, SecretName, Vouched};
use glovebox_store::SecretGrantFilter;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Path;
use crate::app::App;
use crate::auth::{ReadsSecrets, WritesApprovals, WritesSecrets};
use crate::body::{Json, Mutation, Query};
use crate::failure::{Answer, Failure, clash};
use crate::idempotency::{Outcome, once};
use crate::order::{grant_secret, set_secret};
use glovebox_api::{Id, SecretGrantRequest, SecretRequest};

const LIMIT: usize = 50;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// At most so many.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<usize>,
    /// `next` of the page before.
    #[param(inline)]
    cursor: Option<SecretName>,
}

fn unknown() -> Failure {
    Failure::not_found("secret").hint("`GET /v1/secrets` lists those of the token's space")
}

fn unknown_grant() -> Failure {
    Failure::not_found("grant").hint("`GET /v1/secret-grants` lists those of the token's space")
}

fn or(unknown: fn() -> Failure) -> impl FnOnce(Failure) -> Failure {
    move |failure| match failure.0.code {
        Code::NotFound => unknown(),
        _ => failure,
    }
}

/// List secrets
///
/// What is known of those in the token's space, in the order of their names. No answer ever has a
/// value.
#[utoipa::path(
    get, path = "/v1/secrets", operation_id = "list_secrets", tag = "secrets",
    params(Which),
    responses((status = 200, description = "A page.", body = Page<Secret>)),
)]
pub(super) async fn list(
    State(app): State<App>,
    ReadsSecrets(caller): ReadsSecrets,
    Query(which): Query<Which>,
) -> Answer<Answered<Page<Secret>>> {
    let space = caller.space().clone();
    let listed = app.ask("list_secrets", move |dispatcher| {
        let cursor = which.cursor.as_ref().map(|name| name.as_str());
        let limit = which.limit.unwrap_or(LIMIT);
        dispatcher.secrets()?.list(&space, limit, cursor)
    });
    listed.await.map(Answered)
}

/// Set a secret
///
/// Its first value, or another. The value is sealed at rest, and kept out of whatever execs of the
/// space print; so are those that it had before. The same value again changes nothing.
#[utoipa::path(
    put, path = "/v1/secrets/{name}", operation_id = "set_secret", tag = "secrets",
    params(("name" = SecretName, Path, description = "The secret's name.")),
    request_body = SecretRequest,
    responses((status = 200, description = "The secret, without its value.", body = Secret)),
)]
pub(super) async fn set(
    State(app): State<App>,
    WritesSecrets(caller): WritesSecrets,
    Path(name): Path<String>,
    Json {
        value,
        mut mutation,
    }: Json<SecretRequest>,
) -> Answer<Response> {
    let name: SecretName = name
        .parse()
        .map_err(|why| Failure::invalid(format!("{why}")))?;
    // It is kept beside the key: without ours nobody can try values against it.
    if mutation.key.is_some() {
        let parts = [&mutation.fingerprint[..]];
        mutation.fingerprint = app.auth().key()?.derive("fingerprint of a secret", &parts);
    }
    let secret = set_secret(value, name).map_err(|failure| Failure::from(clash(*failure.0)))?;
    let (work_app, space, by) = (app.clone(), caller.space().clone(), caller.actor());
    let work = async move {
        let set = work_app.ask("set_secret", move |dispatcher| {
            let set = dispatcher.secrets()?.set(&space, secret, &by);
            let set = set.map_err(clash)?;
            // From now on it is looked for, too.
            dispatcher.masks_for(&Correlation::of_space(space), Vouched::People)?;
            Ok(set)
        });
        Outcome::json(StatusCode::OK, &set.await?)
    };
    once(&app, &caller, &mutation, work).await
}

/// Remove a secret
///
/// With every value that it had, and its grants. What running execs have of it already is listed:
/// nobody can take it from them.
#[utoipa::path(
    delete, path = "/v1/secrets/{name}", operation_id = "remove_secret", tag = "secrets",
    params(("name" = SecretName, Path, description = "The secret's name.")),
    responses((status = 200, description = "What it was, and who still has it.", body = Removal)),
)]
pub(super) async fn remove(
    State(app): State<App>,
    WritesSecrets(caller): WritesSecrets,
    Path(name): Path<String>,
    mutation: Mutation,
) -> Answer<Response> {
    let name: SecretName = name.parse().map_err(|_| unknown())?;
    let (work_app, space, by) = (app.clone(), caller.space().clone(), caller.actor());
    let work = async move {
        let removed = work_app.ask("remove_secret", move |dispatcher| {
            dispatcher.secrets()?.remove(&space, &name, &by)
        });
        Outcome::json(StatusCode::OK, &removed.await.map_err(or(unknown))?)
    };
    once(&app, &caller, &mutation, work).await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Filter {
    #[param(inline)]
    secret: Option<SecretName>,
    #[param(inline)]
    conversation_id: Option<Id>,
    #[param(inline)]
    agent_id: Option<Id>,
    /// Also those that were revoked or have expired.
    #[param(default = false)]
    all: Option<bool>,
    /// At most so many.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<usize>,
    /// `next` of the page before.
    #[param(pattern = "^-?[0-9]{1,18}\\.grt_[0-9a-f]{32}$")]
    cursor: Option<String>,
}

/// List grants of secrets
///
/// Who may have which secret without being asked about, newest first.
#[utoipa::path(
    get, path = "/v1/secret-grants", operation_id = "list_secret_grants", tag = "secrets",
    params(Filter),
    responses((status = 200, description = "A page.", body = Page<SecretGrant>)),
)]
pub(super) async fn grants(
    State(app): State<App>,
    ReadsSecrets(caller): ReadsSecrets,
    Query(filter): Query<Filter>,
) -> Answer<Answered<Page<SecretGrant>>> {
    let filter = SecretGrantFilter {
        secret: filter.secret,
        conversation_id: filter.conversation_id.map(|id| id.0),
        agent_id: filter.agent_id.map(|id| id.0),
        include_ended: filter.all.unwrap_or(false),
        limit: filter.limit.unwrap_or(LIMIT),
        cursor: filter.cursor,
    };
    let space = caller.space().clone();
    let listed = app.ask("list_secret_grants", move |dispatcher| {
        dispatcher.secrets()?.grants(&space, &filter)
    });
    listed.await.map(Answered)
}

/// Grant a secret
///
/// Execs of the conversation, of the agent, or of the agent in the conversation may have it without
/// being asked about. Whoever grants it has agreed to each of them; an agent cannot.
#[utoipa::path(
    post, path = "/v1/secret-grants", operation_id = "grant_secret", tag = "secrets",
    request_body = SecretGrantRequest,
    responses((status = 201, description = "The grant.", body = SecretGrant)),
)]
pub(super) async fn grant(
    State(app): State<App>,
    WritesApprovals(caller): WritesApprovals,
    Json { value, mutation }: Json<SecretGrantRequest>,
) -> Answer<Response> {
    let asked = grant_secret(value)?;
    let (work_app, space, by) = (app.clone(), caller.space().clone(), caller.actor());
    let work = async move {
        let granted = work_app.ask("grant_secret", move |dispatcher| {
            let granted = dispatcher.secrets()?.grant(&space, asked, &by);
            granted.map_err(clash)
        });
        Outcome::json(StatusCode::CREATED, &granted.await.map_err(or(unknown))?)
    };
    once(&app, &caller, &mutation, work).await
}

/// Revoke a grant of a secret
///
/// Execs that start from then on are asked about again, and a brokered value goes nowhere any more.
/// What running execs have as a file, a descriptor or a variable is listed: nobody can take it from
/// them. Revoking it again changes nothing.
#[utoipa::path(
    delete, path = "/v1/secret-grants/{id}", operation_id = "revoke_secret_grant", tag = "secrets",
    params(("id" = String, Path, description = "The grant's id.")),
    responses((status = 200, description = "The grant, and who still has it.", body = Revocation)),
)]
pub(super) async fn revoke(
    State(app): State<App>,
    WritesApprovals(caller): WritesApprovals,
    Path(id): Path<String>,
    mutation: Mutation,
) -> Answer<Response> {
    let id: GrantId = id.parse().map_err(|_| unknown_grant())?;
    let (work_app, space, by) = (app.clone(), caller.space().clone(), caller.actor());
    let work = async move {
        let revoked = work_app.ask("revoke_secret_grant", move |dispatcher| {
            dispatcher.secrets()?.revoke(&space, &id, &by)
        });
        Outcome::json(StatusCode::OK, &revoked.await.map_err(or(unknown_grant))?)
    };
    once(&app, &caller, &mutation, work).await
}
