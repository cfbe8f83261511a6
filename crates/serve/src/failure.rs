//! An error as an answer: the status that its code has, and the one shape that every error has.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use glovebox_model::{Blame, Code, Error, Stage};
use serde::Serialize;
use utoipa::ToSchema;

/// What a handler ends with when it does not end well. The body is written when the answer leaves,
/// since only there the id of the request is known.
#[derive(Debug, Clone)]
pub(crate) struct Failure(pub(crate) Box<Error>, Manner);

/// Where HTTP has a status of its own for what went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    OfCode,
    /// 412: a header of the request names another version than the one that is there.
    Precondition,
    /// 416: the range begins behind the end.
    Range {
        size: u64,
    },
}

pub(crate) type Answer<T> = Result<T, Failure>;

/// The body of every answer that is an error.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    pub(crate) error: ErrorReport,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorReport {
    #[serde(flatten)]
    pub(crate) error: Error,
    /// The same as in the header `X-Request-Id`; the server's log has it too.
    pub(crate) request_id: String,
}

/// What is well-formed and stands against itself, or against what is there, is no wrong request.
pub(crate) fn clash(mut error: Error) -> Error {
    if error.code == Code::InvalidArgument {
        error.code = Code::Conflict;
    }
    error
}

/// When a client that was told to come back later should, if nothing better is known.
const LATER: u64 = 1;

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self::from(Error::new(code, Stage::Parse, message))
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hints.push(hint.into());
        self
    }

    pub(crate) fn after(mut self, seconds: u64) -> Self {
        self.0.retry.after_ms = Some(seconds * 1000);
        self
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("there is no such {what}"))
    }

    /// The same words whatever was asked for, in this space or in another.
    pub(crate) fn no_exec() -> Self {
        Self::not_found("exec").hint("`GET /v1/execs` lists those of the token's space")
    }

    /// As `no_exec`.
    pub(crate) fn no_approval() -> Self {
        Self::not_found("approval").hint("`GET /v1/approvals` lists those of the token's space")
    }

    /// As `no_exec`.
    pub(crate) fn no_grant() -> Self {
        Self::not_found("grant").hint("`GET /v1/grants` lists those of the token's space")
    }

    /// What the request demanded of the thing as it is now does not hold.
    pub(crate) fn precondition(mut self) -> Self {
        self.1 = Manner::Precondition;
        self
    }

    pub(crate) fn beyond(mut self, size: u64) -> Self {
        self.1 = Manner::Range { size };
        self
    }

    /// Says nothing about what went wrong: that is for the log.
    pub(crate) fn internal() -> Self {
        Self::new(Code::Internal, "the server failed")
    }

    pub(crate) fn status(&self) -> StatusCode {
        let retry = self.0.retry;
        match self.1 {
            Manner::OfCode => {}
            Manner::Precondition => return StatusCode::PRECONDITION_FAILED,
            Manner::Range { .. } => return StatusCode::RANGE_NOT_SATISFIABLE,
        }
        match self.0.code {
            // What was asked for is not to be had on this server: no waiting mends that.
            Code::BackendUnavailable if !retry.allowed && retry.after_ms.is_none() => {
                StatusCode::CONFLICT
            }
            code => status(code),
        }
    }

    /// The whole answer, for a request that had this id.
    pub(crate) fn render(self, request_id: &str) -> Response {
        let status = self.status();
        let retry = match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Some(
                self.0
                    .retry
                    .after_ms
                    .map_or(LATER, |ms| ms.div_ceil(1000).max(1)),
            ),
            _ => None,
        };
        let size = match self.1 {
            Manner::Range { size } => Some(size),
            Manner::OfCode | Manner::Precondition => None,
        };
        let report = ErrorReport {
            error: discreet(*self.0),
            request_id: request_id.to_owned(),
        };
        // A structure of texts and numbers always serialises.
        let body = serde_json::to_vec(&ErrorBody { error: report }).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, json);
        if status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer realm=\"glovebox\"");
            headers.insert(header::WWW_AUTHENTICATE, bearer);
        }
        if let Some(size) = size
            && let Ok(range) = HeaderValue::from_str(&format!("bytes */{size}"))
        {
            headers.insert(header::CONTENT_RANGE, range);
        }
        if let Some(seconds) = retry {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// What went wrong on the host is for the log: it may name paths. The caller learns what it means
/// for the request.
pub(crate) fn discreet(mut error: Error) -> Error {
    let instead = match error.code {
        Code::StoreUnavailable => "the store cannot be used now",
        // A quota is no secret of the host's.
        Code::DiskFull if error.blame == Blame::Policy => return error,
        Code::DiskFull => "the server's disk is full",
        Code::SetupFailed => "no sandbox could be made",
        Code::SkillsNotConfigured => "this server has no skills, or cannot read them",
        Code::Internal | Code::LedgerTampered | Code::InvalidConfig => "the server failed",
        _ => return error,
    };
    error.causes.clear();
    error.rule = None;
    error.hints = vec!["the server's log says more under the id of this request".to_owned()];
    if error.code == Code::LedgerTampered {
        let look = "an admin or an auditor sees where: `GET /v1/audit/verify`";
        error.hints.push(look.to_owned());
    }
    instead.clone_into(&mut error.message);
    error
}

/// What each code is in HTTP. An end that only an exec can have is a record, never an answer of
/// its own, so those that remain are ours.
pub(crate) const fn status(code: Code) -> StatusCode {
    match code {
        Code::InvalidArgument | Code::WorkspaceRefused => StatusCode::BAD_REQUEST,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::Forbidden | Code::PolicyDenied | Code::Denied | Code::ApprovalUnavailable => {
            StatusCode::FORBIDDEN
        }
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Code::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
        Code::Conflict
        | Code::IdempotencyConflict
        | Code::AwaitingApproval
        | Code::Held
        | Code::InvalidInput
        | Code::InvalidManifest
        | Code::InvalidOutput => StatusCode::CONFLICT,
        Code::Expired => StatusCode::GONE,
        Code::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Code::RateLimited | Code::BudgetExceeded => StatusCode::TOO_MANY_REQUESTS,
        Code::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
        Code::Busy
        | Code::StoreUnavailable
        | Code::ShuttingDown
        | Code::BackendUnavailable
        | Code::SetupFailed
        | Code::SkillsNotConfigured
        | Code::Lost => StatusCode::SERVICE_UNAVAILABLE,
        Code::Internal
        | Code::Canceled
        | Code::CommandNotExecutable
        | Code::CommandNotFound
        | Code::CwdNotFound
        | Code::InvalidConfig
        | Code::LedgerTampered => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<Error> for Failure {
    fn from(mut error: Error) -> Self {
        // The request itself was found good before; what stands in its way is what is there.
        if error.code == Code::InvalidArgument
            && matches!(error.stage, Stage::Open | Stage::Collect | Stage::Obtain)
        {
            error.code = Code::Conflict;
        }
        Self(Box::new(error), Manner::OfCode)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_should_come_back_is_told_when() {
        for code in [Code::RateLimited, Code::Busy, Code::ShuttingDown] {
            let response = Failure::new(code, "x").render("r");
            assert_eq!(response.headers()[header::RETRY_AFTER], "1", "{code}");
        }
        let response = Failure::new(Code::RateLimited, "x").after(7).render("r");
        assert_eq!(response.headers()[header::RETRY_AFTER], "7");
        let response = Failure::new(Code::NotFound, "x").render("r");
        assert!(!response.headers().contains_key(header::RETRY_AFTER));
    }

    #[test]
    fn what_no_waiting_mends_is_no_reason_to_come_back() {
        let here = Failure::new(Code::BackendUnavailable, "no such runtime");
        assert_eq!(here.clone().render("r").status(), StatusCode::CONFLICT);
        let now = here.after(1).render("r");
        assert_eq!(now.status(), StatusCode::SERVICE_UNAVAILABLE);
    }

    #[test]
    fn nothing_of_the_host_is_told() {
        let error = Error::new(Code::StoreUnavailable, Stage::Open, "cannot open `/var/x`")
            .caused_by("`/var/x`: denied")
            .hint("chmod /var/x");
        let told = serde_json::to_string(&discreet(error)).unwrap();
        assert!(!told.contains("/var"), "{told}");
    }

    #[test]
    fn every_code_is_an_error_status() {
        for code in Code::ALL {
            assert!(status(*code).as_u16() >= 400, "{code}");
        }
    }
}
