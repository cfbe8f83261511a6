//! Arguments and file names are bytes on Linux, not text. This type keeps every byte and still
//! reads as a plain string in JSON whenever it can.

use std::fmt;

use serde::de::{self, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::unseen::is_unseen;

/// Any bytes without NUL. In JSON: a string when it is UTF-8, else `{"hex": "…"}`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ByteString(Vec<u8>);

impl ByteString {
    /// `None` when there is a NUL inside: no system call could carry it.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Option<Self> {
        let bytes = bytes.into();
        (!bytes.contains(&0)).then_some(Self(bytes))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// For people: invalid UTF-8 is shown as `\xNN`, never dropped.
    pub fn display(&self) -> String {
        let mut text = String::with_capacity(self.0.len());
        for chunk in self.0.utf8_chunks() {
            text.push_str(chunk.valid());
            for byte in chunk.invalid() {
                text.push_str(&format!("\\x{byte:02x}"));
            }
        }
        text
    }
}

impl ByteString {
    /// As [`ByteString::display`], on one line: what follows a line break in a name would pass for a
    /// line of ours, and what is not seen can make one name look like another.
    pub fn one_line(&self) -> String {
        let mut text = String::with_capacity(self.0.len());
        for character in self.display().chars() {
            match character {
                '\n' => text.push_str("\\n"),
                '\t' => text.push_str("\\t"),
                unseen if is_unseen(unseen) => text.extend(unseen.escape_unicode()),
                seen => text.push(seen),
            }
        }
        text
    }
}

impl TryFrom<&str> for ByteString {
    type Error = &'static str;
    fn try_from(text: &str) -> Result<Self, Self::Error> {
        Self::new(text.as_bytes()).ok_or("contains a NUL byte")
    }
}

impl fmt::Debug for ByteString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.display(), f)
    }
}

impl Serialize for ByteString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => {
                let hex: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("hex", &hex)?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for ByteString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = ByteString;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, or {\"hex\": \"…\"}")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<ByteString, E> {
                ByteString::try_from(text).map_err(E::custom)
            }
            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<ByteString, A::Error> {
                let Some((key, value)) = map.next_entry::<String, String>()? else {
                    return Err(de::Error::custom("expected the key `hex`"));
                };
                if key != "hex" {
                    return Err(de::Error::unknown_field(&key, &["hex"]));
                }
                decode_hex(&value)
                    .and_then(ByteString::new)
                    .ok_or_else(|| de::Error::custom("`hex` is not valid hexadecimal without NUL"))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_json_whatever_they_are() {
        for bytes in [&b"plain"[..], b"caf\xc3\xa9", b"bad\xff\xfe", b""] {
            let before = ByteString::new(bytes).unwrap();
            let json = serde_json::to_string(&before).unwrap();
            assert_eq!(
                serde_json::from_str::<ByteString>(&json).unwrap(),
                before,
                "{json}"
            );
        }
    }

    #[test]
    fn a_name_is_one_line() {
        let name = ByteString::new(&b"a\n-  forged\r\t\xff\xe2\x80\xae"[..]).unwrap();
        assert_eq!(name.one_line(), r"a\n-  forged\u{d}\t\xff\u{202e}");
    }

    #[test]
    fn nul_is_refused() {
        assert!(ByteString::new(&b"a\0b"[..]).is_none());
        assert!(serde_json::from_str::<ByteString>(r#""a\u0000b""#).is_err());
        assert!(serde_json::from_str::<ByteString>(r#"{"hex":"00"}"#).is_err());
    }
}
