//! The whole plan as one text, the same for the same plan: what an approval is bound to.

use std::os::unix::ffi::OsStrExt;

use glovebox_model::{
    BackendName, Call, Code, EnvVar, Error, Input, OnExceed, Result, Stage, WorkspaceRef,
};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::assess::Assessed;

/// What an approval is bound to beside the call itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Binding<'a> {
    /// `Config::digest`: another policy might not have asked, or might have denied.
    pub policy: &'a str,
    /// The backend that was chosen.
    pub backend: Option<BackendName>,
    /// The image that was chosen, by its digest where there is one.
    pub image: Option<&'a str>,
    /// The digest of the script file that the program names.
    pub script: Option<&'a str>,
}

impl Assessed {
    /// What an approval is for: any change of the plan or of its binding gives another digest.
    /// Keyed, since the values of variables are in it and some could be guessed.
    pub fn digest(&self, key: &[u8; 32], binding: &Binding<'_>) -> Result<String> {
        let Binding {
            policy,
            backend,
            image,
            script,
        } = binding;
        let mut bound = Map::new();
        bound.insert("policy".to_owned(), (*policy).into());
        bound.insert("backend".to_owned(), value(backend)?);
        bound.insert("image".to_owned(), value(image)?);
        bound.insert("script".to_owned(), value(script)?);
        bound.insert("plan".to_owned(), self.canonical_json()?.into());
        let mut text = String::new();
        write_sorted(&Value::Object(bound), &mut text);
        Ok(blake3::keyed_hash(key, text.as_bytes())
            .to_hex()
            .to_string())
    }

    /// JSON without spaces and with sorted keys. It holds the values of environment variables and
    /// the contents of inputs, since an approval must not survive a change of either: digest it,
    /// and never print or store it.
    pub fn canonical_json(&self) -> Result<String> {
        // Destructured so that a new part of a call does not compile until it is bound here.
        let Call {
            ids,
            // It says who stands for the ids, and changes none of them.
            vouched: _,
            client_id,
            workspace,
            placement,
            program,
            cwd,
            env: _,
            inputs,
            mounts,
            secrets,
            mode,
            on_exceed,
            justification,
            writes,
            simulation,
            over,
            preview,
            skill,
            session,
            overrides,
        } = self.call();
        let mut plan = Map::new();
        let mut put = |key: &str, part: Value| {
            plan.insert(key.to_owned(), part);
        };
        put("client_id", value(client_id)?);
        put("mounts", value(mounts)?);
        put("cwd", value(cwd)?);
        put("env", self.env().iter().map(variable).collect());
        put("ids", value(ids)?);
        put("inputs", inputs.iter().map(input).collect());
        put("justification", value(justification)?);
        put("mode", value(mode)?);
        put("on_exceed", exceed(*on_exceed));
        put("over", value(over)?);
        put("overrides", value(overrides)?);
        put("placement", value(placement)?);
        put("preview", value(preview)?);
        put("profile", value(self.profile())?);
        put("program", value(program)?);
        put("risk", value(self.risk())?);
        put("secrets", value(secrets)?);
        put("session", value(session)?);
        put("skill", value(skill)?);
        put("simulation", value(simulation)?);
        put("workspace", workspace_value(workspace));
        put("writes", value(writes)?);
        let mut text = String::new();
        write_sorted(&Value::Object(plan), &mut text);
        Ok(text)
    }
}

fn value(part: &impl Serialize) -> Result<Value> {
    serde_json::to_value(part).map_err(|why| {
        Error::new(
            Code::Internal,
            Stage::Assess,
            "the plan cannot be written as JSON",
        )
        .caused_by(why)
    })
}

fn hex(bytes: &[u8]) -> Value {
    Value::String(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn variable(it: &EnvVar) -> Value {
    let mut part = Map::new();
    part.insert("key".to_owned(), it.key.as_str().into());
    part.insert("value_hex".to_owned(), hex(it.value.as_bytes()));
    Value::Object(part)
}

fn input(it: &Input) -> Value {
    let mut part = Map::new();
    part.insert("path_hex".to_owned(), hex(it.path.as_bytes()));
    part.insert("content_hex".to_owned(), hex(&it.content));
    Value::Object(part)
}

fn exceed(it: OnExceed) -> Value {
    match it {
        OnExceed::Refuse => "refuse".into(),
        OnExceed::Cap => "cap".into(),
        OnExceed::Ask => "ask".into(),
    }
}

/// By bytes, since a directory's name need not be text.
fn workspace_value(workspace: &WorkspaceRef) -> Value {
    let (kind, part) = match workspace {
        WorkspaceRef::Adopted(path) => ("adopted_hex", hex(path.as_os_str().as_bytes())),
        WorkspaceRef::Project(id) => ("project", id.as_str().into()),
        WorkspaceRef::Scratch => ("scratch", Value::Bool(true)),
    };
    Value::Object(Map::from_iter([(kind.to_owned(), part)]))
}

/// Sorts by itself: whether a JSON object keeps its keys in order depends on which features some
/// other crate of the build turned on.
fn write_sorted(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| key.as_str());
            text.push('{');
            for (index, (key, part)) in entries.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write_sorted(part, text);
            }
            text.push('}');
        }
        Value::Array(list) => {
            text.push('[');
            for (index, part) in list.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_sorted(part, text);
            }
            text.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&value.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_at_every_depth() {
        let value: Value = serde_json::from_str(r#"{"b":[{"d":1,"c":"x\""}],"a":null}"#).unwrap();
        let mut text = String::new();
        write_sorted(&value, &mut text);
        assert_eq!(text, r#"{"a":null,"b":[{"c":"x\"","d":1}]}"#);
    }
}
