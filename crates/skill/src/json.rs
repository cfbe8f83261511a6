//! JSON read without leniency, and where in the text each value stands.

use std::collections::BTreeMap;

use glovebox_model::{Numbers, strict_json};
use serde_json::Value;

/// The value, or the line and what is wrong there. A key that is given twice is wrong: two readers
/// could take two different ones.
pub(crate) fn parse(text: &str) -> Result<Value, (usize, String)> {
    strict_json(text, Numbers::AsWritten).map_err(|error| {
        let text = error.to_string();
        // The place is told apart from the sentence.
        let said = text.split(" at line ").next().unwrap_or(&text).to_owned();
        (error.line().max(1), said)
    })
}

/// The line of each value, by its JSON Pointer.
#[derive(Debug, Default)]
pub(crate) struct Lines(BTreeMap<String, usize>);

impl Lines {
    /// `text` was parsed before.
    pub(crate) fn of(text: &str) -> Self {
        let mut reader = Reader {
            bytes: text.as_bytes(),
            at: 0,
            line: 1,
            found: BTreeMap::new(),
        };
        reader.value(String::new());
        Self(reader.found)
    }

    /// Of the value, or of the nearest one above it that is there.
    pub(crate) fn at(&self, pointer: &str) -> usize {
        let mut pointer = pointer;
        loop {
            if let Some(line) = self.0.get(pointer) {
                return *line;
            }
            match pointer.rfind('/') {
                Some(slash) => pointer = &pointer[..slash],
                None => return 1,
            }
        }
    }
}

/// As deep as the parser goes.
const DEPTH_MAX: usize = 128;

struct Reader<'t> {
    bytes: &'t [u8],
    at: usize,
    line: usize,
    found: BTreeMap<String, usize>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(byte @ (b' ' | b'\t' | b'\r' | b'\n')) = self.peek() {
            self.line += usize::from(byte == b'\n');
            self.at += 1;
        }
    }

    fn value(&mut self, pointer: String) {
        self.space();
        self.found.insert(pointer.clone(), self.line);
        if pointer.matches('/').count() > DEPTH_MAX {
            self.at = self.bytes.len();
            return;
        }
        match self.peek() {
            Some(b'{') => self.many(b'}', |reader, _| {
                let key = reader.text();
                reader.space();
                reader.at += 1;
                reader.value(format!("{pointer}/{}", escaped(&key)));
            }),
            Some(b'[') => self.many(b']', |reader, index| {
                reader.value(format!("{pointer}/{index}"));
            }),
            Some(b'"') => {
                self.text();
            }
            _ => {
                while self
                    .peek()
                    .is_some_and(|byte| !b",]} \t\r\n".contains(&byte))
                {
                    self.at += 1;
                }
            }
        }
    }

    fn many(&mut self, close: u8, mut each: impl FnMut(&mut Self, usize)) {
        self.at += 1;
        let mut index = 0;
        loop {
            self.space();
            match self.peek() {
                None => return,
                Some(byte) if byte == close => {
                    self.at += 1;
                    return;
                }
                Some(b',') => self.at += 1,
                Some(_) => {
                    each(self, index);
                    index += 1;
                }
            }
        }
    }

    fn text(&mut self) -> String {
        let begin = self.at;
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += match byte {
                b'\\' => 2,
                _ => 1,
            };
            if byte == b'"' {
                break;
            }
        }
        let end = self.at.min(self.bytes.len());
        serde_json::from_slice(&self.bytes[begin..end]).unwrap_or_default()
    }
}

/// A key as a part of a JSON Pointer.
pub(crate) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_given_twice_is_refused_with_its_line() {
        let (line, why) = parse("{\n \"a\": 1,\n \"a\": 2\n}").unwrap_err();
        assert_eq!((line, why.as_str()), (3, "the key `a` is given twice"));
        assert!(parse("{\"a\": {\"b\": 1, \"b\": 1}}").is_err());
        assert!(parse("{} x").is_err());
        assert!(parse(&"[".repeat(100_000)).is_err());
        assert!(parse("1e999").is_err());
    }

    #[test]
    fn every_value_has_its_line() {
        let text = "{\n  \"a\": [\n    1,\n    {\"b/c\": \"x\\\"\\n\"}\n  ],\n  \"d\": null\n}";
        let lines = Lines::of(text);
        for (pointer, line) in [
            ("", 1),
            ("/a", 2),
            ("/a/0", 3),
            ("/a/1/b~1c", 4),
            ("/d", 6),
            ("/d/not/there", 6),
            ("/nowhere", 1),
        ] {
            assert_eq!(lines.at(pointer), line, "{pointer}");
        }
    }
}
