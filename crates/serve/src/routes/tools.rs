//! Which tools exist for a caller.

use axum::Json as Answered;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::ReadsPolicy;
use crate::body::{Json, Limit, Sent};
use crate::failure::Answer;
use crate::order::ids;
use glovebox_api::{TaskRef, ToolName};
use glovebox_policy::ToolAnswer;

/// The body of `POST /v1/tools/check`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"tools": ["run_code", "skill.git.diff"]}))]
pub(super) struct ToolsRequest {
    #[schema(max_items = 10000)]
    tools: Vec<ToolName>,
    /// For whom: an agent may have lists of its own.
    task_ref: Option<TaskRef>,
}

impl Sent for ToolsRequest {
    const LIMIT: Limit = Limit::Plain;
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ToolsAnswer {
    /// In the order of the request.
    answers: Vec<ToolAnswer>,
}

/// Check tools
///
/// Whether tools of these names exist for the caller, and which list says so. What a tool then does
/// is decided when it is called; nothing is run or recorded here.
#[utoipa::path(
    post, path = "/v1/tools/check", operation_id = "check_tools", tag = "policy",
    request_body = ToolsRequest,
    responses((status = 200, description = "An answer for each.", body = ToolsAnswer)),
)]
pub(super) async fn check(
    State(app): State<App>,
    ReadsPolicy(caller): ReadsPolicy,
    Json { value, .. }: Json<ToolsRequest>,
) -> Answer<Answered<ToolsAnswer>> {
    let ids = ids(value.task_ref.unwrap_or_default(), &caller)?;
    let tools = app.dispatcher().tools_of(&ids);
    let answers = value.tools.iter().map(|name| tools.check(&name.0));
    Ok(Answered(ToolsAnswer {
        answers: answers.collect(),
    }))
}
