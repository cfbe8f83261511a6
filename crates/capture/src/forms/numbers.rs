//! Bytes as numbers, as programs list and dump them.

use super::Form;

/// What stands before the first byte, before each one, and between two; how many digits to which base.
const LISTS: [(&str, &str, u8, u32); 21] = [
    ("", "", 16, 2),
    ("", ":", 16, 2),
    ("", " ", 16, 2),
    ("", "  ", 16, 2),
    ("", "-", 16, 2),
    ("", ",", 16, 2),
    ("", ", ", 16, 2),
    ("\\x", "\\x", 16, 2),
    ("=", "=", 16, 2),
    ("0x", "0x", 16, 2),
    ("0x", " 0x", 16, 2),
    ("0x", ",0x", 16, 2),
    ("0x", ", 0x", 16, 2),
    // `od -b`
    ("", " ", 8, 3),
    ("", "", 8, 3),
    // `xxd -b`
    ("", " ", 2, 8),
    ("", "", 2, 8),
    // Lists of Python, JSON and Go
    ("", ", ", 10, 0),
    ("", ",", 10, 0),
    ("", " ", 10, 0),
    ("", "\n", 10, 0),
];

pub(super) fn all(value: &[u8], forms: &mut Vec<Form>) {
    for (first, between, base, width) in LISTS {
        let mut form = Form::of(value);
        for (at, byte) in value.iter().enumerate() {
            form.extend(if at == 0 { first } else { between }.as_bytes());
            let needed = 1 + u32::from(*byte > 9) + u32::from(*byte > 99);
            form.digits(*byte, base, if width == 0 { needed } else { width });
        }
        forms.push(form);
    }
    for size in [2, 4] {
        for before in 0..size {
            grouped(value, size, before, forms);
        }
    }
}

/// `6162 6364`: a blank after every so many bytes, `before` of which came before the value.
fn grouped(value: &[u8], size: usize, before: usize, forms: &mut Vec<Form>) {
    let mut form = Form::of(value);
    for (at, byte) in value.iter().enumerate() {
        if at > 0 && (before + at).is_multiple_of(size) {
            form.push(b' ');
        }
        form.hex(*byte);
    }
    forms.push(form);
}
