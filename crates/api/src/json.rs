//! JSON that may be printed on a terminal.

use std::borrow::Cow;
use std::fmt::Write;

/// The same JSON, in which no character obeys itself: serde escapes the controls below U+0020, and some
/// terminals take those from U+007F to U+009F for the beginning of a sequence.
pub fn for_terminals(json: &str) -> Cow<'_, str> {
    let is_control = |it: char| matches!(it, '\u{7f}'..='\u{9f}');
    if !json.contains(is_control) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 64);
    for it in json.chars() {
        // They stand in strings alone, where an escape is the same character.
        let _ = match is_control(it) {
            true => write!(escaped, "\\u{:04x}", u32::from(it)),
            false => escaped.write_char(it),
        };
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_terminals_obey_is_escaped_and_stays_the_same() {
        let text = "a\u{9b}6n\u{7f}\u{9d}52;c;aGk=\u{9c} \u{a0}é";
        let json = serde_json::to_string(text).unwrap();
        let escaped = for_terminals(&json);
        assert_eq!(
            escaped,
            r#""a\u009b6n\u007f\u009d52;c;aGk=\u009c  é""#.replace("c  é", "c \u{a0}é")
        );
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
    }
}
