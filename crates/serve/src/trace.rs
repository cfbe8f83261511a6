//! Around every request: its id, who sent it, what came of it, and nothing of what it said.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use glovebox_model::Correlation;
use tracing::Instrument;

use crate::app::App;
use crate::auth::{Given, Identity, REMEMBERED_FOR, unauthenticated};
use crate::failure::Failure;
use crate::listen::Peer;
use crate::mask;

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The outermost layer: whatever happens inside, an answer with an id comes out.
pub(crate) async fn follow(State(app): State<App>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let id = request_id();
    let method = request.method().clone();
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("-", |it| it.as_str())
        .to_owned();
    let span = span(&request, &route, &id);
    let handling = next.run(request).instrument(span);
    let handled = AssertUnwindSafe(handling).catch_unwind().await;
    let mut response = handled.unwrap_or_else(|panic| panicked(&id, &*panic));
    let who = response.extensions_mut().remove::<Who>();
    // A person at the machine is told all of it.
    if app.is_inline() && response.extensions().get::<Failure>().is_some() {
        return response;
    }
    if let Some(failure) = response.extensions_mut().remove::<Failure>() {
        log_failure(&id, &failure);
        let headers = std::mem::take(response.headers_mut());
        response = failure.render(&id);
        // What the router knows and an error does not: which methods there are.
        if let Some(allow) = headers.get(header::ALLOW) {
            response.headers_mut().insert(header::ALLOW, allow.clone());
        }
    }
    // The person at the machine has the key of the secrets; masks in ids and times would only break
    // what they read.
    if let Some(who) = who.as_ref().filter(|_| !app.is_inline()) {
        response = match app.secrets_of(&who.ids).await {
            Ok(secrets) => mask::masked(response, &secrets),
            // A key is missing: nothing is run in this space, and what was written down is masked
            // already. Whoever mends it must see what is there.
            Err(failure) => {
                tracing::warn!(request_id = %id, error = %failure.0, "secrets cannot be looked for");
                response
            }
        };
    }
    finish(&mut response, &id);
    let took = began.elapsed();
    let status = response.status().as_u16();
    app.metrics().request(&route, known(&method), status, took);
    tracing::info!(
        request_id = %id,
        %method,
        route,
        status,
        took_ms = took.as_secs_f64() * 1000.0,
        token_id = who.as_ref().map(|who| who.token.as_str()),
        space = who.as_ref().map(|who| who.ids.space_id.as_str()),
        "request"
    );
    response
}

/// What happens for this request, from here to the end of its exec, belongs together.
fn span(request: &Request, route: &str, id: &str) -> tracing::Span {
    let method = known(request.method());
    let span = tracing::info_span!(
        "request",
        otel.name = format!("{method} {route}"),
        otel.kind = "server",
        request_id = id
    );
    #[cfg(feature = "otel")]
    crate::traceparent::continue_in(&span, request.headers());
    span
}

/// A method that somebody made up would make a row in the metrics of its own.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// For the log, and for what must not be in the answer.
#[derive(Debug, Clone)]
struct Who {
    token: String,
    /// Its space, and which agent it is, if it is one.
    ids: Correlation,
}

/// Finds out who calls, for the handlers and for the log. Whether it matters is the handler's to
/// say: some routes are open to everybody.
pub(crate) async fn identify(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let peer = request
        .extensions()
        .get::<Peer>()
        .copied()
        .unwrap_or(Peer::Owner);
    let path = request.extensions().get::<MatchedPath>();
    let path = path.map(MatchedPath::as_str);
    if path.is_none_or(crate::routes::is_open) {
        return next.run(request).await;
    }
    let websocket = path.is_some_and(crate::routes::is_websocket);
    // Put there by this process alone: extensions are never read from a connection.
    let known = match request.extensions_mut().remove::<Identity>() {
        Some(Identity(known)) => known,
        None => {
            let given = match websocket {
                true => Given::by_header_or_protocol(request.headers()),
                false => Given::by_header(request.headers()),
            };
            app.auth().identify(&app, given, peer).await
        }
    };
    let who = known.as_ref().ok().map(|caller| Who {
        token: caller.token().token_id.to_string(),
        ids: mask::whose(caller),
    });
    if let Some(Correlation {
        space_id,
        agent_id: Some(agent),
        ..
    }) = who.as_ref().map(|it| &it.ids)
    {
        app.dispatcher().heard_agent(space_id, agent);
    }
    let caller = known.as_ref().ok().cloned();
    request.extensions_mut().insert(Identity(known));
    let began = Instant::now();
    let mut response = next.run(request).await;
    // Whoever has waited for the answer may have lost the token meanwhile.
    if let Some(caller) = caller.filter(|_| began.elapsed() >= REMEMBERED_FOR)
        && !app.auth().is_still_good(&app, &caller).await
    {
        response = unauthenticated().into_response();
    }
    if let Some(who) = who {
        response.extensions_mut().insert(who);
    }
    response
}

fn panicked(id: &str, panic: &(dyn Any + Send)) -> Response {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without words");
    tracing::error!(request_id = %id, message, "a handler panicked");
    axum::response::IntoResponse::into_response(Failure::internal())
}

fn log_failure(id: &str, failure: &Failure) {
    if failure.status().is_server_error() {
        tracing::warn!(request_id = %id, code = %failure.0.code, error = %failure.0, "failed");
    }
}

fn finish(response: &mut Response, id: &str) {
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID, id);
    }
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    let no_store = HeaderValue::from_static("no-store");
    headers.insert(header::CACHE_CONTROL, no_store);
}

/// Only to find a request in the log; nothing depends on it.
fn request_id() -> String {
    let mut bytes = [0; 16];
    // Without random numbers the id is of no use, and nothing worse.
    let _ = getrandom::fill(&mut bytes);
    format!("r_{:032x}", u128::from_ne_bytes(bytes))
}
