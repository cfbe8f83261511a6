//! Output of untrusted programs on a person's terminal. Colours may pass; everything else that a
//! terminal would obey (titles, clipboards, links, cursor jumps, answers typed back) is shown, not
//! done.

/// Keeps what it needs between chunks, so that a sequence cut in two is still one.
#[derive(Debug, Default)]
pub(crate) struct Sanitizer {
    held: Vec<u8>,
}

/// Longer than any colour sequence.
const HELD_MAX: usize = 32;
const SHOWN_ESCAPE: &[u8] = "\u{241b}".as_bytes();
const SHOWN_CONTROL: &[u8] = "\u{fffd}".as_bytes();

impl Sanitizer {
    pub(crate) fn clean(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(chunk.len());
        for &byte in chunk {
            self.push(byte, &mut out);
        }
        out
    }

    fn push(&mut self, byte: u8, out: &mut Vec<u8>) {
        match (self.held.as_slice(), byte) {
            ([], 0x1b) => self.held.push(byte),
            ([], 0x80..=0xff) => self.start_character(byte, out),
            ([], _) => emit(byte, out),
            ([0x80..=0xff, ..], _) => self.go_on_character(byte, out),
            ([0x1b], b'[') => self.held.push(byte),
            ([0x1b, b'[', ..], b'0'..=b'9' | b';' | b':') if self.held.len() < HELD_MAX => {
                self.held.push(byte);
            }
            ([0x1b, b'[', ..], b'm') => {
                out.append(&mut self.held);
                out.push(b'm');
            }
            _ => {
                let rest = self.held.split_off(1);
                self.replace(SHOWN_ESCAPE, out);
                out.extend_from_slice(&rest);
                self.push(byte, out);
            }
        }
    }

    /// Only whole characters are passed on: half of one here and half on the other stream would
    /// make a control character on the terminal.
    fn start_character(&mut self, byte: u8, out: &mut Vec<u8>) {
        if matches!(byte, 0xc2..=0xf4) {
            self.held.push(byte);
        } else {
            out.extend_from_slice(SHOWN_CONTROL);
        }
    }

    fn go_on_character(&mut self, byte: u8, out: &mut Vec<u8>) {
        if !matches!(byte, 0x80..=0xbf) {
            self.replace(SHOWN_CONTROL, out);
            return self.push(byte, out);
        }
        self.held.push(byte);
        match std::str::from_utf8(&self.held) {
            Ok(text) if text.chars().any(char::is_control) => self.replace(SHOWN_CONTROL, out),
            Ok(_) => out.append(&mut self.held),
            // Not yet whole.
            Err(error) if error.error_len().is_none() => {}
            Err(_) => self.replace(SHOWN_CONTROL, out),
        }
    }

    fn replace(&mut self, with: &[u8], out: &mut Vec<u8>) {
        self.held.clear();
        out.extend_from_slice(with);
    }
}

fn emit(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'\n' | b'\t' | b'\r' => out.push(byte),
        0..0x20 | 0x7f => out.extend_from_slice(SHOWN_CONTROL),
        _ => out.push(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &[u8]) -> String {
        String::from_utf8_lossy(&Sanitizer::default().clean(text)).into_owned()
    }

    #[test]
    fn colours_and_plain_text_pass() {
        assert_eq!(
            clean(b"\x1b[1;31mred\x1b[0m caf\xc3\xa9\t\r\n"),
            "\x1b[1;31mred\x1b[0m café\t\r\n"
        );
        assert_eq!(clean("\u{a0}§".as_bytes()), "\u{a0}§");
    }

    #[test]
    fn everything_a_terminal_would_obey_is_shown_instead() {
        let attacks: [&[u8]; 9] = [
            b"\x1b]0;title\x07",
            b"\x1b]52;c;aGk=\x07",
            b"\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\",
            b"\x1b[6n",
            b"\x1b[2J\x1b[H",
            b"\x1bP+q544e\x1b\\",
            b"\xc2\x9b6n",
            b"\x1bc",
            b"\x1b[?1049h",
        ];
        for attack in attacks {
            let cleaned = clean(attack);
            assert!(
                !cleaned.contains('\x1b') && !cleaned.contains('\u{9b}'),
                "{cleaned:?}"
            );
            assert!(!cleaned.contains('\x07'), "{cleaned:?}");
        }
    }

    #[test]
    fn half_a_character_never_passes() {
        for half in [
            &b"\xc2\xc2"[..],
            b"\x9b6n",
            b"\xe2\x82",
            b"\xff\xfe",
            b"\xc2A",
            b"\xf0\x9f\x98",
        ] {
            let cleaned = Sanitizer::default().clean(half);
            assert!(
                std::str::from_utf8(&cleaned).is_ok(),
                "{half:?} gave {cleaned:?}"
            );
        }
        assert_eq!(clean("\u{1f600}€".as_bytes()), "\u{1f600}€");
    }

    #[test]
    fn a_sequence_cut_anywhere_is_the_same() {
        let text = b"a\x1b[31mb\x1b]0;t\x07c\xc2\x9bd\x1b[6ne";
        let whole = Sanitizer::default().clean(text);
        for cut in 0..text.len() {
            let mut sanitizer = Sanitizer::default();
            let mut parts = sanitizer.clean(&text[..cut]);
            parts.extend(sanitizer.clean(&text[cut..]));
            assert_eq!(parts, whole, "cut at {cut}");
        }
    }
}
