//! What may stand between two characters of a secret without hiding it: colour codes, and the line
//! breaks of whoever wraps long lines.

pub(crate) const ESCAPE: u8 = 0x1b;
/// Between two characters of a secret, all of it. `grep --color` puts 16 there, twice.
pub(crate) const LONGEST_STRETCH: usize = 80;
/// A line that was wrapped is at least this long (`base64` wraps at 76, PEM at 64, `xxd` at 60);
/// after a shorter one nothing is held back for what the next line may bring.
pub(crate) const WRAPPED: usize = 48;

/// What has come so far.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a> {
    pub(crate) bytes: &'a [u8],
    /// How many bytes before the first one could be of a wrapped line.
    pub(crate) dense_before: usize,
    /// Nothing more comes.
    pub(crate) is_whole: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stretch {
    Not,
    Of(usize),
    /// The next bytes decide.
    Open,
}

/// Base64 of both alphabets, and hexadecimal digits.
const DENSE: [bool; 256] = {
    let mut dense = [false; 256];
    let mut byte = 0u8;
    while byte < 128 {
        dense[byte as usize] =
            byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_');
        byte += 1;
    }
    dense
};

impl Text<'_> {
    fn open_or(&self, otherwise: Stretch) -> Stretch {
        match self.is_whole {
            true => otherwise,
            false => Stretch::Open,
        }
    }

    /// Whether what stands before `at` could be a line that somebody wrapped there.
    pub(crate) fn is_wrapped(&self, at: usize) -> bool {
        self.dense_run(at) >= WRAPPED
    }

    /// How many dense bytes end at `at`; not more than are asked about.
    pub(crate) fn dense_run(&self, at: usize) -> usize {
        let begin = at.saturating_sub(WRAPPED);
        let run = self.bytes[begin..at]
            .iter()
            .rev()
            .take_while(|it| DENSE[usize::from(**it)]);
        match run.count() {
            all if all == at => WRAPPED.min(all + self.dense_before),
            some => some,
        }
    }

    /// A sequence of ECMA-48 that shows nothing: `ESC [ … m` and its like, `ESC ( B`, `ESC 7`.
    pub(crate) fn escape(&self, at: usize) -> Stretch {
        let rest = &self.bytes[at..];
        let Some((&ESCAPE, rest)) = rest.split_first() else {
            return Stretch::Not;
        };
        let Some(&second) = rest.first() else {
            return self.open_or(Stretch::Not);
        };
        let (middle, last) = match second {
            b'[' => (0x20..=0x3f, 0x40..=0x7e),
            0x20..=0x2f => (0x20..=0x2f, 0x30..=0x7e),
            // What begins a string of any length is not a colour.
            b'P' | b']' | b'X' | b'^' | b'_' => return Stretch::Not,
            0x30..=0x7e => return Stretch::Of(2),
            _ => return Stretch::Not,
        };
        let middles = rest[1..]
            .iter()
            .take_while(|it| middle.contains(*it))
            .count();
        match rest.get(1 + middles) {
            _ if middles > LONGEST_STRETCH => Stretch::Not,
            Some(byte) if last.contains(byte) => Stretch::Of(3 + middles),
            Some(_) => Stretch::Not,
            None => self.open_or(Stretch::Not),
        }
    }

    /// A line break with the indentation after it, or one that is spelled `\n`, as in JSON.
    pub(crate) fn line_break(&self, at: usize) -> Stretch {
        let rest = &self.bytes[at..];
        let newline = match rest {
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            [b'\\', b'n', ..] => return Stretch::Of(2),
            [b'\\', b'r', b'\\', b'n', ..] => return Stretch::Of(4),
            [b'\r'] | [b'\\'] | [b'\\', b'r'] | [b'\\', b'r', b'\\'] => {
                return self.open_or(Stretch::Not);
            }
            _ => return Stretch::Not,
        };
        let after = &rest[newline..];
        let blank = after
            .iter()
            .take_while(|it| matches!(it, b' ' | b'\t'))
            .count();
        match newline + blank {
            long if long > LONGEST_STRETCH => Stretch::Not,
            all if blank < after.len() => Stretch::Of(all),
            all => self.open_or(Stretch::Of(all)),
        }
    }
}

/// Whether a byte only pads a list: a blank behind a separator or another blank.
pub(crate) fn is_padding(before: u8, byte: u8) -> bool {
    matches!(byte, b' ' | b'\t') && matches!(before, b',' | b';' | b'|' | b' ' | b'\t')
}

/// A value without its line breaks behind the first `kept` bytes, as a text is compared with it.
pub(crate) fn without_breaks(value: &[u8], kept: usize) -> Vec<u8> {
    let text = Text {
        bytes: value,
        dense_before: 0,
        is_whole: true,
    };
    let mut squeezed = Vec::with_capacity(value.len());
    let mut at = 0;
    while at < value.len() {
        match text.line_break(at) {
            Stretch::Of(length) if squeezed.len() >= kept => at += length,
            _ => {
                squeezed.push(value[at]);
                at += 1;
            }
        }
    }
    squeezed
}

/// How many bytes of line breaks and indentation stand in a row, at most.
pub(crate) fn longest_break(value: &[u8]) -> usize {
    let text = Text {
        bytes: value,
        dense_before: 0,
        is_whole: true,
    };
    let (mut at, mut run, mut longest) = (0, 0, 0);
    while at < value.len() {
        let length = match text.line_break(at) {
            Stretch::Of(length) => length,
            Stretch::Not | Stretch::Open => 0,
        };
        run = if length == 0 { 0 } else { run + length };
        longest = longest.max(run);
        at += length.max(1);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Text<'_> {
        Text {
            bytes,
            dense_before: 0,
            is_whole: false,
        }
    }

    #[test]
    fn colour_codes_are_told_from_text() {
        for (bytes, stretch) in [
            (&b"\x1b[0mx"[..], Stretch::Of(4)),
            (b"\x1b[01;31m\x1b[K", Stretch::Of(8)),
            (b"\x1b[Kx", Stretch::Of(3)),
            (b"\x1b(Bx", Stretch::Of(3)),
            (b"\x1b7x", Stretch::Of(2)),
            (b"\x1b", Stretch::Open),
            (b"\x1b[", Stretch::Open),
            (b"\x1b[38;5;1", Stretch::Open),
            (b"\x1b]0;title\x07", Stretch::Not),
            (b"\x1b[\n", Stretch::Not),
            (b"x", Stretch::Not),
        ] {
            assert_eq!(text(bytes).escape(0), stretch, "{bytes:?}");
        }
        let endless = [&b"\x1b["[..], &[b'1'; 200]].concat();
        assert_eq!(text(&endless).escape(0), Stretch::Not);
    }

    #[test]
    fn line_breaks_take_their_indentation_along() {
        for (bytes, stretch) in [
            (&b"\nx"[..], Stretch::Of(1)),
            (b"\r\n  \tx", Stretch::Of(5)),
            (b"\\nx", Stretch::Of(2)),
            (b"\\r\\nx", Stretch::Of(4)),
            (b"\n  ", Stretch::Open),
            (b"\r", Stretch::Open),
            (b"\rx", Stretch::Not),
            (b"\\tx", Stretch::Not),
        ] {
            assert_eq!(text(bytes).line_break(0), stretch, "{bytes:?}");
        }
        let endless = [&b"\n"[..], &[b' '; 200]].concat();
        assert_eq!(text(&endless).line_break(0), Stretch::Not);
    }

    #[test]
    fn only_a_long_line_was_wrapped() {
        let line = [b'A'; WRAPPED];
        assert!(text(&line).is_wrapped(WRAPPED));
        assert!(!text(&line).is_wrapped(WRAPPED - 1));
        let later = Text {
            dense_before: 1,
            ..text(&line)
        };
        assert!(later.is_wrapped(WRAPPED - 1));
        assert!(
            !text(b"a line of ordinary text, as long as one that was wrapped\n").is_wrapped(56)
        );
    }
}
