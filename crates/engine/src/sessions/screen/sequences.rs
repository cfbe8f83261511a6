//! A program's output on its way to the emulator. What was begun and has not ended, an escape sequence or
//! a character, is held back: a picture of the screen then leaves out nothing that came before its offset.

use std::num::NonZeroU16;

/// The longest sequences carry pictures, in pieces of 4 KiB for some terminals. What is longer than this
/// is not waited for: the output kept for clients to read from has to reach back as far.
const HELD_MOST: usize = 64 << 10;

/// Follows the states of the emulator's parser, which tells nobody in which one it is.
#[derive(Debug)]
pub(super) struct Sequences {
    state: State,
    held: Vec<u8>,
    /// Of how many bytes of output `held` was made.
    held_of: usize,
    offset: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ground,
    Escape,
    EscapeIntermediate,
    /// A control sequence with nothing but numbers, and the first of them.
    Numbers {
        first: u16,
        is_first: bool,
    },
    Control,
    SystemCommand,
    DeviceEntry,
    DeviceNumbers,
    DeviceIntermediate,
    DeviceData,
    /// Strings that mean nothing to the emulator.
    Ignored,
}

impl State {
    /// The same transitions as in `vte`, as far as they lead to another end.
    fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (_, 0x1b) => Self::Escape,
            (Self::Ground, _) | (_, 0x18 | 0x1a) => Self::Ground,
            (Self::Escape, 0x20..=0x2f) => Self::EscapeIntermediate,
            (Self::Escape, b'[') => Self::Numbers {
                first: 0,
                is_first: true,
            },
            (Self::Escape, b']') => Self::SystemCommand,
            (Self::Escape, b'P') => Self::DeviceEntry,
            (Self::Escape, b'X' | b'^' | b'_') => Self::Ignored,
            (Self::Escape | Self::EscapeIntermediate, 0x30..=0x7e)
            | (Self::Numbers { .. } | Self::Control, 0x40..=0x7e)
            | (Self::SystemCommand, 0x07)
            | (Self::DeviceData, 0x9c) => Self::Ground,
            (
                Self::Numbers {
                    first,
                    is_first: true,
                },
                b'0'..=b'9',
            ) => Self::Numbers {
                first: first
                    .saturating_mul(10)
                    .saturating_add((byte - b'0').into()),
                is_first: true,
            },
            (Self::Numbers { first, .. }, b':' | b';') => Self::Numbers {
                first,
                is_first: false,
            },
            (Self::Numbers { .. }, 0x20..=0x2f | 0x3c..=0x3f) => Self::Control,
            (Self::DeviceEntry, 0x30..=0x3f) => Self::DeviceNumbers,
            (Self::DeviceNumbers, 0x3c..=0x3f) | (Self::DeviceIntermediate, 0x30..=0x3f) => {
                Self::Ignored
            }
            (Self::DeviceEntry | Self::DeviceNumbers, 0x20..=0x2f) => Self::DeviceIntermediate,
            (Self::DeviceEntry | Self::DeviceNumbers | Self::DeviceIntermediate, 0x40..=0x7e) => {
                Self::DeviceData
            }
            (same, _) => same,
        }
    }
}

impl Sequences {
    pub(super) fn new() -> Self {
        Self {
            state: State::Ground,
            held: Vec::new(),
            held_of: 0,
            offset: 0,
        }
    }

    /// The place in the output up to which all was given out.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// What can be drawn of the output so far and was not given out before, on a screen of so many rows
    /// and columns.
    pub(super) fn whole(&mut self, bytes: &[u8], size: (NonZeroU16, NonZeroU16)) -> Vec<u8> {
        let (mut whole, mut whole_of) = (0, 0);
        // A sequence that was too long to be held; its rest is not held either.
        let mut is_torn = self.held.is_empty() && self.state != State::Ground;
        for byte in bytes {
            match (self.state, byte) {
                (State::Numbers { first, .. }, b'b') => self.held.extend(repeated(first, size)),
                _ => self.held.push(*byte),
            }
            self.held_of += 1;
            self.state = self.state.after(*byte);
            is_torn &= self.state != State::Ground;
            if is_torn || self.state == State::Ground {
                (whole, whole_of) = (self.held.len(), self.held_of);
            }
        }
        let begun = begun_character(&self.held[..whole]);
        (whole, whole_of) = (whole - begun, whole_of - begun);
        if self.held.len() - whole > HELD_MOST {
            (whole, whole_of) = (self.held.len(), self.held_of);
        }
        self.held_of -= whole_of;
        self.offset += whole_of as u64;
        self.held.drain(..whole).collect()
    }
}

/// The end of a sequence that repeats a character so often. The emulator draws each one, up to 65535 for
/// eight bytes: it gets another count, with which the screen is full as well and the cursor in the same
/// column.
fn repeated(count: u16, (rows, columns): (NonZeroU16, NonZeroU16)) -> Vec<u8> {
    match rows.checked_mul(columns) {
        Some(cells) if count > cells.get() => {
            let count = cells.get() + (count - cells.get()) % columns;
            // The one with the other count is cancelled.
            format!("\x18\x1b[{count}b").into_bytes()
        }
        _ => b"b".to_vec(),
    }
}

/// How many bytes at the end are the beginning of a character that may still become whole: given in two
/// parts, `vte` 0.15 loses what follows it. Bytes that cannot become one are none of them.
fn begun_character(bytes: &[u8]) -> usize {
    let is_begun = |length: &usize| {
        let end = std::str::from_utf8(&bytes[bytes.len() - length..]);
        end.is_err_and(|it| it.valid_up_to() == 0 && it.error_len().is_none())
    };
    (1..=bytes.len().min(3)).find(is_begun).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: (NonZeroU16, NonZeroU16) =
        (NonZeroU16::new(5).unwrap(), NonZeroU16::new(20).unwrap());

    /// Numbers that look like chance, and are the same each time.
    fn chance(seed: &mut u64, below: usize) -> usize {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        usize::try_from(*seed % below as u64).unwrap()
    }

    /// Whether a letter is drawn after it, which no sequence takes as its own.
    fn emulator_is_at_ground(output: &[u8]) -> bool {
        let mut emulator = vt100::Parser::new(SIZE.0, SIZE.1, 0);
        emulator.process(&[output, b"\xc5\xbb"].concat());
        emulator.screen().contents().contains('Ż')
    }

    #[test]
    fn the_states_are_those_of_the_emulator() {
        let pieces: [&[u8]; 36] = [
            b"\x1b",
            b"\x1b",
            b"\x1b[",
            b"\x1b]",
            b"\x1bP",
            b"\x1b_",
            b"\x1b\\",
            b"[",
            b"]",
            b"P",
            b"X",
            b"^",
            b"\x07",
            b"\x18",
            b"\x1a",
            b"\x9c",
            b"\x9b",
            b"\x7f",
            b"\n",
            b"0",
            b"12",
            b";",
            b":",
            b"?",
            b"<",
            b">",
            b" ",
            b"$",
            b"m",
            b"q",
            b"b",
            b"\\",
            b"\xc3",
            b"\xe2\x82",
            b"\xff",
            b"c",
        ];
        let mut seed = 0x2545_f491_4f6c_dd1d;
        let mut grounds = 0;
        for _ in 0..20_000 {
            let mut output = Vec::new();
            for _ in 0..chance(&mut seed, 12) {
                match chance(&mut seed, 8) {
                    0 => output.push(u8::try_from(chance(&mut seed, 256)).unwrap()),
                    _ => output.extend(pieces[chance(&mut seed, pieces.len())]),
                }
            }
            let state = output
                .iter()
                .fold(State::Ground, |it, byte| it.after(*byte));
            let is_ground = state == State::Ground;
            assert_eq!(
                emulator_is_at_ground(&output),
                is_ground,
                "{:?}",
                String::from_utf8_lossy(&output)
            );
            grounds += usize::from(is_ground);
        }
        assert!((2000..18_000).contains(&grounds), "{grounds}");
    }

    #[test]
    fn what_has_not_ended_is_held() {
        for (output, given) in [
            (&b"text"[..], 4),
            (b"text\x1b", 4),
            (b"text\x1b[38;5", 4),
            (b"text\x1b[38;5m", 11),
            (b"text\x1b]0;title", 4),
            (b"text\x1bPq~~\x1b", 4),
            ("l'é".as_bytes(), 4),
            (b"l'\xc3", 2),
            (b"l'\xf0\x9f\x98", 2),
            (b"\xc3\x1b[1", 0),
            // What is no character does not wait to become one.
            (b"\x82\x82", 2),
            (b"\xc0", 1),
            (b"\xff\xfe", 2),
            (b"\xe0\x80", 2),
            (b"\xf5\x80\x80", 3),
        ] {
            let mut sequences = Sequences::new();
            assert_eq!(sequences.whole(output, SIZE), output[..given]);
            assert_eq!(sequences.offset(), given as u64);
            // By single bytes the same.
            let mut sequences = Sequences::new();
            for byte in output {
                sequences.whole(&[*byte], SIZE);
            }
            assert_eq!(sequences.offset(), given as u64, "{output:?}");
        }
    }

    #[test]
    fn what_does_not_end_is_not_waited_for() {
        let mut sequences = Sequences::new();
        assert_eq!(sequences.whole(b"text\x1b]0;", SIZE), b"text");
        let mut given = 4;
        for _ in 0..200 {
            given += sequences.whole(&[b'a'; 1000], SIZE).len() as u64;
            assert_eq!(sequences.offset(), given);
            assert!(sequences.held.len() <= HELD_MOST);
        }
        assert_eq!(given, 200_008);
        sequences.whole(b"\x07\x1b[1", SIZE);
        assert_eq!(sequences.offset(), given + 1);
    }

    #[test]
    fn a_character_is_not_repeated_oftener_than_it_is_seen() {
        let shown = |output: &[u8], is_direct: bool| {
            let mut emulator = vt100::Parser::new(SIZE.0, SIZE.1, 0);
            match is_direct {
                true => emulator.process(output),
                false => emulator.process(&Sequences::new().whole(output, SIZE)),
            }
            let screen = emulator.screen();
            (screen.state_formatted(), screen.cursor_position())
        };
        for repeat in [
            "\x1b[b",
            "\x1b[7b",
            "\x1b[99b",
            "\x1b[100b",
            "\x1b[101b",
            "\x1b[65535b",
            "\x1b[99999999;3b",
            "\x1b[6553\x075:1b",
            "\x1b[;65535b",
            "\x1b[?65535b",
            "\x1b[65535 b",
            "\x1b[65535Cb",
        ] {
            let output = format!("first\r\nab{repeat}c");
            let output = output.as_bytes();
            assert_eq!(shown(output, false), shown(output, true), "{repeat:?}");
            let mut sequences = Sequences::new();
            sequences.whole(output, SIZE);
            assert_eq!(sequences.offset(), output.len() as u64);
        }
        let given = Sequences::new().whole(b"\x1b[65535b", SIZE);
        assert_eq!(given, b"\x1b[65535\x18\x1b[115b");
    }
}
