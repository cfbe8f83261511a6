//! Names and values that look like credentials. Text patterns isolate nothing: they catch the
//! accident of handing a secret to a program that was only meant to run.

use glovebox_model::EnvKey;

/// Words that make a key a credential wherever they stand between underscores.
const WORDS: &[&str] = &[
    "TOKEN",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "SECRET",
    "SECRETS",
    "CREDENTIAL",
    "CREDENTIALS",
    "APIKEY",
    "PAT",
];

/// The same for words that come in twos.
const PAIRS: &[(&str, &str)] = &[
    ("API", "KEY"),
    ("ACCESS", "KEY"),
    ("PRIVATE", "KEY"),
    ("SIGNING", "KEY"),
    ("ENCRYPTION", "KEY"),
    ("ACCOUNT", "KEY"),
    ("CONNECTION", "STRING"),
    ("WEBHOOK", "URL"),
];

/// Last words that tell of something about a credential: `SECRET_SHA256` is not the secret.
const DESCRIPTIONS: &[&str] = &[
    "COUNT",
    "DIGEST",
    "EXPIRY",
    "FINGERPRINT",
    "HASH",
    "LEN",
    "LENGTH",
    "LIMIT",
    "MAX",
    "MIN",
    "SHA",
    "SHA1",
    "SHA256",
    "SHA512",
    "TTL",
];

/// Endings without an underscore before them, as in `PGPASSWORD` and `GITHUBTOKEN`.
const ENDINGS: &[&str] = &["TOKEN", "PASSWORD", "PASSWD", "SECRET", "APIKEY"];

/// Names that vendors' tools read and that say nothing of the kind.
const NAMES: &[&str] = &[
    "CI_JOB_JWT",
    "DOCKER_AUTH_CONFIG",
    "MYSQL_PWD",
    "NETRC",
    "NPM_CONFIG__AUTH",
    "PGPASSFILE",
    "REDISCLI_AUTH",
    "SENTRY_DSN",
    "SSHPASS",
    "SSH_AUTH_SOCK",
    "STRIPE_SK",
];

/// Whether a value that is sent under a name should not be shown.
pub fn looks_secret(name: &str, value: &[u8]) -> bool {
    let word = |it: char| match it.is_ascii_alphanumeric() {
        true => it,
        false => '_',
    };
    name_looks_secret(&name.chars().map(word).collect::<String>())
        || value_looks_secret(value).is_some()
}

pub(crate) fn key_looks_secret(key: &EnvKey) -> bool {
    name_looks_secret(key.as_str())
}

fn name_looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let words: Vec<&str> = name.split('_').filter(|word| !word.is_empty()).collect();
    if words.last().is_some_and(|last| DESCRIPTIONS.contains(last)) {
        return false;
    }
    NAMES.contains(&name.as_str())
        || words.iter().any(|word| WORDS.contains(word))
        || words
            .windows(2)
            .any(|two| matches!(two, [a, b] if PAIRS.contains(&(*a, *b))))
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// A token: a known beginning, then at least so many characters of its alphabet.
struct Shape {
    what: &'static str,
    prefix: &'static str,
    least: usize,
    alphabet: fn(u8) -> bool,
}

fn upper_or_digit(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

const fn shape(
    what: &'static str,
    prefix: &'static str,
    least: usize,
    alphabet: fn(u8) -> bool,
) -> Shape {
    Shape {
        what,
        prefix,
        least,
        alphabet,
    }
}

const SHAPES: &[Shape] = &[
    shape("an AWS access key id", "AKIA", 16, upper_or_digit),
    shape("an AWS access key id", "ASIA", 16, upper_or_digit),
    shape("a GitHub token", "ghp_", 30, alphanumeric),
    shape("a GitHub token", "gho_", 30, alphanumeric),
    shape("a GitHub token", "ghu_", 30, alphanumeric),
    shape("a GitHub token", "ghs_", 30, alphanumeric),
    shape("a GitHub token", "ghr_", 30, alphanumeric),
    shape("a GitHub token", "github_pat_", 20, base64url),
    shape("a GitLab token", "glpat-", 20, base64url),
    shape("a Hugging Face token", "hf_", 30, alphanumeric),
    shape("an npm token", "npm_", 30, alphanumeric),
    shape("a Stripe key", "sk_live_", 16, alphanumeric),
    shape("a Stripe key", "rk_live_", 16, alphanumeric),
    shape("an API key", "sk-", 20, base64url),
    shape("a Slack token", "xoxa-", 10, base64url),
    shape("a Slack token", "xoxb-", 10, base64url),
    shape("a Slack token", "xoxe-", 10, base64url),
    shape("a Slack token", "xoxp-", 10, base64url),
    shape("a Slack token", "xoxr-", 10, base64url),
    shape("a Slack token", "xoxs-", 10, base64url),
    shape("a Google API key", "AIza", 35, base64url),
];

/// What the value looks like. Never returns any part of the value.
pub(crate) fn value_looks_secret(value: &[u8]) -> Option<&'static str> {
    if has_private_key(value) {
        return Some("a private key");
    }
    if has_password_url(value) {
        return Some("a URL with a password");
    }
    if has_json_web_token(value) {
        return Some("a JSON web token");
    }
    SHAPES
        .iter()
        .find(|it| has_shape(value, it))
        .map(|it| it.what)
}

fn find(haystack: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    let rest = haystack.get(from..)?;
    let at = rest.windows(needle.len()).position(|it| it == needle)?;
    Some(from + at)
}

/// Every place where `needle` starts a word: `sk-` is no key inside `task-`.
fn word_starts(value: &[u8], needle: &'static str) -> impl Iterator<Item = usize> {
    let needle = needle.as_bytes();
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = find(value, needle, from)?;
        from = at + 1;
        Some(at)
    })
    .filter(move |at| *at == 0 || !value[at - 1].is_ascii_alphanumeric())
}

fn run_of(value: &[u8], from: usize, alphabet: fn(u8) -> bool) -> usize {
    let rest = value.get(from..).unwrap_or_default();
    rest.iter().take_while(|byte| alphabet(**byte)).count()
}

fn has_shape(value: &[u8], shape: &Shape) -> bool {
    word_starts(value, shape.prefix)
        .any(|at| run_of(value, at + shape.prefix.len(), shape.alphabet) >= shape.least)
}

/// Three base64url parts, the first of which begins as `{"` does.
fn has_json_web_token(value: &[u8]) -> bool {
    const LEAST: usize = 8;
    word_starts(value, "eyJ").any(|at| {
        let header = run_of(value, at, base64url);
        let second = at + header + 1;
        let payload = run_of(value, second, base64url);
        let third = second + payload + 1;
        header >= LEAST
            && payload >= LEAST
            && value.get(second - 1) == Some(&b'.')
            && value.get(third - 1) == Some(&b'.')
            && run_of(value, third, base64url) >= LEAST
    })
}

fn has_private_key(value: &[u8]) -> bool {
    find(value, b"-----BEGIN ", 0)
        .and_then(|at| find(value, b"PRIVATE KEY", at))
        .is_some()
}

/// `scheme://user:password@`.
fn has_password_url(value: &[u8]) -> bool {
    let ends = |byte: &u8| {
        matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>')
            || byte.is_ascii_whitespace()
    };
    let mut from = 0;
    while let Some(at) = find(value, b"://", from) {
        from = at + 3;
        let rest = &value[from..];
        let authority = &rest[..rest.iter().position(ends).unwrap_or(rest.len())];
        let Some(end) = authority.iter().rposition(|byte| *byte == b'@') else {
            continue;
        };
        let user_info = &authority[..end];
        if let Some(colon) = user_info.iter().position(|byte| *byte == b':')
            && colon + 1 < user_info.len()
        {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_of_credentials_are_known() {
        for key in [
            "OPENAI_API_KEY",
            "openai_api_key",
            "GITHUB_TOKEN",
            "GITHUBTOKEN",
            "PGPASSWORD",
            "DB_PASSWORD_PROD",
            "DB_PASSWD",
            "CLIENT_SECRET",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_ACCESS_KEY_ID",
            "AWS_SESSION_TOKEN",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "SSH_PRIVATE_KEY",
            "AZURE_STORAGE_CONNECTION_STRING",
            "MYSQL_PWD",
            "GH_PAT",
            "OPENAI_API_KEY_2",
            "SLACK_WEBHOOK_URL",
            "VAULT_TOKEN",
            "SSH_AUTH_SOCK",
        ] {
            assert!(key_looks_secret(&key.parse().unwrap()), "{key}");
        }
    }

    #[test]
    fn ordinary_keys_pass() {
        for key in [
            "PATH",
            "HOME",
            "LANG",
            "MAX_TOKENS",
            "TOKENIZERS_PARALLELISM",
            "KEYBOARD",
            "MONKEY",
            "PATTERN",
            "API_URL",
            "NODE_ENV",
            "RUST_BACKTRACE",
            "PYTHONPATH",
            "LD_LIBRARY_PATH",
            "CI",
            "DATABASE_URL",
            "PATH_INFO",
            "COMPATIBLE",
            "KEY",
        ] {
            assert!(!key_looks_secret(&key.parse().unwrap()), "{key}");
        }
    }

    /// Joined here so that no scanner of this repository takes them for real ones.
    fn fake(parts: &[&str]) -> String {
        parts.concat()
    }

    #[test]
    fn values_of_credentials_are_known() {
        let long = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9";
        for (value, what) in [
            (fake(&["AKIA", "ABCDEFGHIJKLMNOP"]), "an AWS access key id"),
            (
                fake(&["id=ASIA", "ABCDEFGHIJKLMNOP"]),
                "an AWS access key id",
            ),
            (fake(&["ghp_", long]), "a GitHub token"),
            (fake(&["github_pat_", long]), "a GitHub token"),
            (fake(&["sk-", long]), "an API key"),
            (fake(&["sk-proj-", long]), "an API key"),
            (fake(&["xoxb-", "1234567890-abc"]), "a Slack token"),
            (fake(&["AIza", long]), "a Google API key"),
            (
                fake(&["Bearer eyJ", "hbGciOi.eyJzdWIiOi.c2lnbmF0"]),
                "a JSON web token",
            ),
            (
                fake(&["-----BEGIN RSA PRIVATE", " KEY-----\nMII"]),
                "a private key",
            ),
            (fake(&["postgres://u:", "pw@db/x"]), "a URL with a password"),
            (
                fake(&["see http://h/ and redis://:", "p%40w@r:6379"]),
                "a URL with a password",
            ),
        ] {
            assert_eq!(value_looks_secret(value.as_bytes()), Some(what), "{value}");
        }
    }

    #[test]
    fn ordinary_values_pass() {
        for value in [
            "",
            "1",
            "production",
            "https://example.com/a:b@c",
            "https://user@example.com",
            "task-0123456789012345678901234567890",
            "sk-short",
            "AKIAshort",
            "eyJ.eyJ.x",
            "https://example.com:8080/x@y",
            "-----BEGIN CERTIFICATE-----",
            "ssh://git@host:22/x",
            "a://b:@c",
            "/usr/local/bin:/usr/bin:/bin",
        ] {
            assert_eq!(value_looks_secret(value.as_bytes()), None, "{value}");
        }
    }

    proptest! {
        #[test]
        fn looking_never_panics(value in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = value_looks_secret(&value);
        }
        #[test]
        fn a_token_is_seen_wherever_it_stands(before in "[ =:,\"]{0,5}", after in "[ ;,\"]{0,5}") {
            let value = [before.as_str(), "AKIA", "ABCDEFGHIJKLMNOP", after.as_str()].concat();
            prop_assert!(value_looks_secret(value.as_bytes()).is_some());
        }
    }
}
