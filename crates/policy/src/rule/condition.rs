//! `when`: an expression in CEL over the facts of a request.

use std::sync::{Arc, LazyLock};

use cel::{Context, Env, Program, Value};

use super::facts::{Facts, Segment};

pub(crate) const WHEN_BYTES_MAX: usize = 2048;

/// Made once: it holds the whole library of functions.
static LANGUAGE: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

pub(crate) const VARIABLES: [&str; 18] = [
    "space",
    "user",
    "agent",
    "conversation",
    "tool",
    "language",
    "tier",
    "signals",
    "backend",
    "network",
    "hosts",
    "paths",
    "commands",
    "workspace",
    "env",
    "lifetime",
    "writes",
    "secrets",
];

#[derive(Debug, Clone)]
pub(crate) struct Condition {
    text: String,
    program: Arc<Program>,
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Condition {}

impl Condition {
    /// Tried once on facts that hold something everywhere, so that a wrong name or type is found
    /// when the rule is read.
    pub(crate) fn new(text: &str, sample: &Facts) -> Result<Self, String> {
        if text.len() > WHEN_BYTES_MAX {
            return Err(format!("is longer than {WHEN_BYTES_MAX} bytes"));
        }
        let program = LANGUAGE.compile(text).map_err(|why| {
            let why = why.to_string().replace('\n', ", ");
            format!("is not a CEL expression: {why}")
        })?;
        let condition = Self {
            text: text.to_owned(),
            program: Arc::new(program),
        };
        match condition.program.execute(&variables(sample)) {
            Ok(Value::Bool(_)) => Ok(condition),
            Ok(_) => Err("is neither true nor false".to_owned()),
            Err(why) => Err(format!("cannot be evaluated: {why}")),
        }
    }

    /// None when it cannot be evaluated for this request.
    pub(crate) fn holds(&self, context: &Context<'_, '_>) -> Option<bool> {
        match self.program.execute(context) {
            Ok(Value::Bool(holds)) => Some(holds),
            Ok(_) | Err(_) => None,
        }
    }
}

pub(crate) fn variables(facts: &Facts) -> Context<'static, 'static> {
    let mut context = Context::with_env(Arc::clone(&LANGUAGE));
    let text = |it: &Option<String>| it.clone().unwrap_or_default();
    let ids = &facts.ids;
    let mut set = |name: &str, value: Value| {
        context.add_variable_from_value(name.to_owned(), value);
    };
    set("space", ids.space_id.to_string().into());
    set("user", text(&ids.user_id).into());
    set("agent", text(&ids.agent_id).into());
    set("conversation", text(&ids.conversation_id).into());
    set("tool", facts.tool.clone().into());
    set("language", facts.language.into());
    set("tier", facts.tier.as_str().into());
    let signals: Vec<String> = facts.signals.iter().map(|it| it.name.clone()).collect();
    set("signals", signals.into());
    set("backend", facts.backend.map_or("", |it| it.as_str()).into());
    set("network", facts.network.as_str().into());
    set("hosts", facts.hosts_text().into());
    let paths: Vec<String> = facts.paths.iter().map(|it| it.shown().to_owned()).collect();
    set("paths", paths.into());
    let commands: Vec<String> = facts.segments.iter().map(Segment::words).collect();
    set("commands", commands.into());
    set("workspace", facts.workspace.clone().into());
    set("env", facts.env.clone().into());
    set("lifetime", facts.lifetime.into());
    set("writes", facts.writes.into());
    set("secrets", facts.secrets.clone().into());
    context
}
