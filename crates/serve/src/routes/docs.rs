//! Pages for people, and the description for programs. Nothing on them is loaded from elsewhere,
//! and nothing on them runs.

use std::sync::LazyLock;

use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY};
use axum::response::IntoResponse;

use crate::{docs_page, document};

static TEXT: LazyLock<String> = LazyLock::new(document::openapi_json);
static PAGE: LazyLock<String> = LazyLock::new(|| docs_page::render(document::value()));

type Page = ([(HeaderName, &'static str); 3], &'static str);

fn html(page: &'static str) -> Page {
    let policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
                  form-action 'none'; frame-ancestors 'none'";
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, policy),
        (REFERRER_POLICY, "no-referrer"),
    ];
    (headers, page)
}

/// What this is
#[utoipa::path(
    get, path = "/", operation_id = "front", tag = "server",
    responses((status = 200, description = "A page.", content_type = "text/html", body = String)),
)]
pub(super) async fn front() -> Page {
    html(docs_page::FRONT)
}

/// This description as a page
#[utoipa::path(
    get, path = "/docs", operation_id = "docs", tag = "server",
    responses((status = 200, description = "A page.", content_type = "text/html", body = String)),
)]
pub(super) async fn page() -> Page {
    html(&PAGE)
}

/// This description
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "openapi", tag = "server",
    responses((status = 200, description = "OpenAPI 3.1.", content_type = "application/json",
        body = Object)),
)]
pub(super) async fn openapi() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], TEXT.as_str())
}
