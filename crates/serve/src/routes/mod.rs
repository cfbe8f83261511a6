//! The API. Every route is made here, from one router that describes itself: what is served is
//! what is described.

mod approvals;
mod archive;
mod artifacts;
mod audit;
mod audit_timeline;
mod cancel;
mod changes;
mod confirm;
mod confirmations;
mod docs;
mod effects;
mod events;
mod events_ws;
mod execs;
mod files;
mod files_audit;
mod grants;
mod health;
mod legacy;
mod metrics;
mod network;
mod policy;
mod policy_replay;
mod pool;
mod retrieve;
mod rollback;
mod sandboxes;
mod secrets;
mod session_recording;
mod session_stream;
mod session_ws;
mod sessions;
mod settings;
mod skills;
mod snapshots;
mod stream;
mod submit;
mod tokens;
mod tools;
mod visibility;
mod wait;
mod watch;
mod webhooks;
mod websocket;
mod whoami;
mod workspace_request;
mod workspaces;

use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::middleware::from_fn_with_state;
use glovebox_model::Code;
use serde::de::DeserializeOwned;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::failure::{Answer, ErrorBody, Failure};
use crate::{origin_check, trace};
use glovebox_api::{Confirmation, ConfirmationAnswer, SessionMessage};

#[derive(OpenApi)]
#[openapi(components(schemas(ErrorBody, Confirmation, ConfirmationAnswer, SessionMessage)))]
struct Base;

pub(crate) fn all() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Base::openapi())
        .routes(routes!(docs::front))
        .routes(routes!(docs::page))
        .routes(routes!(docs::openapi))
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
        .routes(routes!(metrics::metrics))
        .routes(routes!(whoami::whoami))
        .routes(routes!(submit::create, execs::list))
        .routes(routes!(execs::get))
        .routes(routes!(stream::stdout))
        .routes(routes!(stream::stderr))
        .routes(routes!(artifacts::list))
        .routes(routes!(artifacts::get))
        .routes(routes!(events::events))
        .routes(routes!(network::network))
        .routes(routes!(cancel::cancel))
        .routes(routes!(effects::get))
        .routes(routes!(effects::result))
        .routes(routes!(effects::apply))
        .routes(routes!(effects::rerun))
        .routes(routes!(changes::get))
        .routes(routes!(changes::keep))
        .routes(routes!(changes::discard))
        .routes(routes!(policy::explain))
        .routes(routes!(policy_replay::replay))
        .routes(routes!(tools::check))
        .routes(routes!(approvals::list))
        .routes(routes!(approvals::get))
        .routes(routes!(approvals::reply))
        .routes(routes!(approvals::approve))
        .routes(routes!(approvals::deny))
        .routes(routes!(grants::list))
        .routes(routes!(grants::revoke))
        .routes(routes!(retrieve::retrieve))
        .routes(routes!(webhooks::list))
        .routes(routes!(webhooks::deliveries))
        .routes(routes!(webhooks::test))
        .routes(routes!(secrets::list))
        .routes(routes!(secrets::set, secrets::remove))
        .routes(routes!(secrets::grants, secrets::grant))
        .routes(routes!(secrets::revoke))
        .routes(routes!(skills::list))
        .routes(routes!(skills::get))
        .routes(routes!(skills::invoke))
        .routes(routes!(skills::output))
        .routes(routes!(sandboxes::create, sandboxes::list))
        .routes(routes!(sandboxes::recreate))
        .routes(routes!(sandboxes::prune))
        .routes(routes!(sandboxes::explain))
        .routes(routes!(sandboxes::get, sandboxes::remove))
        .routes(routes!(sandboxes::recreate_one))
        .routes(routes!(sessions::create, sessions::list))
        .routes(routes!(sessions::get, sessions::remove))
        .routes(routes!(sessions::output))
        .routes(routes!(session_stream::stream))
        .routes(routes!(sessions::screen))
        .routes(routes!(session_recording::recording))
        .routes(routes!(sessions::input))
        .routes(routes!(sessions::close_input))
        .routes(routes!(sessions::resize))
        .routes(routes!(sessions::signal))
        .routes(routes!(sessions::kill))
        .routes(routes!(pool::pool))
        .routes(routes!(pool::backends))
        .routes(routes!(workspaces::list))
        .routes(routes!(workspaces::get, workspaces::remove))
        .routes(routes!(workspaces::seed))
        .routes(routes!(workspaces::reset))
        .routes(routes!(files::root))
        .routes(routes!(files::get, files::put, files::remove))
        .routes(routes!(files::mkdir))
        .routes(routes!(files::rename))
        .routes(routes!(files::copy))
        .routes(routes!(files::replace))
        .routes(routes!(files::search))
        .routes(routes!(files::glob))
        .routes(routes!(archive::get, archive::put))
        .routes(routes!(watch::watch))
        .routes(routes!(snapshots::take, snapshots::list))
        .routes(routes!(snapshots::get, snapshots::remove))
        .routes(routes!(snapshots::restore))
        .routes(routes!(snapshots::diff))
        .routes(routes!(snapshots::undo))
        .routes(routes!(snapshots::fork))
        .routes(routes!(rollback::roll_back))
        .routes(routes!(snapshots::collect))
        .routes(routes!(snapshots::verify))
        .routes(routes!(audit::query))
        .routes(routes!(audit::verify))
        .routes(routes!(audit::export))
        .routes(routes!(audit::checkpoint))
        .routes(routes!(audit_timeline::get))
        .routes(routes!(settings::get, settings::patch))
        .routes(routes!(tokens::create, tokens::list))
        .routes(routes!(tokens::get, tokens::revoke))
        .routes(routes!(legacy::create, legacy::list))
        .routes(routes!(legacy::get))
        .routes(routes!(legacy::stdout))
        .routes(routes!(legacy::stderr))
        .routes(routes!(legacy::observation))
        .routes(routes!(legacy::artifacts))
        .routes(routes!(legacy::artifact))
        .routes(routes!(legacy::events))
        .routes(routes!(legacy::cancel))
        .routes(routes!(skills::legacy_list))
        .routes(routes!(skills::legacy_invoke))
        .routes(routes!(health::sandbox))
}

/// Answered to everybody: they reveal nothing.
pub(crate) fn is_open(path: &str) -> bool {
    matches!(
        path,
        "/" | "/docs" | "/openapi.json" | "/healthz" | "/readyz"
    )
}

/// Routes that are no request and answer, and so have no place among those that are described.
const CONFIRMATIONS: &str = "/v1/approvals/ws";
const EVENTS: &str = "/v1/execs/{id}/ws";
const SESSION: &str = "/v1/sessions/{id}/ws";

/// Whether a WebSocket is opened there.
pub(crate) fn is_websocket(path: &str) -> bool {
    [CONFIRMATIONS, EVENTS, SESSION].contains(&path)
}

/// As it is served to the network.
pub(crate) fn router(app: App, mcp: Router) -> Router {
    known(&app, Router::new().route_service(crate::mcp::PATH, mcp))
        .layer(from_fn_with_state(app.clone(), origin_check::check))
        .layer(from_fn_with_state(app.clone(), trace::follow))
        .with_state(app)
}

/// For requests that were made in this process: no browser can have been lured into sending them.
pub(crate) fn inside(app: App) -> Router {
    known(&app, Router::new())
        .layer(from_fn_with_state(app.clone(), trace::follow))
        .with_state(app)
}

fn known(app: &App, others: Router<App>) -> Router<App> {
    let (router, _) = all().split_for_parts();
    router
        .merge(others)
        .route(CONFIRMATIONS, axum::routing::get(confirm::open))
        .route(EVENTS, axum::routing::get(events_ws::open))
        .route(SESSION, axum::routing::get(session_ws::open))
        .fallback(nowhere)
        .method_not_allowed_fallback(not_so)
        .layer(from_fn_with_state(app.clone(), files_audit::note))
        .layer(from_fn_with_state(app.clone(), trace::identify))
}

async fn nowhere() -> Failure {
    Failure::not_found("route").hint("`GET /openapi.json` lists them")
}

async fn not_so() -> Failure {
    Failure::new(Code::MethodNotAllowed, "this route has no such method")
        .hint("the header `Allow` lists those it has")
}

/// The parameters of a path. One that cannot be read names nothing that could be there.
#[derive(Debug)]
struct Path<T>(T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Path<T> {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Answer<Self> {
        let path = axum::extract::Path::<T>::from_request_parts(parts, app).await;
        path.map(|path| Self(path.0))
            .map_err(|_| Failure::not_found("thing").hint("the path must be UTF-8"))
    }
}
