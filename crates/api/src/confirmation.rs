//! What goes over the WebSocket of approvals.

use glovebox_model::{Answer, Approval, ApprovalId, ApprovalState, Error, Result, RiskSignal};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::approval::{clash, with_code};
use crate::{Free, PolicyOverrides, ProgramSpec, ReplyDecision, ReplyRequest, Words};

/// What the server says on `GET /v1/approvals/ws`.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Confirmation {
    /// A person is asked. It comes again when one of several has answered.
    #[serde(rename = "confirmation_required")]
    Required {
        request_id: ApprovalId,
        session_id: Option<String>,
        action_description: String,
        risk_level: String,
        /// `[HIGH] name at line:column`.
        detected_patterns: Vec<String>,
        /// At most 500 characters.
        code_preview: String,
        /// Seconds that are left.
        timeout: u64,
        approval: Box<Approval>,
    },
    /// It waits no longer.
    #[serde(rename = "confirmation_resolved")]
    Resolved {
        request_id: ApprovalId,
        state: ConfirmationState,
        /// Who answered, if somebody did.
        by: Vec<String>,
    },
    /// What was sent could not be done. The connection goes on.
    Error {
        #[serde(skip_serializing_if = "Option::is_none")]
        request_id: Option<ApprovalId>,
        error: Box<Error>,
    },
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmationState {
    Approved,
    Denied,
    Expired,
    Void,
}

impl Confirmation {
    /// `None` for one that waits still.
    pub fn resolved(approval: &Approval) -> Option<Self> {
        let state = match approval.state {
            ApprovalState::Pending => return None,
            // What was approved is used within the same moment, and both are a yes.
            ApprovalState::Approved | ApprovalState::Used => ConfirmationState::Approved,
            ApprovalState::Denied => ConfirmationState::Denied,
            ApprovalState::Expired => ConfirmationState::Expired,
            ApprovalState::Void => ConfirmationState::Void,
        };
        Some(Self::Resolved {
            request_id: approval.id.clone(),
            state,
            by: approval.replies.iter().map(|it| it.by.clone()).collect(),
        })
    }

    pub fn required(approval: Approval, now: Timestamp) -> Self {
        let left = approval.expires_at.duration_since(now).as_secs().max(0);
        let ask = &approval.ask;
        Self::Required {
            request_id: approval.id.clone(),
            session_id: approval.ids.session_id.clone(),
            action_description: ask.description.clone(),
            risk_level: ask.tier.as_str().to_owned(),
            detected_patterns: ask.signals.iter().map(pattern).collect(),
            code_preview: ask.code_preview.clone(),
            timeout: left.unsigned_abs(),
            approval: Box::new(approval),
        }
    }
}

fn pattern(signal: &RiskSignal) -> String {
    let level = signal.tier.as_str().to_uppercase();
    match &signal.at {
        Some(at) => format!("[{level}] {} at {at}", signal.name),
        None => format!("[{level}] {}", signal.name),
    }
}

/// What the client says on `GET /v1/approvals/ws`.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"type": "confirmation_response",
    "request_id": "apr_00000000000000000000000000000000", "approved": true}))]
pub struct ConfirmationAnswer {
    pub r#type: AnswerType,
    pub request_id: ApprovalId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Words>,
    /// Of `confirmation_response`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<bool>,
    /// Of `confirmation_response`: what runs in the place of the code, which is assessed anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified_code: Option<Free>,
    /// Of `reply`, as are the fields that follow: the same as in `POST /v1/approvals/{id}/reply`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<ReplyDecision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_overrides: Option<PolicyOverrides>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec: Option<ProgramSpec>,
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerType {
    ConfirmationResponse,
    Reply,
}

/// What a message means; a code that replaces another is no program before it is known which kind
/// of code was asked about.
#[derive(Debug)]
pub enum Meant {
    Answer(Box<Answer>),
    Code {
        code: String,
        reason: Option<String>,
    },
}

impl Meant {
    pub fn to(self, approval: &Approval) -> Result<Answer> {
        match self {
            Self::Answer(answer) => Ok(*answer),
            Self::Code { code, reason } => Ok(Answer::Edit {
                program: with_code(&approval.ask.argv, &code)?,
                reason,
            }),
        }
    }
}

impl ConfirmationAnswer {
    pub fn meant(self) -> Result<Meant> {
        let is_reply = self.decision.is_some() || self.exec.is_some();
        let is_reply = is_reply || self.policy_overrides.is_some() || self.expires_at.is_some();
        match (self.r#type, self.decision) {
            (AnswerType::Reply, Some(decision)) => {
                if self.approved.is_some() || self.modified_code.is_some() {
                    return Err(clash(
                        "`approved` and `modified_code` are of `confirmation_response`",
                    ));
                }
                let fields = ReplyRequest {
                    decision,
                    reason: self.reason,
                    policy_overrides: self.policy_overrides,
                    exec: self.exec,
                    expires_at: self.expires_at,
                };
                fields.answer().map(|said| Meant::Answer(Box::new(said)))
            }
            (AnswerType::Reply, None) => Err(clash("`reply` needs `decision`")),
            (AnswerType::ConfirmationResponse, _) if is_reply => Err(clash(
                "`decision`, `policy_overrides`, `exec` and `expires_at` are of `reply`",
            )),
            (AnswerType::ConfirmationResponse, _) => self.confirmed(),
        }
    }

    fn confirmed(self) -> Result<Meant> {
        let reason = self.reason.map(|words| words.0);
        match (self.approved, self.modified_code) {
            (Some(true), None) => Ok(Meant::Answer(Box::new(Answer::AllowOnce { reason }))),
            (Some(true), Some(code)) => Ok(Meant::Code {
                code: code.0,
                reason,
            }),
            (Some(false), None) => Ok(Meant::Answer(Box::new(Answer::Deny { reason }))),
            (Some(false), Some(_)) => Err(clash("what is denied has no `modified_code`")),
            (None, _) => Err(clash("`confirmation_response` needs `approved`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<&'static str> {
        let text = text.replace("ID", &format!("apr_{}", "0".repeat(32)));
        let message: ConfirmationAnswer = serde_json::from_str(&text).ok()?;
        match message.meant().ok()? {
            Meant::Answer(answer) => Some(answer.as_str()),
            Meant::Code { .. } => Some("code"),
        }
    }

    #[test]
    fn what_is_not_clearly_a_yes_is_none() {
        for (text, meant) in [
            (
                r#"{"type":"confirmation_response","request_id":"ID","approved":true}"#,
                "allow_once",
            ),
            (
                r#"{"type":"confirmation_response","request_id":"ID","approved":false,"reason":"x"}"#,
                "deny",
            ),
            (
                r#"{"type":"confirmation_response","request_id":"ID","approved":true,"modified_code":"ls"}"#,
                "code",
            ),
            (
                r#"{"type":"reply","request_id":"ID","decision":"allow_kind"}"#,
                "allow_kind",
            ),
        ] {
            assert_eq!(read(text), Some(meant), "{text}");
        }
        for text in [
            r#"{"type":"confirmation_response","request_id":"ID"}"#,
            r#"{"type":"confirmation_response","request_id":"ID","approved":"true"}"#,
            r#"{"type":"confirmation_response","request_id":"ID","approved":1}"#,
            r#"{"type":"confirmation_response","request_id":"ID","approved":true,"decision":"deny"}"#,
            r#"{"type":"confirmation_response","request_id":"ID","approved":false,"modified_code":"ls"}"#,
            r#"{"type":"confirmation_response","request_id":"ID","approved":true,"approved":false}"#,
            r#"{"type":"reply","request_id":"ID"}"#,
            r#"{"type":"reply","request_id":"ID","decision":"deny","approved":true}"#,
            r#"{"type":"reply","request_id":"x","decision":"deny"}"#,
            r#"{"request_id":"ID","approved":true}"#,
            "[]",
            "",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
