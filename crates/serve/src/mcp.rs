//! The Model Context Protocol at `/mcp`: agents' hosts speak it, tools do what the API does.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use glovebox_mcp::{Api, Caller, Sent, Server, Setting};
use glovebox_model::Result;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::body::{Limit, whole};
use crate::failure::Failure;
use crate::inside::{Inside, Who};
use crate::options::McpService;

/// Where it is.
pub(crate) const PATH: &str = "/mcp";
/// The project of a host whose address names none.
const PROJECT: &str = "default";

impl Api for Inside {
    fn caller(&self, head: Option<&Parts>) -> Option<Caller> {
        Inside::caller(self, head).map(wrapped)
    }

    fn person(&self, caller: &Caller) -> Option<Caller> {
        let who = caller.extensions.get::<Who>()?;
        self.elicits()
            .then(|| Inside::person(self, who).map(wrapped))?
    }

    fn send(&self, caller: &Caller, request: axum::http::Request<Body>) -> Sent {
        let (inside, who) = (self.clone(), caller.extensions.get::<Who>().cloned());
        Box::pin(async move {
            match who {
                Some(who) => Inside::send(&inside, &who, request).await,
                None => crate::auth::unauthenticated().into_response(),
            }
        })
    }
}

fn wrapped(who: Who) -> Caller {
    let (id, name) = (who.id().to_owned(), who.name());
    let mut extensions = axum::http::Extensions::new();
    extensions.insert(who);
    Caller {
        id,
        name,
        extensions,
    }
}

impl Inside {
    /// Speaks the protocol for whoever asks from within.
    pub fn mcp(&self, setting: Setting) -> Result<Server> {
        let key = self.state_key()?;
        Server::new(Arc::new(self.clone()), setting, &key)
    }
}

/// The service, for callers of the network. Ends with `stop`.
pub(crate) fn router(app: &App, service: McpService, stop: CancellationToken) -> Result<Router> {
    let scheme = if app.hosts().is_tls() {
        "https"
    } else {
        "http"
    };
    let setting = Setting {
        project: PROJECT.to_owned(),
        about: format!(
            "You work on a workspace of a server: the one that the address names \
             (`{PATH}?project=NAME`), else `{PROJECT}`. The argument `project` names another."
        ),
        conversation: None,
        approvals_at: format!(
            "an approver answers at {scheme}://{{host}}/v1/approvals/{{id}}, or with \
             `glovebox --server {scheme}://{{host}} approval approve {{id}}`"
        ),
    };
    let inside = Inside::beside(app.clone());
    let service = service(inside.mcp(setting)?, Arc::new(inside), stop);
    Ok(service.layer(from_fn_with_state(app.clone(), read_whole)))
}

/// A body is read as everywhere here: within its time, its size, and the room that there is.
async fn read_whole(State(app): State<App>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    match whole(&app, &head.headers, body, Limit::Message).await {
        Ok(read) => {
            let (bytes, _room) = read.parts();
            next.run(Request::from_parts(head, Body::from(bytes))).await
        }
        Err(failure) => Failure::into_response(failure),
    }
}
