//! Names and values inside a manifest: any bytes, written as one run and not one by one.

use std::fmt;

use glovebox_model::ByteString;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Raw(pub(crate) Vec<u8>);

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Run;
        impl Visitor<'_> for Run {
            type Value = Raw;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Raw, E> {
                Ok(Raw(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(Run)
    }
}

/// A path for people, on one short line whatever it is.
pub(crate) fn shown(path: &[u8]) -> String {
    match glovebox_workspace::RelPath::new(path) {
        Ok(path) => path.to_string(),
        Err(error) => format!("a path that {error}"),
    }
}

/// Paths here never hold a NUL.
pub(crate) fn byte_string(path: &[u8]) -> ByteString {
    ByteString::new(path).unwrap_or_default()
}
