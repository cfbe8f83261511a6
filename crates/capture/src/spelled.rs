//! Characters that are written by their numbers or names: `%2D`, `&#45;`, `&hyphen;`, `\055`, `\u002d`,
//! any mixture of them with characters that stand for themselves, encoded once or several times; and
//! what a terminal shows of a text with backspaces in it.

use std::ops::Range;

use zeroize::Zeroizing;

/// How often something may have been encoded.
pub(crate) const LAYERS: usize = 3;
/// Zeros before a number, and its digits.
const DIGITS_MOST: usize = 10;
/// Letters of a name, and one more.
const NAME_MOST: usize = 17;
const BACKSPACE: u8 = 8;

/// What stands at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// A byte that stands for itself.
    Not,
    Byte(u8, usize),
    Char(char, usize),
    /// The next bytes decide.
    Open,
}

/// A text as it is meant, with the place of each byte in the text as it is written.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    pub(crate) bytes: Zeroizing<Vec<u8>>,
    spans: Vec<Range<usize>>,
    /// How far the text was read: what comes after that is undecided.
    pub(crate) read: usize,
    /// Whether it differs from what is written.
    pub(crate) differs: bool,
}

impl Decoded {
    /// As it is written.
    pub(crate) fn literal(text: &[u8]) -> Self {
        Self {
            bytes: Zeroizing::new(text.to_vec()),
            spans: (0..text.len()).map(|at| at..at + 1).collect(),
            read: text.len(),
            ..Self::default()
        }
    }

    /// Of a text that is read so far, without any byte yet.
    pub(crate) fn until(read: usize) -> Self {
        Self {
            read,
            ..Self::default()
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn add(&mut self, byte: u8, span: Range<usize>) {
        self.bytes.push(byte);
        self.spans.push(span);
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
        self.spans.truncate(length);
    }

    /// Decodes it once more.
    pub(crate) fn again(&self, is_whole: bool) -> Self {
        let mut decoded = Self {
            bytes: Zeroizing::new(Vec::with_capacity(self.bytes.len())),
            read: self.read,
            ..Self::default()
        };
        let mut at = 0;
        while at < self.bytes.len() {
            let length = match unit(&self.bytes[at..], is_whole) {
                Unit::Not if self.bytes[at] == BACKSPACE => {
                    decoded.erase();
                    1
                }
                Unit::Not => {
                    decoded.push(&self.bytes[at..=at], self.span(at, 1));
                    1
                }
                Unit::Byte(byte, length) => {
                    decoded.differs = true;
                    decoded.push(&[byte], self.span(at, length));
                    length
                }
                Unit::Char(character, length) => {
                    decoded.differs = true;
                    let span = self.span(at, length);
                    decoded.push(character.encode_utf8(&mut [0; 4]).as_bytes(), span);
                    length
                }
                Unit::Open => {
                    decoded.read = self.spans[at].start;
                    break;
                }
            };
            at += length;
        }
        decoded
    }

    fn push(&mut self, bytes: &[u8], span: Range<usize>) {
        self.bytes.extend_from_slice(bytes);
        self.spans.extend(bytes.iter().map(|_| span.clone()));
    }

    fn erase(&mut self) {
        self.differs = true;
        self.bytes.pop();
        self.spans.pop();
    }

    fn span(&self, at: usize, length: usize) -> Range<usize> {
        self.spans[at].start..self.spans[at + length - 1].end
    }

    /// Where decoded bytes stand.
    pub(crate) fn written(&self, range: Range<usize>) -> Range<usize> {
        match range.is_empty() {
            true => self.begin(range.start)..self.begin(range.start),
            false => self.spans[range.start].start..self.spans[range.end - 1].end,
        }
    }

    pub(crate) fn begin(&self, at: usize) -> usize {
        self.spans.get(at).map_or(self.read, |it| it.start)
    }
}

/// The same without places, for the many texts in which nothing is found. None if it means what is
/// written, and if it may go on.
pub(crate) fn plainly(text: &[u8], is_whole: bool) -> Option<(Zeroizing<Vec<u8>>, bool)> {
    let mut from = 0;
    let mut decoded = Zeroizing::new(Vec::new());
    while let Some(at) = first(text, from, is_whole) {
        decoded.reserve(text.len() - from);
        decoded.extend_from_slice(&text[from..at]);
        from = match unit(&text[at..], is_whole) {
            Unit::Not => {
                decoded.pop();
                at + 1
            }
            Unit::Byte(byte, length) => {
                decoded.push(byte);
                at + length
            }
            Unit::Char(character, length) => {
                decoded.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                at + length
            }
            Unit::Open => return Some((decoded, true)),
        };
    }
    if from == 0 {
        return None;
    }
    decoded.extend_from_slice(&text[from..]);
    Some((decoded, false))
}

/// The first place from `from` on where something is not as it is meant, or may not be.
pub(crate) fn first(text: &[u8], from: usize, is_whole: bool) -> Option<usize> {
    let mut at = from;
    loop {
        let rest = text.get(at..)?;
        let escape = memchr::memchr3(b'%', b'\\', b'&', rest);
        let backspace = memchr::memchr(BACKSPACE, &rest[..escape.unwrap_or(rest.len())]);
        at += backspace.or(escape)?;
        if backspace.is_some() || unit(&text[at..], is_whole) != Unit::Not {
            return Some(at);
        }
        at += 1;
    }
}

#[inline]
fn unit(text: &[u8], is_whole: bool) -> Unit {
    let unit = match text[0] {
        b'%' => percent(&text[1..]),
        b'\\' => backslash(&text[1..]),
        b'&' => entity(&text[1..]),
        _ => Unit::Not,
    };
    match unit {
        Unit::Open if is_whole => whole(text),
        unit => unit,
    }
}

/// What is undecided at the end of everything: a number that has no end of its own.
fn whole(text: &[u8]) -> Unit {
    let mut longer = [0; 24];
    let known = text.len().min(23);
    longer[..known].copy_from_slice(&text[..known]);
    // A byte that goes on with nothing.
    match unit(&longer[..=known], false) {
        Unit::Byte(byte, length) if length <= known => Unit::Byte(byte, length),
        Unit::Char(character, length) if length <= known => Unit::Char(character, length),
        _ => Unit::Not,
    }
}

/// Digits to a base from a place on: their value, and how many there are. None while more may come.
fn number(text: &[u8], base: u32, most: usize) -> Option<(u32, usize)> {
    let mut value: u32 = 0;
    let mut count = 0;
    while count < most {
        let digit = match text.get(count) {
            None => return None,
            Some(byte) => char::from(*byte).to_digit(base),
        };
        let Some(digit) = digit else { break };
        value = value.saturating_mul(base).saturating_add(digit);
        count += 1;
    }
    Some((value, count))
}

/// A character by its number, `before` bytes and its digits long.
fn character(value: u32, length: usize) -> Unit {
    char::from_u32(value).map_or(Unit::Not, |it| Unit::Char(it, length))
}

/// Exactly so many digits.
fn fixed(text: &[u8], base: u32, digits: usize, before: usize) -> Unit {
    match number(text, base, digits) {
        None => Unit::Open,
        Some((value, count)) if count == digits => match u8::try_from(value) {
            Ok(byte) if digits == 2 => Unit::Byte(byte, before + count),
            _ => character(value, before + count),
        },
        Some(_) => Unit::Not,
    }
}

fn percent(rest: &[u8]) -> Unit {
    match rest.first() {
        None => Unit::Open,
        Some(b'u' | b'U') => utf16(&rest[1..], 2),
        Some(_) => fixed(rest, 16, 2, 1),
    }
}

/// Four digits, or two times four.
fn utf16(rest: &[u8], before: usize) -> Unit {
    let Some((high, count)) = number(rest, 16, 4) else {
        return Unit::Open;
    };
    if count < 4 {
        return Unit::Not;
    }
    if !(0xd800..0xdc00).contains(&high) {
        return character(high, before + 4);
    }
    let Some((low, 4)) = rest.get(4 + before..).and_then(|it| number(it, 16, 4)) else {
        // Half a character is none.
        return if rest.len() < 8 + before {
            Unit::Open
        } else {
            Unit::Not
        };
    };
    let value = 0x10000 + ((high - 0xd800) << 10) + low.wrapping_sub(0xdc00);
    character(value, 2 * before + 8)
}

fn backslash(rest: &[u8]) -> Unit {
    let Some(first) = rest.first() else {
        return Unit::Open;
    };
    let after = &rest[1..];
    let byte = |byte: u8| Unit::Byte(byte, 2);
    match first {
        b'x' | b'u' | b'U' if after.is_empty() => Unit::Open,
        b'x' | b'u' if after[0] == b'{' => match number(&after[1..], 16, DIGITS_MOST) {
            None => Unit::Open,
            Some((value, count @ 1..)) => match after.get(1 + count) {
                None => Unit::Open,
                Some(b'}') => character(value, 4 + count),
                Some(_) => Unit::Not,
            },
            Some(_) => Unit::Not,
        },
        b'x' => fixed(after, 16, 2, 2),
        b'u' => utf16(after, 2),
        b'U' => fixed(after, 16, 8, 2),
        b'0'..=b'7' => {
            let most = if *first == b'0' { 4 } else { 3 };
            match number(rest, 8, most) {
                None => Unit::Open,
                Some((value, count)) => {
                    u8::try_from(value).map_or(Unit::Not, |it| Unit::Byte(it, 1 + count))
                }
            }
        }
        b'a' => byte(7),
        b'b' => byte(8),
        b't' => byte(b'\t'),
        b'v' => byte(11),
        b'f' => byte(12),
        b'e' | b'E' => byte(27),
        // Line breaks are told from the rest elsewhere.
        b'n' | b'r' => Unit::Not,
        other if other.is_ascii_punctuation() => byte(*other),
        _ => Unit::Not,
    }
}

/// Names of what is printable in ASCII; longer ones of HTML 5 are for letters of others.
const NAMES: [(&[u8], u8); 43] = [
    (b"amp", b'&'),
    (b"apos", b'\''),
    (b"ast", b'*'),
    (b"bsol", b'\\'),
    (b"colon", b':'),
    (b"comma", b','),
    (b"commat", b'@'),
    (b"diacriticalgrave", b'`'),
    (b"dollar", b'$'),
    (b"equals", b'='),
    (b"excl", b'!'),
    (b"grave", b'`'),
    (b"gt", b'>'),
    (b"hat", b'^'),
    (b"lbrace", b'{'),
    (b"lbrack", b'['),
    (b"lcub", b'{'),
    (b"lowbar", b'_'),
    (b"lpar", b'('),
    (b"lsqb", b'['),
    (b"lt", b'<'),
    (b"midast", b'*'),
    (b"nbsp", b' '),
    (b"newline", b'\n'),
    (b"num", b'#'),
    (b"percnt", b'%'),
    (b"period", b'.'),
    (b"plus", b'+'),
    (b"quest", b'?'),
    (b"quot", b'"'),
    (b"rbrace", b'}'),
    (b"rbrack", b']'),
    (b"rcub", b'}'),
    (b"rpar", b')'),
    (b"rsqb", b']'),
    (b"semi", b';'),
    (b"sol", b'/'),
    (b"tab", b'\t'),
    (b"underbar", b'_'),
    (b"verbar", b'|'),
    (b"verticalline", b'|'),
    (b"vert", b'|'),
    (b"hyphen", b'-'),
];

fn entity(rest: &[u8]) -> Unit {
    let (base, before) = match rest {
        [] | [b'#'] => return Unit::Open,
        [b'#', b'x' | b'X', ..] => (16, 3),
        [b'#', ..] => (10, 2),
        _ => return named(rest),
    };
    match number(&rest[before - 1..], base, DIGITS_MOST) {
        None => Unit::Open,
        Some((_, 0)) => Unit::Not,
        Some((value, count)) => match rest.get(before - 1 + count) {
            None => Unit::Open,
            Some(b';') => character(value, before + count + 1),
            Some(_) => character(value, before + count),
        },
    }
}

fn named(rest: &[u8]) -> Unit {
    let letters = rest.iter().take(NAME_MOST);
    let length = letters.take_while(|it| it.is_ascii_alphabetic()).count();
    let name = rest[..length].to_ascii_lowercase();
    match rest.get(length) {
        None if NAMES.iter().any(|(it, _)| it.starts_with(&name)) => Unit::Open,
        Some(b';') => {
            let found = NAMES.iter().find(|(it, _)| *it == name);
            found.map_or(Unit::Not, |(_, byte)| Unit::Byte(*byte, length + 2))
        }
        _ => Unit::Not,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(text: &str) -> String {
        let mut decoded = Decoded::literal(text.as_bytes());
        for _ in 0..LAYERS {
            decoded = decoded.again(true);
        }
        String::from_utf8_lossy(&decoded.bytes).into_owned()
    }

    #[test]
    fn characters_are_read_as_what_they_stand_for() {
        for (written, read) in [
            ("a%2Db%2db", "a-b-b"),
            ("a%252Db%25252db", "a-b-b"),
            ("100% of a%z", "100% of a%z"),
            ("&#45;&#045;&#x2d;&#X002D;&#45", "-----"),
            ("&amp;#45;&amp;amp;&lowbar;&hyphen;", "-&_-"),
            ("a && b &c; &unknown;", "a && b &c; &unknown;"),
            ("\\x2d\\055\\0055\\u002d\\u{2d}\\U0000002d%u002D", "-------"),
            ("\\\\u002d \\/ \\\"", "- / \""),
            ("\\ud834\\udd1e", "𝄞"),
            (
                "xy\u{8}z_\u{8}aab\u{8}\u{8}",
                "xzaa".strip_suffix('a').unwrap(),
            ),
            ("%26%2345%3B", "-"),
            ("\\q \\", "\\q \\"),
        ] {
            assert_eq!(meant(written), read, "{written}");
        }
    }

    #[test]
    fn what_may_go_on_is_not_read_before_it_does() {
        for text in [
            "a%", "a%2", "a&", "a&#", "a&#4", "a&#45", "a&am", "a\\", "a\\u00", "a\\05", "a\\u{2d",
        ] {
            let decoded = Decoded::literal(text.as_bytes()).again(false);
            assert_eq!((decoded.read, &**decoded.bytes), (1, &b"a"[..]), "{text}");
        }
        assert_eq!(first(b"a 10%\r && x\\y", 0, false), None);
        assert_eq!(first(b"a 10% %41", 0, false), Some(6));
    }
}
