//! Reading the web for a caller.

use axum::Json as Answered;
use axum::extract::State;
use glovebox_engine::{RetrieveRequest as Wanted, Retrieved};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::Retrieves;
use crate::body::{Json, Limit, Sent};
use crate::failure::Answer;
use crate::order::ids;
use glovebox_api::TaskRef;

/// There is no place for headers, cookies or a body.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"url": "https://example.com/"}))]
pub(super) struct RetrieveRequest {
    /// `http` or `https`, without a user name.
    #[schema(min_length = 1, max_length = 16384)]
    url: String,
    /// `GET`, which is also what is meant without it.
    #[schema(min_length = 1, max_length = 32)]
    method: Option<String>,
    /// Of the body, after decompression. Never more than the operator allows.
    #[schema(minimum = 1, maximum = 9007199254740991u64)]
    max_bytes: Option<u64>,
    /// Of the text; what is longer is cut, and `truncated` says so.
    #[schema(minimum = 1, maximum = 9007199254740991u64)]
    max_text_bytes: Option<u64>,
    /// Over everything. Never more than the operator allows.
    #[schema(minimum = 1, maximum = 3600000)]
    timeout_ms: Option<u64>,
    task_ref: Option<TaskRef>,
}

impl Sent for RetrieveRequest {
    const LIMIT: Limit = Limit::Plain;
}

/// Read a page
///
/// GET only. Every address, port, redirect, size and type is checked; HTML becomes readable text, and
/// nothing of it is executed. What the far side said, or why it was not asked, is a 200 with
/// `error_code`; a 403 is policy's answer, and a 429 that of the rate.
#[utoipa::path(
    post, path = "/v1/retrieve", operation_id = "retrieve", tag = "network",
    request_body = RetrieveRequest,
    responses((status = 200, description = "The text, or why there is none.", body = Retrieved)),
)]
pub(super) async fn retrieve(
    State(app): State<App>,
    Retrieves(caller): Retrieves,
    Json { value, .. }: Json<RetrieveRequest>,
) -> Answer<Answered<Retrieved>> {
    let ids = ids(value.task_ref.unwrap_or_default(), &caller)?;
    let vouched = caller.vouched();
    let request = Wanted {
        method: value.method,
        max_bytes: value.max_bytes,
        max_text_bytes: value.max_text_bytes,
        timeout_ms: value.timeout_ms,
        ..Wanted::of(value.url)
    };
    let by = caller.actor();
    // It waits in a runtime of its own.
    let retrieved = app.ask_on_thread("retrieve", move |dispatcher| {
        dispatcher.retrieve((&ids, vouched), &by, request)
    });
    Ok(Answered(retrieved.await?))
}
