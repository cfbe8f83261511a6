//! Pointers into JSON, as RFC 6901 has them: `/items/0/name`.

use std::fmt;

use serde_json::Value;

const BYTES_MAX: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pointer(String);

impl Pointer {
    /// The empty text is the whole document.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.len() > BYTES_MAX {
            return Err(format!("is longer than {BYTES_MAX} bytes"));
        }
        if !text.is_empty() && !text.starts_with('/') {
            return Err("is not a JSON pointer; begin it with `/`".to_owned());
        }
        let escaped = |at: usize| text[at + 1..].starts_with(['0', '1']);
        if !text.match_indices('~').all(|(at, _)| escaped(at)) {
            return Err("has a `~` that is neither `~0` (for `~`) nor `~1` (for `/`)".to_owned());
        }
        Ok(Self(text.to_owned()))
    }

    pub(crate) fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        value.pointer(&self.0)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_str() {
            "" => f.write_str("the output"),
            text => write!(f, "`{text}` of the output"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pointer_begins_with_a_slash_and_escapes_what_it_must() {
        for good in ["", "/", "/a/0", "/a~1b", "/~0"] {
            assert!(Pointer::new(good).is_ok(), "{good}");
        }
        for bad in ["a", "a/b", "/~", "/~2", "#/a"] {
            assert!(Pointer::new(bad).is_err(), "{bad}");
        }
        let value = json!({"a/b": [1, {"~": 2}]});
        let find = |text| Pointer::new(text).unwrap().find(&value).cloned();
        assert_eq!(find("/a~1b/1/~0"), Some(json!(2)));
        assert_eq!(find("/a"), None);
        assert_eq!(find(""), Some(value.clone()));
    }
}
