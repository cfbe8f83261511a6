//! A JSON Schema that stands by itself: nothing that it refers to is read from a file or from the
//! network.

use std::fmt;
use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, Retrieve, Uri, Validator};
use serde_json::Value;

use crate::json::escaped;

const BYTES_MAX: usize = 64 << 10;
/// References that double each other make a short schema take for ever: 32 of them are at most some
/// hundred thousand steps for each value.
const REFERENCES_MAX: usize = 32;
const DEPTH_MAX: usize = 32;
const ERRORS_SHOWN: usize = 10;
/// Whoever writes a manifest wants to see all of them.
const ERRORS_CHECKED: usize = 50;
const PATTERN_BYTES_MAX: usize = 1 << 20;

#[derive(Clone)]
pub(crate) struct Schema(Arc<Validator>);

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").finish_non_exhaustive()
    }
}

struct Nothing;

impl Retrieve for Nothing {
    fn retrieve(&self, _: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err("a schema may refer only to itself".into())
    }
}

impl Schema {
    /// Or where in it, as a JSON Pointer, something is wrong, and what.
    pub(crate) fn new(schema: &Value) -> Result<Self, (String, String)> {
        Self::check(schema).map_err(|why| (String::new(), why))?;
        Self::build(schema)
    }

    fn check(schema: &Value) -> Result<(), String> {
        let bytes = schema.to_string().len();
        if bytes > BYTES_MAX {
            return Err(format!("is longer than {BYTES_MAX} bytes"));
        }
        if !schema.is_object() {
            return Err("is not an object".to_owned());
        }
        if depth(schema) > DEPTH_MAX {
            return Err(format!("is nested deeper than {DEPTH_MAX}"));
        }
        check_references(schema)
    }

    /// For our own.
    pub(crate) fn build(schema: &Value) -> Result<Self, (String, String)> {
        // Patterns without look-around are matched in time that grows with the text, no faster.
        let patterns = PatternOptions::regex()
            .size_limit(PATTERN_BYTES_MAX)
            .dfa_size_limit(PATTERN_BYTES_MAX);
        let validator = jsonschema::options()
            .with_retriever(Nothing)
            .with_pattern_options(patterns)
            .should_validate_formats(true)
            .should_ignore_unknown_formats(false)
            .build(schema)
            .map_err(|why| {
                let pointer = why.instance_path().as_str().to_owned();
                (pointer, format!("is not a JSON Schema: {why}"))
            })?;
        Ok(Self(Arc::new(validator)))
    }

    /// What does not fit, by its JSON Pointer. The value itself is not repeated: it may be long,
    /// or private.
    pub(crate) fn errors(&self, value: &Value) -> Vec<(String, String)> {
        let errors = self.0.iter_errors(value).take(ERRORS_SHOWN);
        errors
            .map(|error| {
                let pointer = error.instance_path().as_str().to_owned();
                (pointer, error.masked().to_string())
            })
            .collect()
    }

    /// The same for our own schema, where a key that is not known has its own place.
    pub(crate) fn errors_by_key(&self, value: &Value) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for error in self.0.iter_errors(value).take(ERRORS_CHECKED) {
            let pointer = error.instance_path().as_str();
            match error.kind() {
                ValidationErrorKind::AdditionalProperties { unexpected } => {
                    let unknown = unexpected.iter().take(ERRORS_CHECKED).map(|key| {
                        let pointer = format!("{pointer}/{}", escaped(key));
                        (pointer, "is not a key that is known here".to_owned())
                    });
                    found.extend(unknown);
                }
                _ => found.push((pointer.to_owned(), error.masked().to_string())),
            }
        }
        found
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// References lead to a definition, and from definitions to definitions without a circle: a value
/// is looked at a bounded number of times.
fn check_references(schema: &Value) -> Result<(), String> {
    let mut all = Vec::new();
    references(schema, &mut all)?;
    if all.len() > REFERENCES_MAX {
        return Err(format!("holds more than {REFERENCES_MAX} references"));
    }
    for reference in &all {
        if schema.pointer(reference).is_none() {
            return Err(format!("refers to `#{reference}`, which is not there"));
        }
    }
    match all.iter().find(|it| comes_back(schema, it)) {
        Some(reference) => Err(format!("refers to `#{reference}` in a circle")),
        None => Ok(()),
    }
}

fn references(value: &Value, all: &mut Vec<String>) -> Result<(), String> {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match (key.as_str(), value) {
                    ("$ref", Value::String(to)) => match to.strip_prefix('#') {
                        Some(pointer)
                            if pointer.starts_with("/$defs/")
                                || pointer.starts_with("/definitions/") =>
                        {
                            all.push(pointer.to_owned());
                        }
                        _ => {
                            return Err(format!(
                                "refers to `{}`; a reference leads to `#/$defs/…` of the same schema",
                                crate::problem::shown(to)
                            ));
                        }
                    },
                    (
                        "$dynamicRef" | "$recursiveRef" | "$id" | "$anchor" | "$dynamicAnchor",
                        Value::String(_),
                    ) => {
                        return Err(format!("has a `{key}`; use `$ref` to `#/$defs/…`"));
                    }
                    (_, value) => references(value, all)?,
                }
            }
            Ok(())
        }
        Value::Array(list) => list.iter().try_for_each(|value| references(value, all)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// Whether what stands at `from` refers back to it, directly or through others.
fn comes_back(schema: &Value, from: &str) -> bool {
    let mut seen: Vec<String> = Vec::new();
    let mut next = vec![from.to_owned()];
    while let Some(at) = next.pop() {
        let mut found = Vec::new();
        let known = schema.pointer(&at).map(|it| references(it, &mut found));
        if !matches!(known, Some(Ok(()))) {
            return true;
        }
        for to in found {
            if to == from || contains(&to, from) {
                return true;
            }
            if !seen.contains(&to) {
                seen.push(to.clone());
                next.push(to);
            }
        }
    }
    false
}

/// Whether the definition at `outer` holds the one at `inner`.
fn contains(outer: &str, inner: &str) -> bool {
    inner
        .strip_prefix(outer)
        .is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_refers_to_itself_alone_and_never_in_a_circle() {
        for (schema, why) in [
            (
                json!({"$ref": "file:///etc/passwd"}),
                "refers to `file:///etc/passwd`",
            ),
            (
                json!({"$ref": "https://example.com/s"}),
                "refers to `https://example.com/s`",
            ),
            (json!({"$ref": "#"}), "refers to `#`"),
            (
                json!({"properties": {"a": {"$ref": "#/properties/a"}}}),
                "refers to `#/properties/a`",
            ),
            (
                json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}),
                "in a circle",
            ),
            (
                json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}}),
                "in a circle",
            ),
            (
                json!({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"x": {"$ref": "#/$defs/a/properties"}}}}}),
                "in a circle",
            ),
            (json!({"$ref": "#/$defs/none"}), "not there"),
            (json!({"$id": "https://example.com/s"}), "has a `$id`"),
            (json!({"$dynamicRef": "#x"}), "has a `$dynamicRef`"),
            (json!({"type": "objekt"}), "is not a JSON Schema"),
            (json!({"pattern": "("}), "is not a JSON Schema"),
            (json!({"format": "no-such"}), "is not a JSON Schema"),
            (json!([]), "is not an object"),
        ] {
            let (_, error) = Schema::new(&schema).unwrap_err();
            assert!(error.contains(why), "{schema}: {error}");
        }
        let fine = json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}});
        assert_eq!(Schema::new(&fine).unwrap().errors(&json!(1)).len(), 1);
    }

    #[test]
    fn what_is_refused_is_not_repeated() {
        let schema =
            Schema::new(&json!({"type": "object", "properties": {"a": {"type": "integer"}}}))
                .unwrap();
        let errors = schema.errors(&json!({"a": "a secret"}));
        assert_eq!(errors[0].0, "/a");
        assert!(!errors[0].1.contains("a secret"), "{errors:?}");
    }
}
