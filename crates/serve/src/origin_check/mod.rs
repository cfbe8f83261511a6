//! Which requests may come in at all, whoever sends them: a page in a browser that was lured here
//! by a name (DNS rebinding) or from another site (CSRF) gets no answer from any route.

mod hosts;
mod origin;

pub(crate) use hosts::Hosts;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::{self, HeaderName};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use glovebox_model::Code;

use crate::app::App;
use crate::failure::{Answer, Failure};

pub(crate) async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    match admit(app.hosts(), &request) {
        Ok(()) => next.run(request).await,
        Err(failure) => failure.into_response(),
    }
}

fn admit(hosts: &Hosts, request: &Request) -> Answer<()> {
    let headers = request.headers();
    let host = single(headers, header::HOST)?
        .ok_or_else(|| Failure::invalid("the header `Host` is missing"))?;
    let asked = request
        .uri()
        .authority()
        .map(|authority| authority.as_str());
    for name in [Some(host), asked].into_iter().flatten() {
        if !hosts.allows(name) {
            return Err(forbidden("this server does not answer to that `Host`")
                .hint("use a loopback address, or start it with `--allow-host NAME`"));
        }
    }
    let site = single(headers, HeaderName::from_static("sec-fetch-site"))?;
    if !matches!(site, None | Some("same-origin" | "none")) {
        return Err(forbidden("requests from other sites are refused"));
    }
    match single(headers, header::ORIGIN)? {
        Some(origin) if !origin::is_same(origin, host, hosts.is_tls()) => {
            Err(forbidden("requests from another `Origin` are refused"))
        }
        Some(_) | None => Ok(()),
    }
}

fn forbidden(message: &str) -> Failure {
    Failure::new(Code::Forbidden, message)
}

/// A header that may be there once.
fn single(headers: &HeaderMap, name: HeaderName) -> Answer<Option<&str>> {
    let mut values = headers.get_all(&name).iter();
    let (first, second) = (values.next(), values.next());
    let text = first.map(|value| value.to_str()).transpose();
    match (text, second) {
        (Ok(text), None) => Ok(text),
        (_, _) => Err(Failure::invalid(format!(
            "the header `{name}` is not one plain value"
        ))),
    }
}
