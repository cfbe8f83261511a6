//! Kinds of actions that people have allowed in a conversation.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use glovebox_model::{Code, Grant, GrantId, Page};
use glovebox_store::GrantFilter;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Path;
use crate::app::App;
use crate::auth::{ReadsApprovals, WritesApprovals};
use crate::body::{Mutation, Query};
use crate::failure::{Answer, Failure};
use crate::idempotency::{Outcome, once};
use glovebox_api::Id;

const LIMIT: usize = 50;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Filter {
    #[param(inline)]
    conversation_id: Option<Id>,
    /// Also those that were revoked or have expired.
    #[param(default = false)]
    revoked: Option<bool>,
    /// At most so many.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<usize>,
    /// `next` of the page before.
    #[param(pattern = "^-?[0-9]{1,18}\\.grt_[0-9a-f]{32}$")]
    cursor: Option<String>,
}

/// List grants
///
/// What `allow_kind` has allowed in the token's space, newest first.
#[utoipa::path(
    get, path = "/v1/grants", operation_id = "list_grants", tag = "approvals",
    params(Filter),
    responses((status = 200, description = "A page.", body = Page<Grant>)),
)]
pub(super) async fn list(
    State(app): State<App>,
    ReadsApprovals(caller): ReadsApprovals,
    Query(filter): Query<Filter>,
) -> Answer<Json<Page<Grant>>> {
    let filter = GrantFilter {
        space: None,
        conversation_id: filter.conversation_id.map(|id| id.0),
        include_ended: filter.revoked.unwrap_or(false),
        limit: filter.limit.unwrap_or(LIMIT),
        cursor: filter.cursor,
    };
    let eyes = caller.eyes();
    let listed = app.ask("list_grants", move |dispatcher| {
        dispatcher.grants(&eyes, &filter)
    });
    listed.await.map(Json)
}

/// Revoke a grant
///
/// From then on people are asked again. Revoking it again changes nothing.
#[utoipa::path(
    delete, path = "/v1/grants/{id}", operation_id = "revoke_grant", tag = "approvals",
    params(("id" = String, Path, description = "The grant's id.")),
    responses((status = 200, description = "The grant, which is in force no longer.", body = Grant)),
)]
pub(super) async fn revoke(
    State(app): State<App>,
    WritesApprovals(caller): WritesApprovals,
    Path(id): Path<String>,
    mutation: Mutation,
) -> Answer<Response> {
    let id: GrantId = id.parse().map_err(|_| Failure::no_grant())?;
    let (work_app, space, by) = (app.clone(), caller.space().clone(), caller.actor());
    let work = async move {
        let revoked = work_app.ask("revoke_grant", move |dispatcher| {
            dispatcher.store()?.revoke_grant(Some(&space), &id, &by)
        });
        let grant = revoked.await.map_err(|failure| match failure.0.code {
            Code::NotFound => Failure::no_grant(),
            _ => failure,
        })?;
        Outcome::json(StatusCode::OK, &grant)
    };
    once(&app, &caller, &mutation, work).await
}
