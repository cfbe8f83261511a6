//! Bytes as numbers, as programs list and dump them.

use zeroize::Zeroizing;

use super::{Form, folded};
use crate::needles::HEAD;
use crate::stretch::is_padding;

/// What stands before the first byte, before each one, and between two; how many digits to which base.
const LISTS: [(&str, &str, u8, u32); 45] = [
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
    ("", ";", 10, 0),
    ("", "; ", 10, 0),
    ("", "|", 10, 0),
    ("", " | ", 10, 0),
    ("0x", ";0x", 16, 2),
    ("0x", "; 0x", 16, 2),
    ("", ";", 16, 2),
    ("", "|", 16, 2),
    ("", "\n", 16, 2),
    ("0x", "\n0x", 16, 2),
    // Lists of YAML
    ("", "\n- ", 10, 0),
    ("", "\n  - ", 10, 0),
    // One in a line, indented. Deeper ones are alike in their first bytes.
    ("", ",\n", 10, 0),
    ("", ",\n ", 10, 0),
    ("", ",\n  ", 10, 0),
    ("", ",\n   ", 10, 0),
    ("", ",\n    ", 10, 0),
    ("", ",\n\t", 10, 0),
    ("", ",\n\t\t", 10, 0),
    ("0x", ",\n0x", 16, 2),
    ("0x", ",\n 0x", 16, 2),
    ("0x", ",\n  0x", 16, 2),
    ("0x", ",\n\t0x", 16, 2),
    ("0x", ",\n\t\t0x", 16, 2),
];

/// Numbers under each other, as columns have them.
const COLUMN: usize = 3;

pub(super) fn all(value: &[u8], forms: &mut Vec<Form>) {
    for (first, between, base, width) in LISTS {
        let mut form = Form::of(value);
        for (at, byte) in value.iter().enumerate() {
            form.extend(if at == 0 { first } else { between }.as_bytes());
            let needed = 1 + u32::from(*byte > 9) + u32::from(*byte > 99);
            form.digits(*byte, base, if width == 0 { needed } else { width });
        }
        if between.is_empty() {
            folded(&form, forms);
        }
        forms.push(squeezed(&form));
    }
    let mut columns = Form::of(value);
    for (at, byte) in value.iter().enumerate() {
        let needed = 1 + u32::from(*byte > 9) + u32::from(*byte > 99);
        if at > 0 {
            let blanks = COLUMN + 1 - needed as usize;
            columns.extend(&b"    "[..blanks]);
        }
        columns.digits(*byte, 10, needed);
    }
    forms.push(squeezed(&columns));
    for size in [2, 4] {
        for before in 0..size {
            grouped(value, size, before, forms);
        }
    }
}

/// Without the blanks behind a separator or another blank that the text may have more or fewer of, but
/// among the first bytes.
fn squeezed(form: &Form) -> Form {
    let mut squeezed = Form(Zeroizing::new(Vec::with_capacity(form.0.len())));
    for (at, byte) in form.0.iter().enumerate() {
        if at < HEAD || !is_padding(form.0[at - 1], *byte) {
            squeezed.push(*byte);
        }
    }
    squeezed
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
