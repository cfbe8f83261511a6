//! `manifest.json`: what a skill is, in the words of its schema.

use std::sync::OnceLock;

use glovebox_model::{
    Access, BackendName, Bytes, Count, Cpus, Millis, NetworkMode, PartialLimits, PartialProfile,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::entrypoint;
use crate::interface::Schema;
use crate::json::{Lines, parse};
use crate::package::{MANIFEST, Package};
use crate::problem::{ManifestProblem, Problems, shown};

/// JSON Schema, draft 2020-12.
pub const SCHEMA: &str = include_str!("../../../skills/_schema/manifest.schema.json");

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub schema_version: String,
    pub id: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub description: String,
    pub runtime: SkillRuntime,
    pub interface: Interface,
    pub permissions: Permissions,
    pub limits: Limits,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Example>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillRuntime {
    pub kind: RuntimeKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    pub entrypoint: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuntimeKind {
    Docker,
    Native,
    /// As policy chooses.
    Any,
}

impl RuntimeKind {
    const fn backend(self) -> Option<BackendName> {
        match self {
            Self::Docker => Some(BackendName::Docker),
            Self::Native => Some(BackendName::Native),
            Self::Any => None,
        }
    }
}

/// JSON Schemas.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    pub inputs: Value,
    pub outputs: Value,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Permissions {
    pub fs: FileAccess,
    pub net: NetworkAccess,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileAccess {
    pub read: Vec<String>,
    pub write: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkAccess {
    pub mode: NetworkReach,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkReach {
    None,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    pub timeout_ms: u64,
    pub memory_mb: u64,
    pub cpu_cores: f64,
    pub pids: u64,
    pub max_stdout_bytes: u64,
    pub max_stderr_bytes: u64,
    pub max_artifacts_bytes_total: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub inputs: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

/// A manifest with its schemas made ready.
#[derive(Debug, Clone)]
pub(crate) struct Read {
    pub(crate) manifest: Manifest,
    pub(crate) inputs: Schema,
    pub(crate) outputs: Schema,
}

impl Manifest {
    /// Everything that is wrong is told at once. `directory` is the name that the id must have.
    pub(crate) fn read(package: &Package, directory: &str) -> Result<Read, Problems> {
        let Some(bytes) = package.file(MANIFEST) else {
            return Err(Problems::one("", "there is no `manifest.json`"));
        };
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Err(Problems::one(MANIFEST, "is not UTF-8"));
        };
        let value = parse(text).map_err(|(line, message)| {
            Problems(vec![ManifestProblem {
                file: MANIFEST.to_owned(),
                line: Some(line),
                pointer: None,
                message,
            }])
        })?;
        let lines = Lines::of(text);
        let mut found = Found(Vec::new());
        for (pointer, message) in schema()?.errors_by_key(&value) {
            found.add(pointer, message);
        }
        found.check_id(&value, directory);
        found.told(&value, &package.files().collect::<Vec<_>>());
        let manifest = serde_json::from_value::<Manifest>(value);
        if let (Err(error), true) = (&manifest, found.0.is_empty()) {
            found.add(String::new(), error.to_string());
        }
        match (manifest, found.ready()) {
            (Ok(manifest), None) => match (
                Schema::new(&manifest.interface.inputs),
                Schema::new(&manifest.interface.outputs),
            ) {
                (Ok(inputs), Ok(outputs)) => Ok(Read {
                    manifest,
                    inputs,
                    outputs,
                }),
                (Err((_, why)), _) | (_, Err((_, why))) => Err(Problems::one(MANIFEST, why)),
            },
            (_, problems) => Err(Problems(
                problems
                    .unwrap_or_default()
                    .into_iter()
                    .map(|(pointer, message)| ManifestProblem {
                        file: MANIFEST.to_owned(),
                        line: Some(lines.at(&pointer)),
                        pointer: Some(pointer),
                        message,
                    })
                    .collect(),
            )),
        }
    }

    /// What it may do and use, as a layer of policy: it can only narrow.
    pub(crate) fn profile(&self) -> PartialProfile {
        let fs = &self.permissions.fs;
        let holds = |list: &[String], tree: &str| list.iter().any(|it| it == tree);
        let workspace = match (holds(&fs.write, WORK), holds(&fs.read, WORK)) {
            (true, _) => Access::Rw,
            (false, true) => Access::Ro,
            (false, false) => Access::None,
        };
        let limits = &self.limits;
        PartialProfile {
            limits: PartialLimits {
                wall_ms: Some(Millis(limits.timeout_ms)),
                memory_bytes: Some(Bytes(limits.memory_mb.saturating_mul(1 << 20))),
                cpus_milli: Some(Cpus(milli(limits.cpu_cores))),
                pids: Some(Count(limits.pids)),
                stdout_bytes: Some(Bytes(limits.max_stdout_bytes)),
                stderr_bytes: Some(Bytes(limits.max_stderr_bytes)),
                // Who may not write artifacts has none that are kept.
                artifacts_bytes: Some(Bytes(match holds(&fs.write, ARTIFACTS) {
                    true => limits.max_artifacts_bytes_total,
                    false => 0,
                })),
                ..PartialLimits::default()
            },
            network: Some(match self.permissions.net.mode {
                NetworkReach::None => NetworkMode::None,
            }),
            workspace: Some(workspace),
            backend: self.runtime.kind.backend(),
            image: self.runtime.image.clone(),
            ..PartialProfile::default()
        }
    }
}

const WORK: &str = "work/**";
const ARTIFACTS: &str = "artifacts/**";

/// The schema bounds it to what fits.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn milli(cores: f64) -> u32 {
    (cores * 1000.0).round().clamp(0.0, 1_024_000.0) as u32
}

fn schema() -> Result<&'static Schema, Problems> {
    static READY: OnceLock<Option<Schema>> = OnceLock::new();
    let made = READY.get_or_init(|| {
        let value = serde_json::from_str(SCHEMA).ok()?;
        Schema::build(&value).ok()
    });
    made.as_ref()
        .ok_or_else(|| Problems::one("", "the manifests' own schema cannot be used"))
}

/// Problems by their JSON Pointers.
struct Found(Vec<(String, String)>);

impl Found {
    fn add(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.0.push((pointer.into(), message.into()));
    }

    /// Unless something was said of the same value: one mistake is told once.
    fn add_new(&mut self, pointer: String, message: String) {
        if self.0.iter().all(|(it, _)| *it != pointer) {
            self.add(pointer, message);
        }
    }

    fn check_id(&mut self, manifest: &Value, directory: &str) {
        let id = manifest.get("id").and_then(Value::as_str);
        if let Some(id) = id.filter(|id| *id != directory) {
            let (id, directory) = (shown(id), shown(directory));
            let message =
                format!("is `{id}`, and its directory is `{directory}`; they must be the same");
            self.add_new("/id".to_owned(), message);
        }
    }

    fn ready(self) -> Option<Vec<(String, String)>> {
        (!self.0.is_empty()).then_some(self.0)
    }

    /// What the schema of manifests cannot say. The manifest need not fit that one.
    fn told(&mut self, manifest: &Value, files: &[&str]) {
        let at = |pointer: &str| manifest.pointer(pointer).unwrap_or(&Value::Null);
        let mut ready = [None, None];
        for (side, made) in ["inputs", "outputs"].iter().zip(&mut ready) {
            let pointer = format!("/interface/{side}");
            // That it is not there, or no schema at all, is said already.
            let Some(schema) = manifest.pointer(&pointer).filter(|it| it.is_object()) else {
                continue;
            };
            match Schema::new(schema) {
                Ok(schema) => *made = Some(schema),
                Err((at, why)) => self.add_new(pointer + &at, why),
            }
        }
        let words = at("/runtime/entrypoint").as_array().into_iter().flatten();
        let words: Vec<&str> = words.map(|it| it.as_str().unwrap_or_default()).collect();
        for (index, why) in entrypoint::problems(&words, at("/interface/inputs"), files) {
            self.add_new(format!("/runtime/entrypoint/{index}"), why);
        }
        let [inputs, outputs] = &ready;
        for (index, example) in at("/examples").as_array().into_iter().flatten().enumerate() {
            if let (Some(inputs), Some(given)) = (inputs, example.get("inputs")) {
                for (pointer, why) in inputs.errors(given) {
                    self.add_new(format!("/examples/{index}/inputs{pointer}"), why);
                }
            }
            // An example may name some keys alone, so what it leaves out is no mistake.
            let output = example.get("output").filter(|it| !it.is_object());
            if let (Some(outputs), Some(output)) = (outputs, output) {
                for (pointer, why) in outputs.errors(output) {
                    self.add_new(format!("/examples/{index}/output{pointer}"), why);
                }
            }
        }
    }
}
