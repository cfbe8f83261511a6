//! What a cache is called: one file name that is the same on every file system.

use std::fmt;
use std::str::FromStr;

use glovebox_model::{Code, Error, Stage};

use crate::relpath::shown;

const LONGEST: usize = 64;

/// `^[a-z0-9][a-z0-9._-]{0,63}$` without `..` and without a dot at the end. No upper case: some
/// file systems take `Pip` and `pip` for one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CacheName(String);

impl CacheName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for CacheName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let why = match text.as_bytes() {
            [] => "is empty",
            bytes if bytes.len() > LONGEST => "is longer than 64 characters",
            [first, ..] if !letter(*first) => "must start with a lower-case letter or a digit",
            bytes
                if !bytes
                    .iter()
                    .all(|byte| letter(*byte) || matches!(byte, b'.' | b'_' | b'-')) =>
            {
                "may hold only lower-case letters, digits, `.`, `_` and `-`"
            }
            bytes if text.contains("..") || bytes.ends_with(b".") => {
                "may not hold `..` or end in a dot"
            }
            _ => return Ok(Self(text.to_owned())),
        };
        let message = format!("cache name `{}` {why}", shown(text.as_bytes()));
        Err(Error::new(Code::InvalidArgument, Stage::Resolve, message)
            .hint("call it as the tool whose cache it is, as `pip` or `npm`"))
    }
}

impl fmt::Display for CacheName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
