//! What a container is called and how it is found again.

use std::collections::BTreeMap;
use std::fmt;

use glovebox_model::{Code, Error, Result, Stage};

/// Host names inside and DNS labels end there, and some engines' tools with them.
const LONGEST: usize = 63;

/// Lower case letters, digits and `-`, at most 63; never an option of the command line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerName(String);

impl ContainerName {
    /// The prefix and the whole id: a part of it would be another's some day.
    pub fn of(prefix: &str, id: &str) -> Result<Self> {
        let id = id.to_ascii_lowercase().replace('_', "-");
        Self::parse(&format!("{prefix}{id}"))
    }

    pub fn parse(text: &str) -> Result<Self> {
        let fits = (2..=LONGEST).contains(&text.len())
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !text.starts_with('-');
        if fits {
            return Ok(Self(text.to_owned()));
        }
        let shown: String = text.chars().take(80).flat_map(char::escape_debug).collect();
        Err(Error::new(
            Code::InvalidArgument,
            Stage::Open,
            format!("`{shown}` is no name for a container"),
        )
        .hint("2 to 63 lower case letters, digits and `-`, not starting with `-`; a shorter `container_prefix` leaves more room"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ContainerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Put on a container when it is made; names without `=`.
pub type Labels = BTreeMap<String, String>;

/// A container that the engine knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub name: String,
    pub id: String,
    pub running: bool,
    pub image: String,
    pub labels: Labels,
    pub created: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_id_is_in_the_name() {
        let name = ContainerName::of("glovebox-", "exec_01JABCDEFGHJKMNPQRSTVWXYZ0");
        assert_eq!(
            name.map(|it| it.to_string()).as_deref(),
            Ok("glovebox-exec-01jabcdefghjkmnpqrstvwxyz0")
        );
    }

    #[test]
    fn names_that_are_options_paths_or_too_long_are_refused() {
        for text in [
            "",
            "a",
            "-rm",
            "A-b",
            "a_b",
            "a b",
            "a/b",
            "a\n",
            &"a".repeat(64),
        ] {
            assert!(ContainerName::parse(text).is_err(), "{text:?}");
        }
        assert!(ContainerName::parse(&"a".repeat(63)).is_ok());
    }
}
