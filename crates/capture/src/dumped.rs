//! Dumps of bytes, line by line: `xxd`, `hexdump`, `od`, with offsets and a column of text or without.
//! A secret that stands in two lines has all of that in its midst.

use std::ops::Range;

use crate::meant::{Place, add, search};
use crate::needles::Needles;
use crate::spelled::Decoded;

/// Digits of an offset: 7 of `od`, 8 of `xxd`, more of others.
const OFFSET: Range<usize> = 6..17;

/// Digits by which a line shows that it is a dump, without an offset.
const SHOWS: usize = 16;

/// A longer line is of no dump, and is not waited for.
pub(crate) const LINE_MOST: usize = 512;

/// How the numbers of a line are bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// In the order in which they stand.
    Hexadecimal,
    /// Groups with their last byte first, as processors have them.
    Swapped,
    Octal,
    OctalWords,
    Decimal,
    /// `hexdump -d`
    DecimalWords,
    /// `xxd -b`
    Binary,
    /// `od -c`
    Letters,
}

const READINGS: [Reading; 8] = [
    Reading::Hexadecimal,
    Reading::Swapped,
    Reading::Octal,
    Reading::OctalWords,
    Reading::Decimal,
    Reading::DecimalWords,
    Reading::Binary,
    Reading::Letters,
];

/// The first line from `from` on, which is the begin of one, that may be of a dump.
pub(crate) fn first(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while at < text.len() {
        if may_begin(&text[at..]) {
            return Some(at);
        }
        at += 1 + memchr::memchr(b'\n', &text[at..])?;
    }
    None
}

/// An offset with something behind it, or a number behind a blank.
#[inline]
fn may_begin(line: &[u8]) -> bool {
    match line {
        [b' ', rest @ ..] => {
            let rest = rest.trim_ascii_start();
            let digits = count_hex(rest);
            (1..=16).contains(&digits) && rest.get(digits) == Some(&b' ')
        }
        [first, ..] if first.is_ascii_hexdigit() => {
            let digits = count_hex(line);
            OFFSET.contains(&digits) && matches!(line.get(digits), Some(b':' | b' '))
        }
        _ => false,
    }
}

fn count_hex(text: &[u8]) -> usize {
    let digits = text.iter().take(OFFSET.end + 1);
    digits.take_while(|it| it.is_ascii_hexdigit()).count()
}

/// What stands behind the offset of a line, and where. None if it is no line of a dump.
fn behind_offset(line: &[u8]) -> Option<usize> {
    let digits = count_hex(line);
    match line.get(digits) {
        _ if line.first() == Some(&b' ') => Some(0),
        Some(b':') if OFFSET.contains(&digits) => Some(digits + 1),
        Some(b' ') if OFFSET.contains(&digits) => Some(digits),
        // `od` ends with the length.
        None if OFFSET.contains(&digits) => Some(digits),
        _ => None,
    }
}

/// The numbers of a line, up to its column of text.
fn numbers(line: &[u8]) -> Option<Vec<Range<usize>>> {
    let begin = behind_offset(line)?;
    let has_colon = begin > 0 && line[begin - 1] == b':';
    let mut all = Vec::new();
    let mut at = begin;
    loop {
        let blanks = line[at..].iter().take_while(|it| **it == b' ').count();
        let from = at + blanks;
        let digits = count_hex(&line[from..]);
        let ends = matches!(line.get(from + digits), None | Some(b' '));
        let is_column =
            has_colon && blanks > 1 && !all.is_empty() && !is_rest(&all, blanks, digits);
        if blanks == 0 || digits == 0 || digits > 16 || !ends || is_column {
            let is_end = matches!(line.get(from), None | Some(b'|' | b'>'));
            // Without an offset there is nothing but numbers.
            return (is_end || (begin > 0 && !all.is_empty())).then_some(all);
        }
        all.push(from..from + digits);
        at = from + digits;
    }
}

/// The bytes that are left for a group of four are written where its end would be: `xxd -e`.
fn is_rest(before: &[Range<usize>], blanks: usize, digits: usize) -> bool {
    before.iter().all(|it| it.len() == 8) && digits < 8 && blanks + digits == 9
}

impl Reading {
    /// Tells the bytes of a line and where they begin. None if it has others.
    fn bytes(self, line: &Line<'_>, mut tell: impl FnMut(u8, usize)) -> Option<()> {
        if self == Self::Letters {
            let all = letters(line.text)?;
            all.into_iter().for_each(|(byte, at)| tell(byte, at));
            return Some(());
        }
        for at in line.numbers.as_ref()? {
            let digits = &line.text[at.clone()];
            let short = |base, most| value(digits, base).filter(|_| digits.len() <= most);
            match self {
                Self::Octal => tell(u8::try_from(short(8, 3)?).ok()?, at.start),
                Self::Decimal => tell(u8::try_from(short(10, 3)?).ok()?, at.start),
                Self::Binary => {
                    let byte = short(2, 8).filter(|_| digits.len() == 8)?;
                    tell(u8::try_from(byte).ok()?, at.start);
                }
                Self::OctalWords | Self::DecimalWords => {
                    let (base, length) = match self {
                        Self::OctalWords => (8, 6),
                        _ => (10, 5),
                    };
                    let word = short(base, length).filter(|_| digits.len() == length)?;
                    let [low, high] = u16::try_from(word).ok()?.to_le_bytes();
                    tell(low, at.start);
                    tell(high, at.start);
                }
                Self::Hexadecimal | Self::Swapped | Self::Letters => {
                    let (pairs, rest) = digits.as_chunks::<2>();
                    if !rest.is_empty() {
                        return None;
                    }
                    for count in 0..pairs.len() {
                        let (pair, begin) = match self {
                            Self::Swapped => (pairs[pairs.len() - 1 - count], at.start),
                            _ => (pairs[count], at.start + 2 * count),
                        };
                        tell(u8::try_from(value(&pair, 16)?).ok()?, begin);
                    }
                }
            }
        }
        Some(())
    }
}

fn value(digits: &[u8], base: u32) -> Option<u32> {
    let digit = |sum: u32, it: &u8| Some(sum * base + char::from(*it).to_digit(base)?);
    digits.iter().take(8).try_fold(0, digit)
}

/// A line of a run.
struct Line<'a> {
    at: usize,
    text: &'a [u8],
    numbers: Option<Vec<Range<usize>>>,
}

/// Cells of four: a character, one that is escaped, or its number.
fn letters(line: &[u8]) -> Option<Vec<(u8, usize)>> {
    let begin = behind_offset(line)?;
    let (cells, rest) = line[begin..].as_chunks::<4>();
    let byte = |cell: &[u8; 4]| match cell {
        [b' ', b' ', b' ', letter] => Some(*letter),
        [b' ', b' ', b'\\', escaped] => Some(match escaped {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            _ => 0,
        }),
        [b' ', digits @ ..] => u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok(),
        _ => None,
    };
    let placed = cells.iter().enumerate();
    let all = placed.map(|(count, cell)| Some((byte(cell)?, begin + 4 * count + 1)));
    rest.is_empty().then(|| all.collect())?
}

/// As `meant` reads: lines that are told are told whole.
pub(crate) fn read(needles: &Needles, text: &[u8], is_whole: bool) -> (Vec<Place>, usize) {
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(begin) = first(text, from) {
        let (end, is_open) = run_end(text, begin);
        let is_decided = is_whole || !is_open;
        let run = &text[begin..end];
        let undecided = begin + run_read(needles, run, is_decided, begin, &mut places);
        if !is_decided {
            return (places, undecided);
        }
        from = end;
    }
    (places, text.len())
}

/// The end of the lines that are of the same dump, and whether it may go on.
fn run_end(text: &[u8], begin: usize) -> (usize, bool) {
    let mut at = begin;
    while at < text.len() {
        let Some(length) = memchr::memchr(b'\n', &text[at..]) else {
            let is_begun = is_begun(&text[at..], at == begin);
            let end = if is_begun || at == begin {
                text.len()
            } else {
                at
            };
            return (end, is_begun);
        };
        let line = text[at..at + length].trim_ascii_end();
        if numbers(line).is_none() && letters(line).is_none() {
            let end = if at == begin { at + length + 1 } else { at };
            return (end, false);
        }
        at += length + 1;
    }
    (at, true)
}

/// Whether a line that goes on is of a dump. The first one must show it: a
/// line that only begins with a number is not kept from who waits for it.
fn is_begun(line: &[u8], is_first: bool) -> bool {
    if line.len() > LINE_MOST {
        return false;
    }
    let Some(begin) = behind_offset(line) else {
        return !is_first && count_hex(line) == line.len();
    };
    let cells = (line.len() - begin) / 4;
    let enough = match (is_first, begin > 0) {
        (true, false) => SHOWS,
        (true, true) => 1,
        (false, _) => 0,
    };
    let digits = |it: Vec<Range<usize>>| it.iter().map(Range::len).sum::<usize>();
    numbers(line).is_some_and(|it| digits(it) >= enough)
        || letters(&line[..begin + 4 * cells]).is_some_and(|it| it.len() >= enough)
}

/// The place in the run that is undecided: the begin of a line.
fn run_read(
    needles: &Needles,
    run: &[u8],
    is_whole: bool,
    begin: usize,
    places: &mut Vec<Place>,
) -> usize {
    let mut lines = Vec::new();
    let mut at = 0;
    for line in run.split_inclusive(|it| *it == b'\n') {
        if line.ends_with(b"\n") || is_whole {
            let text = line.trim_ascii_end();
            let numbers = numbers(text);
            lines.push(Line { at, text, numbers });
            at += line.len();
        }
    }
    let mut undecided = at;
    let mut found = Vec::new();
    for reading in READINGS {
        let mut decoded = Decoded::until(at);
        for line in &lines {
            let before = decoded.len();
            // What is told of a byte hides its line from there on, with the text beside it.
            let end = line.at + line.text.len();
            let told = reading.bytes(line, |byte, from| decoded.add(byte, line.at + from..end));
            if told.is_none() {
                decoded.truncate(before);
            }
        }
        if decoded.len() > 0 {
            undecided = undecided.min(search(needles, &decoded, is_whole, &mut found));
        }
    }
    add(found, begin, places);
    if is_whole {
        return run.len();
    }
    let line_of = |place: usize| {
        let starts = lines.iter().map(|it| it.at).chain([at]);
        starts.filter(|it| *it <= place).max().unwrap_or(0)
    };
    undecided = line_of(undecided);
    // What a secret overlaps that is undecided is undecided as a whole.
    while let Some(last) = places.pop_if(|it| it.written.end > begin + undecided) {
        undecided = undecided.min(line_of(last.written.start.saturating_sub(begin)));
    }
    undecided
}
