//! Skills in the open convention: a directory with a `SKILL.md`, whose front matter names it and
//! whose text tells an agent how to do something, and perhaps `scripts/`.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::entrypoint::{SCRIPTS, interpreter};
use crate::package::{MANIFEST, Package, SKILL_MD};
use crate::problem::{Problems, shown};

/// Imported ones have ids of their own kind: their names have no dots.
const PREFIX: &str = "md.";
const NAME_MAX: usize = 60;
const DESCRIPTION_MAX: usize = 1024;
const FRONT_BYTES_MAX: usize = 16 << 10;

/// Other keys are for other readers.
#[derive(Debug, Deserialize)]
struct Front {
    name: String,
    description: String,
    #[serde(default)]
    metadata: Option<Metadata>,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    #[serde(default)]
    version: Option<Value>,
}

/// The text without the front matter.
pub(crate) fn instructions(package: &Package) -> Option<String> {
    let text = std::str::from_utf8(package.file(SKILL_MD)?).ok()?;
    Some(match split(text) {
        Some((_, body)) => body.trim().to_owned(),
        None => text.trim().to_owned(),
    })
}

/// Front matter and text.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rest = text
        .strip_prefix("---")?
        .trim_start_matches([' ', '\t', '\r']);
    let rest = rest.strip_prefix('\n')?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

fn front(package: &Package) -> Result<Front, Problems> {
    let wrong = |message: String| Problems::one(SKILL_MD, message);
    let text = package.file(SKILL_MD).unwrap_or_default();
    let text = std::str::from_utf8(text).map_err(|_| wrong("is not UTF-8".to_owned()))?;
    let (front, _) = split(text).ok_or_else(|| {
        wrong("does not begin with front matter between two lines of `---`".to_owned())
    })?;
    if front.len() > FRONT_BYTES_MAX {
        return Err(wrong(format!(
            "has front matter longer than {FRONT_BYTES_MAX} bytes"
        )));
    }
    let front: Front = serde_saphyr::from_str(front).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        wrong(format!(
            "has front matter that cannot be read: {}",
            shown(first)
        ))
    })?;
    let words = |name: &str| {
        name.split('-').all(|word| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
        })
    };
    if front.name.len() > NAME_MAX || !words(&front.name) {
        return Err(wrong(format!(
            "has the name `{}`; a name is words of lower case letters and digits with hyphens between, at most {NAME_MAX} in all",
            shown(&front.name)
        )));
    }
    let length = front.description.chars().count();
    if front.description.trim().is_empty() || length > DESCRIPTION_MAX {
        return Err(wrong(format!(
            "has a description that is empty or longer than {DESCRIPTION_MAX} characters"
        )));
    }
    Ok(front)
}

/// `pdf-forms` is `md.pdf.forms`.
pub(crate) fn id_of(package: &Package) -> Result<String, Problems> {
    front(package).map(|front| format!("{PREFIX}{}", front.name.replace('-', ".")))
}

/// The same files and a manifest: one that runs its scripts, or, without any, tells its text.
pub(crate) fn convert(mut package: Package) -> Result<Package, Problems> {
    let (front, id) = (front(&package)?, id_of(&package)?);
    let scripts: Vec<String> = package
        .files()
        .filter_map(|path| path.strip_prefix(SCRIPTS))
        .filter(|name| interpreter(name).is_some())
        .map(str::to_owned)
        .collect();
    let (entrypoint, inputs) = match scripts.is_empty() {
        true => (
            json!(["cat", format!("{{skill}}/{SKILL_MD}")]),
            json!({"type": "object", "properties": {}, "additionalProperties": false}),
        ),
        false => (
            json!(["{script}", "{input.args}"]),
            json!({
                "type": "object",
                "required": ["script"],
                "additionalProperties": false,
                "properties": {
                    "script": {"type": "string", "enum": scripts, "description": "Which of its scripts."},
                    "args": {
                        "type": "array",
                        "maxItems": 200,
                        "items": {"type": "string"},
                        "default": [],
                        "description": "The script's arguments."
                    }
                }
            }),
        ),
    };
    let mut manifest = json!({
        "schema_version": "1.0",
        "id": id,
        "name": front.name,
        "description": front.description.trim(),
        "runtime": {"kind": "any", "entrypoint": entrypoint},
        "interface": {
            "inputs": inputs,
            "outputs": {
                "type": "object",
                "required": ["stdout", "stderr", "exit_code", "status"],
                "properties": {
                    "stdout": {"type": "string"},
                    "stderr": {"type": "string"},
                    "exit_code": {"type": ["integer", "null"]},
                    "status": {"type": "string"}
                }
            }
        },
        "permissions": {
            "fs": {"read": ["inputs/**", "work/**", "artifacts/**"], "write": ["work/**", "artifacts/**"]},
            "net": {"mode": "none"}
        },
        "limits": {
            "timeout_ms": 60_000,
            "memory_mb": 1024,
            "cpu_cores": 1.0,
            "pids": 256,
            "max_stdout_bytes": 1_048_576,
            "max_stderr_bytes": 1_048_576,
            "max_artifacts_bytes_total": 52_428_800
        }
    });
    if let Some(version) = front.metadata.and_then(|it| it.version).and_then(semantic) {
        manifest["version"] = version.into();
    }
    let text = serde_json::to_vec_pretty(&manifest)
        .map_err(|error| Problems::one(MANIFEST, error.to_string()))?;
    package.put(MANIFEST, text);
    Ok(package)
}

/// People write `1.0` there, and YAML makes a number of it.
fn semantic(version: Value) -> Option<String> {
    let text = match version {
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let parts: Vec<&str> = text.split('.').collect();
    let number = |part: &&str| {
        part.bytes().all(|it| it.is_ascii_digit())
            && (*part == "0" || !part.starts_with('0'))
            && (1..=9).contains(&part.len())
    };
    match parts.as_slice() {
        [_] | [_, _] | [_, _, _] if parts.iter().all(number) => {
            let missing = std::iter::repeat_n("0", 3 - parts.len());
            Some(
                parts
                    .iter()
                    .copied()
                    .chain(missing)
                    .collect::<Vec<_>>()
                    .join("."),
            )
        }
        _ => None,
    }
}
