//! The way from a tool to Glovebox: requests to the public API, in the process itself.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderValue, Method, Request, Response, StatusCode, header};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use glovebox_api::Target;
use glovebox_model::{Code, Error, Stage};
use http_body_util::{BodyExt, Limited};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// More of an answer is not read into memory; what may be longer is asked for in parts.
const ANSWER_MOST: usize = 16 << 20;

/// Whoever a request is sent for.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Names them for as long as they hold the same token.
    pub id: String,
    /// As records name who asks.
    pub name: String,
    /// What their requests carry beside bytes. Nothing from a network gets in here.
    pub extensions: Extensions,
}

pub type Sent = BoxFuture<'static, Response<Body>>;

/// What stands behind the tools.
pub trait Api: Send + Sync + 'static {
    /// Who sent this: the head of an HTTP request, or nothing when there is but one who can.
    fn caller(&self, head: Option<&Parts>) -> Option<Caller>;
    /// The person at the caller's host, where their word counts.
    fn person(&self, caller: &Caller) -> Option<Caller>;
    fn send(&self, caller: &Caller, request: Request<Body>) -> Sent;
}

/// A request that is being put together.
#[derive(Debug)]
pub(crate) struct Call {
    method: Method,
    target: Target,
    body: Body,
    kind: Option<&'static str>,
    headers: Vec<(header::HeaderName, HeaderValue)>,
}

impl Call {
    fn new(method: Method, route: &str) -> Self {
        Self {
            method,
            target: Target::new(route),
            body: Body::empty(),
            kind: None,
            headers: Vec::new(),
        }
    }

    pub(crate) fn get(route: &str) -> Self {
        Self::new(Method::GET, route)
    }

    pub(crate) fn post(route: &str) -> Self {
        Self::new(Method::POST, route)
    }

    pub(crate) fn put(route: &str) -> Self {
        Self::new(Method::PUT, route)
    }

    pub(crate) fn delete(route: &str) -> Self {
        Self::new(Method::DELETE, route)
    }

    /// One part of the path, whatever is in it.
    pub(crate) fn segment(mut self, part: &str) -> Self {
        self.target = self.target.segment(part);
        self
    }

    /// A path of the workspace, whose slashes stay.
    pub(crate) fn path(mut self, path: &str) -> Self {
        self.target = self.target.path(path.as_bytes());
        self
    }

    pub(crate) fn then(mut self, more: &str) -> Self {
        self.target = self.target.then(more);
        self
    }

    pub(crate) fn query(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        self.target = self.target.query(key, value);
        self
    }

    pub(crate) fn header(mut self, name: header::HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    pub(crate) fn json(mut self, body: &impl Serialize) -> Result<Self, Error> {
        let bytes = serde_json::to_vec(body).map_err(unreadable)?;
        self.body = Body::from(bytes);
        self.kind = Some("application/json");
        Ok(self)
    }

    pub(crate) fn bytes(mut self, bytes: Vec<u8>) -> Self {
        self.body = Body::from(bytes);
        self.kind = Some("application/octet-stream");
        self
    }

    pub(crate) fn target(&self) -> &str {
        self.target.as_ref()
    }

    pub(crate) fn request(self) -> Result<Request<Body>, Error> {
        let mut request = Request::builder()
            .method(self.method)
            .uri(self.target.as_ref());
        if let Some(kind) = self.kind {
            request = request.header(header::CONTENT_TYPE, kind);
        }
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        request.body(self.body).map_err(unreadable)
    }
}

/// As the API words its errors.
#[derive(Deserialize)]
struct Refusal {
    error: Error,
}

/// What came back, whole.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) head: axum::http::response::Parts,
    pub(crate) bytes: Bytes,
}

impl Reply {
    pub(crate) async fn of(response: Response<Body>) -> Result<Self, Error> {
        let (head, body) = response.into_parts();
        let bytes = match Limited::new(body, ANSWER_MOST).collect().await {
            Ok(whole) => whole.to_bytes(),
            Err(_) => {
                let message = format!("the answer is larger than {} MiB", ANSWER_MOST >> 20);
                return Err(Error::new(Code::PayloadTooLarge, Stage::Collect, message)
                    .hint("ask for a part of it"));
            }
        };
        match head.status.is_success() || head.status == StatusCode::NOT_MODIFIED {
            true => Ok(Self { head, bytes }),
            false => Err(refused(head.status, &bytes)),
        }
    }

    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.bytes).map_err(unreadable)
    }
}

fn refused(status: StatusCode, bytes: &[u8]) -> Error {
    match serde_json::from_slice::<Refusal>(bytes) {
        Ok(refusal) => refusal.error,
        Err(_) => {
            let message = format!("the answer was `{status}`");
            Error::new(Code::Internal, Stage::Parse, message)
        }
    }
}

fn unreadable(error: impl std::fmt::Display) -> Error {
    Error::new(
        Code::Internal,
        Stage::Parse,
        format!("an answer of the API could not be decoded: {error}"),
    )
}
