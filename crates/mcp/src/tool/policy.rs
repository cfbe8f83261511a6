//! What policy would say.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::program::{Language, Program, Wishes};
use super::{Hint, Tool, invalid};
use crate::answer::{Answer, Done};
use crate::api::Call;
use crate::task::Task;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyExplain {
    /// The language of `code`.
    language: Option<Language>,
    /// Code that would be run, with `language`.
    code: Option<String>,
    /// Or a command: the program and its arguments, each a word.
    command: Option<Vec<String>>,
    /// Or a bash script.
    script: Option<String>,
    /// The workspace; the connection's own without it.
    project: Option<String>,
    /// Ended after so long: `30s`, `5m`.
    timeout: Option<String>,
    /// The most memory: `512M`, `2G`.
    memory: Option<String>,
    /// Hosts that it would reach, as `pypi.org:443`.
    allow_net: Option<Vec<String>>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Explained {
    /// `allow` or `deny`, for what it wants.
    decision: String,
    /// `allow`, `ask` or `deny`, by rules and the approval mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    permit: Option<String>,
    /// `safe`, `low`, `medium`, `high` or `critical`.
    #[serde(skip_serializing_if = "Option::is_none")]
    risk: Option<String>,
    reasons: Vec<String>,
    /// What would change it.
    fixes: Vec<String>,
}

impl Tool for PolicyExplain {
    const NAME: &'static str = "policy_explain";
    const TITLE: &'static str = "Ask policy";
    const ABOUT: &'static str = "Says what policy would decide about a program with these wishes, \
        why, and what would change it. Nothing is run and nobody is asked.";
    const HINT: Hint = Hint::Reads;
    type Output = Explained;

    async fn run(self, task: &Task) -> Done<Explained> {
        let code = match (self.language, self.code) {
            (Some(language), Some(code)) => Some((language, code)),
            (None, None) => None,
            _ => return Err(invalid("`language` and `code` go together").into()),
        };
        let program = Program::of(code, self.command, self.script)?;
        let wishes = Wishes {
            project: self.project,
            timeout: self.timeout,
            memory: self.memory,
            allow_net: self.allow_net,
            ..Wishes::default()
        };
        let body = wishes.body(task, program);
        let said: Value = task
            .ask(Call::post("/v1/policy/explain").json(&body)?)
            .await?;
        let word = |value: &Value| value.as_str().map(str::to_owned);
        let words = |value: &Value, at: &str| -> Vec<String> {
            let items = value.as_array().into_iter().flatten();
            items.filter_map(|it| word(it.pointer(at)?)).collect()
        };
        let mut reasons = words(&said["reasons"], "/text");
        reasons.extend(word(&said["reason"]));
        let mut fixes = words(&said["fix_it"], "");
        fixes.extend(words(&said["hints"], ""));
        for list in [&mut reasons, &mut fixes] {
            let mut seen = BTreeSet::new();
            list.retain(|it| seen.insert(it.clone()));
        }
        let value = Explained {
            decision: word(&said["decision"]).unwrap_or_default(),
            permit: word(&said["permit"]),
            risk: word(&said["risk"]["tier"]),
            reasons,
            fixes,
        };
        let mut text = format!("decision: {}\n", value.decision);
        if let Some(permit) = &value.permit {
            text.push_str(&format!("permit: {permit}\n"));
        }
        if let Some(risk) = &value.risk {
            text.push_str(&format!("risk: {risk}\n"));
        }
        for reason in &value.reasons {
            text.push_str(&format!("because {reason}\n"));
        }
        for fix in &value.fixes {
            text.push_str(&format!("to change it: {fix}\n"));
        }
        Ok(Answer::new(value, text))
    }
}
