//! Asking the person at the client's host. Where their word does not count, or the client cannot
//! ask them, it is nobody's turn here: the request waits where people answer.

use std::time::Duration;

use glovebox_model::{Code, Error, Stage};
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    EnumSchema, InputRequest, InputRequests, InputRequiredResult, SealOptions, StringSchema,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answer::Stop;
use crate::api::Caller;
use crate::task::Task;

/// A question that nobody looked at for so long is left to others.
const ASKED_FOR: Duration = Duration::from_secs(30 * 60);
/// The name of the question in an answer that asks for input.
const KEY: &str = "approval";

#[derive(Debug)]
pub(crate) enum Said {
    /// By whom, so that what follows is theirs.
    Yes(Box<Caller>),
    No(Box<Caller>, Option<String>),
    /// Nobody could be asked, or nobody answered.
    Nothing,
}

#[derive(Deserialize)]
struct Form {
    decision: String,
    #[serde(default)]
    reason: Option<String>,
}

/// `state` is what the call needs to go on, when it has to be made again.
pub(crate) async fn ask<S: Serialize>(
    task: &Task,
    message: String,
    state: &S,
) -> Result<Said, Stop> {
    let Some(person) = task.api.person(&task.caller).filter(|_| can_ask(task)) else {
        return Ok(Said::Nothing);
    };
    let params = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema: form()?,
    };
    if task.is_stateless() {
        // An answer counts for the question that it was given to, and for no other.
        let asked: Option<Value> = task.resumed()?;
        let now = serde_json::to_value(state).map_err(internal)?;
        let responses = task.responses.as_ref().filter(|_| asked == Some(now));
        let Some(responses) = responses else {
            return Err(again(task, params, state)?);
        };
        let Some(response) = responses.get(KEY) else {
            return Ok(Said::Nothing);
        };
        let result = serde_json::from_value(response.clone()).map_err(|error| {
            let message = format!("the answer to `{KEY}` cannot be read: {error}");
            Error::new(Code::InvalidArgument, Stage::Parse, message)
        })?;
        return Ok(said(person, result));
    }
    let asked = task
        .context
        .peer
        .create_elicitation_with_timeout(params, Some(ASKED_FOR));
    let answered = tokio::select! {
        answered = asked => answered,
        () = task.context.ct.cancelled() => return Ok(Said::Nothing),
    };
    match answered {
        Ok(result) => Ok(said(person, result)),
        Err(error) => {
            tracing::warn!(%error, "the client did not ask its user");
            Ok(Said::Nothing)
        }
    }
}

fn can_ask(task: &Task) -> bool {
    let can = task
        .context
        .client_capabilities()
        .and_then(|it| it.elicitation);
    // A client that names no form of asking means the first there was.
    can.is_some_and(|it| it.form.is_some() || it.url.is_none())
}

/// Only an outspoken yes is one.
fn said(person: Caller, result: ElicitResult) -> Said {
    let form = result
        .content
        .and_then(|content| serde_json::from_value::<Form>(content).ok());
    match (result.action, form) {
        (ElicitationAction::Accept, Some(form)) if form.decision == "allow" => {
            Said::Yes(Box::new(person))
        }
        (ElicitationAction::Accept, Some(form)) if form.decision == "deny" => {
            Said::No(Box::new(person), form.reason)
        }
        (ElicitationAction::Decline, _) => Said::No(Box::new(person), None),
        _ => Said::Nothing,
    }
}

fn again<S: Serialize>(task: &Task, params: ElicitRequestParams, state: &S) -> Result<Stop, Error> {
    let options = SealOptions::new()
        .associated_data(&task.binding)
        .ttl(ASKED_FOR);
    let sealed = task
        .codec
        .seal_json_with(state, &options)
        .map_err(internal)?;
    let question = InputRequest::Elicitation(ElicitRequest::new(params));
    let questions = InputRequests::from([(KEY.to_owned(), question)]);
    let input = InputRequiredResult::new(Some(questions), Some(sealed));
    Ok(Stop::Input(Box::new(input)))
}

fn form() -> Result<ElicitationSchema, Error> {
    let decision = EnumSchema::builder(vec!["deny".to_owned(), "allow".to_owned()])
        .title("Decision")
        .description("`allow` lets this happen once")
        .build();
    let reason = |it: StringSchema| it.title("Reason").description("told to the agent");
    ElicitationSchema::builder()
        .required_enum_schema("decision", decision)
        .optional_string_with("reason", reason)
        .build()
        .map_err(internal)
}

fn internal(error: impl std::fmt::Display) -> Error {
    let message = format!("the question cannot be put: {error}");
    Error::new(Code::Internal, Stage::Judge, message)
}

#[cfg(test)]
mod tests {
    use axum::http::Extensions;
    use serde_json::json;

    use super::*;

    fn person() -> Caller {
        Caller {
            id: "p".to_owned(),
            name: "p".to_owned(),
            extensions: Extensions::new(),
        }
    }

    #[test]
    fn only_an_outspoken_yes_is_one() {
        let accept = |content| ElicitResult::new(ElicitationAction::Accept).with_content(content);
        let yes = said(person(), accept(json!({"decision": "allow"})));
        assert!(matches!(yes, Said::Yes(_)));
        let no = said(
            person(),
            accept(json!({"decision": "deny", "reason": "no"})),
        );
        assert!(matches!(no, Said::No(_, Some(reason)) if reason == "no"));
        for unclear in [
            ElicitResult::new(ElicitationAction::Accept),
            accept(json!({})),
            accept(json!({"decision": "yes"})),
            accept(json!({"decision": true})),
            ElicitResult::new(ElicitationAction::Cancel),
        ] {
            assert!(matches!(said(person(), unclear), Said::Nothing));
        }
        let declined = ElicitResult::new(ElicitationAction::Decline);
        assert!(matches!(said(person(), declined), Said::No(_, None)));
    }
}
