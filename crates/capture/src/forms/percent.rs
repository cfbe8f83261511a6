//! Percent-encoding: which characters stay as they are differs from one encoder to the next.

use super::Form;

/// RFC 3986, "unreserved".
pub(super) const KEPT_ALWAYS: &str = "-_.~";

/// Beside letters and digits.
const KEPT: [&str; 7] = [
    KEPT_ALWAYS,
    // Python's `quote`
    "-_.~/",
    // `encodeURIComponent`
    "-_.!~*'()",
    // forms of HTML, Java's `URLEncoder`
    "*-._",
    // PHP's `urlencode`
    "-_.",
    // `encodeURI`
    "-_.!~*'();/?:@&=+$,#",
    // what may stand in a path
    "-_.~!$&'()*+,;=:@/",
];

pub(super) fn all(value: &[u8], forms: &mut Vec<Form>) {
    for kept in KEPT {
        for space in ["%20", "+"] {
            let bytes = value.iter().copied();
            forms.push(percent_encoded(bytes, Form::of(value), kept, space));
        }
    }
}

pub(super) fn percent_encoded(
    bytes: impl Iterator<Item = u8>,
    mut form: Form,
    kept: &str,
    space: &str,
) -> Form {
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) {
            form.push(byte);
        } else if byte == b' ' {
            form.extend(space.as_bytes());
        } else {
            form.push(b'%');
            form.hex(byte);
        }
    }
    form
}
