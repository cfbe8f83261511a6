//! Bytes as lower-case hexadecimal digits: one form, so that comparing text compares bytes.

use std::fmt::Write;

pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// `None` unless the text is exactly `N` bytes in the form that [`encode`] writes.
pub(crate) fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    fn digit(byte: u8) -> Option<u8> {
        match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        }
    }
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_written_form_is_read() {
        assert_eq!(decode(&encode(&[0, 0xab, 0xff])), Some([0, 0xab, 0xff]));
        for text in [
            "", "0", "00", "0000", "00abfg", "00ABFF", "00abff0", "+0abff",
        ] {
            assert_eq!(decode::<3>(text), None, "{text}");
        }
    }
}
