//! A relative path of bytes that was checked once. The check only gives better errors: whether a
//! path stays inside its directory is decided by the kernel when it is opened.

use std::fmt;

use glovebox_model::{ByteString, Code, Error, Stage, is_unseen};

/// The longest single file name that Linux file systems take.
const NAME_MAX: usize = 255;
/// `PATH_MAX` counts the closing NUL.
pub(crate) const PATH_MAX: usize = 4095;

/// Not empty, not absolute, no NUL, and never above its start when read from left to right.
///
/// `.` and doubled slashes are dropped. `..` is kept: `a/../b` is only the same as `b` when `a` is
/// not a symbolic link, which nobody but the kernel can know at the moment of opening.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelPath(Vec<u8>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathError {
    Empty,
    Nul,
    Absolute,
    /// More `..` than names before them.
    Escapes,
    /// `.`, `a/..` and the like: the directory itself, where a name inside it is needed.
    Itself,
    /// Ends in `..`, where the last part must be a name.
    NoName,
    NameTooLong,
    PathTooLong,
}

impl RelPath {
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self, PathError> {
        let bytes = bytes.as_ref();
        match bytes {
            [] => return Err(PathError::Empty),
            [b'/', ..] => return Err(PathError::Absolute),
            _ if bytes.contains(&0) => return Err(PathError::Nul),
            _ => {}
        }
        let mut kept = Vec::with_capacity(bytes.len());
        let mut depth = 0usize;
        for part in bytes.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => continue,
                b".." => depth = depth.checked_sub(1).ok_or(PathError::Escapes)?,
                name if name.len() > NAME_MAX => return Err(PathError::NameTooLong),
                _ => depth += 1,
            }
            if !kept.is_empty() {
                kept.push(b'/');
            }
            kept.extend_from_slice(part);
        }
        match (depth, kept.len()) {
            (0, _) => Err(PathError::Itself),
            (_, length) if length > PATH_MAX => Err(PathError::PathTooLong),
            _ => Ok(Self(kept)),
        }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn to_byte_string(&self) -> ByteString {
        ByteString::new(self.0.as_slice()).unwrap_or_default()
    }

    pub fn components(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/')
    }

    /// Whether any part is `..`.
    pub fn climbs(&self) -> bool {
        self.components().any(|part| part == b"..")
    }

    /// The directory part, when there is one, and the last name.
    pub(crate) fn split(&self) -> Result<(Option<&[u8]>, &[u8]), PathError> {
        let (parent, name) = match self.0.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (Some(&self.0[..at]), &self.0[at + 1..]),
            None => (None, self.0.as_slice()),
        };
        match name {
            b".." => Err(PathError::NoName),
            _ => Ok((parent, name)),
        }
    }

    /// `a/b/c` gives `a`, `a/b`, `a/b/c`.
    pub(crate) fn prefixes(&self) -> impl Iterator<Item = &[u8]> {
        let ends = self.0.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        ends.map(|(at, _)| at)
            .chain([self.0.len()])
            .map(|end| &self.0[..end])
    }
}

impl PathError {
    pub const fn why(self) -> &'static str {
        match self {
            Self::Empty => "is empty",
            Self::Nul => "holds a NUL byte",
            Self::Absolute => "is absolute",
            Self::Escapes => "leads out of its directory",
            Self::Itself => "names the directory itself",
            Self::NoName => "ends in `..`",
            Self::NameTooLong => "holds a name of more than 255 bytes",
            Self::PathTooLong => "is longer than 4095 bytes",
        }
    }

    pub const fn way_out(self) -> &'static str {
        match self {
            Self::Empty | Self::Itself | Self::NoName => "name a file inside the directory",
            Self::Nul => "no file name can hold a NUL byte",
            Self::Absolute => "leave out the leading `/`; paths are relative to their directory",
            Self::Escapes => "take out the `..` that leads above the start",
            Self::NameTooLong | Self::PathTooLong => "use a shorter path",
        }
    }

    /// The error of a caller who gave `path`.
    pub fn at(self, stage: Stage, path: &[u8]) -> Error {
        let message = format!("path `{}` {}", shown(path), self.why());
        Error::new(Code::InvalidArgument, stage, message).hint(self.way_out())
    }
}

/// A path for people: escaped and cut, so that a hostile one can neither fill nor forge a line.
pub(crate) fn shown(path: &[u8]) -> String {
    const LONGEST: usize = 200;
    let cut = &path[..path.len().min(LONGEST)];
    let mut text = String::with_capacity(cut.len());
    for chunk in cut.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                // What is not seen can make one path look like another.
                c if matches!(c, '`' | '\t') || is_unseen(c) => text.extend(c.escape_unicode()),
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    if path.len() > LONGEST {
        text.push('…');
    }
    text
}

impl TryFrom<&str> for RelPath {
    type Error = PathError;
    fn try_from(text: &str) -> Result<Self, PathError> {
        Self::new(text)
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&shown(&self.0))
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.why())
    }
}

impl std::error::Error for PathError {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dots_inside_a_name_are_ordinary() {
        for text in ["a..b", "..a", "a..", "...", ".hidden", "a\\..\\b", "..%2f"] {
            assert_eq!(RelPath::new(text).unwrap().as_bytes(), text.as_bytes());
        }
    }

    #[test]
    fn each_bad_shape_has_its_own_error() {
        let long = "x".repeat(256);
        let cases: [(&[u8], PathError); 13] = [
            (b"", PathError::Empty),
            (b"a\0b", PathError::Nul),
            (b"/", PathError::Absolute),
            (b"//a", PathError::Absolute),
            (b"..", PathError::Escapes),
            (b"../a", PathError::Escapes),
            (b"a/../../a", PathError::Escapes),
            (b".", PathError::Itself),
            (b"././/", PathError::Itself),
            (b"a/..", PathError::Itself),
            (b"a/../b/..", PathError::Itself),
            (long.as_bytes(), PathError::NameTooLong),
            (&[b'a', b'/'].repeat(5000), PathError::PathTooLong),
        ];
        for (bytes, error) in cases {
            assert_eq!(RelPath::new(bytes), Err(error), "{}", shown(bytes));
        }
        assert_eq!(
            RelPath::new("a/b/..").unwrap().split(),
            Err(PathError::NoName)
        );
    }

    #[test]
    fn a_hostile_path_is_shown_on_one_short_line() {
        assert_eq!(
            shown(b"a\n\x1b[31m`\\\xff"),
            "a\\n\\u{1b}[31m\\u{60}\\\\\\xff"
        );
        assert_eq!(shown("a\u{202e}b".as_bytes()), "a\\u{202e}b");
        assert!(shown(&[b'x'; 9000]).chars().count() == 201);
    }

    proptest! {
        #[test]
        fn what_is_accepted_never_leads_above_its_start(
            bytes in proptest::collection::vec(prop_oneof![
                Just(b'.'), Just(b'/'), Just(b'a'), Just(0u8), any::<u8>(),
            ], 0..60)
        ) {
            if let Ok(path) = RelPath::new(&bytes) {
                let mut depth = 0i32;
                for part in path.components() {
                    prop_assert!(!part.is_empty() && part != b"." && !part.contains(&0));
                    depth += if part == b".." { -1 } else { 1 };
                    prop_assert!(depth >= 0);
                }
                prop_assert!(depth > 0);
                prop_assert_eq!(RelPath::new(path.as_bytes()), Ok(path.clone()));
                prop_assert_eq!(path.prefixes().last(), Some(path.as_bytes()));
            }
        }

        #[test]
        fn plain_names_are_always_accepted(
            parts in proptest::collection::vec("[^/\0]{1,20}", 1..8)
        ) {
            let joined = parts.join("/");
            if parts.iter().all(|part| part != "." && part != "..") {
                let path = RelPath::new(&joined).unwrap();
                prop_assert_eq!(path.as_bytes(), joined.as_bytes());
            }
        }
    }
}
