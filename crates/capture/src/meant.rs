//! Secrets in what a text means, where that is not what is written: characters by their numbers, and
//! dumps of bytes.

use std::ops::Range;

use zeroize::Zeroizing;

use crate::dumped;
use crate::needles::Needles;
use crate::redactor::{Piece, State};
use crate::spelled::{self, Decoded, LAYERS};

/// A secret, and where it is written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) written: Range<usize>,
    pub(crate) label: u32,
}

/// How a text may mean something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Spelled,
    Dumped,
}

impl How {
    fn is_there(self, needles: &Needles, text: &[u8], is_whole: bool) -> bool {
        match self {
            Self::Spelled => {
                spelled::first(text, 0, is_whole).is_some()
                    || beginning(needles, text, 0, is_whole) < text.len()
            }
            Self::Dumped => dumped::first(text, 0).is_some(),
        }
    }

    /// Looks through a text. Tells the secrets in it, in their order, and the first byte that is
    /// undecided: what comes next may make a secret of it.
    pub(crate) fn read(
        self,
        needles: &Needles,
        text: &[u8],
        is_whole: bool,
    ) -> (Vec<Place>, usize) {
        match self {
            Self::Spelled => read_spelled(needles, text, is_whole),
            Self::Dumped => dumped::read(needles, text, is_whole),
        }
    }
}

fn read_spelled(needles: &Needles, text: &[u8], is_whole: bool) -> (Vec<Place>, usize) {
    // As far as a secret can reach, with colours and line breaks in it.
    let reach = 2 * needles.longest() + 80;
    let mut places = Vec::new();
    let mut from = 0;
    // A secret that has no unit in it was found before, as it is written.
    while let Some(unit) = spelled::first(text, from, is_whole) {
        let begin = from.max(unit.saturating_sub(reach));
        let end = quiet_after(text, unit, reach, is_whole);
        let at_end = end == text.len();
        let island = &text[begin..end];
        let undecided = island_read(needles, island, is_whole || !at_end, begin, &mut places);
        if at_end && !is_whole {
            return (places, begin + undecided);
        }
        from = end;
    }
    (places, beginning(needles, text, from, is_whole))
}

/// Where a secret may begin that goes on in what comes next, and be written otherwise from there on.
fn beginning(needles: &Needles, text: &[u8], from: usize, is_whole: bool) -> usize {
    let from = from.max(text.len().saturating_sub(2 * needles.longest() + 80));
    match is_whole {
        true => text.len(),
        false => from + State::default().read(needles, &text[from..], false, |_| {}),
    }
}

/// Where a stretch without units begins that is longer than any secret.
fn quiet_after(text: &[u8], mut unit: usize, reach: usize, is_whole: bool) -> usize {
    loop {
        match spelled::first(text, unit + 1, is_whole) {
            Some(next) if next - unit <= 2 * reach => unit = next,
            Some(_) | None => return (unit + reach).min(text.len()),
        }
    }
}

/// Every layer by itself; what overlaps is one.
fn island_read(
    needles: &Needles,
    island: &[u8],
    is_whole: bool,
    begin: usize,
    places: &mut Vec<Place>,
) -> usize {
    if is_clean(needles, island, is_whole) {
        return island.len();
    }
    let mut found: Vec<Place> = Vec::new();
    let mut undecided = island.len();
    let mut decoded = Decoded::literal(island);
    for _ in 0..LAYERS {
        let before = decoded.read;
        decoded = decoded.again(is_whole);
        undecided = undecided.min(decoded.read);
        // What stands before something undecided may be the beginning of a secret that goes on in it.
        if decoded.differs || decoded.read < before {
            undecided = undecided.min(search(needles, &decoded, is_whole, &mut found));
        } else {
            break;
        }
    }
    add(found, begin, places);
    // What a secret overlaps that is undecided is undecided as a whole.
    while let Some(last) = places.pop_if(|it| it.written.end > begin + undecided) {
        undecided = undecided.min(last.written.start.saturating_sub(begin));
    }
    undecided
}

/// Whether there is nothing in any layer, and nothing that may become a secret.
fn is_clean(needles: &Needles, island: &[u8], is_whole: bool) -> bool {
    let mut text: Zeroizing<Vec<u8>> = Zeroizing::default();
    for layer in 0..LAYERS {
        let before: &[u8] = if layer == 0 { island } else { &text };
        let Some((decoded, is_open)) = spelled::plainly(before, is_whole) else {
            break;
        };
        let mut is_found = is_open;
        let at = State::default().read(needles, &decoded, is_whole, |piece| {
            is_found |= matches!(piece, Piece::Secret(_));
        });
        if is_found || at < decoded.len() {
            return false;
        }
        text = decoded;
    }
    true
}

/// In their order; what overlaps is one.
pub(crate) fn add(mut found: Vec<Place>, begin: usize, places: &mut Vec<Place>) {
    found.sort_by_key(|it| it.written.start);
    for place in found {
        let written = begin + place.written.start..begin + place.written.end;
        match places.last_mut() {
            Some(last) if written.start < last.written.end => {
                last.written.end = last.written.end.max(written.end);
            }
            _ => places.push(Place { written, ..place }),
        }
    }
}

/// Tells where secrets are written, and the first place that is undecided.
pub(crate) fn search(
    needles: &Needles,
    decoded: &Decoded,
    is_whole: bool,
    found: &mut Vec<Place>,
) -> usize {
    let (ranges, undecided) = ranges(needles, &decoded.bytes, is_whole);
    let places = ranges.into_iter().map(|(range, label)| Place {
        written: decoded.written(range),
        label,
    });
    found.extend(places);
    decoded.begin(undecided)
}

/// The same of a text that means what is written.
pub(crate) fn ranges(
    needles: &Needles,
    bytes: &[u8],
    is_whole: bool,
) -> (Vec<(Range<usize>, u32)>, usize) {
    let mut state = State::default();
    let mut plain_end = 0;
    let mut open: Option<(usize, u32)> = None;
    let mut ranges: Vec<(Range<usize>, u32)> = Vec::new();
    let at = state.read(needles, bytes, is_whole, |piece| match piece {
        Piece::Plain(range) => {
            if let Some((start, label)) = open.take() {
                ranges.push((start..range.start, label));
            }
            plain_end = range.end;
        }
        Piece::Secret(label) => {
            open.get_or_insert((plain_end, label));
        }
    });
    let mut undecided = at;
    if let Some((start, label)) = open {
        match state.covered() {
            0 => ranges.push((start..at, label)),
            _ => undecided = start,
        }
    }
    (ranges, undecided)
}

/// The same for one stream, piece by piece.
#[derive(Debug)]
pub(crate) struct Meant {
    how: How,
    held: Zeroizing<Vec<u8>>,
}

impl Meant {
    pub(crate) fn new(how: How) -> Self {
        Self {
            how,
            held: Zeroizing::default(),
        }
    }

    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Whether what comes now means what is written, and nothing is held before it.
    pub(crate) fn is_as_written(&self, needles: &Needles, bytes: &[u8], is_whole: bool) -> bool {
        self.held.is_empty() && !self.how.is_there(needles, bytes, is_whole)
    }

    /// Tells what is decided: bytes as they are, or the label of a secret.
    pub(crate) fn push(
        &mut self,
        needles: &Needles,
        bytes: &[u8],
        is_whole: bool,
        mut tell: impl FnMut(Result<&[u8], u32>),
    ) {
        self.held.extend_from_slice(bytes);
        let text = std::mem::take(&mut self.held);
        let (places, undecided) = self.how.read(needles, &text, is_whole);
        let mut from = 0;
        for Place { written, label } in places {
            tell(Ok(&text[from..written.start]));
            tell(Err(label));
            from = written.end;
        }
        tell(Ok(&text[from..undecided]));
        self.held.extend_from_slice(&text[undecided..]);
    }
}
