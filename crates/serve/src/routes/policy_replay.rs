//! What another policy would have decided about what was asked before.

use axum::Json as Answered;
use axum::extract::State;
use glovebox_engine::Replayed;
use glovebox_model::{Code, Error, Stage};
use glovebox_policy::Config;

use crate::app::App;
use crate::auth::ReadsPolicy;
use crate::body::{Json, Limit, Sent};
use crate::failure::Answer;
use glovebox_api::ReplayRequest;

/// Records that are looked at if nothing is said.
const LIMIT: u64 = 1000;

impl Sent for ReplayRequest {
    const LIMIT: Limit = Limit::Plain;
}

/// Try a policy on what was asked before
///
/// Which of the newest records of the token's space another configuration would decide otherwise.
/// Nothing is run, changed or recorded.
#[utoipa::path(
    post, path = "/v1/policy/replay", operation_id = "replay_policy", tag = "policy",
    request_body = ReplayRequest,
    responses((status = 200, description = "The differences.", body = Replayed)),
)]
pub(super) async fn replay(
    State(app): State<App>,
    ReadsPolicy(caller): ReadsPolicy,
    Json { value, .. }: Json<ReplayRequest>,
) -> Answer<Answered<Replayed>> {
    caller.operator()?;
    let space = caller.space().clone();
    let (text, most) = (value.config.0, value.limit.unwrap_or(LIMIT));
    let replayed = app.care("replay", move |dispatcher| {
        let config = Config::parse(&text, "config").map_err(not_a_policy)?;
        dispatcher.replay(&space, &config, most)
    });
    replayed.await.map(Answered)
}

/// The text is the caller's: what is wrong with it is no secret of the server's.
fn not_a_policy(error: Error) -> Error {
    let mut told = Error::new(Code::Conflict, Stage::Parse, error.message);
    (told.rule, told.hints, told.causes) = (error.rule, error.hints, error.causes);
    told
}
