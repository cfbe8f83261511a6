//! Output of an untrusted program on a person's terminal that the program may draw on. What comes out
//! is written anew from an allow-list: text, colours, the cursor, the screen and a few modes, which are
//! set back at the end. Nothing that asks the terminal a question, since it answers by typing, and
//! nothing that reaches beyond the window: titles, the clipboard, links, files, printers.

use std::collections::BTreeSet;
use std::io::Write;

use vte::{Params, Parser, Perform};

/// Without its `std` the parser has room for this much of a control string in itself, and drops the rest:
/// a string without an end takes no memory.
const _: () = assert!(size_of::<Parser>() > 1024);

/// What passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passing {
    /// All that a program needs that has the terminal to itself.
    Drawing,
    /// The same but for what makes a terminal type by itself: nobody reads that.
    Showing,
    /// Text and colours, for output that is read later.
    Text,
}

pub(crate) struct TerminalFilter {
    parser: Parser,
    writer: Writer,
    /// The beginning of a character whose rest is still to come.
    begun: Vec<u8>,
}

impl TerminalFilter {
    pub(crate) fn new(passing: Passing) -> Self {
        Self {
            parser: Parser::new(),
            writer: Writer {
                passing,
                out: Vec::new(),
                changed: Changed::default(),
            },
            begun: Vec::new(),
        }
    }

    pub(crate) fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut whole = std::mem::take(&mut self.begun);
        whole.extend_from_slice(bytes);
        self.begun = whole.split_off(whole.len() - begun_character(&whole));
        self.parser.advance(&mut self.writer, &whole);
        std::mem::take(&mut self.writer.out)
    }

    /// What puts the terminal back to where it was before the first byte.
    pub(crate) fn reset(&mut self) -> Vec<u8> {
        if !self.begun.is_empty() {
            // An escape shows that the rest does not come: text gets a mark where a character is cut off.
            self.begun.push(0x1b);
            self.parser.advance(&mut self.writer, &self.begun);
            self.begun.clear();
        }
        self.parser = Parser::new();
        self.writer.set_back();
        std::mem::take(&mut self.writer.out)
    }
}

impl std::fmt::Debug for TerminalFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TerminalFilter({:?})", self.writer.changed)
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

/// What the program switched on.
#[derive(Debug, Default)]
struct Changed {
    /// Private modes that are not as they usually are.
    modes: BTreeSet<u16>,
    colours: bool,
    region: bool,
    charset: bool,
    cursor_shape: bool,
    inserting: bool,
    keypad: bool,
}

/// Cursor keys, origin, wrapping, the cursor, the second screen, the mouse, focus and pasting.
const MODES: [u16; 15] = [
    1, 6, 7, 25, 47, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1047, 1049, 2004,
];
const USUALLY_ON: [u16; 2] = [7, 25];

struct Writer {
    passing: Passing,
    out: Vec<u8>,
    changed: Changed,
}

impl Writer {
    fn put(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
    }

    fn put_sequence(&mut self, params: &Params, last: char) {
        self.put(b"\x1b[");
        for (place, param) in params.iter().enumerate() {
            if place > 0 {
                self.put(b";");
            }
            for (place, part) in param.iter().enumerate() {
                let colon = if place > 0 { ":" } else { "" };
                // Writing into memory does not fail.
                let _ = write!(self.out, "{colon}{part}");
            }
        }
        let _ = write!(self.out, "{last}");
    }

    fn set_mode(&mut self, mode: u16, on: bool) {
        // Not the mouse, the focus, marks around what is pasted.
        let types = matches!(mode, 9 | 1000..=1016 | 2004);
        if !MODES.contains(&mode) || (types && self.passing == Passing::Showing) {
            return;
        }
        match USUALLY_ON.contains(&mode) == on {
            true => self.changed.modes.remove(&mode),
            false => self.changed.modes.insert(mode),
        };
        let last = if on { 'h' } else { 'l' };
        let _ = write!(self.out, "\x1b[?{mode}{last}");
    }

    fn set_back(&mut self) {
        let changed = std::mem::take(&mut self.changed);
        // The first screen comes first: what follows is for that one.
        let (screens, others): (Vec<u16>, Vec<u16>) = changed
            .modes
            .iter()
            .partition(|it| matches!(it, 47 | 1047 | 1049));
        for mode in screens.into_iter().chain(others) {
            self.set_mode(mode, USUALLY_ON.contains(&mode));
        }
        let rest: [(bool, &[u8]); 6] = [
            (changed.inserting, b"\x1b[4l"),
            (changed.keypad, b"\x1b>"),
            // It moves the cursor, which was somewhere.
            (changed.region, b"\x1b7\x1b[r\x1b8"),
            (changed.charset, b"\x0f\x1b(B\x1b)B"),
            (changed.cursor_shape, b"\x1b[0 q"),
            (changed.colours, b"\x1b[0m"),
        ];
        for (_, text) in rest.iter().filter(|(is_changed, _)| *is_changed) {
            self.put(text);
        }
        self.changed = Changed::default();
    }

    /// `CSI … last` without anything between.
    fn plain_sequence(&mut self, params: &Params, last: char) {
        let one = |most: u16| params.len() == 1 && params.iter().all(|it| it[0] <= most);
        let alone = params.len() == 1 && params.iter().all(|it| it == [0]);
        match last {
            'm' => self.changed.colours = true,
            _ if self.passing == Passing::Text => return,
            // The cursor; repeating, inserting and deleting.
            'A'..='I' | 'Z' | '`' | 'a' | 'd' | 'e' | 'f' => {}
            '@' | 'L' | 'M' | 'P' | 'S' | 'X' | 'b' => {}
            // With more numbers it is a mode of the mouse.
            'T' if params.len() == 1 => {}
            // 3 would erase what the person had on the screen before.
            'J' | 'K' if one(2) => {}
            // With numbers these are other sequences.
            's' | 'u' if alone => {
                self.put(&[0x1b, b'[', last as u8]);
                return;
            }
            'h' | 'l' if params.iter().eq([&[4u16][..]]) => self.changed.inserting = last == 'h',
            'r' => self.changed.region = true,
            _ => return,
        }
        self.put_sequence(params, last);
    }

    /// Everything that `ESC c` would do to what is seen, and nothing to what was there before.
    fn start_anew(&mut self) {
        self.set_back();
        self.put(b"\x1b[0m\x1b[H\x1b[2J");
    }
}

impl Perform for Writer {
    fn print(&mut self, character: char) {
        if !character.is_control() {
            let mut bytes = [0; 4];
            let text = character.encode_utf8(&mut bytes);
            self.out.extend_from_slice(text.as_bytes());
        }
    }

    fn execute(&mut self, byte: u8) {
        match (byte, self.passing) {
            (b'\t' | b'\n' | b'\r', _) => self.out.push(byte),
            (_, Passing::Text) => {}
            (0x07 | 0x08, Passing::Drawing | Passing::Showing) => self.out.push(byte),
            (0x0b | 0x0c, Passing::Drawing | Passing::Showing) => self.out.push(b'\n'),
            (0x0e | 0x0f, Passing::Drawing | Passing::Showing) => {
                self.changed.charset = true;
                self.out.push(byte);
            }
            (_, Passing::Drawing | Passing::Showing) => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, between: &[u8], ignored: bool, last: char) {
        if ignored {
            return;
        }
        match (between, last, self.passing) {
            ([], _, _) => self.plain_sequence(params, last),
            (_, _, Passing::Text) => {}
            (b"?", 'h' | 'l', Passing::Drawing | Passing::Showing) => {
                for mode in params.iter().filter(|it| it.len() == 1) {
                    self.set_mode(mode[0], last == 'h');
                }
            }
            (b" ", 'q', Passing::Drawing | Passing::Showing) => {
                if params.len() == 1 && params.iter().all(|it| it.len() == 1 && it[0] <= 6) {
                    self.changed.cursor_shape = true;
                    let shape = params.iter().map(|it| it[0]).sum::<u16>();
                    let _ = write!(self.out, "\x1b[{shape} q");
                }
            }
            (_, _, Passing::Drawing | Passing::Showing) => {}
        }
    }

    fn esc_dispatch(&mut self, between: &[u8], ignored: bool, last: u8) {
        if ignored || self.passing == Passing::Text {
            return;
        }
        match (between, last) {
            ([], b'7' | b'8' | b'D' | b'E' | b'M') => self.put(&[0x1b, last]),
            ([], b'=' | b'>') => {
                self.changed.keypad = last == b'=';
                self.put(&[0x1b, last]);
            }
            ([], b'c') => self.start_anew(),
            ([which @ (b'(' | b')')], b'B' | b'0' | b'A') => {
                self.changed.charset = true;
                self.put(&[0x1b, *which, last]);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(bytes: &[u8]) -> Vec<u8> {
        TerminalFilter::new(Passing::Drawing).pass(bytes)
    }

    const ATTACKS: [&[u8]; 44] = [
        b"\x1b]0;title\x07",
        b"\x1b]2;title\x1b\\",
        b"\x1b]52;c;aGk=\x07",
        b"\x1b]52;c;?\x1b\\",
        b"\x1b]8;;http://x\x1b\\\x1b]8;;\x1b\\",
        b"\x1b]4;1;?\x07",
        b"\x1b]11;?\x07",
        b"\x1b]50;#1\x07",
        b"\x1b]1337;File=inline=1:AAAA\x07",
        b"\x1b]777;notify;a;b\x07",
        b"\x1bP+q544e\x1b\\",
        b"\x1bP$qm\x1b\\",
        b"\x1bPq#0;2;0;0;0#0~~\x1b\\",
        b"\x1bP1000p\x1b\\",
        b"\x1b_Gi=1,a=q;AAAA\x1b\\",
        b"\x1b^private\x1b\\",
        b"\x1bXstring\x1b\\",
        b"\x1bkname\x1b\\",
        b"\x1b[5n",
        b"\x1b[6n",
        b"\x1b[?6n",
        b"\x1b[c",
        b"\x1b[>c",
        b"\x1b[=c",
        b"\x1b[>q",
        b"\x1b[?1$p",
        b"\x1b[?u",
        b"\x1b[>1u",
        b"\x1b[>4;2m",
        b"\x1b[?4m",
        b"\x1b[21t",
        b"\x1b[22;0t",
        b"\x1b[8;1;1t",
        b"\x1b[x",
        b"\x1b[1;1;1;1;1;1*y",
        b"\x1b[5i",
        b"\x1b[?5i",
        b"\x1b[3J",
        b"\x1b[2h\x1b[20h",
        b"\x1b[?3h\x1b[?9999h\x1b[?1s\x1b[?1r",
        b"\x1b[!p\x1b[61\"p\x1b[3g\x1bH\x1b#8\x1bZ\x1bn\x1bN",
        b"\x05\x00\x11\x13\x1a\x7f",
        b"\x9b6n\x9d52;c;aGk=\x9c\x90q\x9c",
        b"\xc2\x9b6n\xc2\x9d0;t\xc2\x9c",
    ];

    #[test]
    fn what_reaches_beyond_the_window_never_comes_out() {
        for attack in ATTACKS {
            let clean = drawn(attack);
            let shown = String::from_utf8(clean).unwrap();
            assert!(!shown.contains('\x1b'), "{attack:?} gave {shown:?}");
            // The text of a sequence whose beginning was no sequence may be seen, and does nothing.
            assert!(shown.chars().all(|it| !it.is_control()), "{shown:?}");
        }
        assert_eq!(drawn(b"a\x1b]52;c;aGk=\x07b"), b"ab");
        assert_eq!(drawn(b"a\x1bPq~~\x1b\\b"), b"ab");
    }

    #[test]
    fn a_sequence_cut_anywhere_is_the_same() {
        let mut text = "ż€😀".as_bytes().to_vec();
        text.extend(ATTACKS.concat());
        text.extend(b"\x1b[1;38:2::1:2:3mx\x1b[?1049;25h\x1b[2;5r\x1b(0q\x1b(B\x1b[4 q");
        let whole = drawn(&text);
        for cut in 0..=text.len() {
            let mut filter = TerminalFilter::new(Passing::Drawing);
            let mut parts = filter.pass(&text[..cut]);
            parts.extend(filter.pass(&text[cut..]));
            assert_eq!(parts, whole, "cut at {cut}");
        }
        let mut filter = TerminalFilter::new(Passing::Drawing);
        let bytes: Vec<u8> = text.iter().flat_map(|it| filter.pass(&[*it])).collect();
        assert_eq!(bytes, whole);
    }

    #[test]
    fn a_character_may_come_in_parts() {
        let text = "élève €😀l";
        for cut in 0..=text.len() {
            for second in cut..=text.len() {
                let mut filter = TerminalFilter::new(Passing::Text);
                let mut out = filter.pass(&text.as_bytes()[..cut]);
                out.extend(filter.pass(&text.as_bytes()[cut..second]));
                out.extend(filter.pass(&text.as_bytes()[second..]));
                assert_eq!(String::from_utf8(out).unwrap(), text, "{cut} {second}");
            }
        }
        // The parser alone loses the letter that follows.
        let mut filter = TerminalFilter::new(Passing::Text);
        for part in [&text.as_bytes()[..1], &text.as_bytes()[1..]] {
            filter.parser.advance(&mut filter.writer, part);
        }
        assert!(filter.writer.out.starts_with("éève".as_bytes()));
    }

    #[test]
    fn what_is_no_character_is_not_waited_for() {
        for (first, out) in [
            (&b"a\x82"[..], "a"),
            (b"a\xc0", "a\u{fffd}"),
            (b"a\xff", "a\u{fffd}"),
            (b"a\xc3\xc3", "a"),
        ] {
            let shown = String::from_utf8(drawn(first)).unwrap();
            assert_eq!(shown, out, "{first:?}");
        }
        // Nor does its end get lost.
        for (cut_off, out) in [
            (&b"a\xc3"[..], "a\u{fffd}"),
            (b"a\xf0\x9f\x98", "a\u{fffd}"),
            (b"\x1b]0;\xc3", ""),
            (b"\x1b[31\xc3", ""),
            (b"\x1bPq\xc3", ""),
        ] {
            let mut filter = TerminalFilter::new(Passing::Drawing);
            let mut shown = filter.pass(cut_off);
            shown.extend(filter.reset());
            assert_eq!(String::from_utf8(shown).unwrap(), out, "{cut_off:?}");
            assert_eq!(filter.reset(), b"");
        }
        let mut filter = TerminalFilter::new(Passing::Drawing);
        assert_eq!(filter.pass(b"\xe9"), b"");
        assert_eq!(filter.pass(b"t\xe9"), "\u{fffd}t".as_bytes());
    }

    #[test]
    fn what_programs_draw_with_passes() {
        for text in [
            "\x1b[1;31mred\x1b[0m café 😀\t\r\n\x07\x08",
            "\x1b[38:2:0:1:2:3mx\x1b[48;5;7my",
            "\x1b[2;3H\x1b[5A\x1b[2J\x1b[1K\x1b[4P\x1b[3@\x1b[2L\x1b[2M\x1b[6X\x1b[7b",
            "\x1b[2;20r\x1b[3S\x1b[3T\x1bD\x1bE\x1bM\x1b7\x1b8\x1b[s\x1b[u",
            "\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?1h\x1b=\x1b[?1006h\x1b[?7l\x1b[4h",
            "\x1b(0lqk\x1b(B\x0e\x0f\x1b[5 q",
        ] {
            assert_eq!(String::from_utf8(drawn(text.as_bytes())).unwrap(), text);
        }
        assert_eq!(drawn(b"\x1b[?1049;3;25h"), b"\x1b[?1049h\x1b[?25h");
        assert_eq!(drawn(b"\x1bc"), b"\x1b[0m\x1b[H\x1b[2J");
    }

    #[test]
    fn what_was_switched_on_is_switched_off() {
        let mut filter = TerminalFilter::new(Passing::Drawing);
        assert_eq!(filter.reset(), b"");
        filter
            .pass(b"\x1b[?25l\x1b[?1049h\x1b[?1003h\x1b[?2004h\x1b[31m\x1b[1;5r\x1b(0\x1b=\x1b[4h");
        filter.pass(b"\x1b[?1000h\x1b[?1000l\x1b[3 q\x1b]0;never ends");
        let reset = String::from_utf8(filter.reset()).unwrap();
        assert_eq!(
            reset,
            "\x1b[?1049l\x1b[?25h\x1b[?1003l\x1b[?2004l\x1b[4l\x1b>\x1b7\x1b[r\x1b8\
             \x0f\x1b(B\x1b)B\x1b[0 q\x1b[0m"
        );
        assert_eq!(filter.reset(), b"");
        assert_eq!(filter.pass(b"text"), b"text");
    }

    #[test]
    fn text_alone_has_its_colours() {
        let mut filter = TerminalFilter::new(Passing::Text);
        let mixed = b"\x1b[?2004h\x1b[32ma\x1b[0m\x08\x07\x1b[2J\x1b(0\x1b=\x1b[5 q\tb\r\n";
        assert_eq!(filter.pass(mixed), b"\x1b[32ma\x1b[0m\tb\r\n");
        assert_eq!(filter.reset(), b"\x1b[0m");
    }

    #[test]
    fn a_string_without_an_end_shows_nothing() {
        for (begin, end) in [
            (&b"\x1b]52;c;"[..], &b"\x07"[..]),
            (b"\x1b]1337;File=:", b"\x1b\\"),
            (b"\x1bPq", b"\x1b\\"),
            (b"\x1b_G", b"\x1b\\"),
        ] {
            let mut filter = TerminalFilter::new(Passing::Drawing);
            filter.pass(begin);
            for _ in 0..1000 {
                assert_eq!(filter.pass(&[b'A'; 1000]), b"");
            }
            filter.pass(end);
            assert_eq!(filter.pass(b"after\x1b[1m"), b"after\x1b[1m");
        }
    }

    /// What may come out, read by other means than it was written: the rest after one piece.
    fn allowed(bytes: &[u8]) -> Option<&[u8]> {
        let text = std::str::from_utf8(bytes).ok()?;
        let first = text.chars().next()?;
        let Some(rest) = text.strip_prefix('\x1b') else {
            let is_control = first.is_control() && !"\x07\x08\t\n\r\x0e\x0f".contains(first);
            return (!is_control).then(|| &bytes[first.len_utf8()..]);
        };
        if let Some(rest) = rest.strip_prefix('[') {
            let end = rest.find(|it: char| !matches!(it, '0'..='9' | ';' | ':' | '?' | ' '))?;
            let (middle, last) = (&rest[..end], rest[end..].chars().next()?);
            let numbers = middle.trim_start_matches('?').trim_end_matches(' ');
            let is_fine = match (middle.starts_with('?'), middle.ends_with(' '), last) {
                (true, false, 'h' | 'l') => MODES.iter().any(|it| it.to_string() == numbers),
                (false, true, 'q') => numbers.len() == 1 && numbers <= "6",
                (false, false, 'h' | 'l') => numbers == "4",
                (false, false, 'J' | 'K') => matches!(numbers, "0" | "1" | "2"),
                (false, false, 's' | 'u') => numbers.is_empty(),
                (false, false, 'T') => !numbers.contains(';'),
                (false, false, last) => "mABCDEFGHIZ`adef@LMPSXbr".contains(last),
                _ => false,
            };
            return is_fine.then(|| &rest.as_bytes()[end + 1..]);
        }
        let known = [
            "7", "8", "D", "E", "M", "=", ">", "(B", "(0", "(A", ")B", ")0", ")A",
        ];
        let found = known.iter().find(|it| rest.starts_with(**it))?;
        Some(&rest.as_bytes()[found.len()..])
    }

    /// Numbers that look like chance, and are the same each time.
    struct Chance(u64);

    impl Chance {
        fn below(&mut self, most: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            usize::try_from(self.0 % most as u64).unwrap()
        }
    }

    #[test]
    fn nothing_else_ever_comes_out() {
        // Pieces that sequences are made of, one after the other as chance has it.
        let pieces: [&[u8]; 40] = [
            b"\x1b",
            b"\x1b",
            b"\x1b[",
            b"[",
            b"]",
            b"P",
            b"_",
            b"^",
            b"X",
            b"?",
            b">",
            b"!",
            b"$",
            b" ",
            b";",
            b":",
            b"0",
            b"1049",
            b"52",
            b"65535",
            b"999999999",
            b"h",
            b"l",
            b"m",
            b"n",
            b"c",
            b"t",
            b"J",
            b"3J",
            b"s",
            b"T",
            b"q",
            b"\x07",
            b"\x1b\\",
            b"\x9b",
            b"\xc2",
            b"\xe2\x82",
            b"\x18",
            "é€😀".as_bytes(),
            b"plain",
        ];
        let mut chance = Chance(0x2545_f491_4f6c_dd1d);
        for _ in 0..3000 {
            let mut filter = TerminalFilter::new(Passing::Drawing);
            let mut out = Vec::new();
            for _ in 0..chance.below(60) {
                match chance.below(8) {
                    0 => out.extend(filter.pass(&[u8::try_from(chance.below(256)).unwrap()])),
                    _ => out.extend(filter.pass(pieces[chance.below(pieces.len())])),
                }
            }
            out.extend(filter.reset());
            let mut rest = &out[..];
            while !rest.is_empty() {
                rest = allowed(rest).unwrap_or_else(|| {
                    let text = String::from_utf8_lossy(rest).into_owned();
                    panic!("{text:?} came out");
                });
            }
        }
    }

    /// A terminal that shows what was drawn, as `vt100` does for the session's keeper.
    fn shown(bytes: &[u8]) -> (String, (u16, u16), bool) {
        let mut terminal = vt100::Parser::new(
            std::num::NonZeroU16::new(12).unwrap(),
            std::num::NonZeroU16::new(40).unwrap(),
            0,
        );
        terminal.process(bytes);
        let screen = terminal.screen();
        let formatted = screen.contents_formatted();
        (
            formatted,
            screen.cursor_position(),
            screen.alternate_screen(),
        )
    }

    #[test]
    fn the_screen_is_the_same_with_and_without_the_filter() {
        let drawing: [&[u8]; 36] = [
            b"plain text",
            "ż€😀 ".as_bytes(),
            b"\r\n",
            b"\r",
            b"\n",
            b"\x08",
            b"\t",
            b"\x1b[1;31m",
            b"\x1b[38;5;200m",
            b"\x1b[48;2;1;2;3m",
            b"\x1b[m",
            b"\x1b[7m",
            b"\x1b[3;5H",
            b"\x1b[H",
            b"\x1b[2A",
            b"\x1b[3B",
            b"\x1b[4C",
            b"\x1b[2D",
            b"\x1b[7G",
            b"\x1b[4d",
            b"\x1b[J",
            b"\x1b[1J",
            b"\x1b[2J",
            b"\x1b[K",
            b"\x1b[2K",
            b"\x1b[3P",
            b"\x1b[3@",
            b"\x1b[2L",
            b"\x1b[2M",
            b"\x1b[4X",
            b"\x1b[3;9r",
            b"\x1b[r",
            b"\x1bM",
            b"\x1b7",
            b"\x1b8",
            b"\x1b[?1049h\x1b[?25l",
        ];
        let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
        for _ in 0..500 {
            let mut bytes = Vec::new();
            for _ in 0..chance.below(80) {
                // Attacks change nothing of what is seen, nor of what comes after them.
                match chance.below(6) {
                    0 => bytes.extend(ATTACKS[chance.below(31)]),
                    _ => bytes.extend(drawing[chance.below(drawing.len())]),
                }
            }
            assert_eq!(
                shown(&drawn(&bytes)),
                shown(&bytes),
                "{:?}",
                String::from_utf8_lossy(&bytes)
            );
        }
    }
}
