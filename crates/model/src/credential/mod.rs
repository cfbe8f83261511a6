//! Text that looks like a credential of a known service, and names that credentials are given. These
//! are the only tables of either kind: checks of output, of variables and of URLs all use them, and say
//! where their text comes from. Patterns isolate nothing: they catch the accident, not a program that
//! hides a secret. No function here returns any part of the text.

mod name;
mod pattern;
mod random;

pub use name::{Meaning, ends_with_credential_name, is_credential_variable, meaning_of_parameter};
pub use pattern::{PATTERNS, Pattern};
pub use random::{entropy_bits, has_letters_and_digits};

/// Where a text comes from, which decides where a URL in it ends and what a PEM block in it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A line of output or of a file, which need not be text.
    Line,
    /// A value by itself, such as that of a variable.
    Value,
    /// A URL, or what one decodes to.
    Url,
}

/// What a text looks like it holds.
pub fn credential_in(text: &[u8], source: Source) -> Option<&'static str> {
    if has_private_key(text, source) {
        return Some("a private key");
    }
    if has_password_url(text, source) {
        return Some("a URL with a password");
    }
    if has_json_web_token(text) {
        return Some("a JSON web token");
    }
    pattern::find(text).map(|it| it.what)
}

/// Whether a value that is sent under a name should not be shown.
pub fn looks_secret(name: &str, value: &[u8]) -> bool {
    is_credential_variable(name) || credential_in(value, Source::Value).is_some()
}

fn has_private_key(text: &[u8], source: Source) -> bool {
    let Some(at) = memchr::memmem::find(text, b"-----BEGIN ") else {
        return false;
    };
    match source {
        // A certificate is public, but no page needs a PEM block of any kind in its URL.
        Source::Url => true,
        Source::Line | Source::Value => memchr::memmem::find(&text[at..], b"PRIVATE KEY").is_some(),
    }
}

/// `scheme://user:password@`.
fn has_password_url(text: &[u8], source: Source) -> bool {
    let ends = |byte: &u8| {
        matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>' | b' ')
            || match source {
                // In a file that is no text, a URL ends at a control character.
                Source::Line => byte.is_ascii_control(),
                Source::Value => byte.is_ascii_whitespace(),
                // The next parameter may hold an `@` of its own.
                Source::Url => byte.is_ascii_whitespace() || *byte == b'&',
            }
    };
    memchr::memmem::find_iter(text, b"://").any(|at| {
        let rest = &text[at + 3..];
        let authority = &rest[..rest.iter().position(ends).unwrap_or(rest.len())];
        let user = match authority.iter().rposition(|byte| *byte == b'@') {
            None => return false,
            Some(end) => &authority[..end],
        };
        let colon = user.iter().position(|byte| *byte == b':');
        colon.is_some_and(|at| at + 1 < user.len())
    })
}

/// Three base64url parts, the first of which begins as `{"` does.
fn has_json_web_token(text: &[u8]) -> bool {
    const LEAST: usize = 8;
    let mut read = 0;
    memchr::memmem::find_iter(text, b"eyJ").any(|at| {
        // A start within a run that was read before tells nothing new.
        if at < read || !starts_word(text, at) {
            return false;
        }
        let mut from = at;
        for part in 1..=3 {
            let length = pattern::run_of(text, from, pattern::is_base64url, usize::MAX);
            from += length;
            if part == 1 {
                read = from;
            }
            let goes_on = part == 3 || text.get(from) == Some(&b'.');
            if length < LEAST || !goes_on {
                return false;
            }
            from += 1;
        }
        true
    })
}

/// `sk-` is no key inside `task-`.
fn starts_word(text: &[u8], at: usize) -> bool {
    at == 0 || !text[at - 1].is_ascii_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SOURCES: [Source; 3] = [Source::Line, Source::Value, Source::Url];

    /// Joined here so that no scanner of this repository takes them for real ones.
    fn fake(parts: &[&str]) -> String {
        parts.concat()
    }

    #[test]
    fn credentials_are_known_wherever_they_come_from() {
        let long = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9";
        for (text, what) in [
            (fake(&["AKIA", "ABCDEFGHIJKLMNOP"]), "an AWS access key id"),
            (
                fake(&["id=ASIA", "ABCDEFGHIJKLMNOP"]),
                "an AWS access key id",
            ),
            (fake(&["ghp_", long]), "a GitHub token"),
            (fake(&["github_pat_", long]), "a GitHub token"),
            (fake(&["sk-", long]), "an API key"),
            (fake(&["x sk-proj-", long]), "an API key"),
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
            for source in SOURCES {
                assert_eq!(
                    credential_in(text.as_bytes(), source),
                    Some(what),
                    "{source:?} {text}"
                );
            }
        }
    }

    #[test]
    fn ordinary_text_passes() {
        for text in [
            "",
            "1",
            "production",
            "https://example.com/a:b@c",
            "https://user@example.com",
            "https://example.com:8080/x@y",
            "ssh://git@host:22/x",
            "a://b:@c",
            "task-0123456789012345678901234567890",
            "sk-short",
            "AKIAshort",
            "eyJ.eyJ.x",
            "/usr/local/bin:/usr/bin:/bin",
            "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        ] {
            for source in SOURCES {
                assert_eq!(credential_in(text.as_bytes(), source), None, "{text}");
            }
        }
    }

    #[test]
    fn a_source_decides_where_a_url_ends_and_what_a_pem_block_is() {
        let found = |text: &str| SOURCES.map(|it| credential_in(text.as_bytes(), it).is_some());
        assert_eq!(found("-----BEGIN CERTIFICATE-----"), [false, false, true]);
        assert_eq!(found("https://example.com\u{1}:b@c"), [false, true, true]);
        let next = "https://e.com/?to=http://localhost:80&by=me@x.org";
        assert_eq!(found(next), [true, true, false]);
    }

    /// Would take hours if each place were read to the end of the text.
    #[test]
    fn a_text_that_is_one_long_run_is_not_read_again_from_each_place() {
        for piece in ["eyJ-", "sk-", "pypi-", "SG.", "://", "-----BEGIN "] {
            let text = piece.repeat((1 << 18) / piece.len());
            for source in SOURCES {
                let _ = credential_in(text.as_bytes(), source);
            }
        }
    }

    proptest! {
        #[test]
        fn looking_never_panics(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            for source in SOURCES {
                let _ = credential_in(&text, source);
            }
        }

        #[test]
        fn structured_text_never_panics(text in "(eyJ|sk-|://|@|:|=|-----BEGIN |\\.|[a-z0-9]){0,30}") {
            for source in SOURCES {
                let _ = credential_in(text.as_bytes(), source);
            }
        }

        #[test]
        fn a_token_is_seen_wherever_it_stands(before in "[ =:,\"]{0,5}", after in "[ ;,\"]{0,5}") {
            let text = [before.as_str(), "AKIA", "ABCDEFGHIJKLMNOP", after.as_str()].concat();
            for source in SOURCES {
                prop_assert!(credential_in(text.as_bytes(), source).is_some());
            }
        }
    }
}
