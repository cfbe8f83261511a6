//! Lines that look like they hold a credential: one of a known service, the mark of a stored one, a
//! random value behind a name such as `password`. It catches the accident of putting one into a file,
//! not a program that hides it.

use glovebox_model::credential::{
    Source, credential_in, ends_with_credential_name, entropy_bits, has_letters_and_digits,
};

/// Shorter values are words, or placeholders.
const NAMED_LEAST: usize = 16;
/// The beginning tells enough.
const NAMED_MOST: usize = 64;
const BARE_LEAST: usize = 32;
/// Bits for each character. Random base64 of that length has more; sentences and paths have less.
const NAMED_BITS: f64 = 3.5;
const BARE_BITS: f64 = 4.5;

const MARK: &[u8] = b"[secret ";

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
pub(crate) fn credential_in_line(line: &[u8], randomness: Randomness) -> Option<&'static str> {
    if has_mark(line) {
        return Some("a stored secret");
    }
    if let Some(what) = credential_in(line, Source::Line) {
        return Some(what);
    }
    if has_named_value(line) {
        return Some("a value that is called a secret");
    }
    (randomness == Randomness::Anywhere && has_random_token(line)).then_some("a random token")
}

/// What stands in the place of a stored secret that was found in the text before.
fn has_mark(line: &[u8]) -> bool {
    const NAME_MAX: usize = 256;
    let in_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    memchr::memmem::find_iter(line, MARK).any(|at| {
        let from = at + MARK.len();
        let name = line[from..].iter().take(NAME_MAX);
        let length = name.take_while(in_name).count();
        length > 0 && line.get(from + length) == Some(&b']')
    })
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'+' | b'/' | b'=')
}

/// `api_key = "…"`, `"password": "…"` and the like, with a value that nobody would make up.
fn has_named_value(line: &[u8]) -> bool {
    let quote = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`') || byte.is_ascii_whitespace();
    line.iter().enumerate().any(|(at, byte)| {
        if !matches!(byte, b'=' | b':') {
            return false;
        }
        let (before, after) = (&line[..at], &line[at + 1..]);
        let end = before
            .iter()
            .rposition(|it| !quote(it))
            .map_or(0, |it| it + 1);
        if !ends_with_credential_name(&before[..end]) {
            return false;
        }
        let start = after
            .iter()
            .position(|it| !quote(it))
            .unwrap_or(after.len());
        let value = after[start..].iter().take(NAMED_MOST);
        let length = value.take_while(|it| is_token(**it)).count();
        let value = &after[start..start + length];
        value.len() >= NAMED_LEAST
            && has_letters_and_digits(value)
            && entropy_bits(value) >= NAMED_BITS
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
            && has_letters_and_digits(token)
            && entropy_bits(token) >= BARE_BITS
    })
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
    fn credentials_are_known_by_their_shape_or_their_name() {
        let long = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9";
        for (line, what) in [
            (fake(&["ghp_", long]), "a GitHub token"),
            (
                fake(&["DB_PASSWORD = \"", "xK9#"]).replace('#', "q2Lm8Rt4Vz7Wy"),
                "a value that is called a secret",
            ),
            (
                fake(&["\"apiKey\": \"", long]),
                "a value that is called a secret",
            ),
            (
                fake(&["x-api-key: ", long]),
                "a value that is called a secret",
            ),
            ("value: [secret db.main]".to_owned(), "a stored secret"),
            ("ab[secret db.main]".to_owned(), "a stored secret"),
        ] {
            assert_eq!(
                credential_in_line(line.as_bytes(), Randomness::Named),
                Some(what),
                "{line}"
            );
        }
        let bare = "Zk3Qm9Xt7Lp2Vb8Nc4Rf6Hj1Wd5Ys0GaUeIo";
        assert_eq!(credential_in_line(bare.as_bytes(), Randomness::Named), None);
        assert_eq!(
            credential_in_line(bare.as_bytes(), Randomness::Anywhere),
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
            "PWD=/home/user1/projects/some-name-2",
            "https://example.com/a:b@c",
            "https://example.com\0:b@c",
            "task-0123456789012345678901234567890",
            "sha512-Zk3Qm9Xt7Lp2Vb8Nc4Rf6Hj1Wd5Ys0GaUeIoZk3Qm9Xt7Lp2Vb8Nc4Rf6Hj1Wd5Ys0Ga==",
            "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "[secret]",
            "-----BEGIN CERTIFICATE-----",
        ] {
            assert_eq!(
                credential_in_line(line.as_bytes(), Randomness::Anywhere),
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
            let _ = credential_in_line(line.as_bytes(), Randomness::Anywhere);
        }
    }

    proptest! {
        #[test]
        fn looking_never_panics(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = credential_in_line(&line, Randomness::Anywhere);
        }

        #[test]
        fn structured_text_never_panics(line in "(eyJ|sk-|://|@|:|=|token|\\[secret |\\.|[a-z0-9]){0,30}") {
            let _ = credential_in_line(line.as_bytes(), Randomness::Anywhere);
        }
    }
}
