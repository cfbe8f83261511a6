//! The name of a chunk: BLAKE3 of its bytes.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) const HASH_BYTES: usize = 32;

/// In JSON 64 hexadecimal digits, elsewhere bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkHash([u8; HASH_BYTES]);

impl ChunkHash {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    pub(crate) fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub fn as_bytes(&self) -> &[u8; HASH_BYTES] {
        &self.0
    }
}

impl FromStr for ChunkHash {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // One form only: capitals would be a second name for the same chunk.
        let lower = text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        match blake3::Hash::from_hex(text) {
            Ok(hash) if lower => Ok(Self(*hash.as_bytes())),
            _ => Err("is not 64 lower-case hexadecimal digits"),
        }
    }
}

impl fmt::Display for ChunkHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for ChunkHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for ChunkHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.collect_str(self),
            false => serializer.serialize_bytes(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for ChunkHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = ChunkHash;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a hash of 32 bytes")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<ChunkHash, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<ChunkHash, E> {
                ChunkHash::from_slice(bytes)
                    .ok_or_else(|| E::invalid_length(bytes.len(), &"32 bytes"))
            }
        }
        match deserializer.is_human_readable() {
            true => deserializer.deserialize_str(Either),
            false => deserializer.deserialize_bytes(Either),
        }
    }
}
