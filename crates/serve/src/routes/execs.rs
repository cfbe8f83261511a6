//! Records.

use axum::Json;
use axum::extract::State;
use glovebox_model::{Exec, ProjectId, Status};
use glovebox_store::ExecFilter;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Path;
use super::settle::find;
use crate::app::App;
use crate::auth::{Caller, ReadsExecs};
use crate::body::Query;
use crate::failure::Answer;
use crate::wire::{Id, Page};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Filter {
    #[param(inline)]
    task_id: Option<Id>,
    #[param(inline)]
    conversation_id: Option<Id>,
    #[param(inline)]
    project_id: Option<ProjectId>,
    #[param(inline)]
    status: Option<Status>,
    /// At most so many.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<usize>,
    /// `next` of the page before.
    #[param(pattern = "^[0-9]{1,18}$")]
    cursor: Option<String>,
}

/// List execs
///
/// Those of the token's space, newest first.
#[utoipa::path(
    get, path = "/v1/execs", operation_id = "list_execs", tag = "execs",
    params(Filter),
    responses((status = 200, description = "A page.", body = Page<Exec>)),
)]
pub(super) async fn list(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Query(filter): Query<Filter>,
) -> Answer<Json<Page<Exec>>> {
    page(&app, &caller, filter)
        .await
        .map(|page| Json(Page::of(page, |exec| exec)))
}

pub(super) async fn page(
    app: &App,
    caller: &Caller,
    filter: Filter,
) -> Answer<glovebox_store::Page<Exec>> {
    let space = caller.space().clone();
    let filter = ExecFilter {
        status: filter.status,
        task_id: filter.task_id.map(|id| id.0),
        conversation_id: filter.conversation_id.map(|id| id.0),
        project_id: filter.project_id,
        limit: filter.limit.unwrap_or(0),
        cursor: filter.cursor,
    };
    app.ask("list", move |dispatcher| {
        let mut page = dispatcher.store()?.list(&space, &filter)?;
        for exec in &mut page.items {
            dispatcher.place_in_queue(exec);
        }
        Ok(page)
    })
    .await
}

/// Get an exec
///
/// By its id, or by the caller's own.
#[utoipa::path(
    get, path = "/v1/execs/{id}", operation_id = "get_exec", tag = "execs",
    params(("id" = String, Path, description = "The exec's id, or its client id.")),
    responses((status = 200, description = "The record as it is now.", body = Exec)),
)]
pub(super) async fn get(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path(id): Path<String>,
) -> Answer<Json<Exec>> {
    find(&app, caller.space(), &id).await.map(Json)
}
