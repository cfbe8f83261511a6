//! Seeing what would happen before it does.

use std::collections::BTreeMap;

use glovebox_model::{Exec, Status};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::program::{Language, Program, Wishes, put, window};
use super::{Hint, Tool, invalid};
use crate::answer::{Answer, Done};
use crate::api::Call;
use crate::exec::{ExecAnswer, Gate, gates};
use crate::fence::{NOTE, WINDOW, cut, fenced};
use crate::follow;
use crate::task::Task;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Simulate {
    /// The language of `code`.
    language: Option<Language>,
    /// Code to simulate, with `language`.
    code: Option<String>,
    /// Or a command: the program and its arguments, each a word.
    command: Option<Vec<String>>,
    /// Or a bash script.
    script: Option<String>,
    /// The workspace that it works on; the connection's own without it.
    project: Option<String>,
    /// What the program reads from its standard input.
    stdin: Option<String>,
    /// Environment variables.
    env: Option<BTreeMap<String, String>>,
    /// A directory of the project to start in.
    cwd: Option<String>,
    /// Ended after so long: `30s`, `5m`.
    timeout: Option<String>,
    /// Hosts that it would reach, as `api.example.com:443`.
    allow_net: Option<Vec<String>>,
    /// Bytes of output in the answer at most.
    max_output: Option<u32>,
}

impl Tool for Simulate {
    const NAME: &'static str = "simulate";
    const TITLE: &'static str = "Simulate";
    const ABOUT: &'static str = "Runs code, a command or a script without consequences: files are \
        written beside the project, requests are answered by nobody outside, and each effect is \
        recorded. Nothing is kept until `apply`. Then `effects` lists what it would change and \
        send, `apply` makes exactly that true, `discard` drops it.";
    const HINT: Hint = Hint::Writes;
    type Output = ExecAnswer;

    async fn run(self, task: &Task) -> Done<ExecAnswer> {
        let code = match (self.language, self.code) {
            (Some(language), Some(code)) => Some((language, code)),
            (None, None) => None,
            _ => return Err(invalid("`language` and `code` go together").into()),
        };
        let program = Program::of(code, self.command, self.script)?;
        let wishes = Wishes {
            project: self.project,
            cwd: self.cwd,
            env: self.env,
            stdin: self.stdin,
            timeout: self.timeout,
            allow_net: self.allow_net,
            ..Wishes::default()
        };
        let mut body = wishes.body(task, program);
        put(&mut body, "mode", Some("simulate"));
        let submit = Call::post("/v1/execs").json(&body)?;
        let mut answer = follow::run(task, submit, window(self.max_output), false).await?;
        let value = &mut answer.value;
        if value.effects.is_some() && value.next.is_none() {
            let id = &value.exec_id;
            let next = format!(
                "nothing is kept yet: `effects`, then `apply` or `discard`, with exec_id `{id}`"
            );
            answer.text.push_str(&format!("next: {next}\n"));
            value.next = Some(next);
        }
        Ok(answer)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Effects {
    /// The simulation, or an exec whose changes wait.
    exec_id: String,
    /// `next` of the page before.
    after: Option<u64>,
}

/// What an exec did or would do.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EffectsAnswer {
    exec_id: String,
    #[schemars(with = "String")]
    status: Status,
    /// Each with its `type`, `details` and `would_succeed`; differences of text are in the details.
    #[schemars(with = "Vec<JsonObject>")]
    effects: Vec<Value>,
    gates: Vec<Gate>,
    /// Where the next page begins; absent when this is the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
    /// Differences were shortened.
    truncated: bool,
}

#[derive(Debug, Deserialize)]
struct Page {
    effects: Vec<Value>,
    next: u64,
    complete: bool,
}

impl Tool for Effects {
    const NAME: &'static str = "effects";
    const TITLE: &'static str = "List effects";
    const ABOUT: &'static str = "Lists what a simulation would do: files written, removed or \
        changed (with differences), programs started, requests sent, and whether policy would let \
        each of them happen. Also says what the gates think of it.";
    const HINT: Hint = Hint::Reads;
    type Output = EffectsAnswer;

    async fn run(self, task: &Task) -> Done<EffectsAnswer> {
        let route = || Call::get("/v1/execs").segment(&self.exec_id);
        let record: Exec = task.ask(route()).await?;
        let page = route()
            .then("/effects")
            .query("after", self.after.unwrap_or(0));
        let mut page: Page = task.ask(page).await?;
        let room = WINDOW / page.effects.len().max(1);
        let mut truncated = false;
        for effect in &mut page.effects {
            truncated |= shorten(effect, room.max(200));
        }
        let mut text = String::new();
        for effect in &page.effects {
            text.push_str(&line(effect));
        }
        let value = EffectsAnswer {
            exec_id: self.exec_id,
            status: record.status,
            effects: page.effects,
            gates: gates(&record),
            next: (!page.complete).then_some(page.next),
            truncated,
        };
        let mut told = format!("{NOTE}\n{}", fenced("effects", &text));
        for gate in &value.gates {
            let word = if gate.blocked { "blocks" } else { "agrees" };
            told.push_str(&format!("gate `{}` {word}\n", gate.gate));
        }
        if let Some(next) = value.next {
            told.push_str(&format!("next: call again with after {next}\n"));
        }
        Ok(Answer::new(value, told))
    }
}

/// Cuts every long text in it.
fn shorten(value: &mut Value, most: usize) -> bool {
    match value {
        Value::String(text) if text.len() > most => {
            *text = cut(text, most).text;
            true
        }
        Value::Array(items) => items
            .iter_mut()
            .fold(false, |any, it| shorten(it, most) | any),
        Value::Object(fields) => fields
            .values_mut()
            .fold(false, |any, it| shorten(it, most) | any),
        _ => false,
    }
}

fn line(effect: &Value) -> String {
    let kind = effect["type"].as_str().unwrap_or("effect");
    let refused = effect["would_succeed"] == false;
    let mut details = effect["details"].clone();
    let diff = details.as_object_mut().and_then(|it| it.remove("diff"));
    let mut text = format!("{kind} {details}");
    if refused {
        let why = effect["failure_reason"].as_str().unwrap_or("policy");
        text.push_str(&format!(" would be refused: {why}"));
    }
    text.push('\n');
    if let Some(Value::String(diff)) = diff {
        text.push_str(&diff);
        text.push('\n');
    }
    text
}
