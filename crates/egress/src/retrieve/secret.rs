//! URLs that carry a credential away: by its own look, or by the name it is given. Text patterns
//! isolate nothing; they catch the accident, and the careless exfiltration.

use percent_encoding::percent_decode_str;

/// A beginning that only credentials have, and how many more characters make it one.
struct Shape {
    what: &'static str,
    begins: &'static str,
    more: usize,
    has: fn(u8) -> bool,
}

fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}
fn url_safe(byte: u8) -> bool {
    word(byte) || byte == b'-' || byte == b'_'
}
fn capital(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}
fn dotted(byte: u8) -> bool {
    url_safe(byte) || byte == b'.'
}

macro_rules! shapes {
    ($($what:literal: $($begins:literal),+ + $more:literal of $has:ident;)+) => {
        &[$($(Shape { what: $what, begins: $begins, more: $more, has: $has }),+),+]
    };
}

const SHAPES: &[Shape] = shapes! {
    "an AWS access key": "AKIA", "ASIA" + 16 of capital;
    "a GitHub token": "ghp_", "gho_", "ghu_", "ghs_", "ghr_" + 30 of word;
    "a GitHub token": "github_pat_" + 20 of url_safe;
    "a GitLab token": "glpat-", "gldt-", "glrt-" + 20 of url_safe;
    "an npm token": "npm_" + 30 of word;
    "a PyPI token": "pypi-AgEI" + 30 of url_safe;
    "a Hugging Face token": "hf_" + 30 of word;
    "a Stripe key": "sk_live_", "rk_live_", "sk_test_" + 16 of word;
    "a Slack token": "xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-", "xoxs-", "xapp-" + 10 of url_safe;
    "a Google API key": "AIza" + 35 of url_safe;
    "a Google token": "ya29." + 20 of dotted;
    "a SendGrid key": "SG." + 40 of dotted;
    "a DigitalOcean token": "dop_v1_" + 40 of word;
    "a Glovebox token": "gbx_" + 20 of url_safe;
    "an API key": "sk-" + 20 of url_safe;
};

/// Names that are given to credentials alone, without the signs between their words.
const NAMES: &[&str] = &[
    "accesskey",
    "accesstoken",
    "apikey",
    "apisecret",
    "apitoken",
    "authorization",
    "authtoken",
    "awsaccesskeyid",
    "awssecretaccesskey",
    "bearer",
    "clientsecret",
    "credential",
    "credentials",
    "idtoken",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "pwd",
    "refreshtoken",
    "secret",
    "secretkey",
    "sessiontoken",
    "sharedaccesssignature",
    "token",
    "xamzsecuritytoken",
    "xamzsignature",
    "xapikey",
    "xgoogsignature",
];
/// Those that mean something else as often: what they hold must look like a credential too.
const AMBIGUOUS: &[&str] = &[
    "auth",
    "code",
    "key",
    "session",
    "sessionid",
    "sid",
    "sig",
    "signature",
];

const NAMED_LEAST: usize = 6;
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
        if let Some(what) = shaped(reading.as_bytes()) {
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

fn shaped(text: &[u8]) -> Option<&'static str> {
    if text.windows(11).any(|it| it == b"-----BEGIN ") {
        return Some("a private key");
    }
    (0..text.len()).find_map(|at| {
        // In the middle of a word nothing begins.
        if at > 0 && word(text[at - 1]) {
            return None;
        }
        let rest = &text[at..];
        if is_web_token(rest) {
            return Some("a JSON web token");
        }
        let found = SHAPES.iter().find(|shape| {
            rest.strip_prefix(shape.begins.as_bytes())
                .is_some_and(|rest| run(rest, shape.has) >= shape.more)
        });
        found.map(|shape| shape.what)
    })
}

fn run(text: &[u8], has: fn(u8) -> bool) -> usize {
    text.iter().take_while(|it| has(**it)).count()
}

/// Three parts, of which the first begins as `{"` does in base64.
fn is_web_token(text: &[u8]) -> bool {
    if !text.starts_with(b"eyJ") {
        return false;
    }
    let length = run(text, dotted);
    let parts: Vec<_> = text[..length].split(|it| *it == b'.').take(3).collect();
    parts.len() == 3 && parts.iter().all(|it| it.len() >= 8)
}

fn named(name: &str, value: &str) -> Option<&'static str> {
    let name: String = name
        .chars()
        .filter(|it| !matches!(it, '-' | '_' | '.' | '[' | ']'))
        .map(|it| it.to_ascii_lowercase())
        .collect();
    let random = looks_random(value.as_bytes());
    if NAMES.contains(&name.as_str()) && value.len() >= NAMED_LEAST {
        return Some("a credential by its name");
    }
    if AMBIGUOUS.contains(&name.as_str()) && (random || has_digits_and_letters(value)) {
        return Some("a credential by its name");
    }
    random.then_some("a random value, as credentials are")
}

fn has_digits_and_letters(value: &str) -> bool {
    value.len() >= 16
        && value.bytes().all(url_safe)
        && value.bytes().any(|it| it.is_ascii_digit())
        && value.bytes().any(|it| it.is_ascii_alphabetic())
}

/// Letters of both cases and digits, all mixed. Digests and UUIDs are in one case, so they pass:
/// they name things.
fn looks_random(value: &[u8]) -> bool {
    let base64 = |it: &u8| url_safe(*it) || matches!(it, b'+' | b'/' | b'=');
    value.len() >= RANDOM_LEAST
        && value.iter().all(base64)
        && value.iter().any(u8::is_ascii_uppercase)
        && value.iter().any(u8::is_ascii_lowercase)
        && value.iter().filter(|it| it.is_ascii_digit()).count() >= 2
        && bits(value) >= RANDOM_BITS
}

/// Shannon's measure, of single characters.
fn bits(value: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    for byte in value {
        counts[usize::from(*byte)] += 1;
    }
    let all: f64 = counts.iter().copied().map(f64::from).sum();
    let part = |count: &u32| {
        let share = f64::from(*count) / all;
        -share * share.log2()
    };
    counts.iter().filter(|it| **it > 0).map(part).sum()
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
