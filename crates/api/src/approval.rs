//! What a person answers to a request.

use glovebox_model::{Answer, Code, Error, Program, Result, Stage};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{PolicyOverrides, ProgramSpec, Words};

/// The body of `POST /v1/approvals/{id}/reply`.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"decision": "deny", "reason": "not on a Friday"}))]
pub struct ReplyRequest {
    pub decision: ReplyDecision,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Words>,
    /// Of `narrow`, and of no other: the most that it gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_overrides: Option<PolicyOverrides>,
    /// Of `edit`, and of no other: what runs in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec: Option<ProgramSpec>,
    /// Of `allow_kind`, and of no other: when it ends. Without it as policy says.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// The body of `POST /v1/approvals/{id}/approve` and `…/deny`.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReasonRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Words>,
}

/// `allow_once` lets this one exec start; `allow_kind` also its kind in this conversation from now
/// on; `narrow` lets it start with less than it asked for; `edit` puts another program in its
/// place, which is assessed anew; `deny` ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplyDecision {
    AllowOnce,
    AllowKind,
    Narrow,
    Edit,
    Deny,
}

impl ReplyRequest {
    /// What belongs to another answer is not passed over: whoever sent it meant something by it.
    pub fn answer(self) -> Result<Answer> {
        let reason = self.reason.map(|words| words.0);
        let expires_at = self.expires_at;
        if expires_at.is_some() && self.decision != ReplyDecision::AllowKind {
            return Err(clash("only `allow_kind` has `expires_at`"));
        }
        match (self.decision, self.policy_overrides, self.exec) {
            (ReplyDecision::AllowOnce, None, None) => Ok(Answer::AllowOnce { reason }),
            (ReplyDecision::AllowKind, None, None) => Ok(Answer::AllowKind { reason, expires_at }),
            (ReplyDecision::Deny, None, None) => Ok(Answer::Deny { reason }),
            (ReplyDecision::Narrow, Some(overrides), None) => Ok(Answer::Narrow {
                overrides: overrides.profile()?,
                reason,
            }),
            (ReplyDecision::Edit, None, Some(program)) => Ok(Answer::Edit {
                program: program.program()?,
                reason,
            }),
            (ReplyDecision::Narrow, None, _) => Err(clash("`narrow` needs `policy_overrides`")),
            (ReplyDecision::Edit, _, None) => Err(clash("`edit` needs `exec`")),
            (_, Some(_), _) => Err(clash("only `narrow` has `policy_overrides`")),
            (_, _, Some(_)) => Err(clash("only `edit` has `exec`")),
        }
    }
}

pub(crate) fn clash(message: &str) -> Error {
    Error::new(Code::Conflict, Stage::Parse, message)
        .hint("`GET /openapi.json` describes what is taken")
}

/// Another code in the place of the one that was asked about, for whoever sees only the code.
pub(crate) fn with_code(argv: &[String], code: &str) -> Result<Program> {
    let code = super::program::bytes(code)?;
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["bash", "-lc", _] => Ok(Program::Shell { script: code }),
        ["python3", "-c", _] => Ok(Program::Python { code }),
        ["node", "-e", _] => Ok(Program::Javascript { code }),
        _ => Err(Error::new(
            Code::Conflict,
            Stage::Parse,
            "a command has no code that could be replaced",
        )
        .hint("send a message of type `reply` with the decision `edit` and an `exec`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> std::result::Result<Answer, Code> {
        let request: ReplyRequest =
            serde_json::from_str(text).map_err(|_| Code::InvalidArgument)?;
        request.answer().map_err(|it| it.code)
    }

    #[test]
    fn each_decision_has_its_own_fields_and_no_other() {
        let program = r#""exec":{"kind":"shell","command":"bash","args":["-lc","ls"]}"#;
        let less = r#""policy_overrides":{"memory":"64M"}"#;
        for (text, word) in [
            (r#"{"decision":"allow_once"}"#.to_owned(), "allow_once"),
            (
                r#"{"decision":"allow_kind","reason":"x"}"#.to_owned(),
                "allow_kind",
            ),
            (
                r#"{"decision":"allow_kind","expires_at":"2099-01-01T00:00:00Z"}"#.to_owned(),
                "allow_kind",
            ),
            (r#"{"decision":"deny","reason":"no"}"#.to_owned(), "deny"),
            (format!(r#"{{"decision":"narrow",{less}}}"#), "narrow"),
            (format!(r#"{{"decision":"edit",{program}}}"#), "edit"),
        ] {
            assert_eq!(read(&text).unwrap().as_str(), word);
        }
        for (text, code) in [
            (r#"{"decision":"narrow"}"#.to_owned(), Code::Conflict),
            (r#"{"decision":"edit"}"#.to_owned(), Code::Conflict),
            (
                r#"{"decision":"deny","expires_at":"2099-01-01T00:00:00Z"}"#.to_owned(),
                Code::Conflict,
            ),
            (
                format!(r#"{{"decision":"allow_once",{less}}}"#),
                Code::Conflict,
            ),
            (
                format!(r#"{{"decision":"deny",{program}}}"#),
                Code::Conflict,
            ),
            (
                format!(r#"{{"decision":"edit",{less},{program}}}"#),
                Code::Conflict,
            ),
            (r#"{"decision":"allow"}"#.to_owned(), Code::InvalidArgument),
            (
                r#"{"decision":"deny","by":"ann"}"#.to_owned(),
                Code::InvalidArgument,
            ),
            (
                r#"{"decision":"edit","exec":{"kind":"shell","command":"sh","args":["-c","ls"]}}"#
                    .to_owned(),
                Code::PolicyDenied,
            ),
        ] {
            assert_eq!(read(&text), Err(code), "{text}");
        }
    }

    #[test]
    fn only_a_code_is_replaced_by_another() {
        let argv = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let program = with_code(&argv(&["python3", "-c", "1"]), "2").unwrap();
        assert!(matches!(program, Program::Python { .. }));
        for words in [
            &["ls"][..],
            &["sh", "-c", "ls"],
            &["python3", "-u", "-c", "1"],
        ] {
            assert!(with_code(&argv(words), "2").is_err(), "{words:?}");
        }
    }
}
