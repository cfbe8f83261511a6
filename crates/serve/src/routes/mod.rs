//! The API. Every route is made here, from one router that describes itself: what is served is
//! what is described.

mod artifacts;
mod audit;
mod cancel;
mod docs;
mod events;
mod execs;
mod files;
mod health;
mod legacy;
mod metrics;
mod policy;
mod settings;
mod settle;
mod stream;
mod submit;
mod tokens;
mod whoami;
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
use crate::{doors, trace};

#[derive(OpenApi)]
#[openapi(components(schemas(ErrorBody)))]
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
        .routes(routes!(cancel::cancel))
        .routes(routes!(policy::explain))
        .routes(routes!(workspaces::list))
        .routes(routes!(workspaces::get, workspaces::remove))
        .routes(routes!(files::root))
        .routes(routes!(files::get, files::put, files::remove))
        .routes(routes!(audit::query))
        .routes(routes!(audit::verify))
        .routes(routes!(audit::export))
        .routes(routes!(audit::checkpoint))
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
        .routes(routes!(health::sandbox))
}

/// Answered to everybody: they reveal nothing.
pub(crate) fn is_open(path: &str) -> bool {
    matches!(
        path,
        "/" | "/docs" | "/openapi.json" | "/healthz" | "/readyz"
    )
}

pub(crate) fn router(app: App) -> Router {
    let (router, _) = all().split_for_parts();
    router
        .fallback(nowhere)
        .method_not_allowed_fallback(not_so)
        .layer(from_fn_with_state(app.clone(), trace::identify))
        .layer(from_fn_with_state(app.clone(), doors::check))
        .layer(from_fn_with_state(app.clone(), trace::follow))
        .with_state(app)
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
