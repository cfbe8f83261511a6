//! How a value may be written: what programs make of it without meaning to hide it. A program that
//! means to hide it can; this is no wall against that. Capital letters are the same as small ones, and
//! characters that are written by their numbers are read as what they stand for (`spelled`).

mod base32;
mod base64;
mod escape;
mod numbers;
mod percent;

use std::borrow::Cow;

use zeroize::Zeroizing;

use crate::needles::HEAD;
use crate::stretch::without_breaks;
use crate::unfit::weakness;

/// How many bytes of a value stand at least before the first line break in it.
const FOLDED_LEAST: usize = 4;

/// A form while it is made. Nothing is longer than nine bytes for one (`01000001 `) and the little that
/// a form adds by itself, so it never grows and leaves no copy behind.
pub(crate) struct Form(Zeroizing<Vec<u8>>);

impl Form {
    fn of(value: &[u8]) -> Self {
        Self(Zeroizing::new(Vec::with_capacity(9 * value.len() + 16)))
    }

    fn push(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn extend(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn hex(&mut self, byte: u8) {
        self.digits(byte, 16, 2);
    }

    /// With zeros before it, to `width` digits.
    fn digits(&mut self, byte: u8, base: u8, width: u32) {
        for place in (0..width).rev() {
            let digit = u32::from(byte) / u32::from(base).pow(place) % u32::from(base);
            self.push(b"0123456789abcdef"[digit as usize & 15]);
        }
    }

    fn chars(&mut self, character: char) {
        self.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// Every form, some of them more than once.
pub(crate) fn of(value: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
    let mut forms = Vec::new();
    let text = String::from_utf8_lossy(value);
    written(value, &text, &mut forms);
    base64::all(value, &mut forms);
    base32::all(value, &mut forms);
    numbers::all(value, &mut forms);
    reversed(value, &text, &mut forms);
    wide(&text, &mut forms);
    for other in [text.to_lowercase(), text.to_uppercase()].map(Zeroizing::new) {
        // What is ASCII is the same in either case.
        if !text.is_ascii() && *other != *text {
            written(other.as_bytes(), &other, &mut forms);
        }
    }
    let lines = || value.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    if lines().nth(1).is_some() {
        for line in lines().filter(|line| weakness(line).is_none()) {
            written(line, &String::from_utf8_lossy(line), &mut forms);
        }
        written_with_crlf(value, &mut forms);
    }
    if let Cow::Owned(text) = text {
        drop(Zeroizing::new(text));
    }
    // Of most values most forms are the same.
    forms.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    forms.dedup_by(|one, other| one.0 == other.0);
    forms
        .iter()
        .map(|form| Zeroizing::new(without_breaks(&form.0, HEAD)))
        .collect()
}

/// As it is, and as it is quoted.
fn written(value: &[u8], text: &str, forms: &mut Vec<Form>) {
    let mut raw = Form::of(value);
    raw.extend(value);
    folded(&raw, forms);
    forms.push(raw);
    let mut lossy = Form::of(text.as_bytes());
    lossy.extend(text.as_bytes());
    forms.push(lossy);
    escape::all(text, forms);
    percent::all(value, forms);
}

/// With a line break among the first bytes; behind them every one is left out. After fewer bytes than
/// these every line that happens to end so would be held back for what the next one brings.
fn folded(form: &Form, forms: &mut Vec<Form>) {
    for before in FOLDED_LEAST..HEAD.min(form.0.len()) {
        for line_break in ["\n", "\r\n"] {
            let mut folded = Form(Zeroizing::new(Vec::with_capacity(form.0.len() + 2)));
            folded.extend(&form.0[..before]);
            folded.extend(line_break.as_bytes());
            folded.extend(&form.0[before..]);
            forms.push(folded);
        }
    }
}

/// For a first line so short that a line break is among the first bytes; behind them every line break
/// is the same.
fn written_with_crlf(value: &[u8], forms: &mut Vec<Form>) {
    let mut form = Form::of(value);
    for (at, byte) in value.iter().enumerate() {
        if *byte == b'\n' && at.checked_sub(1).map(|before| value[before]) != Some(b'\r') {
            form.push(b'\r');
        }
        form.push(*byte);
    }
    forms.push(form);
}

fn reversed(value: &[u8], text: &str, forms: &mut Vec<Form>) {
    let mut bytes = Form::of(value);
    value.iter().rev().for_each(|byte| bytes.push(*byte));
    let mut chars = Form::of(text.as_bytes());
    text.chars().rev().for_each(|it| chars.chars(it));
    forms.extend([bytes, chars]);
}

/// UTF-16 and UTF-32.
fn wide(text: &str, forms: &mut Vec<Form>) {
    for swap in [u16::to_le_bytes, u16::to_be_bytes] {
        let mut form = Form::of(text.as_bytes());
        for unit in text.encode_utf16() {
            form.extend(&swap(unit));
        }
        forms.push(form);
    }
    for swap in [u32::to_le_bytes, u32::to_be_bytes] {
        let mut form = Form::of(text.as_bytes());
        for character in text.chars() {
            form.extend(&swap(character.into()));
        }
        forms.push(form);
    }
}
