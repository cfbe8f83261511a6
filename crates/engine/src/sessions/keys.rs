//! Keys by their names, as a terminal sends them.

use glovebox_model::{Code, Error, Result, Stage};

/// How the program wants some keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct KeyModes {
    /// Arrows begin with `ESC O`, not with `ESC [`.
    pub(super) application_cursor: bool,
    /// What is pasted stands between two marks.
    pub(super) bracketed_paste: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Held {
    shift: bool,
    meta: bool,
    control: bool,
}

impl Held {
    /// As xterm counts them; none is 1.
    fn number(self) -> u8 {
        1 + u8::from(self.shift) + 2 * u8::from(self.meta) + 4 * u8::from(self.control)
    }
}

/// What the keys send, one after the other.
pub(super) fn bytes(keys: &[String], modes: KeyModes) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for key in keys {
        bytes.extend(one(key, modes).ok_or_else(|| unknown(key))?);
    }
    Ok(bytes)
}

/// The text as a terminal sends it when it is pasted: what ends the paste must not be in it, and a line
/// ends as it does when it is typed.
pub(super) fn paste(text: &str, modes: KeyModes) -> Vec<u8> {
    let text = text.replace("\r\n", "\r").replace('\n', "\r");
    if !modes.bracketed_paste {
        return text.into_bytes();
    }
    let mut inner = text;
    while inner.contains("\x1b[201~") {
        inner = inner.replace("\x1b[201~", "");
    }
    format!("\x1b[200~{inner}\x1b[201~").into_bytes()
}

fn one(key: &str, modes: KeyModes) -> Option<Vec<u8>> {
    let mut held = Held::default();
    let mut name = key;
    // `-`, `+` and `^` alone are keys.
    while let Some((modifier, rest)) = name
        .split_once(['-', '+'])
        .filter(|(_, rest)| !rest.is_empty())
    {
        match modifier.to_ascii_lowercase().as_str() {
            "c" | "ctrl" | "control" => held.control = true,
            "m" | "a" | "alt" | "meta" => held.meta = true,
            "s" | "shift" => held.shift = true,
            _ => return None,
        }
        name = rest;
    }
    if let Some(rest) = name
        .strip_prefix('^')
        .filter(|rest| rest.chars().count() == 1)
    {
        held.control = true;
        name = rest;
    }
    let mut characters = name.chars();
    match (characters.next(), characters.next()) {
        (Some(character), None) => typed(character, held),
        _ => named(name, held, modes),
    }
}

fn typed(character: char, held: Held) -> Option<Vec<u8>> {
    let character = match held.shift {
        true => character.to_ascii_uppercase(),
        false => character,
    };
    let sent = match held.control {
        false => character.to_string().into_bytes(),
        true => vec![control(character)?],
    };
    Some(after_escape(held.meta, sent))
}

/// The character that the control key makes of another.
fn control(character: char) -> Option<u8> {
    let upper = u8::try_from(character.to_ascii_uppercase()).ok()?;
    match upper {
        b'@'..=b'_' => Some(upper & 0x1f),
        b' ' | b'2' => Some(0),
        b'?' | b'8' => Some(0x7f),
        b'/' => Some(0x1f),
        _ => None,
    }
}

fn after_escape(meta: bool, sent: Vec<u8>) -> Vec<u8> {
    match meta {
        true => [vec![0x1b], sent].concat(),
        false => sent,
    }
}

fn named(name: &str, held: Held, modes: KeyModes) -> Option<Vec<u8>> {
    let plain = |bytes: &[u8]| Some(after_escape(held.meta, bytes.to_vec()));
    match name {
        "Enter" | "Return" | "CR" => plain(b"\r"),
        "Tab" if held.shift => plain(b"\x1b[Z"),
        "BTab" => plain(b"\x1b[Z"),
        "Tab" => plain(b"\t"),
        "Escape" | "Esc" => plain(b"\x1b"),
        "Space" if held.control => plain(&[0]),
        "Space" => plain(b" "),
        "Backspace" | "BSpace" if held.control => plain(&[8]),
        "Backspace" | "BSpace" => plain(&[0x7f]),
        "Up" => Some(arrow(b'A', held, modes)),
        "Down" => Some(arrow(b'B', held, modes)),
        "Right" => Some(arrow(b'C', held, modes)),
        "Left" => Some(arrow(b'D', held, modes)),
        "Home" => Some(arrow(b'H', held, modes)),
        "End" => Some(arrow(b'F', held, modes)),
        "Insert" | "IC" => Some(numbered(2, held)),
        "Delete" | "DC" => Some(numbered(3, held)),
        "PageUp" | "PgUp" | "PPage" => Some(numbered(5, held)),
        "PageDown" | "PgDn" | "NPage" => Some(numbered(6, held)),
        _ => function(name, held),
    }
}

fn arrow(last: u8, held: Held, modes: KeyModes) -> Vec<u8> {
    match (held.number(), modes.application_cursor) {
        (1, true) => vec![0x1b, b'O', last],
        (1, false) => vec![0x1b, b'[', last],
        (number, _) => [format!("\x1b[1;{number}").into_bytes(), vec![last]].concat(),
    }
}

fn numbered(number: u8, held: Held) -> Vec<u8> {
    match held.number() {
        1 => format!("\x1b[{number}~"),
        held => format!("\x1b[{number};{held}~"),
    }
    .into_bytes()
}

fn function(name: &str, held: Held) -> Option<Vec<u8>> {
    let number: usize = name.strip_prefix('F')?.parse().ok()?;
    const NUMBERS: [u8; 8] = [15, 17, 18, 19, 20, 21, 23, 24];
    match (number, held.number()) {
        (1..=4, 1) => {
            let last = b"PQRS".get(number - 1)?;
            Some(vec![0x1b, b'O', *last])
        }
        (1..=4, held) => {
            let last = b"PQRS".get(number - 1)?;
            Some([format!("\x1b[1;{held}").into_bytes(), vec![*last]].concat())
        }
        (5..=12, _) => Some(numbered(*NUMBERS.get(number - 5)?, held)),
        _ => None,
    }
}

fn unknown(key: &str) -> Error {
    let message = format!("there is no key `{}`", key.escape_default());
    Error::new(Code::InvalidArgument, Stage::Parse, message)
        .hint("a key is one character or a name: `Enter`, `Tab`, `Escape`, `Space`, `Backspace`, `Up`, `Down`, `Left`, `Right`, `Home`, `End`, `PageUp`, `PageDown`, `Insert`, `Delete`, `F1` to `F12`")
        .hint("`C-`, `M-` and `S-` before it hold Control, Alt and Shift: `C-c` (or `^C`, `Ctrl+C`), `M-x`, `C-Left`")
        .hint("to type a text, send it as `text`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(key: &str) -> Vec<u8> {
        bytes(&[key.to_owned()], KeyModes::default()).unwrap()
    }

    #[test]
    fn keys_send_what_xterm_sends() {
        for (key, expected) in [
            ("a", "a"),
            ("-", "-"),
            ("é", "é"),
            ("C-c", "\x03"),
            ("^C", "\x03"),
            ("ctrl+c", "\x03"),
            ("^", "^"),
            ("+", "+"),
            ("C-[", "\x1b"),
            ("C-Space", "\0"),
            ("M-x", "\x1bx"),
            ("C-M-d", "\x1b\x04"),
            ("C--", ""),
            ("Enter", "\r"),
            ("S-Tab", "\x1b[Z"),
            ("Up", "\x1b[A"),
            ("C-Left", "\x1b[1;5D"),
            ("S-F1", "\x1b[1;2P"),
            ("F1", "\x1bOP"),
            ("F5", "\x1b[15~"),
            ("F12", "\x1b[24~"),
            ("C-Delete", "\x1b[3;5~"),
            ("Backspace", "\x7f"),
        ] {
            match expected {
                "" => assert!(
                    bytes(&[key.to_owned()], KeyModes::default()).is_err(),
                    "{key}"
                ),
                _ => assert_eq!(sent(key), expected.as_bytes(), "{key}"),
            }
        }
        for unknown in ["", "X-a", "Hyper", "F13", "C-Ö"] {
            let refused = bytes(&[unknown.to_owned()], KeyModes::default());
            assert!(refused.is_err(), "{unknown}");
        }
    }

    #[test]
    fn the_programs_wishes_are_heard() {
        let modes = KeyModes {
            application_cursor: true,
            bracketed_paste: true,
        };
        assert_eq!(bytes(&["Up".to_owned()], modes).unwrap(), b"\x1bOA");
        assert_eq!(bytes(&["C-Up".to_owned()], modes).unwrap(), b"\x1b[1;5A");
        assert_eq!(paste("a\nb", modes), b"\x1b[200~a\rb\x1b[201~");
        // What is pasted cannot end the paste, and go on as if it were typed.
        let hostile = "x\x1b[2\x1b[201~01~rm -rf ~\n";
        let pasted = String::from_utf8(paste(hostile, modes)).unwrap();
        assert_eq!(pasted.matches("\x1b[201~").count(), 1);
        assert!(pasted.ends_with("\x1b[201~"));
        assert_eq!(paste("a\r\nb", KeyModes::default()), b"a\rb");
    }
}
