//! What would be decided, and why.

use axum::Json as Answered;
use axum::extract::State;
use glovebox_policy::Explanation;

use crate::app::App;
use crate::auth::ReadsPolicy;
use crate::body::Json;
use crate::failure::Answer;
use crate::order::Order;
use glovebox_api::ExecRequest;

/// Explain policy
///
/// The body is that of `POST /v1/execs`; nothing is run or recorded.
#[utoipa::path(
    post, path = "/v1/policy/explain", operation_id = "explain_policy", tag = "policy",
    request_body = ExecRequest,
    responses((status = 200, description = "The decision.", body = Explanation)),
)]
pub(super) async fn explain(
    State(app): State<App>,
    ReadsPolicy(caller): ReadsPolicy,
    Json { value, .. }: Json<ExecRequest>,
) -> Answer<Answered<Explanation>> {
    let order = Order::of_exec(value, &caller)?;
    // Refused before policy is asked: that is an explanation too.
    if let Some(error) = order.objection {
        return Ok(Answered(Explanation::of(Err(&error))));
    }
    let eyes = caller.eyes();
    let explained = app.ask("explain", move |dispatcher| {
        Ok(dispatcher.explain(&eyes, order.call))
    });
    let mut explanation = explained.await?;
    // Where the operator wrote a setting is not told with every field.
    for it in &mut explanation.fields {
        it.by.source = None;
    }
    Ok(Answered(explanation))
}
