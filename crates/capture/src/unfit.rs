//! Values that cannot be kept out of anything: whoever masks them masks everything, or nothing.

use std::fmt;

use glovebox_model::{Code, Error, SecretName, Stage};

use crate::stretch::{LONGEST_STRETCH, longest_break};
use crate::vocabulary::is_in_records;

/// Shorter ones stand by chance in ordinary text.
pub const SHORTEST: usize = 8;
/// Nobody's key is longer; every form of a value is held in memory.
pub const LONGEST: usize = 64 * 1024;

/// Quoted, a line break takes twice the bytes.
const BREAKS_MAX: usize = LONGEST_STRETCH / 2;

/// What every marker begins with.
pub(crate) const MARKER: &str = "[secret";

/// As long as a secret, and in everybody's output. In lower case.
const COMMON: [&str; 62] = [
    "-----begin certificate-----",
    "-----begin ec private key-----",
    "-----begin encrypted private key-----",
    "-----begin openssh private key-----",
    "-----begin pgp private key block-----",
    "-----begin private key-----",
    "-----begin public key-----",
    "-----begin rsa private key-----",
    "-----end certificate-----",
    "-----end ec private key-----",
    "-----end encrypted private key-----",
    "-----end openssh private key-----",
    "-----end pgp private key block-----",
    "-----end private key-----",
    "-----end public key-----",
    "-----end rsa private key-----",
    "/bin/bash",
    "/dev/null",
    "/usr/bin/env",
    "/usr/local/bin",
    "/workspace",
    "/workspace/work",
    "0123456789",
    "1234567890",
    "127.0.0.1",
    "192.168.0.1",
    "administrator",
    "anonymous",
    "application/json",
    "authorization",
    "changeme",
    "content-length",
    "content-type",
    "credential",
    "credentials",
    "database",
    "development",
    "disabled",
    "example.com",
    "exception",
    "function",
    "http://localhost",
    "https://",
    "iloveyou",
    "internal",
    "localhost",
    "not found",
    "password",
    "password1",
    "password123",
    "permission denied",
    "placeholder",
    "postgres",
    "production",
    "qwertyuiop",
    "redacted",
    "required",
    "successful",
    "text/plain",
    "traceback",
    "undefined",
    "username",
];

/// Why a value is refused. It never holds the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    pub name: SecretName,
    pub why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    TooShort,
    TooLong,
    /// Fewer than four different characters, or characters in a row.
    Monotonous,
    /// Line breaks over and over inside of it.
    Hollow,
    /// A word that stands in everybody's output.
    Common,
    /// A word of our own records, or a part of one.
    OfRecords,
    /// What a marker looks like.
    LikeMarker,
    /// All values together take too much memory.
    TooMany,
}

impl Why {
    fn in_words(self) -> &'static str {
        match self {
            Self::TooShort => {
                "it is shorter than 8 bytes, and would be masked where it stands by chance"
            }
            Self::TooLong => "it is longer than 64 KiB",
            Self::Monotonous => {
                "it is a few characters over and over, and would be masked where it stands by chance"
            }
            Self::Hollow => "it has more line breaks in a row than a text is searched across",
            Self::Common => "it is a common word, and would be masked wherever that word stands",
            Self::OfRecords => {
                "it is part of a word that records are made of, and would be masked in all of them"
            }
            Self::LikeMarker => "it looks like the marker that stands for a secret",
            Self::TooMany => "there are too many secrets beside it",
        }
    }

    fn way_out(self) -> &'static str {
        match self {
            Self::TooShort
            | Self::Monotonous
            | Self::Common
            | Self::OfRecords
            | Self::LikeMarker => "use a value that nobody guesses, such as `openssl rand -hex 16`",
            Self::TooLong => "store a key, and encrypt the rest with it",
            Self::Hollow => "leave the empty lines out",
            Self::TooMany => "remove secrets that nobody uses: `glovebox secret rm NAME`",
        }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, why) = (&self.name, self.why.in_words());
        write!(
            f,
            "the value of `{name}` cannot be kept out of output: {why}"
        )
    }
}

impl std::error::Error for Unfit {}

impl From<Unfit> for Error {
    fn from(unfit: Unfit) -> Self {
        Error::new(Code::InvalidArgument, Stage::Parse, unfit.to_string()).hint(unfit.why.way_out())
    }
}

/// None if the value, without the white space around it, can be masked.
pub(crate) fn weakness(value: &[u8]) -> Option<Why> {
    if value.len() < SHORTEST {
        return Some(Why::TooShort);
    }
    if value.len() > LONGEST {
        return Some(Why::TooLong);
    }
    let mut seen = [false; 256];
    value
        .iter()
        .for_each(|byte| seen[usize::from(*byte)] = true);
    let different = seen.iter().filter(|it| **it).count();
    let in_a_row = |step: u8| {
        value
            .windows(2)
            .all(|two| two[0].wrapping_add(step) == two[1])
    };
    if different < 4 || in_a_row(1) || in_a_row(255) {
        return Some(Why::Monotonous);
    }
    if COMMON
        .iter()
        .any(|word| value.eq_ignore_ascii_case(word.as_bytes()))
    {
        return Some(Why::Common);
    }
    if is_in_records(value) {
        return Some(Why::OfRecords);
    }
    if longest_break(value) > BREAKS_MAX {
        return Some(Why::Hollow);
    }
    let holds_marker = memchr::memmem::find(value, MARKER.as_bytes()).is_some();
    holds_marker.then_some(Why::LikeMarker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_mask_everything_is_refused() {
        for (value, why) in [
            ("", Why::TooShort),
            ("ab", Why::TooShort),
            ("true", Why::TooShort),
            ("***", Why::TooShort),
            ("/", Why::TooShort),
            ("1234567", Why::TooShort),
            ("aaaaaaaaaaaa", Why::Monotonous),
            ("****************", Why::Monotonous),
            ("=-=-=-=-=-", Why::Monotonous),
            ("12345678", Why::Monotonous),
            ("hgfedcba", Why::Monotonous),
            ("Password", Why::Common),
            ("undefined", Why::Common),
            ("-----BEGIN RSA PRIVATE KEY-----", Why::Common),
            ("succeeded", Why::OfRecords),
            ("Allowlist", Why::OfRecords),
            ("filesystem", Why::OfRecords),
            ("[secret ab]", Why::LikeMarker),
            ("x[secret y", Why::LikeMarker),
            (&format!("abcd{}efgh", "\n".repeat(41)), Why::Hollow),
        ] {
            assert_eq!(weakness(value.as_bytes()), Some(why), "{value}");
        }
        assert_eq!(weakness(&vec![b'x'; LONGEST + 1]), Some(Why::TooLong));
    }

    #[test]
    fn what_a_secret_looks_like_is_taken() {
        for value in [
            "abcd1234",
            "correct horse",
            "hunter2!",
            "ghp_16C7e42F292c",
            "päss-wört",
        ] {
            assert_eq!(weakness(value.as_bytes()), None, "{value}");
        }
    }

    #[test]
    fn a_refusal_names_the_secret_and_the_way_out_and_never_the_value() {
        let name = "db".parse::<SecretName>().unwrap();
        let why = weakness(b"zq7").unwrap();
        let error = Error::from(Unfit { name, why });
        let shown = format!("{error:?}");
        assert!(
            shown.contains("`db`") && shown.contains("openssl rand"),
            "{shown}"
        );
        assert!(!shown.contains("zq7"), "{shown}");
    }
}
