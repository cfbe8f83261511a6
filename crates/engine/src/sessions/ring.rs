//! The newest output of one stream, by its place in all of it.

use std::collections::VecDeque;

use glovebox_api::SessionStream;
use serde::{Deserialize, Serialize};

/// Keeps the last bytes of a stream, and knows how many came before them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ring {
    start: u64,
    #[serde(with = "in_one_piece")]
    bytes: VecDeque<u8>,
    most: usize,
}

impl Ring {
    pub(super) fn new(most: usize) -> Self {
        Self {
            start: 0,
            bytes: VecDeque::new(),
            most,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let over = self.bytes.len().saturating_sub(self.most);
        self.bytes.drain(..over);
        self.start += over as u64;
    }

    pub(super) fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    pub(super) fn extent(&self) -> SessionStream {
        SessionStream {
            start: self.start,
            end: self.end(),
        }
    }

    pub(super) fn last(&self) -> Option<u8> {
        self.bytes.back().copied()
    }

    /// At most so many bytes from an offset on, or from the first that is still there; with the offset
    /// of the first of them.
    pub(super) fn read(&self, offset: u64, most: usize) -> (u64, Vec<u8>) {
        let from = offset.clamp(self.start, self.end());
        let skip = usize::try_from(from - self.start).unwrap_or(usize::MAX);
        let (first, second) = self.bytes.as_slices();
        let in_first = skip.min(first.len())..skip.saturating_add(most).min(first.len());
        let mut bytes = first[in_first].to_vec();
        let skip = skip.saturating_sub(first.len()).min(second.len());
        let left = (most - bytes.len()).min(second.len() - skip);
        bytes.extend_from_slice(&second[skip..skip + left]);
        (from, bytes)
    }
}

/// Bytes as bytes, not as a list of numbers.
mod in_one_piece {
    use std::collections::VecDeque;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        bytes: &VecDeque<u8>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let (first, second) = bytes.as_slices();
        serializer.serialize_bytes(&[first, second].concat())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        reader: D,
    ) -> Result<VecDeque<u8>, D::Error> {
        let bytes = <&'de [u8]>::deserialize(reader)?;
        Ok(bytes.to_vec().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_kept_under_the_offset_it_has_in_the_whole() {
        let mut ring = Ring::new(4);
        for byte in b"abcdefghij" {
            ring.push(&[*byte]);
        }
        assert_eq!(ring.extent(), SessionStream { start: 6, end: 10 });
        assert_eq!(ring.read(0, 99), (6, b"ghij".to_vec()));
        assert_eq!(ring.read(8, 1), (8, b"i".to_vec()));
        assert_eq!(ring.read(10, 9), (10, Vec::new()));
        assert_eq!(ring.read(99, 9), (10, Vec::new()));
        ring.push(b"0123456789");
        assert_eq!(ring.read(0, 99), (16, b"6789".to_vec()));
        // Whatever two pieces it lies in.
        for length in 1..9 {
            let mut ring = Ring::new(8);
            ring.push(b"0123456789ab");
            ring.push(&b"cdefghijk"[..length]);
            let (start, whole) = ring.read(0, 99);
            for skip in 0..8 {
                let piece = whole[skip..(skip + 3).min(8)].to_vec();
                assert_eq!(ring.read(start + skip as u64, 3).1, piece);
            }
            let kept = postcard::to_stdvec(&ring).unwrap();
            assert_eq!(postcard::from_bytes::<Ring>(&kept).unwrap(), ring);
        }
    }
}
