//! Base64 of a value that stands anywhere in what was encoded: only the characters that come from the
//! value alone are known. The first and the last byte share a character with their neighbour, so a
//! few bits of them stay.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

use super::percent::{KEPT_ALWAYS, percent_encoded};
use super::{Form, folded};

pub(super) fn all(value: &[u8], forms: &mut Vec<Form>) {
    for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        for before in 0..3 {
            // `echo` adds the line break, and what encodes it encodes the end.
            for after in ["", "\n"] {
                let mut whole = Zeroizing::new(Vec::with_capacity(value.len() + 3));
                whole.resize(before, 0);
                whole.extend_from_slice(value);
                let known = whole.len() * 8 / 6;
                whole.extend_from_slice(after.as_bytes());
                let mut encoded = Zeroizing::new(vec![0; whole.len() * 4 / 3 + 4]);
                // There is room for it.
                let length = engine.encode_slice(&*whole, &mut encoded).unwrap_or(0);
                let encoded = &encoded[(before * 8usize).div_ceil(6)..length];
                let known = &encoded[..known - (before * 8).div_ceil(6)];
                let padding = &b"=="[..(3 - whole.len() % 3) % 3];
                written(known, &[], forms);
                written(encoded, &[], forms);
                written(encoded, padding, forms);
            }
        }
    }
}

/// As it is, with `\/` as some write it in JSON, and as a part of a URL.
fn written(encoded: &[u8], padding: &[u8], forms: &mut Vec<Form>) {
    let mut plain = Form::of(encoded);
    plain.extend(encoded);
    plain.extend(padding);
    folded(&plain, forms);
    forms.push(plain);
    if encoded.contains(&b'/') {
        let mut slashes = Form::of(encoded);
        for byte in encoded.iter().chain(padding) {
            if *byte == b'/' {
                slashes.push(b'\\');
            }
            slashes.push(*byte);
        }
        forms.push(slashes);
    }
    if !padding.is_empty() || encoded.iter().any(|byte| matches!(byte, b'+' | b'/')) {
        let parts = encoded.iter().chain(padding).copied();
        let form = Form::of(encoded);
        forms.push(percent_encoded(parts, form, KEPT_ALWAYS, "%20"));
    }
}
