//! Everything of one task, in order.

use axum::Json;
use axum::extract::State;
use glovebox_model::ExecId;
use glovebox_store::{Step, TimelineFilter};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Path;
use super::audit::LedgerEntry;
use crate::app::App;
use crate::auth::ReadsAudit;
use crate::body::Query;
use crate::failure::{Answer, Failure};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Part {
    /// At most so many steps.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<usize>,
    /// `next` of the page before.
    #[param(pattern = r"^-?[0-9]{1,18}\.[0-9]{1,18}$")]
    cursor: Option<String>,
}

/// The steps of a task, the oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TaskTimeline {
    task_id: String,
    steps: Vec<TaskStep>,
    /// The `cursor` of the next page; null on the last one.
    next: Option<String>,
}

/// What the ledger says of one exec, or an entry about none.
#[derive(Debug, Serialize, ToSchema)]
struct TaskStep {
    exec_id: Option<ExecId>,
    /// What was about to happen; null when it was refused at once.
    planned: Option<LedgerEntry>,
    /// How it ended; null while it runs.
    outcome: Option<LedgerEntry>,
    /// Everything else in order: its start after a wait, what people were asked, what became of its
    /// changes.
    others: Vec<LedgerEntry>,
}

impl From<Step<LedgerEntry>> for TaskStep {
    fn from(step: Step<LedgerEntry>) -> Self {
        Self {
            exec_id: step.exec_id,
            planned: step.planned,
            outcome: step.outcome,
            others: step.others,
        }
    }
}

/// Get the timeline of a task
///
/// What was planned and how it ended side by side. A task that the ledger of the space does not
/// know is a 404.
#[utoipa::path(
    get, path = "/v1/audit/timeline/{task_id}", operation_id = "get_task_timeline", tag = "audit",
    params(("task_id" = String, Path, description = "The task's id, as execs were given it."), Part),
    responses(
        (status = 200, description = "A page.", body = TaskTimeline),
        (status = 404, description = "Nobody asked for anything with it.", body = crate::failure::ErrorBody),
    ),
)]
pub(super) async fn get(
    State(app): State<App>,
    ReadsAudit(caller): ReadsAudit,
    Path(task_id): Path<String>,
    Query(part): Query<Part>,
) -> Answer<Json<TaskTimeline>> {
    let space = caller.space().clone();
    let is_first = part.cursor.is_none();
    let filter = TimelineFilter {
        task_id,
        limit: part.limit.unwrap_or(0),
        cursor: part.cursor,
    };
    let found = app.ask("timeline", move |dispatcher| {
        dispatcher.store()?.timeline(&space, &filter)
    });
    let found = found.await?;
    // A later page may be empty: what was left belonged to steps that were shown.
    if found.steps.is_empty() && found.next.is_none() && is_first {
        return Err(Failure::not_found("task")
            .hint("a task is known once an exec was asked for with its `task_id`"));
    }
    let now = Timestamp::now();
    let timeline = found.map(|entry| LedgerEntry::new(entry, now));
    Ok(Json(TaskTimeline {
        task_id: timeline.task_id,
        steps: timeline.steps.into_iter().map(TaskStep::from).collect(),
        next: timeline.next,
    }))
}
