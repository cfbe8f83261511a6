//! JSON read without any leniency: what two readers could understand differently is refused.

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// What becomes of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// They stay as they are: somebody else's values are passed on.
    AsWritten,
    /// One without a fraction is the same with and without a point, and `-0` is none.
    Plain,
}

/// The value. A key that is given twice is wrong, and so is anything behind the value.
pub fn strict_json(text: &str, numbers: Numbers) -> serde_json::Result<Value> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict(numbers).deserialize(&mut reader)?;
    reader.end().map(|()| value)
}

#[derive(Clone, Copy)]
struct Strict(Numbers);

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
        if self.0 == Numbers::Plain {
            if it == 0.0 && it.is_sign_negative() {
                return Err(E::custom("`-0` is not a number here"));
            }
            if it.fract() == 0.0 && it.abs() <= EXACT {
                // Whole and small enough, so nothing is cut.
                #[expect(clippy::cast_possible_truncation)]
                return Ok((it as i64).into());
            }
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
        while let Some(item) = items.next_element_seed(self)? {
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
            let value = entries.next_value_seed(self)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_json_is_taken() {
        let text = r#" {"a": [1, 1.0, 1.5, -2, true, null, "\ud83d\ude00"]} "#;
        let value = strict_json(text, Numbers::Plain).unwrap();
        assert_eq!(
            value,
            json!({"a": [1, 1, 1.5, -2, true, null, "\u{1f600}"]})
        );
        let text = "[1.0, -0.0]";
        let value = strict_json(text, Numbers::AsWritten).unwrap();
        assert_eq!(value.to_string(), "[1.0,-0.0]");
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
            let shown = &text[..text.len().min(60)];
            assert!(strict_json(text, Numbers::Plain).is_err(), "{shown}");
            let only_plain = text.starts_with("-0");
            let taken = strict_json(text, Numbers::AsWritten).is_ok();
            assert_eq!(taken, only_plain, "{shown}");
        }
    }
}
