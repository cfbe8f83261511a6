//! Patterns by which people search for files: with classes, alternatives and escapes, as in a shell. What
//! rules and gates say of paths has fewer signs, and is a `glovebox_model::Glob`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::fault::{FileError, FileResult};
use crate::relpath::shown;

/// Long enough for any path; what a pattern is compiled to grows with it.
const MOST_BYTES: usize = 1024;
const MOST_PATTERNS: usize = 64;
/// Alternatives multiply when they are nested.
const MOST_BRACES: usize = 32;

/// Names that begin with a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hidden {
    Show,
    /// Neither they nor what is in them, even when a pattern names them.
    Skip,
}

impl Hidden {
    pub(super) fn skips(self, name: &[u8]) -> bool {
        self == Self::Skip && name.starts_with(b".")
    }
}

/// Matches a path when one of its patterns does.
#[derive(Debug)]
pub(super) struct Patterns(GlobSet);

impl Patterns {
    pub(super) fn new(patterns: &[String]) -> FileResult<Self> {
        let first = patterns.first().map_or("", String::as_str);
        if patterns.len() > MOST_PATTERNS {
            let why = format!("it is one of more than {MOST_PATTERNS}");
            return Err(refused(first, &why));
        }
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            set.add(check(pattern)?);
        }
        let built = set
            .build()
            .map_err(|error| refused(first, &error.kind().to_string()))?;
        Ok(Self(built))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn matches(&self, path: &[u8]) -> bool {
        self.0.is_match(OsStr::from_bytes(path))
    }
}

fn check(pattern: &str) -> FileResult<globset::Glob> {
    let refuse = |why: &str| Err(refused(pattern, why));
    if pattern.is_empty() {
        return refuse("it is empty");
    }
    if pattern.len() > MOST_BYTES {
        return refuse("it is longer than 1024 bytes");
    }
    if pattern.starts_with('/') {
        return refuse("it is absolute, and paths are relative");
    }
    if pattern.split('/').any(|part| part == "..") {
        return refuse("it holds `..`");
    }
    if pattern.bytes().filter(|byte| *byte == b'{').count() > MOST_BRACES {
        return refuse("it has more than 32 braces");
    }
    GlobBuilder::new(pattern)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .map_err(|error| refused(pattern, &error.kind().to_string()))
}

fn refused(pattern: &str, why: &str) -> FileError {
    FileError::Glob {
        pattern: shown(pattern.as_bytes()),
        why: why.to_owned(),
    }
}
