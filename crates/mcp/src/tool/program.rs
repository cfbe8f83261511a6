//! What is run, and under which wishes: the same for whatever runs something.

use std::collections::BTreeMap;

use glovebox_model::Error;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::invalid;
use crate::fence::{PART_MOST, WINDOW, WINDOW_MOST};
use crate::task::Task;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Language {
    Python,
    Javascript,
    /// A bash script.
    Shell,
}

/// A program in one of its forms.
#[derive(Debug)]
pub(crate) enum Program {
    Code(Language, String),
    Argv(Vec<String>),
}

impl Program {
    /// Exactly one of the forms.
    pub(crate) fn of(
        code: Option<(Language, String)>,
        command: Option<Vec<String>>,
        script: Option<String>,
    ) -> Result<Self, Error> {
        match (code, command, script) {
            (Some((language, code)), None, None) => Ok(Self::Code(language, code)),
            (None, Some(argv), None) if !argv.is_empty() => Ok(Self::Argv(argv)),
            (None, Some(_), None) => Err(invalid("`command` is empty")
                .hint("give the program and its arguments, as `[\"ls\", \"-l\"]`")),
            (None, None, Some(script)) => Ok(Self::Code(Language::Shell, script)),
            (None, None, None) => Err(invalid("there is nothing to run")
                .hint("give `command`, a list of words, or `script`, a shell script")),
            _ => Err(invalid("there are two programs").hint("give one of them")),
        }
    }

    fn spec(self) -> Value {
        match self {
            Self::Argv(mut argv) => {
                let command = argv.remove(0);
                json!({"kind": "argv", "command": command, "args": argv})
            }
            Self::Code(Language::Python, code) => {
                json!({"kind": "python", "command": "python3", "args": ["-c", code]})
            }
            Self::Code(Language::Javascript, code) => {
                json!({"kind": "javascript", "command": "node", "args": ["-e", code]})
            }
            Self::Code(Language::Shell, script) => {
                json!({"kind": "shell", "command": "bash", "args": ["-lc", script]})
            }
        }
    }
}

/// What somebody may wish for beside the program.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    pub(crate) project: Option<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) env: Option<BTreeMap<String, String>>,
    pub(crate) stdin: Option<String>,
    pub(crate) timeout: Option<String>,
    pub(crate) memory: Option<String>,
    pub(crate) allow_net: Option<Vec<String>>,
    pub(crate) sandbox: Option<String>,
    pub(crate) over: Option<String>,
    pub(crate) ask: Option<bool>,
    pub(crate) justification: Option<String>,
}

impl Wishes {
    /// The body of `POST /v1/execs`; what was not wished for is not in it.
    pub(crate) fn body(self, task: &Task, program: Program) -> Value {
        let mut spec = program.spec();
        put(&mut spec, "cwd", self.cwd);
        put(&mut spec, "env", self.env);
        put(&mut spec, "stdin", self.stdin);
        let mut policy = json!({});
        put(&mut policy, "timeout", self.timeout);
        put(&mut policy, "memory", self.memory);
        put(&mut policy, "allow_net", self.allow_net);
        let mut body = json!({"exec": spec, "wait": false});
        // A sandbox that is kept knows what it works on.
        let own = Some(&task.project).filter(|_| self.sandbox.is_none());
        put(&mut body, "project_id", self.project.as_ref().or(own));
        put(&mut body, "over", self.over);
        put(&mut body, "policy_overrides", Some(policy));
        put(&mut body, "justification", self.justification);
        if self.ask == Some(true) {
            put(&mut body, "on_exceed", Some("ask"));
        }
        if let Some(name) = self.sandbox {
            put(&mut body, "sandbox", Some(json!({ "name": name })));
        }
        put(&mut body, "task_ref", task_ref(task));
        body
    }
}

pub(crate) fn task_ref(task: &Task) -> Option<Value> {
    let conversation = task.conversation.as_ref()?;
    Some(json!({ "conversation_id": conversation }))
}

pub(crate) fn put(object: &mut Value, key: &str, value: Option<impl serde::Serialize>) {
    if let Some(value) = value
        && let Value::Object(object) = object
    {
        object.insert(key.to_owned(), json!(value));
    }
}

/// A path of the project, also as programs print it.
pub(crate) fn within(path: &str) -> &str {
    const WORK: &str = "/workspace/work";
    let inside = match path.strip_prefix(WORK) {
        Some("") => ".",
        Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/'),
        Some(_) | None => path,
    };
    let inside = inside.strip_prefix("./").unwrap_or(inside);
    match inside.trim_end_matches('/') {
        "" if !path.is_empty() && inside.is_empty() => ".",
        "" => inside,
        trimmed => trimmed,
    }
}

pub(crate) fn window(asked: Option<u32>) -> usize {
    let asked = asked.map(|it| usize::try_from(it).unwrap_or(WINDOW_MOST));
    asked.unwrap_or(WINDOW).min(WINDOW_MOST)
}

/// Of a part of something longer, which is asked for by its place.
pub(crate) fn part(asked: Option<u32>) -> usize {
    let asked = asked.map(|it| usize::try_from(it).unwrap_or(PART_MOST));
    asked.unwrap_or(WINDOW).min(PART_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_as_programs_print_them_are_paths_of_the_project() {
        for (said, meant) in [
            ("a/b", "a/b"),
            ("./a", "a"),
            ("a/", "a"),
            ("/workspace/work/a/b", "a/b"),
            ("/workspace/work/", "."),
            ("/workspace/work", "."),
            ("./", "."),
            (".", "."),
            ("", ""),
            ("/workspace/working/a", "/workspace/working/a"),
            ("/etc/passwd", "/etc/passwd"),
            ("../a", "../a"),
            ("/workspace/work/../../etc", "../../etc"),
        ] {
            assert_eq!(within(said), meant, "{said}");
        }
    }
}
