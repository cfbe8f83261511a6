//! Globs of paths: `?` is one character, `*` any number of them within a segment, `**` any number of
//! segments. There are no other special characters. A glob is relative to the workspace unless it
//! begins with `/`.

use glovebox_model::{ByteGlob, Glob};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathGlob {
    text: String,
    glob: ByteGlob,
    /// The directory of a glob for all that is in it.
    whole: Option<ByteGlob>,
}

impl PathGlob {
    pub fn new(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("is empty".to_owned());
        }
        if text.len() > Glob::BYTES_MAX {
            return Err(format!("is longer than {} bytes", Glob::BYTES_MAX));
        }
        let segments = text.strip_prefix('/').unwrap_or(text).split('/');
        for segment in segments {
            match segment {
                "" => return Err("holds an empty segment".to_owned()),
                "." | ".." => return Err("holds `.` or `..`, which no clean path does".to_owned()),
                "**" => {}
                other if other.contains("**") => {
                    return Err("has a `**` that is not a segment of its own".to_owned());
                }
                _ => {}
            }
        }
        let whole = text.strip_suffix("/**").filter(|it| !it.is_empty());
        Ok(Self {
            text: text.to_owned(),
            glob: ByteGlob::new(text, Some('/')),
            whole: whole.map(|it| ByteGlob::new(it, Some('/'))),
        })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it allows a path. What lies outside the workspace is allowed by its absolute path alone,
    /// and a directory as well by a glob for all that is in it.
    pub(crate) fn covers(&self, path: &[u8], is_directory: bool) -> bool {
        if path.starts_with(b"/") != self.text.starts_with('/') {
            return false;
        }
        self.matches(path) || (is_directory && self.is_whole(path))
    }

    /// Whether a path is one that it forbids, or the directory of all that it forbids.
    pub(crate) fn touches(&self, path: &[u8]) -> bool {
        self.matches(path) || self.is_whole(path)
    }

    /// Whether all that it matches lies below a directory. False for a glob that may match anywhere.
    pub(crate) fn is_below(&self, directory: &[u8]) -> bool {
        let wild = |segment: &&str| segment.contains(['*', '?']);
        let fixed = self.text.split('/').take_while(|it| !wild(it)).count();
        let fixed: Vec<&str> = self.text.split('/').take(fixed).collect();
        let fixed = fixed.join("/");
        let rest = fixed.as_bytes().strip_prefix(directory);
        !directory.is_empty() && rest.is_some_and(|it| it.starts_with(b"/"))
    }

    fn matches(&self, path: &[u8]) -> bool {
        self.glob.matches(path)
    }

    fn is_whole(&self, path: &[u8]) -> bool {
        self.whole.as_ref().is_some_and(|it| it.matches(path))
    }
}

/// Whether a path says where it leads: no `..`, no doubled separators.
pub(crate) fn is_clean(path: &[u8]) -> bool {
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let odd = |part: &[u8]| matches!(part, b"" | b"." | b"..");
    !path.split(|byte| *byte == b'/').any(odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(text: &str) -> PathGlob {
        PathGlob::new(text).unwrap()
    }

    #[test]
    fn a_star_stays_within_its_segment() {
        for (text, path, expected) in [
            ("src/**", "src/a/b.py", true),
            ("src/**", "src", false),
            ("src/**", "srcs/a", false),
            ("src/*", "src/a/b", false),
            ("**/.env", ".env", true),
            ("**/.env", "a/b/.env", true),
            ("**/.env", "a/x.env", false),
            ("a/**/c", "a/c", true),
            ("a?c", "a/c", false),
            ("[a]", "a", false),
            ("[a]", "[a]", true),
            ("{a,b}", "a", false),
            ("{a,b}", "{a,b}", true),
            ("a\\b", "a\\b", true),
            ("A", "a", false),
            ("**", "a/b", true),
            ("**", "/etc/x", false),
            ("/etc/**", "/etc/x", true),
            ("etc/**", "/etc/x", false),
        ] {
            assert_eq!(
                glob(text).covers(path.as_bytes(), false),
                expected,
                "{text} {path}"
            );
        }
        assert!(glob("a/*").covers(b"a/\xff", false));
        assert!(glob("src/**").covers(b"src", true));
    }

    #[test]
    fn what_is_forbidden_anywhere_is_forbidden_outside_as_well() {
        assert!(glob("**/.env").touches(b"/home/x/.env"));
        assert!(glob("keys/**").touches(b"keys"));
        assert!(glob("a/keys/**").is_below(b"a"));
        assert!(!glob("a/keys/**").is_below(b"a/keys"));
        assert!(!glob("ab/keys").is_below(b"a"));
        assert!(!glob("**/.env").is_below(b"a"));
    }

    #[test]
    fn globs_that_mean_something_else_are_refused() {
        for bad in [
            "",
            "a//b",
            "a/",
            "./a",
            "../a",
            "a**",
            "**a/b",
            "/",
            &"a".repeat(257),
        ] {
            assert!(PathGlob::new(bad).is_err(), "{bad}");
        }
        for path in ["a/../b", "a//b", "./a", "", "a/"] {
            assert!(!is_clean(path.as_bytes()), "{path}");
        }
        assert!(is_clean(b"/a/b") && is_clean(b"a"));
    }
}
