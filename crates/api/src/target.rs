//! The path and the query of a request, put together so that nothing in them can become more.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode, utf8_percent_encode};

/// Everything but RFC 3986's unreserved characters.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target(String);

impl Target {
    /// `fixed` is ours, written down here in the source.
    pub fn new(fixed: &str) -> Self {
        Self(fixed.to_owned())
    }

    /// More of the path, ours as well.
    #[must_use]
    pub fn then(mut self, fixed: &str) -> Self {
        self.0.push_str(fixed);
        self
    }

    /// One more segment, whatever it holds.
    #[must_use]
    pub fn segment(mut self, text: &str) -> Self {
        self.0.push('/');
        // Some servers and proxies walk up at these.
        match text {
            "." => self.0.push_str("%2E"),
            ".." => self.0.push_str("%2E%2E"),
            _ => self.0.extend(utf8_percent_encode(text, ESCAPED)),
        }
        self
    }

    /// More segments: a path of bytes, whose parts are checked by whoever made it.
    #[must_use]
    pub fn path(mut self, path: &[u8]) -> Self {
        for part in path.split(|byte| *byte == b'/') {
            self.0.push('/');
            match part {
                b"." => self.0.push_str("%2E"),
                b".." => self.0.push_str("%2E%2E"),
                _ => self.0.extend(percent_encode(part, ESCAPED)),
            }
        }
        self
    }

    #[must_use]
    pub fn query(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.0.push(if self.0.contains('?') { '&' } else { '?' });
        self.0.push_str(name);
        self.0.push('=');
        self.0
            .extend(utf8_percent_encode(&value.to_string(), ESCAPED));
        self
    }

    #[must_use]
    pub fn optional(self, name: &str, value: Option<impl fmt::Display>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }
}

impl AsRef<str> for Target {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_segment_or_its_value() {
        let target = Target::new("/v1/execs")
            .segment("../a b?c#d/é")
            .segment("..")
            .query("task_id", "x&limit=9")
            .optional("cursor", Some("a+b"))
            .optional("status", None::<&str>);
        let file = Target::new("/v1/files").path(b"a b/\xff?/../c");
        assert_eq!(file.to_string(), "/v1/files/a%20b/%FF%3F/%2E%2E/c");
        assert_eq!(
            target.to_string(),
            "/v1/execs/..%2Fa%20b%3Fc%23d%2F%C3%A9/%2E%2E?task_id=x%26limit%3D9&cursor=a%2Bb"
        );
    }
}
