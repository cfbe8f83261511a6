//! A stream without its secrets.

use std::fmt;
use std::ops::Range;

use glovebox_model::SecretName;
use zeroize::Zeroizing;

use crate::meant::{How, Meant};
use crate::needles::{HEAD, Needles};
use crate::secrets::Secrets;
use crate::stretch::{ESCAPE, Stretch, Text};
use crate::walk::{Outcome, Walk, in_head};

/// One for each stream: what stands half on one stream and half on another is not found.
///
/// What comes out does not depend on how the stream was cut. Held back is only what a secret may
/// begin with, and no longer than until that is decided; a beginning that the end of the stream
/// leaves undecided is no secret and comes out in [`finish`](Self::finish).
pub struct Redactor {
    secrets: Secrets,
    held: Zeroizing<Vec<u8>>,
    /// So many bytes of what is held are out already.
    told: usize,
    state: State,
    /// Dumps are looked through first, as long as their lines are whole.
    dumped: Meant,
    /// What came out as it is written is looked through for what it means.
    spelled: Meant,
    found: Option<u32>,
    masked: u64,
}

impl Redactor {
    pub(crate) fn of(secrets: Secrets) -> Self {
        Self {
            secrets,
            held: Zeroizing::default(),
            told: 0,
            state: State::default(),
            dumped: Meant::new(How::Dumped),
            spelled: Meant::new(How::Spelled),
            found: None,
            masked: 0,
        }
    }

    /// Appends to `out` all that is decided.
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        if self.secrets.is_empty() {
            return out.extend_from_slice(chunk);
        }
        if self
            .dumped
            .is_as_written(self.secrets.needles(), chunk, false)
        {
            self.pass(chunk, out);
        } else {
            let lines = self.undumped(chunk, false);
            self.pass(&lines, out);
        }
    }

    /// The stream has ended. What comes after it would be another stream.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if self.dumped.held() > 0 {
            let lines = self.undumped(&[], true);
            self.pass(&lines, out);
        }
        let before = out.len();
        if !self.held.is_empty() {
            self.read_held(true, out);
        }
        self.read_spelled(before, true, out);
        self.state = State::default();
        self.told = 0;
    }

    /// Lets out what waits, for somebody who cannot wait any longer, and goes on looking: when it was the
    /// beginning of a secret, the rest of it is masked.
    pub fn release(&mut self, out: &mut Vec<u8>) {
        if self.dumped.held() > 0 {
            let lines = self.undumped(&[], true);
            self.pass(&lines, out);
        }
        let before = out.len();
        out.extend_from_slice(&self.held[self.told..]);
        self.told = self.held.len();
        self.read_spelled(before, true, out);
    }

    fn pass(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        let before = out.len();
        if self.held.is_empty() {
            let read = self.read(chunk, false, out);
            self.held.extend_from_slice(&chunk[read..]);
        } else {
            self.held.extend_from_slice(chunk);
            self.read_held(false, out);
        }
        self.read_spelled(before, false, out);
    }

    /// How many bytes wait for what comes next.
    pub fn held(&self) -> usize {
        self.held.len() - self.told + self.dumped.held() + self.spelled.held()
    }

    /// How many markers came out.
    pub fn masked(&self) -> u64 {
        self.masked
    }

    /// The first secret that was seen.
    pub fn found(&self) -> Option<&SecretName> {
        self.found.and_then(|label| self.secrets.name(label))
    }

    fn read_held(&mut self, is_whole: bool, out: &mut Vec<u8>) {
        let mut held = std::mem::take(&mut self.held);
        let read = self.read(&held, is_whole, out);
        held.drain(..read);
        self.held = held;
    }

    fn undumped(&mut self, chunk: &[u8], is_whole: bool) -> Zeroizing<Vec<u8>> {
        let mut lines = Zeroizing::new(Vec::with_capacity(chunk.len()));
        let (secrets, noted) = (&self.secrets, (&mut self.found, &mut self.masked));
        let tell = noting(secrets, noted, &mut lines);
        self.dumped.push(secrets.needles(), chunk, is_whole, tell);
        lines
    }

    /// What stands in `out` from `before` on.
    fn read_spelled(&mut self, before: usize, is_whole: bool, out: &mut Vec<u8>) {
        if self
            .spelled
            .is_as_written(self.secrets.needles(), &out[before..], is_whole)
        {
            return;
        }
        let written = Zeroizing::new(out.split_off(before));
        let (secrets, noted) = (&self.secrets, (&mut self.found, &mut self.masked));
        let tell = noting(secrets, noted, out);
        self.spelled
            .push(secrets.needles(), &written, is_whole, tell);
    }

    fn read(&mut self, bytes: &[u8], is_whole: bool, out: &mut Vec<u8>) -> usize {
        let Self {
            secrets,
            state,
            found,
            masked,
            told,
            ..
        } = self;
        let out_already = *told;
        let read = state.read(secrets.needles(), bytes, is_whole, |piece| match piece {
            Piece::Plain(range) => {
                let from = range.start.max(out_already).min(range.end);
                out.extend_from_slice(&bytes[from..range.end]);
            }
            Piece::Secret(label) => {
                out.extend_from_slice(secrets.marker(label).as_bytes());
                found.get_or_insert(label);
                *masked += 1;
            }
        });
        *told = out_already.saturating_sub(read);
        read
    }
}

/// Writes what is told of a text.
fn noting<'a>(
    secrets: &'a Secrets,
    (found, masked): (&'a mut Option<u32>, &'a mut u64),
    out: &'a mut Vec<u8>,
) -> impl FnMut(Result<&[u8], u32>) + 'a {
    move |piece| match piece {
        Ok(bytes) => out.extend_from_slice(bytes),
        Err(label) => {
            out.extend_from_slice(secrets.marker(label).as_bytes());
            found.get_or_insert(label);
            *masked += 1;
        }
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("secrets", &self.secrets)
            .field("held", &self.held.len())
            .field("masked", &self.masked)
            .finish()
    }
}

/// What a text consists of.
#[derive(Debug)]
pub(crate) enum Piece {
    Plain(Range<usize>),
    /// All that overlaps, under the name of what came first.
    Secret(u32),
}

/// Between two readings.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// How many bytes of a line that may be wrapped came before.
    dense_before: usize,
    /// How many bytes of what is held belong to a secret that was named already.
    covered: usize,
    /// From the first byte that is held.
    walk: Option<Walk>,
}

impl State {
    /// How many undecided bytes belong to a secret that was told.
    pub(crate) fn covered(&self) -> usize {
        self.covered
    }

    /// Tells the pieces up to the first byte that is undecided, and where that is.
    pub(crate) fn read(
        &mut self,
        needles: &Needles,
        bytes: &[u8],
        is_whole: bool,
        mut tell: impl FnMut(Piece),
    ) -> usize {
        let text = Text {
            bytes,
            dense_before: self.dense_before,
            is_whole,
        };
        let mut places = Places::of(needles, text);
        let mut covered = self.covered;
        let mut at = 0;
        loop {
            let mut walk = match self.walk.take() {
                Some(walk) => walk,
                None => {
                    at = places.next(at);
                    if at >= bytes.len() {
                        break;
                    }
                    Walk::from(at, needles)
                }
            };
            match walk.go_on(needles, text) {
                Outcome::Open => {
                    self.walk = Some(walk.shifted(at));
                    break;
                }
                // Every place is looked at, also inside a secret: another one may begin there and
                // must not be left over with its end.
                Outcome::Longest(found) => {
                    if at >= covered {
                        if covered < at {
                            tell(Piece::Plain(covered..at));
                        }
                        tell(Piece::Secret(found.label));
                    }
                    covered = covered.max(found.end);
                }
                Outcome::Nothing => {}
            }
            at += 1;
        }
        let at = at.min(bytes.len());
        if covered < at {
            tell(Piece::Plain(covered..at));
        }
        self.covered = covered.saturating_sub(at);
        self.dense_before = text.dense_run(at);
        at
    }
}

/// The places of a text where a needle can begin.
struct Places<'a> {
    needles: &'a Needles,
    text: Text<'a>,
    /// Where the next stretch begins that may stand among the first bytes of a needle.
    stretch_at: usize,
    /// The bytes before it and, without stretches, those behind it: as many as a head has that
    /// reaches across. None if the text ends too soon to tell.
    around: Option<[u8; 2 * REACH]>,
}

/// How far before a stretch a head can begin.
const REACH: usize = HEAD - 1;

impl<'a> Places<'a> {
    fn of(needles: &'a Needles, text: Text<'a>) -> Self {
        Self {
            needles,
            text,
            stretch_at: 0,
            around: None,
        }
    }

    /// At or after `at`; the end if there is none.
    fn next(&mut self, mut at: usize) -> usize {
        let bytes = self.text.bytes;
        let filter = self.needles.filter();
        while at < bytes.len() {
            if self.stretch_at <= at {
                self.stretch_at = self.stretch_after(at);
                self.around = self.bytes_around(self.stretch_at);
            }
            let plain = &bytes[at..self.stretch_at];
            if plain.len() >= HEAD {
                match filter.first(plain) {
                    Some(ahead) => return at + ahead,
                    None => at += plain.len() - REACH,
                }
            }
            let Some(around) = &self.around else {
                // Only a walk can tell.
                return at;
            };
            let literal = filter.first(&bytes[at..self.stretch_at + REACH]);
            let without = filter.first(&around[REACH - (self.stretch_at - at)..]);
            match literal.into_iter().chain(without).min() {
                Some(ahead) => return at + ahead,
                None => at = self.stretch_at,
            }
        }
        at
    }

    fn bytes_around(&self, at: usize) -> Option<[u8; 2 * REACH]> {
        let bytes = self.text.bytes;
        let mut around = [0; 2 * REACH];
        let before = at.min(REACH);
        around[REACH - before..REACH].copy_from_slice(&bytes[at - before..at]);
        let (mut known, mut next) = (REACH, at);
        while known < around.len() {
            let byte = *bytes.get(next)?;
            match in_head(self.text, next) {
                Stretch::Of(length) => next += length,
                Stretch::Open => return None,
                Stretch::Not => {
                    around[known] = byte;
                    known += 1;
                    next += 1;
                }
            }
        }
        Some(around)
    }

    fn stretch_after(&self, at: usize) -> usize {
        let bytes = self.text.bytes;
        let mut from = at + 1;
        while let Some(ahead) = bytes
            .get(from..)
            .and_then(|it| memchr::memchr3(ESCAPE, b'\n', b'\\', it))
        {
            let found = from + ahead;
            let begin = match bytes[found] {
                b'\n' if bytes[found - 1] == b'\r' => found - 1,
                _ => found,
            };
            if begin > at && (bytes[found] == ESCAPE || self.text.is_wrapped(begin)) {
                return begin;
            }
            from = found + 1;
        }
        bytes.len()
    }
}
