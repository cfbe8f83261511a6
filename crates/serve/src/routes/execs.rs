//! Records.

use std::io;

use axum::Json;
use axum::extract::State;
use glovebox_model::{Exec, Page, ProjectId, Status};
use glovebox_store::ExecFilter;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Path;
use super::wait::find;
use crate::app::App;
use crate::auth::{Caller, ReadsExecs};
use crate::body::Query;
use crate::failure::Answer;
use glovebox_api::Id;

/// Records in a page if nothing is said.
const LIMIT: usize = 50;
/// Records that are read at once. One with much output of bytes that JSON escapes has most of a
/// megabyte.
const AT_ONCE: usize = 8;
/// For one page. More are looked at only where others' are left out, which may be many.
const LOOKS: usize = 200;
/// A page that has passed this is full, whatever its limit.
const PAGE_BYTES: usize = 4 << 20;

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
    /// What their ids begin with.
    #[param(pattern = "^e_[0-9a-f]{1,32}$")]
    id_prefix: Option<String>,
    /// At most so many.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<usize>,
    /// `next` of the page before.
    #[param(pattern = "^[0-9]{1,18}$")]
    cursor: Option<String>,
}

/// List execs
///
/// Those of the token's space, newest first; an agent's own for an agent, unless `[agents] see` opens
/// more. A page ends early once its records have passed 4 MiB; `next` leads on.
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
    page(&app, &caller, filter).await.map(Json)
}

pub(super) async fn page(app: &App, caller: &Caller, filter: Filter) -> Answer<Page<Exec>> {
    let eyes = caller.eyes();
    let mut wanted = filter.limit.unwrap_or(LIMIT);
    let mut filter = ExecFilter {
        status: filter.status,
        task_id: filter.task_id.map(|id| id.0),
        conversation_id: filter.conversation_id.map(|id| id.0),
        project_id: filter.project_id,
        agent_id: None,
        id_prefix: filter.id_prefix,
        limit: 0,
        cursor: filter.cursor,
    };
    app.ask("list", move |dispatcher| {
        let (mut items, mut bytes) = (Vec::new(), Bytes(0));
        for looks in 1.. {
            filter.limit = wanted.min(AT_ONCE);
            let page = dispatcher.execs(&eyes, &filter)?;
            wanted -= page.items.len().min(wanted);
            for exec in page.items {
                // Only counted, so it cannot fail.
                let _ = serde_json::to_writer(&mut bytes, &exec);
                items.push(exec);
            }
            filter.cursor = page.next;
            let is_full = wanted == 0 || bytes.0 >= PAGE_BYTES || looks == LOOKS;
            if filter.cursor.is_none() || is_full {
                break;
            }
        }
        let next = filter.cursor;
        Ok(Page { items, next })
    })
    .await
}

/// Counts what is written.
struct Bytes(usize);

impl io::Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
    let exec = find(&app, &caller.eyes(), &id).await?;
    Ok(Json(exec.into_inner()))
}
