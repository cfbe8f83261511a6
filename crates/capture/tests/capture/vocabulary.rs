//! The words of records, against the document that describes them.

use std::collections::BTreeSet;
use std::path::Path;

use glovebox_capture::{SHORTEST, Secrets};
use serde_json::Value;

/// The names of fields and the values of enumerations of a schema and of all that it refers to.
fn words(schemas: &Value, schema: &Value, seen: &mut BTreeSet<String>, found: &mut Vec<String>) {
    if let Some(values) = schema.as_array() {
        values.iter().for_each(|it| words(schemas, it, seen, found));
    }
    let Some(fields) = schema.as_object() else {
        return;
    };
    if let Some(name) = schema["$ref"].as_str().and_then(|it| it.rsplit('/').next())
        && seen.insert(name.to_owned())
    {
        words(schemas, &schemas[name], seen, found);
    }
    let listed = schema["enum"].as_array().into_iter().flatten();
    let values = listed.chain(schema.get("const")).filter_map(Value::as_str);
    found.extend(values.map(str::to_owned));
    if let Some(properties) = schema["properties"].as_object() {
        found.extend(properties.keys().cloned());
    }
    fields
        .values()
        .for_each(|it| words(schemas, it, seen, found));
}

#[test]
fn no_word_that_records_are_made_of_can_be_a_secret() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../openapi.json");
    let document: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let schemas = &document["components"]["schemas"];
    let mut found = Vec::new();
    for name in ["Exec", "Effect", "Approval"] {
        words(schemas, &schemas[name], &mut BTreeSet::new(), &mut found);
    }
    assert!(found.len() > 100, "{found:?}");
    let name = "s".parse().unwrap();
    for word in found.iter().filter(|it| it.len() >= SHORTEST) {
        let refused = Secrets::check(&name, word.as_bytes()).is_err();
        assert!(refused, "`{word}` is missing in src/vocabulary.rs");
    }
}
