//! A query as people see it: what is secret in it, or looks so, is masked. What is compared when it
//! is sent for real is the digest of the whole.

use std::fmt::Write as _;

use glovebox_capture::Secrets;
use glovebox_model::credential::{looks_secret, meaning_of_parameter};

/// In bytes of the shown text.
const MOST: usize = 2048;
const MASK: &str = "[secret value]";

pub(super) fn shown(query: &str, masks: &Secrets) -> String {
    let redacted = masks.redact_str(query);
    let mut text = String::new();
    for (index, field) in redacted.split('&').enumerate() {
        if index > 0 {
            text.push('&');
        }
        let (name, value) = field.split_once('=').unwrap_or(("", field));
        if field.contains('=') {
            escape(name, &mut text);
            text.push('=');
        }
        match is_secret(name, value) {
            true => text.push_str(MASK),
            false => escape(value, &mut text),
        }
    }
    if text.len() > MOST {
        // All of it is ASCII.
        let more = text.len() - MOST;
        text.truncate(MOST);
        let _ = write!(text, "… ({more} bytes more)");
    }
    text
}

fn is_secret(name: &str, value: &str) -> bool {
    let name = String::from_utf8_lossy(&decoded(name)).to_ascii_lowercase();
    // X-Amz-Signature.
    let last = name.rsplit(|it: char| !it.is_ascii_alphanumeric()).next();
    !value.is_empty()
        && (last.is_some_and(|it| meaning_of_parameter(it).is_some())
            || looks_secret(&name, &decoded(value)))
}

fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|it| std::str::from_utf8(it).ok());
        let coded = hex.and_then(|it| u8::from_str_radix(it, 16).ok());
        match (first, coded) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

/// What cannot be seen, or looks like something else, is shown as its bytes.
fn escape(text: &str, to: &mut String) {
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' => to.push(char::from(byte)),
            _ => {
                let _ = write!(to, "%{byte:02X}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_shown_without_what_is_secret_or_looks_so() {
        let stored = ("s".parse().unwrap(), b"xK9q2Lm8Rt4Vz7Wy".to_vec());
        let masks = Secrets::compile([stored]).unwrap();
        for (query, expected) in [
            ("", ""),
            ("leak", "leak"),
            ("a=1&b=&&c", "a=1&b=&&c"),
            (
                "page=2&api_key=x&token=",
                "page=2&api_key=[secret value]&token=",
            ),
            (
                "X-Amz-Signature=0a&t%6fken=1",
                "X-Amz-Signature=[secret value]&t%6fken=[secret value]",
            ),
            ("q=AKIAIOSFODNN7EXAMPLE", "q=[secret value]"),
            ("AKIAIOSFODNN7EXAMPLE", "[secret value]"),
            ("u=https%3A%2F%2Fme%3Apass%40host%2F", "u=[secret value]"),
            ("q=a-xK9q2Lm8Rt4Vz7Wy", "q=a-[secret s]"),
            ("q=\u{200b}\u{e9}", "q=%E2%80%8B%C3%A9"),
        ] {
            assert_eq!(shown(query, &masks), expected, "{query}");
        }
        let long = shown(&"a".repeat(MOST + 7), &masks);
        assert!(long.ends_with("a… (7 bytes more)"), "{long}");
    }
}
