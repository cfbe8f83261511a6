//! The bytes that are hashed and signed. A message is a list of texts; each is written as its
//! length in bytes (eight bytes, big-endian) and then its bytes, so no two lists share an encoding.

use serde_json::Value;
use sha2::{Digest, Sha256};

pub(crate) type Hash = [u8; 32];

pub(crate) fn encode(fields: &[&str]) -> Vec<u8> {
    let fields: Vec<&[u8]> = fields.iter().map(|field| field.as_bytes()).collect();
    encode_bytes(&fields)
}

/// As [`encode`], of texts that may be anything.
pub(crate) fn encode_bytes(fields: &[&[u8]]) -> Vec<u8> {
    let length = fields.iter().map(|field| 8 + field.len()).sum();
    let mut bytes = Vec::with_capacity(length);
    for field in fields {
        bytes.extend_from_slice(&(field.len() as u64).to_be_bytes());
        bytes.extend_from_slice(field);
    }
    bytes
}

pub(crate) fn sha256(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// JSON in one form: keys sorted by their bytes, no spaces, only the escapes that JSON demands.
/// Written here because the order of a [`Value`]'s keys depends on how the program was built.
pub(crate) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&value.to_string());
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            text.push('{');
            for (index, key) in keys.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::String(key.clone()).to_string());
                text.push(':');
                write(&map[key], text);
            }
            text.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn decode(mut bytes: &[u8]) -> Vec<String> {
        let mut fields = Vec::new();
        while let Some((length, rest)) = bytes.split_first_chunk::<8>() {
            let length = usize::try_from(u64::from_be_bytes(*length)).unwrap();
            fields.push(String::from_utf8(rest[..length].to_vec()).unwrap());
            bytes = &rest[length..];
        }
        assert!(bytes.is_empty());
        fields
    }

    proptest! {
        #[test]
        fn whatever_is_encoded_can_be_read_back(fields in vec("(?s).{0,20}", 0..8)) {
            let texts: Vec<&str> = fields.iter().map(String::as_str).collect();
            prop_assert_eq!(decode(&encode(&texts)), fields);
        }

        #[test]
        fn moving_a_border_changes_the_encoding(text in "[a-c]{2,12}", at in 0usize..12, to in 0usize..12) {
            let (at, to) = (at % text.len(), to % text.len());
            let (left, right) = (encode(&[&text[..at], &text[at..]]), encode(&[&text[..to], &text[to..]]));
            prop_assert_eq!(left == right, at == to);
        }
    }

    #[test]
    fn canonical_json_has_one_form() {
        let value: Value =
            serde_json::from_str(r#" {"b": [1, {"z":null,"a":"\u00e9\n\u001f/"}], "a": true} "#)
                .unwrap();
        let text = canonical(&value);
        assert_eq!(
            text,
            "{\"a\":true,\"b\":[1,{\"a\":\"é\\n\\u001f/\",\"z\":null}]}"
        );
        let again: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(canonical(&again), text);
    }
}
