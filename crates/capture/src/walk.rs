//! One place of a text compared with all needles at once, byte by byte, so that it can stop where the
//! text ends and go on when more has come.

use crate::needles::{Alike, HEAD, Needles};
use crate::stretch::{ESCAPE, LONGEST_STRETCH, Stretch, Text, is_padding};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) end: usize,
    pub(crate) label: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Nothing,
    Longest(Found),
    /// What comes next decides.
    Open,
}

/// How the first bytes are read. Behind them stretches are always left out: there the text has shown
/// already that it means a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Head {
    /// There was no stretch so far.
    Either,
    Literal,
    WithoutStretches,
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    at: usize,
    depth: usize,
    stretch: usize,
    alike: Alike,
    head: Head,
    best: Option<Found>,
}

enum Next {
    Literal,
    Skip(usize),
    Open,
}

/// A text may mean a stretch as it stands there, or not: then both readings go on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk {
    first: Reading,
    second: Option<Reading>,
}

impl Walk {
    pub(crate) fn from(at: usize, needles: &Needles) -> Self {
        let first = Reading {
            at,
            depth: 0,
            stretch: 0,
            alike: needles.all(),
            head: Head::Either,
            best: None,
        };
        Self {
            first,
            second: None,
        }
    }

    pub(crate) fn go_on(&mut self, needles: &Needles, text: Text<'_>) -> Outcome {
        let mut is_open = self.first.go_on(needles, text, &mut self.second);
        if let Some(second) = &mut self.second {
            is_open |= second.go_on(needles, text, &mut None);
        }
        if is_open {
            return Outcome::Open;
        }
        let second = self.second.and_then(|it| it.best);
        match self
            .first
            .best
            .into_iter()
            .chain(second)
            .max_by_key(|it| it.end)
        {
            Some(found) => Outcome::Longest(found),
            None => Outcome::Nothing,
        }
    }

    /// The first bytes of the text are gone.
    pub(crate) fn shifted(mut self, by: usize) -> Self {
        for reading in [Some(&mut self.first), self.second.as_mut()]
            .into_iter()
            .flatten()
        {
            reading.at -= by;
            if let Some(best) = &mut reading.best {
                best.end -= by;
            }
        }
        self
    }
}

impl Reading {
    /// Whether more text could bring a longer match.
    fn go_on(&mut self, needles: &Needles, text: Text<'_>, fork: &mut Option<Reading>) -> bool {
        while !self.alike.is_empty() {
            let Some(&byte) = text.bytes.get(self.at) else {
                return !text.is_whole;
            };
            match self.next(needles, text, byte, fork) {
                Next::Literal => self.take(needles, byte),
                Next::Skip(length) => {
                    self.at += length;
                    self.stretch += length;
                    if self.stretch > LONGEST_STRETCH {
                        break;
                    }
                }
                Next::Open => return true,
            }
        }
        self.alike = Alike::NONE;
        false
    }

    fn take(&mut self, needles: &Needles, byte: u8) {
        let (alike, complete) = needles.narrow(self.alike, self.depth, byte);
        self.at += 1;
        self.depth += 1;
        self.stretch = 0;
        self.alike = alike;
        if let Some(label) = complete {
            self.best = Some(Found {
                end: self.at,
                label,
            });
        }
    }

    fn next(
        &mut self,
        needles: &Needles,
        text: Text<'_>,
        byte: u8,
        fork: &mut Option<Reading>,
    ) -> Next {
        if self.depth >= HEAD {
            return self.next_behind_head(needles, text, byte);
        }
        if self.depth == 0 || self.head == Head::Literal {
            return Next::Literal;
        }
        match in_head(text, self.at) {
            Stretch::Not => Next::Literal,
            Stretch::Open => Next::Open,
            Stretch::Of(length) if self.head == Head::WithoutStretches => Next::Skip(length),
            Stretch::Of(_) => {
                *fork = Some(Self {
                    head: Head::WithoutStretches,
                    ..*self
                });
                self.head = Head::Literal;
                Next::Literal
            }
        }
    }

    fn next_behind_head(&mut self, needles: &Needles, text: Text<'_>, byte: u8) -> Next {
        match text.line_break(self.at) {
            Stretch::Of(length) => {
                self.end_inside(needles, &text.bytes[self.at..self.at + length]);
                return Next::Skip(length);
            }
            Stretch::Open => return Next::Open,
            Stretch::Not => {}
        }
        let before = self.at.checked_sub(1).map(|it| text.bytes[it]);
        if before.is_some_and(|it| is_padding(it, byte)) && !self.goes_on_with(needles, byte) {
            return Next::Skip(1);
        }
        match text.escape(self.at) {
            Stretch::Not => Next::Literal,
            // A secret may be any bytes.
            _ if self.goes_on_with(needles, byte) => Next::Literal,
            Stretch::Of(length) => Next::Skip(length),
            Stretch::Open => Next::Open,
        }
    }

    /// No needle has a line break behind its head, but one may end with the backslash of `\n`.
    fn end_inside(&mut self, needles: &Needles, line_break: &[u8]) {
        let mut literal = *self;
        for byte in line_break {
            literal.take(needles, *byte);
        }
        self.best = literal.best;
    }

    fn goes_on_with(&self, needles: &Needles, byte: u8) -> bool {
        let (alike, complete) = needles.narrow(self.alike, self.depth, byte);
        complete.is_some() || !alike.is_empty()
    }
}

/// Among the first bytes a line break counts only where a long line was wrapped: else the end of every
/// line that ends as a needle begins would be held back.
#[inline]
pub(crate) fn in_head(text: Text<'_>, at: usize) -> Stretch {
    match text.bytes.get(at) {
        Some(&ESCAPE) => text.escape(at),
        Some(b'\r' | b'\n' | b'\\') if text.is_wrapped(at) => text.line_break(at),
        _ => Stretch::Not,
    }
}
