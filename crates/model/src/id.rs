//! Typed ids. An id that parsed is safe to use as one file name: it can never traverse.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} `{shown}` {why}")]
pub struct IdError {
    pub what: &'static str,
    /// The offending text, cut to a printable length.
    pub shown: String,
    pub why: &'static str,
}

impl IdError {
    fn new(what: &'static str, text: &str, why: &'static str) -> Self {
        let shown = text.chars().take(80).flat_map(char::escape_debug).collect();
        Self { what, shown, why }
    }
}

/// `^[A-Za-z0-9][A-Za-z0-9._-]{0,N-1}$` without `..`: one ordinary file name on every system.
fn check_slug(what: &'static str, text: &str, longest: usize) -> Result<(), IdError> {
    let why = if text.is_empty() {
        "is empty"
    } else if text.len() > longest {
        "is too long"
    } else if !text.as_bytes()[0].is_ascii_alphanumeric() {
        "must start with a letter or a digit"
    } else if !text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
    {
        "may hold only letters, digits, `.`, `_` and `-`"
    } else if text.contains("..") {
        "may not hold `..`"
    } else {
        return Ok(());
    };
    Err(IdError::new(what, text, why))
}

/// `<prefix>` + 32 lower-case hexadecimal digits: 122 random bits, nobody guesses one.
fn check_random(what: &'static str, prefix: &str, text: &str) -> Result<(), IdError> {
    let Some(digits) = text.strip_prefix(prefix) else {
        return Err(IdError::new(what, text, "has the wrong prefix"));
    };
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if digits.len() == 32 && digits.bytes().all(hex) {
        Ok(())
    } else {
        Err(IdError::new(
            what,
            text,
            "is not the prefix and 32 hexadecimal digits",
        ))
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $pattern:expr, $longest:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                let check: fn(&str) -> Result<(), IdError> = $check;
                check(text)?;
                Ok(Self(text.to_owned()))
            }
        }
        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                text.parse()
            }
        }
        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        #[cfg(feature = "openapi")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                crate::schema::text($pattern, $longest, concat!("A", $what, "."))
            }
        }
        #[cfg(feature = "openapi")]
        impl utoipa::ToSchema for $name {}
    };
}

id!(
    /// One request to people: `apr_` and 32 hexadecimal digits.
    ApprovalId, "n approval id", "^apr_[0-9a-f]{32}$", 36, |t| check_random("approval id", "apr_", t)
);
id!(
    /// The caller's own name for an exec, unique per space.
    ClientId, " client id", crate::schema::SLUG, 128, |t| check_slug("client id", t, 128)
);
id!(
    /// One run of something: `e_` and 32 hexadecimal digits.
    ExecId, "n exec id", "^e_[0-9a-f]{32}$", 34, |t| check_random("exec id", "e_", t)
);
id!(
    /// A kind of action that was allowed in a conversation: `grt_` and 32 hexadecimal digits.
    GrantId, " grant id", "^grt_[0-9a-f]{32}$", 36, |t| check_random("grant id", "grt_", t)
);
id!(
    /// One thing that webhooks are told: `msg_` and 32 hexadecimal digits.
    MessageId, " message id", "^msg_[0-9a-f]{32}$", 36, |t| check_random("message id", "msg_", t)
);
id!(
    /// A workspace's name; also a directory name, so it can never traverse.
    ProjectId, " project id", crate::schema::SLUG, 128, |t| check_slug("project id", t, 128)
);
id!(
    /// What execs run in: `sb_` and 32 hexadecimal digits.
    SandboxId, " sandbox id", "^sb_[0-9a-f]{32}$", 35, |t| check_random("sandbox id", "sb_", t)
);
id!(
    /// A secret's name; also a file name, so it can never traverse.
    SecretName, " secret name", crate::schema::SLUG, 64, |t| check_slug("secret name", t, 64)
);
id!(
    /// A workspace as it was: `snap_` and 32 hexadecimal digits.
    SnapshotId, " snapshot id", "^snap_[0-9a-f]{32}$", 37, |t| check_random("snapshot id", "snap_", t)
);
id!(
    /// A tenant.
    SpaceId, " space id", crate::schema::SLUG, 64, |t| check_slug("space id", t, 64)
);
id!(
    /// What a token is called in lists and in the ledger; it says nothing about the secret.
    TokenId, " token id", "^t_[0-9a-f]{32}$", 34, |t| check_random("token id", "t_", t)
);
id!(
    /// The name that a person gave a token.
    TokenName, " token name", crate::schema::SLUG, 64, |t| check_slug("token name", t, 64)
);
id!(
    /// The name of an environment variable: `^[A-Za-z_][A-Za-z0-9_]{0,127}$`.
    EnvKey, "n environment key", crate::schema::ENV_KEY, 128, |t| {
        let why = match t.as_bytes() {
            [] => "is empty",
            bytes if bytes.len() > 128 => "is too long",
            [first, ..] if first.is_ascii_digit() => "may not start with a digit",
            bytes if !bytes.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_') => {
                "may hold only letters, digits and `_`"
            }
            _ => return Ok(()),
        };
        Err(IdError::new("environment key", t, why))
    }
);

fn from_random(prefix: &str, random: [u8; 16]) -> String {
    let mut text = String::with_capacity(prefix.len() + 32);
    text.push_str(prefix);
    // The version and variant bits of a random UUID, so that the digits are one.
    let mut bytes = random;
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    for byte in bytes {
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

impl ApprovalId {
    pub fn from_random(random: [u8; 16]) -> Self {
        Self(from_random("apr_", random))
    }
}

impl GrantId {
    pub fn from_random(random: [u8; 16]) -> Self {
        Self(from_random("grt_", random))
    }
}

impl ExecId {
    pub fn from_random(random: [u8; 16]) -> Self {
        Self(from_random("e_", random))
    }
}

impl MessageId {
    pub fn from_random(random: [u8; 16]) -> Self {
        Self(from_random("msg_", random))
    }
}

impl SandboxId {
    pub fn from_random(random: [u8; 16]) -> Self {
        Self(from_random("sb_", random))
    }
}

impl SnapshotId {
    pub fn from_random(random: [u8; 16]) -> Self {
        Self(from_random("snap_", random))
    }
}

impl TokenId {
    pub fn from_random(random: [u8; 16]) -> Self {
        Self(from_random("t_", random))
    }
}

impl SpaceId {
    /// The space of everything that runs without a server.
    pub fn local() -> Self {
        Self("local".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_project_id_can_never_traverse() {
        let refused = [
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "/etc",
            "a\\b",
            "a\0b",
            ".hidden",
            "-flag",
            "a..b",
            "caf\u{e9}",
            "a b",
            "a\nb",
            "~",
            &"x".repeat(129),
        ];
        for text in refused {
            assert!(text.parse::<ProjectId>().is_err(), "{text:?} was accepted");
        }
        for text in ["a", "proj-1", "A.b_c-9", &"x".repeat(128)] {
            assert!(text.parse::<ProjectId>().is_ok(), "{text:?} was refused");
        }
    }

    #[test]
    fn exec_ids_round_trip_and_have_one_form() {
        let id = ExecId::from_random([0xff; 16]);
        assert_eq!(id.as_str(), "e_ffffffffffff4fffbfffffffffffffff");
        assert_eq!(id.as_str().parse::<ExecId>().unwrap(), id);
        for text in [
            "e_",
            "e_FFFFFFFFFFFF4FFFBFFFFFFFFFFFFFFF",
            "x_ffffffffffff4fffbfffffffffffffff",
        ] {
            assert!(text.parse::<ExecId>().is_err());
        }
    }

    #[test]
    fn env_keys_are_shell_names() {
        for text in ["", "1A", "A-B", "A=B", "A B", "A\0", "É"] {
            assert!(text.parse::<EnvKey>().is_err(), "{text:?}");
        }
        assert!("_A1".parse::<EnvKey>().is_ok());
    }

    proptest! {
        #[test]
        fn whatever_parses_is_one_file_name(text in ".{0,200}") {
            if let Ok(id) = text.parse::<ProjectId>() {
                let path = std::path::Path::new(id.as_str());
                let parts: Vec<_> = path.components().collect();
                prop_assert!(matches!(parts[..], [std::path::Component::Normal(_)]));
            }
        }
    }
}
