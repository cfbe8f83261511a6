//! Text that looks like a credential. It catches the accident of putting one into a file, not
//! somebody who hides it.

/// A token: a known beginning, then at least so many characters of its alphabet.
struct Shape {
    what: &'static str,
    prefix: &'static str,
    least: usize,
    alphabet: fn(u8) -> bool,
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
    shape("an AWS access key id", "AKIA", 16, is_upper_or_digit),
    shape("an AWS access key id", "ASIA", 16, is_upper_or_digit),
    shape("a GitHub token", "ghp_", 30, is_alphanumeric),
    shape("a GitHub token", "gho_", 30, is_alphanumeric),
    shape("a GitHub token", "ghu_", 30, is_alphanumeric),
    shape("a GitHub token", "ghs_", 30, is_alphanumeric),
    shape("a GitHub token", "ghr_", 30, is_alphanumeric),
    shape("a GitHub token", "github_pat_", 20, is_base64url),
    shape("a GitLab token", "glpat-", 20, is_base64url),
    shape("a Google API key", "AIza", 35, is_base64url),
    shape("a Hugging Face token", "hf_", 30, is_alphanumeric),
    shape("an npm token", "npm_", 30, is_alphanumeric),
    shape("a PyPI token", "pypi-", 50, is_base64url),
    shape("a SendGrid key", "SG.", 40, is_base64url_or_dot),
    shape("a Slack token", "xoxa-", 10, is_base64url),
    shape("a Slack token", "xoxb-", 10, is_base64url),
    shape("a Slack token", "xoxe-", 10, is_base64url),
    shape("a Slack token", "xoxp-", 10, is_base64url),
    shape("a Slack token", "xoxr-", 10, is_base64url),
    shape("a Slack token", "xoxs-", 10, is_base64url),
    shape("a Stripe key", "rk_live_", 16, is_alphanumeric),
    shape("a Stripe key", "sk_live_", 16, is_alphanumeric),
    shape("an API key", "sk-", 20, is_base64url),
];

/// Names that are given to credentials, as the ends of what stands before a `=` or `:`.
const NAMES: [&str; 9] = [
    "password",
    "passwd",
    "secret",
    "token",
    "api_key",
    "apikey",
    "access_key",
    "private_key",
    "credential",
];

/// Shorter values are words, or placeholders.
const NAMED_LEAST: usize = 16;
/// The beginning tells enough.
const NAMED_MOST: usize = 64;
const BARE_LEAST: usize = 32;
/// Bits for each character. Random base64 of that length has more; sentences and paths have less.
const NAMED_BITS: f64 = 3.5;
const BARE_BITS: f64 = 4.5;

const MARK: &str = "[secret ";

fn is_upper_or_digit(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn is_base64url_or_dot(byte: u8) -> bool {
    is_base64url(byte) || byte == b'.'
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'+' | b'/' | b'=')
}

/// What random-looking text counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Randomness {
    /// Only behind a name such as `password`.
    #[default]
    Named,
    /// Wherever it stands.
    Anywhere,
}

/// What a line looks like it holds. Never returns any part of the line.
pub(crate) fn credential_in(line: &[u8], randomness: Randomness) -> Option<&'static str> {
    if has_mark(line) {
        return Some("a stored secret");
    }
    if let Some(at) = find(line, b"-----BEGIN ", 0)
        && find(line, b"PRIVATE KEY", at).is_some()
    {
        return Some("a private key");
    }
    if has_password_url(line) {
        return Some("a URL with a password");
    }
    if has_json_web_token(line) {
        return Some("a JSON web token");
    }
    let shaped = |it: &&Shape| {
        word_starts(line, it.prefix)
            .any(|at| run_of(line, at + it.prefix.len(), it.alphabet, it.least) >= it.least)
    };
    if let Some(shape) = SHAPES.iter().find(shaped) {
        return Some(shape.what);
    }
    if has_named_value(line) {
        return Some("a value that is called a secret");
    }
    (randomness == Randomness::Anywhere && has_random_token(line)).then_some("a random token")
}

fn find(haystack: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    let rest = haystack.get(from..)?;
    memchr::memmem::find(rest, needle).map(|at| from + at)
}

/// Every place where `needle` starts a word: `sk-` is no key inside `task-`.
fn word_starts(line: &[u8], needle: &'static str) -> impl Iterator<Item = usize> {
    memchr::memmem::find_iter(line, needle.as_bytes())
        .filter(|at| *at == 0 || !line[at - 1].is_ascii_alphanumeric())
}

/// How many characters of an alphabet follow, up to the most that matter: a line that is one long run
/// must not be read again from each of its places.
fn run_of(line: &[u8], from: usize, alphabet: fn(u8) -> bool, most: usize) -> usize {
    let rest = line.get(from..).unwrap_or_default();
    let rest = rest.iter().take(most);
    rest.take_while(|byte| alphabet(**byte)).count()
}

/// What stands in the place of a stored secret that was found in the text before.
fn has_mark(line: &[u8]) -> bool {
    const NAME_MAX: usize = 256;
    let name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    word_starts(line, MARK).any(|at| {
        let from = at + MARK.len();
        let length = run_of(line, from, name, NAME_MAX);
        length > 0 && line.get(from + length) == Some(&b']')
    })
}

/// Three base64url parts, the first of which begins as `{"` does.
fn has_json_web_token(line: &[u8]) -> bool {
    const LEAST: usize = 8;
    let part = |from: usize| run_of(line, from, is_base64url, usize::MAX);
    let mut read = 0;
    word_starts(line, "eyJ").any(|at| {
        // A start within a run that was read before tells nothing new.
        if at < read {
            return false;
        }
        let mut from = at;
        for parts in 1..=3 {
            let length = part(from);
            from += length;
            if parts == 1 {
                read = from;
            }
            let goes_on = parts == 3 || line.get(from) == Some(&b'.');
            if length < LEAST || !goes_on {
                return false;
            }
            from += 1;
        }
        true
    })
}

/// `scheme://user:password@`.
fn has_password_url(line: &[u8]) -> bool {
    // Files that are no text are looked through as well, and there a URL ends at a control character.
    let ends = |byte: &u8| {
        matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>' | b' ')
            || byte.is_ascii_control()
    };
    for at in memchr::memmem::find_iter(line, b"://") {
        let rest = &line[at + 3..];
        let authority = &rest[..rest.iter().position(ends).unwrap_or(rest.len())];
        let Some(end) = authority.iter().rposition(|byte| *byte == b'@') else {
            continue;
        };
        let user = &authority[..end];
        if user
            .iter()
            .position(|it| *it == b':')
            .is_some_and(|at| at + 1 < user.len())
        {
            return true;
        }
    }
    false
}

/// `api_key = "…"`, `"password": "…"` and the like, with a value that nobody would make up.
fn has_named_value(line: &[u8]) -> bool {
    line.iter().enumerate().any(|(at, byte)| {
        if !matches!(byte, b'=' | b':') {
            return false;
        }
        let (before, after) = (&line[..at], &line[at + 1..]);
        let quote = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`') || byte.is_ascii_whitespace();
        let end = before
            .iter()
            .rposition(|it| !quote(it))
            .map_or(0, |it| it + 1);
        // The longest name is enough to look at.
        let name = &before[end.saturating_sub(16)..end];
        let name = name.to_ascii_lowercase();
        if !NAMES.iter().any(|it| name.ends_with(it.as_bytes())) {
            return false;
        }
        let start = after
            .iter()
            .position(|it| !quote(it))
            .unwrap_or(after.len());
        let length = run_of(after, start, is_token, NAMED_MOST);
        let value = &after[start..start + length];
        value.len() >= NAMED_LEAST && is_mixed(value) && bits(value) >= NAMED_BITS
    })
}

fn has_random_token(line: &[u8]) -> bool {
    line.split(|byte| !is_token(*byte)).any(|token| {
        let hexadecimal = token.iter().all(u8::is_ascii_hexdigit);
        // Digests are as random, and are no secret.
        let digest = [&b"sha256-"[..], b"sha384-", b"sha512-", b"h1"]
            .iter()
            .any(|it| token.starts_with(it));
        token.len() >= BARE_LEAST
            && !hexadecimal
            && !digest
            && is_mixed(token)
            && bits(token) >= BARE_BITS
    })
}

/// Letters and digits: `your_password_goes_here` is none.
fn is_mixed(token: &[u8]) -> bool {
    token.iter().any(u8::is_ascii_digit) && token.iter().any(u8::is_ascii_alphabetic)
}

/// The entropy of its characters.
fn bits(token: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in token {
        counts[usize::from(*byte)] += 1;
    }
    let total = f64::from(u32::try_from(token.len()).unwrap_or(u32::MAX).max(1));
    let share = |count: &u32| f64::from(*count) / total;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| -share(count) * share(count).log2())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Joined here so that no scanner of this repository takes them for real ones.
    fn fake(parts: &[&str]) -> String {
        parts.concat()
    }

    #[test]
    fn credentials_are_known_by_their_shape() {
        let long = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9";
        for (line, what) in [
            (
                fake(&["id=AKIA", "ABCDEFGHIJKLMNOP"]),
                "an AWS access key id",
            ),
            (fake(&["ghp_", long]), "a GitHub token"),
            (fake(&["x sk-proj-", long]), "an API key"),
            (
                fake(&["-----BEGIN RSA PRIVATE", " KEY-----"]),
                "a private key",
            ),
            (fake(&["postgres://u:", "pw@db/x"]), "a URL with a password"),
            (
                fake(&["Bearer eyJ", "hbGciOi.eyJzdWIiOi.c2lnbmF0"]),
                "a JSON web token",
            ),
            (
                fake(&["DB_PASSWORD = \"", "xK9#"]).replace('#', "q2Lm8Rt4Vz7Wy"),
                "a value that is called a secret",
            ),
            (
                fake(&["\"apiKey\": \"", long]),
                "a value that is called a secret",
            ),
            ("value: [secret db.main]".to_owned(), "a stored secret"),
        ] {
            assert_eq!(
                credential_in(line.as_bytes(), Randomness::Named),
                Some(what),
                "{line}"
            );
        }
        let bare = "Zk3Qm9Xt7Lp2Vb8Nc4Rf6Hj1Wd5Ys0GaUeIo";
        assert_eq!(credential_in(bare.as_bytes(), Randomness::Named), None);
        assert_eq!(
            credential_in(bare.as_bytes(), Randomness::Anywhere),
            Some("a random token")
        );
    }

    #[test]
    fn ordinary_lines_pass() {
        for line in [
            "",
            "password = os.environ['DB_PASSWORD']",
            "password: your_password_goes_here",
            "token = next(tokens)",
            "https://example.com/a:b@c",
            "https://example.com\0:b@c",
            "task-0123456789012345678901234567890",
            "sha512-Zk3Qm9Xt7Lp2Vb8Nc4Rf6Hj1Wd5Ys0GaUeIoZk3Qm9Xt7Lp2Vb8Nc4Rf6Hj1Wd5Ys0Ga==",
            "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "[secret]",
            "-----BEGIN CERTIFICATE-----",
        ] {
            assert_eq!(
                credential_in(line.as_bytes(), Randomness::Anywhere),
                None,
                "{line}"
            );
        }
    }

    /// Would take hours if each place were read to the end of the line.
    #[test]
    fn a_line_that_is_one_long_run_is_not_read_again_from_each_place() {
        for piece in ["token=a1", "eyJ-", "sk-", "://", "[secret a", "password: '"] {
            let line = piece.repeat((1 << 18) / piece.len());
            let _ = credential_in(line.as_bytes(), Randomness::Anywhere);
        }
    }

    proptest! {
        #[test]
        fn looking_never_panics(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = credential_in(&line, Randomness::Anywhere);
        }

        #[test]
        fn structured_text_never_panics(line in "(eyJ|sk-|://|@|:|=|token|\\[secret |\\.|[a-z0-9]){0,30}") {
            let _ = credential_in(line.as_bytes(), Randomness::Anywhere);
        }
    }
}
