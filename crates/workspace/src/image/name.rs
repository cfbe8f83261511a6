//! What an image is called, and what it is.

use std::fmt;
use std::str::FromStr;

use glovebox_model::Error;
use serde::{Deserialize, Serialize};

use super::unfit;
use crate::relpath::shown;

const LONGEST: usize = 200;
const HEX_DIGITS: usize = 64;

/// As people write it: `python:3.12`, `registry.example/team/tools`. Never used as a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ImageName(String);

impl ImageName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ImageName {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        let ordinary = |byte: u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/' | b':')
        };
        let why = if text.is_empty() {
            "is empty"
        } else if text.len() > LONGEST {
            "is longer than 200 bytes"
        } else if !text.as_bytes()[0].is_ascii_alphanumeric() {
            "must start with a letter or a digit"
        } else if !text.bytes().all(ordinary) {
            "may hold only letters, digits, `.`, `_`, `-`, `/` and `:`"
        } else {
            return Ok(Self(text.to_owned()));
        };
        let message = format!("image name `{}` {why}", shown(text.as_bytes()));
        Err(unfit(message).hint("use a name like `python:3.12`"))
    }
}

impl TryFrom<String> for ImageName {
    type Error = Error;
    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<ImageName> for String {
    fn from(name: ImageName) -> Self {
        name.0
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// `sha256:` and 64 lower-case hexadecimal digits; those alone are the name of its directory.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ImageDigest(String);

impl ImageDigest {
    pub(super) fn from_hex(hex: &str) -> Option<Self> {
        let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (hex.len() == HEX_DIGITS && hex.bytes().all(digit)).then(|| Self(hex.to_owned()))
    }

    pub(super) fn hex(&self) -> &str {
        &self.0
    }
}

impl FromStr for ImageDigest {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        let hex = text.strip_prefix("sha256:");
        hex.and_then(Self::from_hex).ok_or_else(|| {
            let message = format!("`{}` is no digest", shown(text.as_bytes()));
            unfit(message).hint("only `sha256:` with 64 hexadecimal digits is known")
        })
    }
}

impl TryFrom<String> for ImageDigest {
    type Error = Error;
    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<ImageDigest> for String {
    fn from(digest: ImageDigest) -> Self {
        digest.to_string()
    }
}

impl fmt::Display for ImageDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_one_harmless_file_name() {
        let hex = "0123456789abcdef".repeat(4);
        let digest: ImageDigest = format!("sha256:{hex}").parse().unwrap();
        assert_eq!(digest.hex(), hex);
        for bad in [
            format!("sha256:../{}", &hex[3..]),
            format!("sha256:{}", hex.to_uppercase()),
            format!("sha512:{hex}"),
            hex.clone(),
            format!("sha256:{hex}0"),
        ] {
            assert!(bad.parse::<ImageDigest>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_has_no_surprises() {
        for good in ["python:3.12", "a", "reg.example:5000/team/tools"] {
            assert_eq!(good.parse::<ImageName>().unwrap().as_str(), good);
        }
        for bad in [
            "",
            "-rf",
            "/abs",
            "../x",
            "a b",
            "a\nb",
            "ä",
            &"x".repeat(201),
        ] {
            assert!(bad.parse::<ImageName>().is_err(), "{bad}");
        }
    }
}
