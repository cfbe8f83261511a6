//! What an expression may look at.

use std::collections::HashMap;

use cel::Value;
use glovebox_model::{Deed, Effect, FileFacts};
use serde_json::Value as Json;

use crate::evidence::Evidence;
use crate::metric::Metric;

pub const VARIABLES: [&str; 20] = [
    "status",
    "exit_code",
    "duration_ms",
    "stdout",
    "stdout_bytes",
    "output",
    "effects",
    "effect_count",
    "violations",
    "changed_files",
    "changed_bytes",
    "artifacts",
    "mode",
    "tier",
    "tool",
    "space",
    "user",
    "agent",
    "conversation",
    "argv",
];

/// What a number is when nobody knows it.
const UNKNOWN: i64 = -1;

pub(super) struct Facts {
    variables: Vec<(&'static str, Value)>,
}

/// How many values there are in all of them.
pub(super) struct Weight(pub(super) u64);

impl Facts {
    /// `used` says which ones are needed: the large ones are made for nobody else.
    pub(super) fn of(evidence: &Evidence<'_>, used: &dyn Fn(&str) -> bool) -> Self {
        let subject = evidence.subject;
        let text = |it: &Option<String>| Value::from(it.clone().unwrap_or_default());
        let number = |metric: Metric| {
            let found = metric.of(subject).and_then(|it| i64::try_from(it).ok());
            Value::Int(found.unwrap_or(UNKNOWN))
        };
        let make = |name: &'static str| match name {
            "status" => subject.status.as_str().into(),
            "exit_code" => number(Metric::ExitCode),
            "duration_ms" => number(Metric::DurationMs),
            "stdout" => String::from_utf8_lossy(subject.stdout).into_owned().into(),
            "stdout_bytes" => number(Metric::StdoutBytes),
            "output" => evidence.output().map_or(Value::Null, of_json),
            "effects" => subject
                .effects
                .iter()
                .map(of_effect)
                .collect::<Vec<_>>()
                .into(),
            "effect_count" => number(Metric::Effects),
            "violations" => number(Metric::Violations),
            "changed_files" => number(Metric::ChangedFiles),
            "changed_bytes" => number(Metric::ChangedBytes),
            "artifacts" => {
                let paths = subject.artifacts.iter().map(|it| it.path.display());
                paths.collect::<Vec<_>>().into()
            }
            "mode" => subject.mode.as_str().into(),
            "tier" => subject.tier.as_str().into(),
            "tool" => subject.tool.into(),
            "space" => subject.ids.space_id.to_string().into(),
            "user" => text(&subject.ids.user_id),
            "agent" => text(&subject.ids.agent_id),
            "conversation" => text(&subject.ids.conversation_id),
            "argv" => {
                let words = subject.argv.iter().map(|it| it.display());
                words.collect::<Vec<_>>().into()
            }
            _ => Value::Null,
        };
        let names = VARIABLES.into_iter().filter(|it| used(it));
        Self {
            variables: names.map(|name| (name, make(name))).collect(),
        }
    }

    /// With something in every list, for trying an expression.
    pub(super) fn sample() -> Self {
        let make = |name: &'static str| match name {
            "output" => Value::Null,
            "effects" => vec![map(EFFECT.map(|(key, value)| (key, value.sample())))].into(),
            "artifacts" | "argv" => vec!["x".to_owned()].into(),
            "exit_code" | "duration_ms" | "stdout_bytes" | "effect_count" | "violations"
            | "changed_files" | "changed_bytes" => Value::Int(1),
            _ => "x".into(),
        };
        Self {
            variables: VARIABLES.map(|name| (name, make(name))).to_vec(),
        }
    }

    pub(super) fn variables(&self) -> &[(&'static str, Value)] {
        &self.variables
    }

    pub(super) fn weight(&self) -> Weight {
        let weigh = |(name, value): &(&str, Value)| match (*name, value) {
            // The keys of an effect are few and always the same; only its words may be many.
            ("effects", Value::List(list)) => list.iter().map(words).sum(),
            _ => values(value),
        };
        Weight(self.variables.iter().map(weigh).sum())
    }
}

fn words(effect: &Value) -> u64 {
    match effect {
        Value::Map(map) => map.map.values().map(values).max().unwrap_or(0).max(1),
        _ => 1,
    }
}

/// Only what a loop can run over.
fn values(value: &Value) -> u64 {
    match value {
        Value::List(list) => list.iter().map(|it| values(it).max(1)).sum(),
        Value::Map(map) => map.map.values().map(|it| values(it).max(1)).sum(),
        _ => 0,
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Number,
    Truth,
    Texts,
}

impl Kind {
    fn sample(self) -> Value {
        match self {
            Self::Text => "x".into(),
            Self::Number => Value::Int(1),
            Self::Truth => true.into(),
            Self::Texts => vec!["x".to_owned()].into(),
        }
    }
}

/// Every effect has all of them, so that no expression stumbles over one that is not there.
const EFFECT: [(&str, Kind); 16] = [
    ("kind", Kind::Text),
    ("would_succeed", Kind::Truth),
    ("operation", Kind::Text),
    ("path", Kind::Text),
    ("query", Kind::Text),
    ("from", Kind::Text),
    ("size", Kind::Number),
    ("is_directory", Kind::Truth),
    ("host", Kind::Text),
    ("port", Kind::Number),
    ("method", Kind::Text),
    ("code", Kind::Text),
    ("body_bytes", Kind::Number),
    ("argv", Kind::Texts),
    ("target", Kind::Text),
    ("action", Kind::Text),
];

fn of_effect(effect: &Effect) -> Value {
    let whole = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
    let own: Vec<(&'static str, Value)> = match &effect.deed {
        Deed::FilesystemWrite(it) => {
            let side = |of: fn(&FileFacts) -> bool| {
                it.after.as_ref().or(it.before.as_ref()).is_some_and(of)
            };
            vec![
                ("operation", it.operation.as_str().into()),
                ("path", it.path.display().into()),
                (
                    "from",
                    it.from
                        .as_ref()
                        .map(|from| from.display())
                        .unwrap_or_default()
                        .into(),
                ),
                (
                    "size",
                    whole(it.after.as_ref().map_or(0, |after| after.size)),
                ),
                (
                    "is_directory",
                    side(|facts| facts.kind == "directory").into(),
                ),
            ]
        }
        Deed::FilesystemRead(it) => vec![("path", it.path.display().into())],
        Deed::NetworkRequest(it) => vec![
            ("host", it.host.clone().into()),
            ("port", whole(it.port.into())),
            ("method", it.method.clone().unwrap_or_default().into()),
            ("path", it.path.clone().unwrap_or_default().into()),
            ("query", it.query.clone().unwrap_or_default().into()),
            ("code", it.code.as_str().into()),
            ("body_bytes", whole(it.body_bytes)),
        ],
        Deed::StateMutation(it) | Deed::ExternalApiCall(it) => vec![
            ("target", it.target.clone().into()),
            ("action", it.action.clone().into()),
        ],
        Deed::ProcessSpawn(it) => {
            let argv: Vec<String> = it.argv.iter().map(|word| word.display()).collect();
            vec![("path", it.program.display().into()), ("argv", argv.into())]
        }
    };
    let empty = EFFECT.map(|(key, kind)| {
        let value = match kind {
            Kind::Text => "".into(),
            Kind::Number => Value::Int(0),
            Kind::Truth => false.into(),
            Kind::Texts => Vec::<String>::new().into(),
        };
        (key, value)
    });
    let both = [
        ("kind", effect.kind().as_str().into()),
        ("would_succeed", effect.would_succeed.into()),
    ];
    map(empty.into_iter().chain(both).chain(own))
}

fn map(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let entries = entries
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value));
    entries.collect::<HashMap<String, Value>>().into()
}

fn of_json(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(it) => (*it).into(),
        Json::Number(it) => match (it.as_i64(), it.as_f64()) {
            (Some(whole), _) => Value::Int(whole),
            (None, Some(decimal)) => Value::Float(decimal),
            (None, None) => Value::Null,
        },
        Json::String(it) => it.clone().into(),
        Json::Array(it) => it.iter().map(of_json).collect::<Vec<_>>().into(),
        Json::Object(it) => {
            let entries = it.iter().map(|(key, value)| (key.clone(), of_json(value)));
            entries.collect::<HashMap<String, Value>>().into()
        }
    }
}
