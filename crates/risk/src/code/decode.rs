//! Texts that programs hide in other texts.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Longer texts are not followed.
pub(super) const LONGEST: usize = 4096;

pub(super) fn base64(text: &str) -> Option<String> {
    let lenient = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let text: String = text.chars().filter(|it| !it.is_whitespace()).collect();
    let standard = GeneralPurpose::new(&alphabet::STANDARD, lenient).decode(&text);
    let bytes =
        standard.or_else(|_| GeneralPurpose::new(&alphabet::URL_SAFE, lenient).decode(&text));
    String::from_utf8(bytes.ok()?).ok()
}

pub(super) fn hex(text: &str) -> Option<String> {
    let digits: Vec<char> = text.chars().filter(|it| !it.is_whitespace()).collect();
    let byte = |pair: &[char]| match pair {
        [high, low] => u8::try_from(high.to_digit(16)? * 16 + low.to_digit(16)?).ok(),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    String::from_utf8(bytes?).ok()
}

pub(super) fn rot13(text: &str) -> String {
    let turn = |it: char| match it {
        'a'..='m' | 'A'..='M' => char::from_u32(u32::from(it) + 13).unwrap_or(it),
        'n'..='z' | 'N'..='Z' => char::from_u32(u32::from(it) - 13).unwrap_or(it),
        _ => it,
    };
    text.chars().map(turn).collect()
}

/// Backslash escapes as Python and JavaScript have them.
pub(super) fn unescape(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw.chars();
    while let Some(next) = rest.next() {
        if next != '\\' {
            text.push(next);
            continue;
        }
        let Some(escaped) = rest.next() else { break };
        match escaped {
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            '\n' => {}
            'x' => text.extend(number(&mut rest, 2)),
            'U' => text.extend(number(&mut rest, 8)),
            'u' if rest.clone().next() == Some('{') => {
                rest.next();
                let digits: String = rest.clone().take_while(|it| *it != '}').take(8).collect();
                for _ in 0..=digits.len() {
                    rest.next();
                }
                text.extend(
                    u32::from_str_radix(&digits, 16)
                        .ok()
                        .and_then(char::from_u32),
                );
            }
            'u' => text.extend(number(&mut rest, 4)),
            '0'..='7' => {
                let mut value = escaped.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(digit) = rest.clone().next().and_then(|it| it.to_digit(8)) else {
                        break;
                    };
                    value = value * 8 + digit;
                    rest.next();
                }
                text.extend(char::from_u32(value));
            }
            other => text.push(other),
        }
    }
    text
}

fn number(rest: &mut std::str::Chars<'_>, most: usize) -> Option<char> {
    let mut digits = String::new();
    while digits.len() < most {
        let Some(digit) = rest.clone().next().filter(char::is_ascii_hexdigit) else {
            break;
        };
        digits.push(digit);
        rest.next();
    }
    u32::from_str_radix(&digits, 16)
        .ok()
        .and_then(char::from_u32)
}

/// `0x41`, `0b1`, `0o7`, `65`.
pub(super) fn integer(text: &str) -> Option<u32> {
    let text = text.replace('_', "").to_ascii_lowercase();
    let radix = |digits: &str, radix| u32::from_str_radix(digits, radix).ok();
    match text.get(..2) {
        Some("0x") => radix(&text[2..], 16),
        Some("0b") => radix(&text[2..], 2),
        Some("0o") => radix(&text[2..], 8),
        _ => text.parse().ok(),
    }
}
