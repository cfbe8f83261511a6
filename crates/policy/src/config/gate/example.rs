//! Examples of a gate, tried when it is read.

use std::ops::Range;

use glovebox_gate::{
    CommandCheck, CommandOutcome, Gate, History, Kinds, NoContents, RunCommand, Subject, judge,
};
use glovebox_model::{
    Correlation, Effect, EffectCount, FailureCode, Mode, Result, SpaceId, Status, Tier,
};
use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::json::parse;
use crate::config::document::{Document, Key, Node, entries};
use crate::config::section::{read_word, unknown_key};
use crate::config::value::read_bool;
use crate::word::Word;
use effect::read_effects;

mod effect;

const KEYS: [&str; 7] = [
    "passes",
    "failure",
    "output",
    "exit_code",
    "command_exit",
    "previous",
    "effects",
];
const EXAMPLES_MAX: usize = 32;

impl Word for FailureCode {
    const ALL: &'static [Self] = &FailureCode::ALL;
    fn word(self) -> &'static str {
        self.as_str()
    }
}

#[derive(Debug)]
pub(super) struct Example {
    span: Range<usize>,
    passes: bool,
    failure: Option<FailureCode>,
    output: String,
    exit_code: i32,
    /// How the commands of the gate end: none is run while a configuration is read.
    command_exit: i32,
    previous: Option<Value>,
    effects: Vec<Effect>,
}

struct Ends(i32);

impl RunCommand for Ends {
    fn run_command(&self, _: &CommandCheck) -> Result<CommandOutcome> {
        Ok(CommandOutcome {
            exit_code: Some(self.0),
            ..CommandOutcome::default()
        })
    }
}

pub(super) fn read_examples(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
) -> Result<Vec<Example>> {
    let what = "one or more tables; write `[[gate.example]]`, with two brackets";
    let Some(list) = node.get_ref().as_array() else {
        return Err(document.expected(key, node, what));
    };
    if list.len() > EXAMPLES_MAX {
        let message = format!("there are more than {EXAMPLES_MAX} examples");
        return Err(document.error(node.span(), message));
    }
    let read = |item: &Node<'_>| match item.get_ref().as_table() {
        Some(table) => read_example(document, item.span(), table),
        None => Err(document.expected(key, item, what)),
    };
    list.iter().map(read).collect()
}

fn read_example(
    document: &Document<'_>,
    span: Range<usize>,
    table: &DeTable<'_>,
) -> Result<Example> {
    let mut passes = None;
    let mut example = Example {
        span: span.clone(),
        passes: true,
        failure: None,
        output: String::new(),
        exit_code: 0,
        command_exit: 0,
        previous: None,
        effects: Vec::new(),
    };
    for (key, node) in entries(table) {
        let text = || {
            let text = node.get_ref().as_str();
            text.ok_or_else(|| document.expected(key, node, "a string"))
        };
        match key.get_ref().as_ref() {
            "passes" => passes = Some(read_bool(document, key, node)?),
            "failure" => example.failure = Some(read_word(document, key, node)?),
            "output" => example.output = text()?.to_owned(),
            "exit_code" => example.exit_code = read_code(document, key, node)?,
            "command_exit" => example.command_exit = read_code(document, key, node)?,
            "previous" => example.previous = Some(parse(document, key, node, text()?)?),
            "effects" => example.effects = read_effects(document, key, node)?,
            _ => return Err(unknown_key(document, "in `[[gate.example]]`", key, &KEYS)),
        }
    }
    let error = |message: &str| document.error(span, message);
    example.passes =
        match (passes, example.failure) {
            (Some(true), Some(_)) => {
                return Err(error("the example passes, and has a `failure`")
                    .hint("leave out one of the two"));
            }
            (Some(passes), Some(_) | None) => passes,
            (None, Some(_)) => false,
            (None, None) => {
                return Err(error("the example has no `passes`")
                    .hint("`passes = true`, or `passes = false`"));
            }
        };
    Ok(example)
}

fn read_code(document: &Document<'_>, key: &Key<'_>, node: &Node<'_>) -> Result<i32> {
    let code = match node.get_ref() {
        DeValue::Integer(number) => number.as_str().parse::<u8>().ok(),
        _ => None,
    };
    code.map(i32::from)
        .ok_or_else(|| document.expected(key, node, "an exit code from 0 to 255"))
}

impl Example {
    pub(super) fn try_on(&self, document: &Document<'_>, gate: &Gate) -> Result<()> {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let ids = Correlation::of_space(SpaceId::local());
        let subject = Subject {
            status: match self.exit_code {
                0 => Status::Succeeded,
                _ => Status::Failed,
            },
            exit_code: Some(self.exit_code),
            duration_ms: Some(0),
            stdout: self.output.as_bytes(),
            stdout_here: count(self.output.len()),
            stdout_bytes: count(self.output.len()),
            stderr_bytes: 0,
            effects: &self.effects,
            effect_count: EffectCount {
                total: count(self.effects.len()),
                violations: count(self.effects.iter().filter(|it| !it.would_succeed).count()),
                dropped: 0,
            },
            watched: Kinds::ALL,
            changes: None,
            artifacts: &[],
            mode: Mode::Simulate,
            tier: Tier::Safe,
            tool: "",
            ids: &ids,
            argv: &[],
            history: History {
                previous: self.previous.as_ref(),
                ..History::default()
            },
            contents: &NoContents,
        };
        let results = judge(
            std::slice::from_ref(gate),
            &subject,
            &Ends(self.command_exit),
        );
        let failed = results.into_iter().find(|it| !it.passed());
        let message = match (failed, self.passes) {
            (None, true) => return Ok(()),
            (None, false) => "the example should fail, and the gate passes it".to_owned(),
            (Some(result), true) => {
                let mut reasons = result.validations.into_iter().filter(|it| !it.valid);
                let why = reasons.next().and_then(|it| it.reason).unwrap_or_default();
                let why = why.replace('\n', " ");
                format!("the example should pass, and the gate fails it: {why}")
            }
            (Some(result), false) => match (result.failure_code, self.failure) {
                (Some(found), Some(wanted)) if found != wanted => {
                    format!("the example should fail with `{wanted}`, and fails with `{found}`")
                }
                (Some(_) | None, Some(_) | None) => return Ok(()),
            },
        };
        Err(document
            .error(self.span.clone(), message)
            .hint("change the example, or the gate"))
    }
}
