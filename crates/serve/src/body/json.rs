//! Bodies of JSON, and what identifies a request that changes something.

use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method, Uri};
use bytes::Bytes;
use glovebox_api::{
    ConfirmationAnswer, CopyRequest, ExecRequest, ForkRequest, GlobRequest, MkdirRequest,
    MoveRequest, ReasonRequest, RecreateRequest, ReplaceRequest, ReplyRequest, ResetRequest,
    RollbackRequest, SandboxRequest, SearchRequest, SecretGrantRequest, SecretRequest,
    SessionInput, SessionMessage, SessionSignal, SkillCallRequest, SnapshotRequest, UndoRequest,
};
use glovebox_model::{Code, Numbers, TerminalSize, strict_json};
use serde::de::DeserializeOwned;
use serde_json::json;
use utoipa::ToSchema;

use super::read::{Limit, whole};
use super::room::Taken;
use super::schema::{self, Wrong};
use crate::app::{App, on_a_thread};
use crate::document;
use crate::failure::{Answer, Failure};

/// Parsed where it was read.
const AT_ONCE: usize = 64 << 10;

/// What is sent as JSON, and how large it may be.
pub(crate) trait Sent: DeserializeOwned + ToSchema {
    const LIMIT: Limit;
    const MEDIA_TYPES: &'static [&'static str] = &["application/json"];
}

macro_rules! sent {
    ($($limit:ident: $($name:ident),+;)+) => {
        $($(impl Sent for $name {
            const LIMIT: Limit = Limit::$limit;
        })+)+
    };
}

sent! {
    Plain: ConfirmationAnswer, CopyRequest, ForkRequest, GlobRequest, MkdirRequest, MoveRequest,
        ReasonRequest, RecreateRequest, ReplyRequest, ResetRequest, RollbackRequest, SandboxRequest,
        SearchRequest, SecretGrantRequest, SecretRequest, SessionSignal, SnapshotRequest,
        TerminalSize, UndoRequest;
    Exec: ExecRequest, ReplaceRequest, SessionInput, SessionMessage, SkillCallRequest;
}

/// A request that may change something: everything that tells it from another one.
#[derive(Debug)]
pub(crate) struct Mutation {
    pub(crate) key: Option<String>,
    pub(crate) fingerprint: [u8; 32],
    pub(crate) bytes: Bytes,
    _room: Taken,
}

impl Mutation {
    pub(crate) async fn read(app: &App, request: Request, limit: Limit) -> Answer<Self> {
        let (parts, body) = request.into_parts();
        let key = idempotency_key(&parts.headers)?;
        let body = whole(app, &parts.headers, body, limit).await?;
        Ok(Self {
            key,
            fingerprint: fingerprint(&parts.method, &parts.uri, &parts.headers, &body.bytes),
            bytes: body.bytes,
            _room: body.room,
        })
    }
}

/// A request without a body of its own; one that is sent all the same counts as part of it.
impl FromRequest<App> for Mutation {
    type Rejection = Failure;
    async fn from_request(request: Request, app: &App) -> Answer<Self> {
        Self::read(app, request, Limit::Plain).await
    }
}

#[derive(Debug)]
pub(crate) struct Json<T> {
    pub(crate) value: T,
    pub(crate) mutation: Mutation,
}

impl<T: Sent + Send + 'static> FromRequest<App> for Json<T> {
    type Rejection = Failure;
    async fn from_request(request: Request, app: &App) -> Answer<Self> {
        check_media_type(request.headers(), T::MEDIA_TYPES)?;
        let mutation = Mutation::read(app, request, T::LIMIT).await?;
        let bytes = mutation.bytes.clone();
        // A large one would hold up everybody else on this thread.
        let value = match bytes.len() > AT_ONCE {
            false => parse(&bytes)?,
            true => on_a_thread("parse", move || parse(&bytes)).await??,
        };
        Ok(Self { value, mutation })
    }
}

pub(crate) fn parse<T: Sent>(bytes: &[u8]) -> Answer<T> {
    let refuse = |why: &dyn std::fmt::Display| {
        Failure::invalid(format!("the body is not JSON that is taken here: {why}"))
    };
    let text = std::str::from_utf8(bytes).map_err(|_| refuse(&"the body is not UTF-8"))?;
    let value = strict_json(text, Numbers::Plain).map_err(|error| refuse(&error))?;
    let name = T::name();
    let schema = json!({"$ref": format!("#/components/schemas/{name}")});
    schema::check(document::value(), &schema, &value).map_err(|wrong| refused("field", wrong))?;
    serde_path_to_error::deserialize(value)
        .map_err(|error| Failure::invalid(format!("field `{}`: {}", error.path(), error.inner())))
}

pub(super) fn refused(what: &str, wrong: Wrong) -> Failure {
    let message = match wrong.at.as_str() {
        "" => format!("the body {}", wrong.why),
        at => format!("the {what} `{at}` {}", wrong.why),
    };
    match wrong.hint {
        Some(hint) => Failure::invalid(message).hint(hint),
        None => Failure::invalid(message).hint("`GET /openapi.json` describes what is taken"),
    }
}

/// Exactly one, and of the right kind; a page of another site can send forms, but not this.
fn check_media_type(headers: &HeaderMap, allowed: &[&str]) -> Answer<()> {
    let mut given = headers.get_all(CONTENT_TYPE).iter();
    let first = given.next().and_then(|value| value.to_str().ok());
    let fits = first
        .filter(|_| given.next().is_none())
        .is_some_and(|text| {
            let (kind, parameters) = text.split_once(';').unwrap_or((text, "charset=utf-8"));
            let parameters = parameters.trim().to_ascii_lowercase();
            allowed.contains(&kind.trim().to_ascii_lowercase().as_str())
                && matches!(
                    parameters.as_str(),
                    "" | "charset=utf-8" | "charset=\"utf-8\""
                )
        });
    if fits {
        return Ok(());
    }
    let message = format!("the body must be `{}`", allowed.join("` or `"));
    Err(Failure::new(Code::UnsupportedMediaType, message)
        .hint(format!("send `Content-Type: {}`", allowed[0])))
}

fn idempotency_key(headers: &HeaderMap) -> Answer<Option<String>> {
    let mut given = headers.get_all("idempotency-key").iter();
    let Some(first) = given.next() else {
        return Ok(None);
    };
    let visible =
        |text: &&str| (1..=255).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    match (first.to_str().ok().filter(visible), given.next()) {
        (Some(text), None) => Ok(Some(text.to_owned())),
        (_, _) => Err(Failure::invalid(
            "`Idempotency-Key` must be one value of 1 to 255 visible ASCII characters",
        )),
    }
}

/// Two requests with the same are the same request.
fn fingerprint(method: &Method, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> [u8; 32] {
    let kind = headers
        .get(CONTENT_TYPE)
        .map_or(&b""[..], |value| value.as_bytes());
    let named = |name| headers.get(name).map_or(&b""[..], |it| it.as_bytes());
    let (only, unless) = (named("if-match"), named("if-none-match"));
    let place = uri.path_and_query().map_or("", |it| it.as_str());
    let mut hasher = blake3::Hasher::new();
    for part in [
        method.as_str().as_bytes(),
        place.as_bytes(),
        kind,
        only,
        unless,
        body,
    ] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}
