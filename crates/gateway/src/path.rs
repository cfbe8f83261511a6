//! Paths of requests, and rules for them.

use std::fmt;
use std::str::FromStr;

use glovebox_model::{Code, Error, Glob, Stage};
use percent_encoding::percent_decode_str;

/// Of a rule: every path is compared with it, in a time that grows with both.
const BYTES_MAX: usize = 1024;

/// `/v1/*/items`, `/public/**`: `*` stands for anything within a segment, `**` for any segments.
#[derive(Clone)]
pub struct PathPattern(Glob);

impl FromStr for PathPattern {
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
        if text.len() > BYTES_MAX {
            return Err(refuse("is longer than 1024 bytes"));
        }
        Ok(Self(Glob::new(text, Some('/'))))
    }
}

impl PathPattern {
    fn allows(&self, path: &Plain) -> bool {
        self.0.matches(&path.0)
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.text())
    }
}

impl fmt::Debug for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PathPattern").field(&self.0.text()).finish()
    }
}

/// A path that every server reads in the same way.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plain(String);

impl Plain {
    /// None where servers differ: encoded separators, dotted or empty segments, parameters behind
    /// dots, bytes that are no text, characters that become one of these when they are normalised.
    pub(crate) fn read(path: &str) -> Option<Self> {
        let decoded = percent_decode_str(path).decode_utf8().ok()?;
        let separators = |text: &str| text.bytes().filter(|it| *it == b'/').count();
        if separators(path) != separators(&decoded)
            || decoded.contains(['\\', '%'])
            || decoded.contains(LIKE_SEPARATORS)
            || decoded.chars().any(char::is_control)
            || !decoded.starts_with('/')
            || segments_wrong(&decoded)
        {
            return None;
        }
        Some(Self(decoded.into_owned()))
    }

    pub(crate) fn is_allowed_by(&self, rules: &[PathPattern]) -> bool {
        rules.iter().any(|rule| rule.allows(self))
    }
}

/// What NFKC, or the best fit of a code page, makes `/`, `\\`, `%`, `;`, `?` or `#` of.
const LIKE_SEPARATORS: [char; 29] = [
    '\u{a5}', '\u{37e}', '\u{2044}', '\u{2047}', '\u{2048}', '\u{2049}', '\u{20a9}', '\u{2100}',
    '\u{2101}', '\u{2105}', '\u{2106}', '\u{2215}', '\u{2216}', '\u{29f5}', '\u{29f8}', '\u{29f9}',
    '\u{fe14}', '\u{fe16}', '\u{fe54}', '\u{fe56}', '\u{fe5f}', '\u{fe68}', '\u{fe6a}', '\u{ff03}',
    '\u{ff05}', '\u{ff0f}', '\u{ff1b}', '\u{ff1f}', '\u{ff3c}',
];

/// And what becomes a dot, or several.
const LIKE_DOTS: [char; 10] = [
    '.', '\u{2024}', '\u{2025}', '\u{2026}', '\u{3002}', '\u{fe19}', '\u{fe30}', '\u{fe52}',
    '\u{ff0e}', '\u{ff61}',
];

/// What is left out, at the ends of a name or anywhere: blanks, and what Unicode says may be ignored.
fn is_ignored(character: char) -> bool {
    character.is_whitespace()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Nothing but dots, however they are written and whatever stands unseen between them. More than two
/// are cut to two by some.
fn is_dotted(name: &str) -> bool {
    let mut seen = name.chars().filter(|it| !is_ignored(*it)).peekable();
    seen.peek().is_some() && seen.all(|it| LIKE_DOTS.contains(&it))
}

/// The last segment may be empty: `/a/` is another path than `/a`.
fn segments_wrong(path: &str) -> bool {
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let name = segment.split(';').next().unwrap_or_default();
        let blank = name.chars().all(is_ignored);
        let empty = blank && segments.peek().is_some();
        // Some servers take what was `%3f` or `%23` for the end of a name. That matters behind dots;
        // names such as `#room` begin with it.
        let before = name.split(['?', '#']).next().unwrap_or_default();
        if empty || (blank && !segment.is_empty()) || is_dotted(before) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(rule: &str, path: &str) -> bool {
        let rule = rule.parse::<PathPattern>().unwrap();
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
        assert!(allowed(
            "/wiki/*",
            "/wiki/Ann%E2%80%99s_caf%C3%A9_%E2%80%93_v1.2%E2%80%A6"
        ));
        assert!(allowed("/wiki/*", "/wiki/.profile"));
        assert!(allowed("/wiki/*", "/wiki/%3F"));
        assert!(allowed("/directory/room/*", "/directory/room/%23room:host"));
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
            "/public/..%3f/admin",
            "/public/..%23/admin",
            "/public/%2e.%3Fx=1/admin",
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
            "/public/．．/admin",
            "/public/%EF%BC%8E%EF%BC%8E/admin",
            "/public/‥/admin",
            "/public/.․/admin",
            "/public/﹒﹒/admin",
            "/public/︰/admin",
            "/public/.%E2%80%8B./admin",
            "/public/..%20/admin",
            "/public/.../admin",
            "/public/．．;x/admin",
            "/public/%20/admin",
            "/public/a／admin",
            "/public/a%EF%BC%8Fadmin",
            "/public/．．＼admin",
            "/public/％2e％2e/admin",
            "/public/a℀b",
            "/public/a∕b",
            "/public/a；b",
        ] {
            assert!(!allowed("/**", path), "{path}");
        }
    }

    #[test]
    fn rules_that_say_something_else_than_they_seem_to_are_refused() {
        for rule in [
            "", "a", "/a?", "/[a]", "/{a,b}", "/a**", "/a\\*", "/a/../b", "/a//b", "/%61",
        ] {
            assert!(rule.parse::<PathPattern>().is_err(), "{rule}");
        }
        let long = format!("/{}", "a".repeat(BYTES_MAX));
        assert!(long.parse::<PathPattern>().is_err());
    }
}
