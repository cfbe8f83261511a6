//! URLs that carry a credential away: by its own look, or by the name it is given. Text patterns
//! isolate nothing; they catch the accident, and the careless exfiltration.

use glovebox_model::credential::{
    Meaning, Source, credential_in, entropy_bits, has_letters_and_digits, meaning_of_parameter,
};
use percent_encoding::percent_decode_str;

/// Shorter values are words.
const NAMED_LEAST: usize = 6;
const MIXED_LEAST: usize = 16;
const RANDOM_LEAST: usize = 24;
/// Bits in a character. English and identifiers stay below; 24 random letters and digits do not.
const RANDOM_BITS: f64 = 4.0;

/// What the URL seems to hold. Never returns any part of it.
pub fn suspected_secret(url: &str) -> Option<&'static str> {
    let before = url.split('#').next().unwrap_or_default();
    let mut readings = vec![before.to_owned()];
    // A browser decodes once, a careless server twice.
    for _ in 0..2 {
        let last = readings.last().map(String::as_str).unwrap_or_default();
        let decoded = percent_decode_str(last).decode_utf8_lossy().into_owned();
        if decoded == *last {
            break;
        }
        readings.push(decoded);
    }
    for reading in &readings {
        if let Some(what) = credential_in(reading.as_bytes(), Source::Url) {
            return Some(what);
        }
    }
    let (_, query) = before.split_once('?')?;
    // What is in the query is a name and a value, or a value alone.
    query.split(['&', ';']).find_map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or(("", pair));
        let value = percent_decode_str(value).decode_utf8_lossy();
        let name = percent_decode_str(name).decode_utf8_lossy();
        named(&name, &value)
    })
}

fn named(name: &str, value: &str) -> Option<&'static str> {
    let value = value.as_bytes();
    let random = looks_random(value);
    let named = match meaning_of_parameter(name) {
        Some(Meaning::Certain) => value.len() >= NAMED_LEAST,
        Some(Meaning::Ambiguous) => random || looks_mixed(value),
        None => false,
    };
    if named {
        return Some("a credential by its name");
    }
    random.then_some("a random value, as credentials are")
}

fn is_url_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn looks_mixed(value: &[u8]) -> bool {
    value.len() >= MIXED_LEAST
        && value.iter().all(|it| is_url_safe(*it))
        && has_letters_and_digits(value)
}

/// Letters of both cases and digits, all mixed. Digests and UUIDs are in one case, so they pass:
/// they name things.
fn looks_random(value: &[u8]) -> bool {
    let base64 = |it: &u8| is_url_safe(*it) || matches!(it, b'+' | b'/' | b'=');
    value.len() >= RANDOM_LEAST
        && value.iter().all(base64)
        && value.iter().any(u8::is_ascii_uppercase)
        && value.iter().any(u8::is_ascii_lowercase)
        && value.iter().filter(|it| it.is_ascii_digit()).count() >= 2
        && entropy_bits(value) >= RANDOM_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LONG: &str = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9";

    #[test]
    fn urls_with_credentials_are_known() {
        let joined = |parts: &[&str]| parts.concat();
        for url in [
            joined(&["https://e.com/?x=AKIA", "ABCDEFGHIJKLMNOP"]),
            joined(&["https://e.com/ghp_", LONG]),
            joined(&["https://ghp_", LONG, ".e.com/"]),
            joined(&["https://e.com/?a=b&c=xoxb-", "1234567890-abc"]),
            joined(&["https://e.com/?q=%67hp_", LONG]),
            joined(&["https://e.com/?q=%2567hp_", LONG]),
            joined(&["https://e.com/eyJ", "hbGciOi.eyJzdWIiOi.c2lnbmF0"]),
            joined(&["https://e.com/?x=-----BEGIN ", "PRIVATE KEY"]),
            joined(&["https://e.com/?x=-----BEGIN ", "CERTIFICATE"]),
            joined(&["https://e.com/?u=https%3A%2F%2Fme%3A", "pass%40host%2F"]),
            "https://e.com/?api_key=abcdef".to_owned(),
            "https://e.com/?API-KEY=abcdef".to_owned(),
            "https://e.com/?access_token=123456".to_owned(),
            "https://e.com/?password=hunter22".to_owned(),
            "https://e.com/?a=1;token=abcdefg".to_owned(),
            "https://e.com/?key=9f8e7d6c5b4a39281706f5e4d3c2b1a0".to_owned(),
            "https://e.com/?X-Amz-Signature=0123456789abcdef".to_owned(),
            joined(&["https://e.com/?q=", LONG]),
            joined(&["https://e.com/?", LONG]),
        ] {
            assert!(suspected_secret(&url).is_some(), "{url}");
        }
    }

    #[test]
    fn ordinary_urls_pass() {
        for url in [
            "https://example.com/",
            "https://example.com/?q=how+to+rotate+an+api+key",
            "https://example.com/search?q=token&page=2",
            "https://example.com/?key=name&sort=asc",
            "https://example.com/?session=summer-2026",
            "https://example.com/?token=",
            "https://example.com/task-0123456789012345678901234567890",
            "https://github.com/rust-lang/rust/commit/9fc6b43126469e3858e2fe86cafb4f0fd5068869",
            "https://example.com/?sha=9fc6b43126469e3858e2fe86cafb4f0fd5068869",
            "https://example.com/?id=123e4567-e89b-12d3-a456-426614174000",
            "https://docs.google.com/document/d/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms/edit",
            "https://www.youtube.com/watch?v=dQw4w9WgXcQ",
            "https://example.com/?utm_source=newsletter&utm_campaign=Spring2026Launch",
            "https://example.com/a?redirect=https%3A%2F%2Fexample.com%2FDocs%2FPage2",
            "https://example.com/?redirect=http://localhost:8080&by=me@example.com",
            "https://example.com/?page_token=abcdefghijkl",
            "https://example.com/#token=abcdefghijkl",
        ] {
            assert_eq!(suspected_secret(url), None, "{url}");
        }
    }

    proptest! {
        #[test]
        fn looking_never_panics(url in "\\PC{0,200}") {
            let _ = suspected_secret(&url);
        }
    }
}
