//! The tools. Each is the type of its arguments: what it takes, what it answers and what it does
//! stand together, and its schemas are made from it.

mod approval;
mod arrange;
mod edit;
mod fetch;
mod file;
mod find;
mod look;
mod policy;
mod program;
mod run;
mod sandbox;
mod session;
mod settle;
mod simulate;
pub(crate) mod skill;
mod snapshot;
mod talk;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use glovebox_model::{Code, Error, Stage};
use rmcp::model::{CallToolResponse, JsonObject, Tool as Described, ToolAnnotations};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::answer::{Done, Stop, response};
use crate::task::Task;
pub(crate) use program::{put, task_ref};

/// What a client may be told about a tool's consequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hint {
    /// Changes nothing.
    Reads,
    /// Adds or changes, and can be taken back.
    Writes,
    /// May take something away.
    Destroys,
}

pub(crate) trait Tool: DeserializeOwned + JsonSchema + Send + 'static {
    const NAME: &'static str;
    const TITLE: &'static str;
    /// For the model: what it does, when to use it, and what to use instead.
    const ABOUT: &'static str;
    const HINT: Hint;
    /// Whether it may reach beyond the machine.
    const OPEN: bool = false;
    /// The tool by whose name policy may take it away, too: it could do the same.
    const STANDS_FOR: Option<&'static str> = None;
    type Output: Serialize + JsonSchema + Send;

    fn run(self, task: &Task) -> impl Future<Output = Done<Self::Output>> + Send;
}

/// A tool without its types.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) described: Described,
    pub(crate) stands_for: Option<&'static str>,
    run: for<'a> fn(Value, &'a Task) -> BoxFuture<'a, CallToolResponse>,
}

impl Entry {
    fn of<T: Tool>() -> Self {
        Self {
            described: describe::<T>(),
            stands_for: T::STANDS_FOR,
            run: |arguments, task| {
                Box::pin(async move {
                    let done = match read::<T>(arguments) {
                        Ok(tool) => tool.run(task).await,
                        Err(error) => Err(Stop::from(error)),
                    };
                    response(done)
                })
            },
        }
    }

    pub(crate) fn run<'a>(
        &self,
        arguments: Value,
        task: &'a Task,
    ) -> BoxFuture<'a, CallToolResponse> {
        (self.run)(arguments, task)
    }
}

pub(crate) fn all() -> Vec<Entry> {
    vec![
        Entry::of::<run::RunCode>(),
        Entry::of::<run::RunCommand>(),
        Entry::of::<look::ExecStatus>(),
        Entry::of::<look::ExecOutput>(),
        Entry::of::<look::ExecCancel>(),
        Entry::of::<session::SessionStart>(),
        Entry::of::<talk::SessionOutput>(),
        Entry::of::<talk::SessionSend>(),
        Entry::of::<talk::SessionSignal>(),
        Entry::of::<talk::SessionResize>(),
        Entry::of::<session::SessionList>(),
        Entry::of::<session::SessionRemove>(),
        Entry::of::<simulate::Simulate>(),
        Entry::of::<simulate::Effects>(),
        Entry::of::<settle::Apply>(),
        Entry::of::<settle::Discard>(),
        Entry::of::<file::FileRead>(),
        Entry::of::<file::FileWrite>(),
        Entry::of::<edit::FileEdit>(),
        Entry::of::<find::FileList>(),
        Entry::of::<find::FileSearch>(),
        Entry::of::<find::FileFind>(),
        Entry::of::<arrange::FileMove>(),
        Entry::of::<arrange::FileRemove>(),
        Entry::of::<arrange::FileMkdir>(),
        Entry::of::<snapshot::SnapshotTake>(),
        Entry::of::<snapshot::SnapshotList>(),
        Entry::of::<snapshot::SnapshotDiff>(),
        Entry::of::<snapshot::SnapshotRestore>(),
        Entry::of::<snapshot::Undo>(),
        Entry::of::<sandbox::SandboxCreate>(),
        Entry::of::<sandbox::SandboxList>(),
        Entry::of::<sandbox::SandboxRemove>(),
        Entry::of::<approval::ApprovalStatus>(),
        Entry::of::<approval::ApprovalList>(),
        Entry::of::<policy::PolicyExplain>(),
        Entry::of::<fetch::Fetch>(),
    ]
}

fn describe<T: Tool>() -> Described {
    let annotations = ToolAnnotations::from_raw(
        Some(T::TITLE.to_owned()),
        Some(T::HINT == Hint::Reads),
        Some(T::HINT == Hint::Destroys),
        Some(T::HINT == Hint::Reads),
        Some(T::OPEN),
    );
    let mut described = Described::default();
    described.name = T::NAME.into();
    described.title = Some(T::TITLE.to_owned());
    described.description = Some(T::ABOUT.into());
    described.input_schema = schema::<T>(true);
    described.output_schema = Some(schema::<T::Output>(false));
    described.annotations = Some(annotations);
    described
}

/// What is taken has each field where it is; what is answered says what is always there.
fn schema<T: JsonSchema>(taken: bool) -> Arc<JsonObject> {
    let settings = SchemaSettings::draft2020_12().with(|it| it.inline_subschemas = true);
    let settings = match taken {
        true => settings.for_deserialize(),
        false => settings.for_serialize(),
    };
    let made = settings.into_generator().into_root_schema_for::<T>();
    let mut object = match made.to_value() {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    };
    // The names and sizes of our types mean nothing to anybody else.
    object.remove("title");
    for value in object.values_mut() {
        without_formats(value);
    }
    object.values_mut().for_each(one_type);
    Arc::new(object)
}

/// What may be left out is not said to be `null` as well: there are hosts whose models know one type
/// for each field.
fn one_type(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Array(types)) = fields.get_mut("type") {
                types.retain(|it| it != "null");
                if let [only] = &types[..] {
                    let only = only.clone();
                    fields.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(any)) = fields.get_mut("anyOf") {
                any.retain(|it| it["type"] != "null");
                if let [Value::Object(only)] = &any[..] {
                    let only = only.clone();
                    fields.remove("anyOf");
                    for (key, value) in only {
                        fields.entry(key).or_insert(value);
                    }
                }
            }
            fields.values_mut().for_each(one_type);
        }
        Value::Array(items) => items.iter_mut().for_each(one_type),
        _ => {}
    }
}

fn without_formats(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let ours = |it: &Value| it.as_str().is_some_and(|it| it.contains("int"));
            if fields.get("format").is_some_and(ours) {
                fields.remove("format");
            }
            fields.values_mut().for_each(without_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(without_formats),
        _ => {}
    }
}

fn read<T: Tool>(arguments: Value) -> Result<T, Error> {
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        let at = match error.path().to_string() {
            at if at == "." => String::new(),
            at => format!("`{at}`: "),
        };
        let message = format!("the arguments do not fit: {at}{}", error.inner());
        Error::new(Code::InvalidArgument, Stage::Parse, message)
            .hint(format!("the input schema of `{}` says what fits", T::NAME))
    })
}

/// A wish that its type cannot rule out.
pub(crate) fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, Stage::Parse, message)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_tool_can_be_understood_from_what_it_says_of_itself() {
        let all = all();
        let names: BTreeSet<&str> = all.iter().map(|it| it.described.name.as_ref()).collect();
        assert_eq!(names.len(), all.len(), "no name twice");
        for Entry { described, .. } in &all {
            let name = &described.name;
            assert!(name.len() <= 32, "{name}");
            // What every host's model may call.
            let plain = |it: char| it.is_ascii_lowercase() || it == '_';
            assert!(name.chars().all(plain), "{name}");
            let about = described.description.as_deref().unwrap_or_default();
            assert!(about.len() > 40, "{name}: {about}");
            let input = &described.input_schema;
            assert_eq!(input["type"], "object", "{name}");
            assert_eq!(input["additionalProperties"], false, "{name}");
            let fields = input.get("properties").and_then(Value::as_object);
            for (field, schema) in fields.into_iter().flatten() {
                assert!(schema.get("description").is_some(), "{name}.{field}");
            }
            let output = described.output_schema.as_ref().unwrap();
            assert_eq!(output["type"], "object", "{name}");
            for schema in [input, output] {
                let text = serde_json::to_string(schema).unwrap();
                assert!(
                    !text.contains("$ref"),
                    "{name}: hosts do not follow references"
                );
                let value = Value::Object((**schema).clone());
                jsonschema::draft202012::new(&value).unwrap();
            }
        }
    }

    #[test]
    fn a_wrong_argument_is_named() {
        let arguments = serde_json::json!({"language": "python", "code": "1", "timeuot": "5s"});
        let error = read::<run::RunCode>(arguments).unwrap_err();
        assert!(error.message.contains("timeuot"), "{error}");
        let arguments = serde_json::json!({"language": "cobol", "code": "1"});
        let error = read::<run::RunCode>(arguments).unwrap_err();
        assert!(error.message.contains("language"), "{error}");
        assert!(error.message.contains("python"), "{error}");
    }
}
