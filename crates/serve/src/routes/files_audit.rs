//! Reads and refusals of the file API in the ledger, where the operator wants them there. Changes are
//! always: their routes write them down.

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use glovebox_model::ByteString;
use glovebox_policy::FileAudit;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::app::App;
use crate::auth::{Caller, Identity};
use crate::failure::{Answer, Failure};

const WORKSPACE: &str = "/v1/workspaces/{project}";

/// What a request does, in the words of the ledger. None: it is none of the file API.
fn deed(method: &Method, route: &str) -> Option<&'static str> {
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    match (route.strip_prefix(WORKSPACE)?, is_read) {
        ("/files" | "/files/{*path}", true) => Some("read"),
        ("/files/{*path}", false) => Some("change"),
        ("/mkdir" | "/move" | "/copy" | "/replace", _) => Some("change"),
        ("/search", _) => Some("search"),
        ("/glob", _) => Some("glob"),
        ("/watch", _) => Some("watch"),
        ("/archive", true) => Some("pack"),
        ("/archive", false) => Some("unpack"),
        _ => None,
    }
}

/// An answer that cannot be written down is not given.
pub(super) async fn note(State(app): State<App>, request: Request, next: Next) -> Response {
    let audit = app.dispatcher().file_audit();
    let route = request.extensions().get::<MatchedPath>();
    let deed = route.and_then(|route| deed(request.method(), route.as_str()));
    let caller = match request.extensions().get::<Identity>() {
        Some(Identity(Ok(caller))) => Some(caller.clone()),
        Some(Identity(Err(_))) | None => None,
    };
    let (Some(deed), Some(caller), true) = (deed, caller, audit > FileAudit::Changes) else {
        return next.run(request).await;
    };
    let asked = asked(request.uri());
    let response = next.run(request).await;
    let event = match response.extensions().get::<Failure>() {
        Some(failure) => Some(("file.refused", Some(failure.clone()))),
        None if audit == FileAudit::Reads && !matches!(deed, "change" | "unpack") => {
            Some(("file.read", None))
        }
        None => None,
    };
    let Some((event, failure)) = event else {
        return response;
    };
    let mut details = json!({ "how": deed, "asked": asked });
    if let Some(failure) = &failure {
        details["code"] = json!(failure.0.code);
        details["why"] = json!(failure.0.message);
    }
    match write(&app, &caller, event, details).await {
        Ok(()) => response,
        Err(failure) => failure.into_response(),
    }
}

/// As it was sent, decoded once: what a request meant to reach.
fn asked(uri: &Uri) -> Value {
    let below = uri.path().strip_prefix("/v1/workspaces/");
    let bytes: Vec<u8> = percent_decode_str(below.unwrap_or_default()).collect();
    let path = ByteString::new(bytes.clone());
    let path = path.map_or_else(
        || json!(String::from_utf8_lossy(&bytes)),
        |path| json!(path),
    );
    match uri.query() {
        Some(query) => json!({ "path": path, "query": query }),
        None => json!({ "path": path }),
    }
}

async fn write(app: &App, caller: &Caller, event: &'static str, details: Value) -> Answer<()> {
    let (space, by) = (caller.space().clone(), caller.actor());
    let noted = app.ask("note_file", move |dispatcher| {
        dispatcher
            .store()?
            .note(&space, event, Some(&by), details)
            .map(drop)
    });
    noted.await
}
