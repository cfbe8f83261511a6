//! One hash for one configuration, however it was written down.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Counted up when sandboxes are made in another way: those made before are not the same then.
const EPOCH: u64 = 1;

/// SHA-256 over JSON with sorted keys, without what is unset, and with lists of plain values in
/// order, since none of ours means anything by its order.
pub(crate) fn config_hash(config: Value) -> String {
    let mut text = String::new();
    write(&canonical(config), &mut text);
    let digest = Sha256::new()
        .chain_update(EPOCH.to_be_bytes())
        .chain_update(text)
        .finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn canonical(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, canonical(value)))
            .collect(),
        Value::Array(items) => {
            let mut items: Vec<Value> = items.into_iter().map(canonical).collect();
            if items
                .iter()
                .all(|item| !item.is_object() && !item.is_array())
            {
                items.sort_by_key(ToString::to_string);
            }
            Value::Array(items)
        }
        plain => plain,
    }
}

/// With sorted keys, whatever order the map has.
fn write(value: &Value, to: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            to.push('{');
            for (key, value) in sorted {
                to.push_str(&Value::from(key.as_str()).to_string());
                to.push(':');
                write(value, to);
                to.push(',');
            }
            to.push('}');
        }
        Value::Array(items) => {
            to.push('[');
            for item in items {
                write(item, to);
                to.push(',');
            }
            to.push(']');
        }
        plain => to.push_str(&plain.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn order_and_unset_fields_do_not_matter() {
        let one = json!({"b": [3, 1], "a": {"x": null, "y": "1"}});
        let other = json!({"a": {"y": "1"}, "b": [1, 3], "c": null});
        assert_eq!(config_hash(one), config_hash(other));
    }

    #[test]
    fn values_types_and_places_do() {
        let all = [
            json!({"a": 1}),
            json!({"a": "1"}),
            json!({"b": 1}),
            json!({"a": [1]}),
            json!({"a": [1, 1]}),
            json!({"a": {"a": 1}}),
            json!({"a": [[2, 1], [0]]}),
            json!({"a": [[0], [1, 2]]}),
        ];
        let hashes: std::collections::HashSet<_> = all.into_iter().map(config_hash).collect();
        assert_eq!(hashes.len(), 8);
        assert!(hashes.iter().all(|hash| hash.len() == 64));
    }
}
