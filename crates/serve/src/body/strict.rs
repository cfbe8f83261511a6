//! JSON read without any leniency: what two readers could understand differently is refused.

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The value, or what is wrong with the text. A key that is given twice is wrong; a number without
/// a fraction is the same with and without a point.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "the body is not UTF-8".to_owned())?;
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict
        .deserialize(&mut reader)
        .map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(value)
}

struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;
    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, it: bool) -> Result<Value, E> {
        Ok(Value::Bool(it))
    }

    fn visit_u64<E>(self, it: u64) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_i64<E>(self, it: i64) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_f64<E: serde::de::Error>(self, it: f64) -> Result<Value, E> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if it == 0.0 && it.is_sign_negative() {
            return Err(E::custom("`-0` is not a number here"));
        }
        if it.fract() == 0.0 && it.abs() <= EXACT {
            // Whole and small enough, so nothing is cut.
            #[expect(clippy::cast_possible_truncation)]
            return Ok((it as i64).into());
        }
        Number::from_f64(it)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number is out of range"))
    }

    fn visit_str<E>(self, it: &str) -> Result<Value, E> {
        Ok(Value::String(it.to_owned()))
    }

    fn visit_string<E>(self, it: String) -> Result<Value, E> {
        Ok(Value::String(it))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                let shown: String = key.chars().take(80).flat_map(char::escape_debug).collect();
                return Err(A::Error::custom(format!(
                    "the key `{shown}` is given twice"
                )));
            }
            let value = entries.next_value_seed(Self)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn plain_json_is_taken() {
        let value = parse(br#" {"a": [1, 1.0, 1.5, -2, true, null, "\ud83d\ude00"]} "#).unwrap();
        assert_eq!(
            value,
            json!({"a": [1, 1, 1.5, -2, true, null, "\u{1f600}"]})
        );
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let digits = format!("1{}", "0".repeat(1_000_000));
        for text in [
            "",
            "{",
            "{} {}",
            "{} x",
            "[1,]",
            "{\"a\":1,\"a\":2}",
            "{\"a\":{\"b\":1,\"b\":1}}",
            "NaN",
            "Infinity",
            "-",
            "01",
            "+1",
            "1e999",
            "-0",
            "-0.0",
            "'a'",
            "\u{feff}{}",
            "\"\\ud800\"",
            "\"\\ud800\\u0041\"",
            "\"a\nb\"",
            "nul",
            "// x\n1",
            &deep,
            &digits,
        ] {
            assert!(
                parse(text.as_bytes()).is_err(),
                "{}",
                &text[..text.len().min(60)]
            );
        }
        assert!(parse(b"\"\xff\"").is_err());
    }
}
