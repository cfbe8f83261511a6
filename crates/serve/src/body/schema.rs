//! Checks a value against the API's own description, so that the description cannot promise what
//! is not kept, nor the server take what is not described. Knows as much of JSON Schema as the
//! description uses; a test makes sure that this is all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use regex_automata::meta::Regex;
use serde_json::Value;

/// Where a value is wrong, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) at: String,
    pub(crate) why: String,
    pub(crate) hint: Option<String>,
    fault: Fault,
}

/// How close a wrong value came to a description, the farthest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// Not even of its type.
    Type,
    /// With a field too many or too few.
    Fields,
    Content,
}

type Checked = Result<(), Wrong>;

/// `document` is what `$ref` points into.
pub(crate) fn check(document: &Value, schema: &Value, value: &Value) -> Checked {
    Check { document }.value("", schema, value)
}

struct Check<'a> {
    document: &'a Value,
}

fn wrong(at: &str, why: impl Into<String>) -> Checked {
    Err(Wrong {
        at: at.to_owned(),
        why: why.into(),
        hint: None,
        fault: Fault::Content,
    })
}

impl Wrong {
    fn of(mut self, fault: Fault) -> Self {
        self.fault = fault;
        self
    }
}

impl Check<'_> {
    fn value(&self, at: &str, schema: &Value, value: &Value) -> Checked {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let target = reference
                .strip_prefix('#')
                .and_then(|pointer| self.document.pointer(pointer));
            return match target {
                Some(target) => self.value(at, target, value),
                None => wrong(at, "has no description"),
            };
        }
        check_type(at, schema, value)?;
        if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
            && !allowed.contains(value)
        {
            return not_one_of(at, allowed, value);
        }
        match value {
            Value::Number(number) => check_number(at, schema, number.as_f64().unwrap_or(f64::MAX))?,
            Value::String(text) => check_text(at, schema, text)?,
            Value::Array(items) => self.items(at, schema, items)?,
            Value::Object(fields) => self.fields(at, schema, fields)?,
            Value::Null | Value::Bool(_) => {}
        }
        self.combinations(at, schema, value)
    }

    fn combinations(&self, at: &str, schema: &Value, value: &Value) -> Checked {
        let list = |key: &str| schema.get(key).and_then(Value::as_array);
        for part in list("allOf").into_iter().flatten() {
            self.value(at, part, value)?;
        }
        for (key, only_one) in [("oneOf", true), ("anyOf", false)] {
            let Some(choices) = list(key) else { continue };
            let tried: Vec<Checked> = choices
                .iter()
                .map(|choice| self.value(at, choice, value))
                .collect();
            let fitting = tried.iter().filter(|it| it.is_ok()).count();
            if fitting == 0 {
                return Err(most_specific(at, choices, tried));
            }
            if only_one && fitting > 1 {
                return wrong(at, "can be read in more than one way");
            }
        }
        match schema.get("not") {
            Some(excluded) if self.value(at, excluded, value).is_ok() => {
                wrong(at, "is not allowed here")
            }
            Some(_) | None => Ok(()),
        }
    }

    fn items(&self, at: &str, schema: &Value, items: &[Value]) -> Checked {
        let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
        let count = items.len() as u64;
        if bound("minItems").is_some_and(|least| count < least) {
            return wrong(at, "has too few items");
        }
        if bound("maxItems").is_some_and(|most| count > most) {
            return wrong(at, "has too many items");
        }
        let unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
        for (index, item) in items.iter().enumerate() {
            let at = format!("{at}[{index}]");
            if unique && items[..index].contains(item) {
                return wrong(&at, "is given twice");
            }
            if let Some(schema) = schema.get("items") {
                self.value(&at, schema, item)?;
            }
        }
        Ok(())
    }

    fn fields(&self, at: &str, schema: &Value, fields: &serde_json::Map<String, Value>) -> Checked {
        let below = |name: &str| match at {
            "" => name.to_owned(),
            at => format!("{at}.{name}"),
        };
        let known = schema.get("properties").and_then(Value::as_object);
        for (name, value) in fields {
            if let Some(schema) = schema.get("propertyNames") {
                self.value(&below(&shown(name)), schema, &Value::String(name.clone()))?;
            }
            if let Some(schema) = known.and_then(|known| known.get(name)) {
                self.value(&below(name), schema, value)?;
                continue;
            }
            match schema.get("additionalProperties") {
                Some(Value::Bool(false)) => {
                    let names = known.into_iter().flat_map(|known| known.keys());
                    return Err(unknown(below(&shown(name)), name, names));
                }
                Some(schema @ Value::Object(_)) => {
                    self.value(&below(&shown(name)), schema, value)?
                }
                Some(_) | None => {}
            }
        }
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !fields.contains_key(name) {
                return wrong(&below(name), "is missing").map_err(|it| it.of(Fault::Fields));
            }
        }
        Ok(())
    }
}

fn check_type(at: &str, schema: &Value, value: &Value) -> Checked {
    let is = |name: &str| match (name, value) {
        ("null", Value::Null)
        | ("boolean", Value::Bool(_))
        | ("string", Value::String(_))
        | ("array", Value::Array(_))
        | ("object", Value::Object(_))
        | ("number", Value::Number(_)) => true,
        ("integer", Value::Number(number)) => number.is_i64() || number.is_u64(),
        _ => false,
    };
    let allowed: Vec<&str> = match schema.get("type") {
        None => return Ok(()),
        Some(Value::String(name)) => vec![name],
        Some(names) => names
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect(),
    };
    if allowed.iter().any(|name| is(name)) {
        return Ok(());
    }
    let named: Vec<String> = allowed
        .iter()
        .filter(|name| **name != "null")
        .map(|name| match *name {
            "integer" => "a whole number".to_owned(),
            "array" => "a list".to_owned(),
            "object" => "an object".to_owned(),
            name => format!("a {name}"),
        })
        .collect();
    wrong(at, format!("must be {}", named.join(" or "))).map_err(|it| it.of(Fault::Type))
}

fn check_number(at: &str, schema: &Value, number: f64) -> Checked {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    if let Some(least) = bound("minimum").filter(|least| number < *least) {
        return wrong(at, format!("must be at least {least}"));
    }
    if let Some(most) = bound("maximum").filter(|most| number > *most) {
        return wrong(at, format!("must be at most {most}"));
    }
    Ok(())
}

fn check_text(at: &str, schema: &Value, text: &str) -> Checked {
    let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
    let length = text.chars().count() as u64;
    if bound("minLength").is_some_and(|least| length < least) {
        return wrong(at, "is too short");
    }
    if let Some(most) = bound("maxLength").filter(|most| length > *most) {
        return wrong(at, format!("is longer than {most} characters"));
    }
    if schema.get("format").and_then(Value::as_str) == Some("date-time")
        && text.parse::<jiff::Timestamp>().is_err()
    {
        return wrong(at, "must be a time such as `2026-01-31T12:00:00Z`");
    }
    match schema.get("pattern").and_then(Value::as_str) {
        Some(pattern) if !matches(pattern, text) => {
            if text.contains('\0') {
                return wrong(at, "may not hold a NUL");
            }
            let meant = schema.get("description").and_then(Value::as_str);
            wrong(at, "does not have the form it must have").map_err(|it| Wrong {
                hint: Some(match meant {
                    Some(meant) => format!("{meant} It matches `{pattern}`"),
                    None => format!("it matches `{pattern}`"),
                }),
                ..it
            })
        }
        Some(_) | None => Ok(()),
    }
}

/// Patterns are compiled once; there are as many as the description has.
fn matches(pattern: &str, text: &str) -> bool {
    static COMPILED: Mutex<Option<HashMap<String, Arc<Regex>>>> = Mutex::new(None);
    let compiled = {
        let mut all = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        let all = all.get_or_insert_default();
        match all.get(pattern) {
            Some(known) => Arc::clone(known),
            None => {
                let Ok(new) = Regex::new(pattern) else {
                    tracing::error!(pattern, "a pattern of the description is no good");
                    return false;
                };
                let new = Arc::new(new);
                all.insert(pattern.to_owned(), Arc::clone(&new));
                new
            }
        }
    };
    compiled.is_match(text)
}

fn not_one_of(at: &str, allowed: &[Value], value: &Value) -> Checked {
    let words: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
    let named: Vec<String> = allowed
        .iter()
        .map(|it| match it.as_str() {
            Some(word) => format!("`{word}`"),
            None => format!("`{it}`"),
        })
        .collect();
    let why = match named.as_slice() {
        [only] => format!("must be {only}"),
        several => format!("must be one of {}", several.join(", ")),
    };
    Err(Wrong {
        at: at.to_owned(),
        why,
        hint: value
            .as_str()
            .and_then(|given| nearest(given, words.into_iter())),
        fault: Fault::Content,
    })
}

fn unknown<'n>(at: String, given: &str, names: impl Iterator<Item = &'n String>) -> Wrong {
    let names: Vec<&str> = names.map(String::as_str).collect();
    let hint = nearest(given, names.iter().copied())
        .or_else(|| (!names.is_empty()).then(|| format!("known are `{}`", names.join("`, `"))));
    Wrong {
        at,
        why: "is not known".to_owned(),
        hint,
        fault: Fault::Fields,
    }
}

fn nearest<'n>(given: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
    let near = names
        .map(|name| (strsim::damerau_levenshtein(given, name), name))
        .min()
        .filter(|(distance, name)| *distance <= 1 + name.len() / 3);
    near.map(|(_, name)| format!("did you mean `{name}`?"))
}

fn shown(name: &str) -> String {
    name.chars().take(80).flat_map(char::escape_debug).collect()
}

/// Of several alternatives that all failed, the one that was meant: the one that the value came
/// closest to, never "must be null". Where it came close to none, all that it could have been.
fn most_specific(at: &str, choices: &[Value], tried: Vec<Checked>) -> Wrong {
    let is_null = |choice: &Value| choice.get("type").and_then(Value::as_str) == Some("null");
    let failed: Vec<Wrong> = choices
        .iter()
        .zip(tried)
        .filter(|(choice, _)| !is_null(choice))
        .filter_map(|(_, checked)| checked.err())
        .collect();
    let astray = |it: &&Wrong| it.fault == Fault::Type && it.at == at;
    if failed.iter().all(|it| astray(&it)) {
        let types: Vec<&str> = failed
            .iter()
            .filter_map(|it| it.why.strip_prefix("must be "))
            .collect();
        return Wrong {
            at: at.to_owned(),
            why: format!("must be {}", types.join(" or ")),
            hint: None,
            fault: Fault::Type,
        };
    }
    let closest = failed
        .iter()
        .filter(|it| !astray(it))
        .max_by_key(|it| (it.fault, it.at.len()));
    closest.cloned().unwrap_or_else(|| Wrong {
        at: at.to_owned(),
        why: "is of no known form".to_owned(),
        hint: None,
        fault: Fault::Content,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fails(schema: &Value, value: &Value) -> Wrong {
        check(&json!({}), schema, value).unwrap_err()
    }

    #[test]
    fn a_mistyped_field_is_named_with_what_was_meant() {
        let schema = json!({"type": "object", "additionalProperties": false, "properties": {
            "policy": {"type": "object", "additionalProperties": false,
                       "properties": {"network": {"type": "string"}, "tier": {}}}}});
        let found = fails(&schema, &json!({"policy": {"netwrok": "none"}}));
        assert_eq!(found.at, "policy.netwrok");
        assert_eq!(found.hint.unwrap(), "did you mean `network`?");
    }

    #[test]
    fn of_several_forms_the_one_that_was_meant_is_explained() {
        let amount = json!({"anyOf": [
            {"type": "number"}, {"type": "string", "pattern": "^[0-9]+s$"}, {"type": "null"}]});
        assert_eq!(
            fails(&amount, &json!([])).why,
            "must be a number or a string"
        );
        let found = fails(&amount, &json!("5 parsecs"));
        assert!(found.hint.unwrap().contains("^[0-9]+s$"));
        let file = |field: &str| {
            json!({"type": "object", "additionalProperties": false, "required": ["path", field],
                   "properties": {"path": {"type": "string", "pattern": "^[a-z]+$"}, field: {}}})
        };
        let files = json!({"oneOf": [file("content"), file("content_base64")]});
        let found = fails(&files, &json!({"path": "../x", "content": ""}));
        assert_eq!(found.at, "path");
    }

    /// Every keyword of a schema, and of those inside it.
    fn keywords(schema: &Value, seen: &mut Vec<String>) {
        let Some(fields) = schema.as_object() else {
            return;
        };
        for (keyword, value) in fields {
            seen.push(keyword.clone());
            match keyword.as_str() {
                "properties" => {
                    let inner = value.as_object().into_iter().flatten();
                    inner.for_each(|(_, schema)| keywords(schema, seen));
                }
                "oneOf" | "anyOf" | "allOf" => {
                    let inner = value.as_array().into_iter().flatten();
                    inner.for_each(|schema| keywords(schema, seen));
                }
                "items" | "additionalProperties" | "propertyNames" | "not" => keywords(value, seen),
                "pattern" => {
                    let pattern = value.as_str().unwrap();
                    assert!(Regex::new(pattern).is_ok(), "{pattern}");
                }
                _ => {}
            }
        }
    }

    #[test]
    fn the_description_says_nothing_that_is_not_checked() {
        const CHECKED: [&str; 20] = [
            "$ref",
            "type",
            "enum",
            "oneOf",
            "anyOf",
            "allOf",
            "not",
            "items",
            "minItems",
            "maxItems",
            "uniqueItems",
            "properties",
            "propertyNames",
            "additionalProperties",
            "required",
            "minimum",
            "maximum",
            "minLength",
            "maxLength",
            "pattern",
        ];
        const ABOUT: [&str; 6] = [
            "description",
            "example",
            "examples",
            "default",
            "format",
            "title",
        ];
        let mut seen = Vec::new();
        let schemas = crate::document::value()["components"]["schemas"]
            .as_object()
            .unwrap();
        schemas
            .values()
            .for_each(|schema| keywords(schema, &mut seen));
        assert!(seen.len() > 500);
        for keyword in seen {
            let known = CHECKED.contains(&keyword.as_str()) || ABOUT.contains(&keyword.as_str());
            assert!(known, "`{keyword}` is described and not checked");
        }
    }

    #[test]
    fn bounds_are_kept() {
        for (schema, good, bad) in [
            (
                json!({"type": "integer", "minimum": 1, "maximum": 3}),
                json!(3),
                json!(4),
            ),
            (json!({"type": "integer"}), json!(1), json!(1.5)),
            (json!({"type": ["string", "null"]}), json!(null), json!(1)),
            (json!({"maxLength": 2}), json!("é€"), json!("abc")),
            (
                json!({"pattern": "^[^\\x00]*$"}),
                json!("a\n"),
                json!("a\u{0}"),
            ),
            (json!({"pattern": "^[a-z]+$"}), json!("a"), json!("a\n")),
            (json!({"uniqueItems": true}), json!([1, 2]), json!([1, 1])),
            (json!({"enum": ["a", "b"]}), json!("a"), json!("c")),
            (
                json!({"oneOf": [{"type": "null"}, {"type": "string"}]}),
                json!("x"),
                json!(1),
            ),
            (
                json!({"propertyNames": {"pattern": "^a"}}),
                json!({"ab": 1}),
                json!({"b": 1}),
            ),
            (
                json!({"format": "date-time", "type": "string"}),
                json!("2026-01-01T00:00:00Z"),
                json!("yesterday"),
            ),
        ] {
            assert_eq!(check(&json!({}), &schema, &good), Ok(()), "{schema}");
            assert!(check(&json!({}), &schema, &bad).is_err(), "{schema}");
        }
    }
}
