//! Paths of requests, and rules for them.

use std::fmt;
use std::str::FromStr;

use globset::{GlobBuilder, GlobMatcher};
use glovebox_model::{Code, Error, Stage};
use percent_encoding::percent_decode_str;

/// `/v1/*/items`, `/public/**`: `*` stands for anything within a segment, `**` for any segments.
#[derive(Clone)]
pub struct PathRule {
    text: String,
    matcher: GlobMatcher,
}

impl FromStr for PathRule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = |why: &str| {
            let shown: String = text.chars().take(80).flat_map(char::escape_debug).collect();
            Error::new(
                Code::InvalidConfig,
                Stage::Parse,
                format!("path rule `{shown}` {why}"),
            )
            .hint("write for example `/v1/*/items` or `/public/**`")
        };
        if !text.starts_with('/') {
            return Err(refuse("does not begin with `/`"));
        }
        // What else a glob gives a meaning to has none in a path, so nobody is surprised by it.
        if text.contains(['?', '[', ']', '{', '}', '\\', '%', '#']) {
            return Err(refuse(
                "has a character that is neither part of a path nor `*`",
            ));
        }
        if text.split('/').any(|it| it.contains("**") && it != "**") {
            return Err(refuse("has `**` beside other characters"));
        }
        if segments_wrong(text) {
            return Err(refuse("has empty or dotted segments"));
        }
        let glob = GlobBuilder::new(text).literal_separator(true).build();
        let glob = glob.map_err(|error| refuse(&format!("cannot be read: {}", error.kind())))?;
        Ok(Self {
            text: text.to_owned(),
            matcher: glob.compile_matcher(),
        })
    }
}

impl PathRule {
    fn allows(&self, path: &Plain) -> bool {
        self.matcher.is_match(&path.0)
    }
}

impl fmt::Display for PathRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for PathRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PathRule").field(&self.text).finish()
    }
}

/// A path that every server reads in the same way.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plain(String);

impl Plain {
    /// None where servers differ: encoded separators, dotted or empty segments, parameters behind
    /// dots, bytes that are no text.
    pub(crate) fn read(path: &str) -> Option<Self> {
        let decoded = percent_decode_str(path).decode_utf8().ok()?;
        let separators = |text: &str| text.bytes().filter(|it| *it == b'/').count();
        if separators(path) != separators(&decoded)
            || decoded.contains(['\\', '%'])
            || decoded.chars().any(char::is_control)
            || !decoded.starts_with('/')
            || segments_wrong(&decoded)
        {
            return None;
        }
        Some(Self(decoded.into_owned()))
    }

    pub(crate) fn is_allowed_by(&self, rules: &[PathRule]) -> bool {
        rules.iter().any(|rule| rule.allows(self))
    }
}

/// The last segment may be empty: `/a/` is another path than `/a`.
fn segments_wrong(path: &str) -> bool {
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let name = segment.split(';').next().unwrap_or_default();
        let empty = name.is_empty() && segments.peek().is_some();
        if empty || (name.is_empty() && !segment.is_empty()) || matches!(name, "." | "..") {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(rule: &str, path: &str) -> bool {
        let rule = rule.parse::<PathRule>().unwrap();
        Plain::read(path).is_some_and(|path| path.is_allowed_by(std::slice::from_ref(&rule)))
    }

    #[test]
    fn a_star_stays_within_a_segment_and_two_cross() {
        assert!(allowed("/v1/*/items", "/v1/a/items"));
        assert!(allowed("/v1/*/items", "/v1/a%20b/items"));
        assert!(!allowed("/v1/*/items", "/v1/a/b/items"));
        assert!(!allowed("/v1/*/items", "/v1/a/items/1"));
        assert!(allowed("/public/**", "/public/a/b"));
        assert!(allowed("/public/**", "/public/"));
        assert!(!allowed("/public/**", "/public"));
        assert!(!allowed("/public/**", "/publicity/a"));
        assert!(!allowed("/public/**", "/Public/a"));
        assert!(allowed("/**", "/anything/at/all"));
        assert!(allowed("/**", "/"));
        assert!(allowed("/*.json", "/a.json"));
    }

    #[test]
    fn what_servers_read_differently_matches_nothing() {
        for path in [
            "/public/../admin",
            "/public/%2e%2e/admin",
            "/public/.%2E/admin",
            "/public/./a",
            "/public/..;/admin",
            "/public/..;x=1/admin",
            "/public/..%3b/admin",
            "/public//admin",
            "//admin",
            "/public/a%2fb",
            "/public/a%2Fb",
            "/public/a%5cb",
            "/public/a\\b",
            "/public/%00",
            "/public/%0d%0a",
            "/public/%252e%252e/admin",
            "/public/%ff",
            "public/a",
            "*",
            "",
            "/public/;x/a",
        ] {
            assert!(!allowed("/**", path), "{path}");
        }
    }

    #[test]
    fn rules_that_say_something_else_than_they_seem_to_are_refused() {
        for rule in [
            "", "a", "/a?", "/[a]", "/{a,b}", "/a**", "/a\\*", "/a/../b", "/a//b", "/%61",
        ] {
            assert!(rule.parse::<PathRule>().is_err(), "{rule}");
        }
    }
}
