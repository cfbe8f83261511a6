//! One error for every surface: a stable code, a sentence for people, whose fault it is, whether
//! trying again can help, and hints that say the way out.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::ExecId;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Whose fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    Caller,
    Policy,
    Program,
    Host,
    Glovebox,
}

/// Where on the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Parse,
    Resolve,
    Assess,
    Obtain,
    Open,
    Admit,
    Run,
    Collect,
    Judge,
    Close,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Retry {
    pub allowed: bool,
    pub after_ms: Option<u64>,
}

/// Where a rule stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RuleRef {
    pub file: String,
    pub line: u32,
}

/// What a server's log calls a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub String);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $blame:ident, retry $retry:literal;)+) => {
        /// Stable names: clients may match on them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Code { $($(#[$doc])* #[serde(rename = $text)] $name,)+ }

        impl Code {
            pub const ALL: &'static [Code] = &[$(Code::$name),+];
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text,)+ }
            }
            const fn blame(self) -> Blame {
                match self { $(Code::$name => Blame::$blame,)+ }
            }
            const fn retry(self) -> bool {
                match self { $(Code::$name => $retry,)+ }
            }
        }
    };
}

codes! {
    /// A person would have to be asked, and nobody can be.
    ApprovalUnavailable = "approval_unavailable", Policy, retry false;
    /// It waits until a person has answered.
    AwaitingApproval = "awaiting_approval", Policy, retry true;
    /// Another process does what this one wants to do.
    Busy = "busy", Host, retry true;
    /// No backend can enforce what the profile demands.
    BackendUnavailable = "backend_unavailable", Host, retry false;
    /// An agent has used up what it may use in an hour.
    BudgetExceeded = "budget_exceeded", Policy, retry true;
    Canceled = "canceled", Caller, retry true;
    /// The command exists and cannot be executed.
    CommandNotExecutable = "command_not_executable", Program, retry false;
    CommandNotFound = "command_not_found", Caller, retry false;
    /// The same client id or key was used for something else.
    Conflict = "conflict", Caller, retry false;
    CwdNotFound = "cwd_not_found", Caller, retry false;
    /// A person was asked and said no.
    Denied = "denied", Policy, retry false;
    DiskFull = "disk_full", Host, retry true;
    /// What was asked for was kept, or could be answered, for its documented time, and that is over.
    Expired = "expired", Caller, retry false;
    /// The caller is known and may not do this.
    Forbidden = "forbidden", Caller, retry false;
    /// A gate holds it back.
    Held = "held", Policy, retry false;
    /// The same idempotency key came with another request.
    IdempotencyConflict = "idempotency_conflict", Caller, retry false;
    Internal = "internal", Glovebox, retry false;
    InvalidArgument = "invalid_argument", Caller, retry false;
    InvalidConfig = "invalid_config", Caller, retry false;
    /// What a skill was called with does not fit its manifest.
    InvalidInput = "invalid_input", Caller, retry false;
    /// A skill that cannot be called, as its manifest or its files are not right.
    InvalidManifest = "invalid_manifest", Host, retry false;
    /// What a skill answered does not fit its manifest.
    InvalidOutput = "invalid_output", Program, retry false;
    /// The ledger does not verify.
    LedgerTampered = "ledger_tampered", Host, retry false;
    /// The process that ran it is gone.
    Lost = "lost", Glovebox, retry true;
    MethodNotAllowed = "method_not_allowed", Caller, retry false;
    NotFound = "not_found", Caller, retry false;
    PayloadTooLarge = "payload_too_large", Caller, retry false;
    PolicyDenied = "policy_denied", Policy, retry false;
    /// Too many requests, or too many execs that wait.
    RateLimited = "rate_limited", Caller, retry true;
    /// The request did not come in time.
    RequestTimeout = "request_timeout", Caller, retry true;
    /// An isolation step failed, so nothing was started.
    SetupFailed = "setup_failed", Host, retry false;
    /// The server takes no new work.
    ShuttingDown = "shutting_down", Host, retry true;
    /// This server has no skills at all.
    SkillsNotConfigured = "skills_not_configured", Host, retry false;
    /// The ledger or the state directory cannot be used; nothing runs unrecorded.
    StoreUnavailable = "store_unavailable", Host, retry true;
    /// Who calls is not known.
    Unauthenticated = "unauthenticated", Caller, retry false;
    UnsupportedMediaType = "unsupported_media_type", Caller, retry false;
    WorkspaceRefused = "workspace_refused", Caller, retry false;
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Error {
    pub code: Code,
    /// Lower case, no full stop, literals in backticks.
    pub message: String,
    pub stage: Stage,
    pub blame: Blame,
    pub retry: Retry,
    pub hints: Vec<String>,
    /// Causes, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec_id: Option<ExecId>,
    /// For whoever was refused by a server; the server itself writes it beside the error. Boxed,
    /// since errors are returned everywhere and few have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub request_id: Option<Box<RequestId>>,
}

impl Error {
    pub fn new(code: Code, stage: Stage, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            stage,
            blame: code.blame(),
            retry: Retry {
                allowed: code.retry(),
                after_ms: None,
            },
            hints: Vec::new(),
            causes: Vec::new(),
            rule: None,
            exec_id: None,
            request_id: None,
        }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    #[must_use]
    pub fn caused_by(mut self, cause: impl fmt::Display) -> Self {
        self.causes.push(cause.to_string());
        self
    }

    #[must_use]
    pub fn at_rule(mut self, file: impl Into<String>, line: u32) -> Self {
        self.rule = Some(RuleRef {
            file: file.into(),
            line,
        });
        self
    }

    #[must_use]
    pub fn of_exec(mut self, id: ExecId) -> Self {
        self.exec_id = Some(id);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        for cause in &self.causes {
            write!(f, ": {cause}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
