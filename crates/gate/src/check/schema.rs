//! `schema`: the output fits a JSON Schema. A schema stands by itself: nothing that it refers to is
//! read from a file or from the network.

use std::fmt;
use std::sync::Arc;

use glovebox_model::FailureCode;
use jsonschema::{PatternOptions, Retrieve, Uri, Validator};
use serde_json::Value;

use super::Found;
use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::pointer::Pointer;

const BYTES_MAX: usize = 64 << 10;
/// References that double each other make a short schema take for ever: 32 of them are at most some
/// hundred thousand steps for each value.
const REFERENCES_MAX: usize = 32;
const ERRORS_SHOWN: usize = 3;
const PATTERN_BYTES_MAX: usize = 1 << 20;

#[derive(Clone)]
pub struct Schema {
    at: Pointer,
    text: String,
    validator: Arc<Validator>,
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Schema");
        debug.field("at", &self.at).field("text", &self.text);
        debug.finish_non_exhaustive()
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at && self.text == other.text
    }
}

impl Eq for Schema {}

struct Nothing;

impl Retrieve for Nothing {
    fn retrieve(&self, _: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err("a schema may refer only to itself".into())
    }
}

impl Schema {
    pub fn new(at: Pointer, schema: &Value) -> Result<Self, String> {
        let text = schema.to_string();
        if text.len() > BYTES_MAX {
            return Err(format!("is longer than {BYTES_MAX} bytes"));
        }
        if !schema.is_object() {
            return Err("is not an object".to_owned());
        }
        if references(schema) > REFERENCES_MAX {
            return Err(format!("holds more than {REFERENCES_MAX} references"));
        }
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
            .map_err(|why| format!("is not a JSON Schema: {why}"))?;
        Ok(Self {
            at,
            text,
            validator: Arc::new(validator),
        })
    }

    pub(super) fn try_on(&self, evidence: &Evidence<'_>) -> Found {
        let Some(value) = evidence.output_at(&self.at)? else {
            return Err(Finding::bad(
                FailureCode::MissingData,
                format!("{} is not there", self.at),
                "print JSON that fits the gate's schema",
            ));
        };
        let errors = self.validator.iter_errors(value).take(ERRORS_SHOWN);
        let errors: Vec<String> = errors
            .map(|error| match error.instance_path().as_str() {
                // The value itself is not repeated: it may be long, or private.
                "" => error.masked().to_string(),
                path => format!("`{path}`: {}", error.masked()),
            })
            .collect();
        if errors.is_empty() {
            return Ok(Finding::good());
        }
        Err(Finding::bad(
            FailureCode::Conflict,
            format!("{} does not fit the schema: {}", self.at, errors.join("; ")),
            "print JSON that fits the gate's schema",
        ))
    }
}

fn references(value: &Value) -> usize {
    match value {
        Value::Object(map) => {
            let refers =
                |key: &&String| matches!(key.as_str(), "$ref" | "$dynamicRef" | "$recursiveRef");
            map.keys().filter(refers).count() + map.values().map(references).sum::<usize>()
        }
        Value::Array(list) => list.iter().map(references).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
