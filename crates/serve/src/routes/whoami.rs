//! Who the caller is.

use axum::Json;
use glovebox_model::Token;

use crate::auth::Anybody;

/// Get the token
///
/// The one that the request was made with, without its secret.
#[utoipa::path(
    get, path = "/v1/whoami", operation_id = "whoami", tag = "tokens",
    responses((status = 200, description = "The token.", body = Token)),
)]
pub(super) async fn whoami(Anybody(caller): Anybody) -> Json<Token> {
    Json(caller.token().clone())
}
