//! Over HTTP, behind whoever has made sure of the caller. A session belongs to the caller who began
//! it: to everybody else it is not there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, Response, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use crate::api::Api;

/// One message of a client: as much as the API takes for an exec.
const MESSAGE_MOST: usize = 20 << 20;
/// Sessions of one caller at one time.
const SESSIONS: usize = 64;
/// A session that nobody used for so long is over.
const IDLE: Duration = Duration::from_secs(30 * 60);
const SESSION: &str = "mcp-session-id";

/// Serves `handler`, a [`Server`](crate::Server) or another one, to the callers that `api` knows. The
/// caller of this function decides on which path. Ends with `stop`.
pub fn service<H>(handler: H, api: Arc<dyn Api>, stop: CancellationToken) -> Router
where
    H: ServerHandler + Clone,
{
    let sessions = Sessions::new(api);
    // Which hosts and origins are answered was decided before a request came here.
    let mut config = StreamableHttpServerConfig::default().disable_allowed_hosts();
    config.max_request_body_bytes = MESSAGE_MOST;
    config.cancellation_token = stop;
    let service = StreamableHttpService::new(
        move || Ok(handler.clone()),
        Arc::clone(&sessions.manager),
        config,
    );
    Router::new()
        .fallback_service(service)
        .layer(from_fn_with_state(sessions, own))
}

/// Whose each session is.
#[derive(Clone)]
struct Sessions {
    api: Arc<dyn Api>,
    manager: Arc<LocalSessionManager>,
    owners: Arc<Mutex<HashMap<String, Owner>>>,
}

struct Owner {
    caller: String,
    used: Instant,
}

impl Sessions {
    fn new(api: Arc<dyn Api>) -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(IDLE);
        Self {
            api,
            manager: Arc::new(manager),
            owners: Arc::default(),
        }
    }

    fn with<T>(&self, look: impl FnOnce(&mut HashMap<String, Owner>) -> T) -> T {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.retain(|_, it| it.used.elapsed() < IDLE);
        look(&mut owners)
    }

    /// Whether a request that names a session may use it.
    fn may_use(&self, session: &str, caller: &str) -> bool {
        self.with(|owners| match owners.get_mut(session) {
            Some(owner) if owner.caller == caller => {
                owner.used = Instant::now();
                true
            }
            Some(_) | None => false,
        })
    }

    /// The one that a caller has not used for longest makes room for one more.
    fn begin(&self, session: String, caller: String) -> Option<String> {
        self.with(|owners| {
            let own = owners.iter().filter(|(_, it)| it.caller == caller);
            let full = own.clone().count() >= SESSIONS;
            let oldest = own.min_by_key(|(_, it)| it.used).map(|(id, _)| id.clone());
            let gone = oldest.filter(|_| full);
            if let Some(gone) = &gone {
                owners.remove(gone);
            }
            let used = Instant::now();
            owners.insert(session, Owner { caller, used });
            gone
        })
    }
}

fn session(headers: &HeaderMap) -> Option<String> {
    Some(headers.get(SESSION)?.to_str().ok()?.to_owned())
}

async fn own(State(sessions): State<Sessions>, request: Request, next: Next) -> Response<Body> {
    let (head, body) = request.into_parts();
    let Some(caller) = sessions.api.caller(Some(&head)) else {
        return refusal(
            StatusCode::UNAUTHORIZED,
            "give a token: `Authorization: Bearer`",
        );
    };
    let named = session(&head.headers);
    if let Some(named) = &named
        && !sessions.may_use(named, &caller.id)
    {
        let message = "there is no such session; initialize anew";
        return refusal(StatusCode::NOT_FOUND, message);
    }
    let ends = head.method == Method::DELETE;
    let response = next.run(Request::from_parts(head, body)).await;
    match (named, session(response.headers())) {
        (None, Some(begun)) => {
            if let Some(gone) = sessions.begin(begun, caller.id) {
                // It is nobody's from here on; that it cannot be closed harms nobody.
                let _ = sessions.manager.close_session(&gone.into()).await;
            }
        }
        (Some(named), _) if ends && response.status().is_success() => {
            sessions.with(|owners| owners.remove(&named));
        }
        _ => {}
    }
    response
}

/// In the protocol's own words.
fn refusal(status: StatusCode, message: &str) -> Response<Body> {
    let body = serde_json::json!({
        "jsonrpc": "2.0",
        "error": {"code": -32600, "message": message},
        "id": null,
    });
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let kind = axum::http::HeaderValue::from_static("application/json");
    let headers = response.headers_mut();
    headers.insert(axum::http::header::CONTENT_TYPE, kind);
    response
}
