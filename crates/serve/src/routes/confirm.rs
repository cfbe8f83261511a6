//! Opening the WebSocket of approvals.

use axum::extract::State;
use axum::http::{HeaderMap, Method, Version};
use axum::response::Response;
use glovebox_model::Code;

use super::confirmations::Confirmations;
use super::websocket::Opening;
use crate::app::App;
use crate::auth::ReadsApprovals;
use crate::failure::{Answer, Failure};

pub(super) async fn open(
    State(app): State<App>,
    ReadsApprovals(caller): ReadsApprovals,
    method: Method,
    version: Version,
    headers: HeaderMap,
) -> Answer<Response> {
    let opening = Opening {
        method,
        version,
        headers,
        instead: "GET /v1/approvals",
    };
    opening.check()?;
    let place = app.listeners().enter(caller.space())?;
    if app.dispatcher().is_closed() {
        return Err(Failure::new(Code::ShuttingDown, "the server is shutting down").after(1));
    }
    let confirmations = Confirmations::new(app, caller, place);
    opening.answer(|line| confirmations.attend(line))
}
