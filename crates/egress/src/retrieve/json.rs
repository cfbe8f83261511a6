//! JSON within limits: well formed, not too deep, not too much of it. Nothing is built.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::JsonLimits;
use crate::refusal::{Refusal, RefusalCode};

pub(super) fn check(text: &str, limits: JsonLimits) -> Result<(), Refusal> {
    if text.len() > limits.bytes {
        return Err(Refusal::new(
            RefusalCode::ResponseTooLarge,
            format!("the JSON has more than {} bytes", limits.bytes),
        ));
    }
    let over = Cell::new(None);
    let nodes = Cell::new(0);
    let counted = Counted {
        limits,
        depth: 0,
        nodes: &nodes,
        over: &over,
    };
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = counted.deserialize(&mut reader).and_then(|()| reader.end());
    match (over.get(), read) {
        (Some(why), _) => Err(Refusal::new(
            RefusalCode::ExtractFailed,
            match why {
                Over::Depth => format!("the JSON is nested more than {} deep", limits.depth),
                Over::Nodes => format!("the JSON has more than {} values", limits.nodes),
            },
        )),
        (None, Err(error)) => Err(Refusal::new(
            RefusalCode::DecodeError,
            format!(
                "what is declared as JSON is not: line {}, column {}",
                error.line(),
                error.column()
            ),
        )),
        (None, Ok(())) => Ok(()),
    }
}

#[derive(Clone, Copy)]
enum Over {
    Depth,
    Nodes,
}

#[derive(Clone, Copy)]
struct Counted<'a> {
    limits: JsonLimits,
    depth: usize,
    nodes: &'a Cell<usize>,
    over: &'a Cell<Option<Over>>,
}

impl Counted<'_> {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        let depth = self.depth + 1;
        // Before the parser reaches its own limit, so that this one speaks.
        if depth > self.limits.depth.min(126) {
            self.over.set(Some(Over::Depth));
            return Err(E::custom("too deep"));
        }
        Ok(Self { depth, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Counted<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        self.nodes.set(self.nodes.get() + 1);
        if self.nodes.get() > self.limits.nodes {
            self.over.set(Some(Over::Nodes));
            return Err(D::Error::custom("too many"));
        }
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Counted<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let inside = self.deeper()?;
        while seq.next_element_seed(inside)?.is_some() {}
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let inside = self.deeper()?;
        while map.next_key::<IgnoredAny>()?.is_some() {
            map.next_value_seed(inside)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: JsonLimits = JsonLimits {
        bytes: 1000,
        depth: 3,
        nodes: 10,
    };

    fn code(text: &str) -> Option<RefusalCode> {
        check(text, LIMITS).err().map(|it| it.code)
    }

    #[test]
    fn json_is_held_to_its_limits() {
        for text in [
            "1",
            "[[[]]]",
            r#"{"a":{"b":[1,2,null]}}"#,
            " \n{} ",
            "\u{feff}[]",
        ] {
            assert_eq!(code(text), None, "{text}");
        }
        assert_eq!(code("[[[[]]]]"), Some(RefusalCode::ExtractFailed));
        assert_eq!(
            code("[1,2,3,4,5,6,7,8,9,10]"),
            Some(RefusalCode::ExtractFailed)
        );
        assert_eq!(code(&" ".repeat(1001)), Some(RefusalCode::ResponseTooLarge));
        for text in ["", "{", "[1,]", "{}{}", "nope", "{\"a\"}"] {
            assert_eq!(code(text), Some(RefusalCode::DecodeError), "{text}");
        }
    }

    #[test]
    fn no_depth_reaches_the_parsers_own_limit_first() {
        let limits = JsonLimits {
            bytes: 1 << 20,
            depth: usize::MAX,
            nodes: usize::MAX,
        };
        let refusal = check(&"[".repeat(100_000), limits).unwrap_err();
        assert_eq!(refusal.code, RefusalCode::ExtractFailed);
    }
}
