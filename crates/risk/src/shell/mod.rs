//! Reads shell scripts as bash does, and says where another shell would read something else. Written for this: the readers that exist take the bodies of two
//! here-documents for commands, or end the process on a script that nests deeply. What it does
//! not know is an error, which makes the script blind; it never guesses.

mod redirect;
mod structure;
mod word;

use crate::command::{Position, Unclear, Word};
use crate::outline::{DEPTH, Feed, Origin, Outline, SOURCE_BYTES};
use redirect::Heredoc;

/// One word with its place.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    pub(crate) word: Word,
    pub(crate) at: Position,
    /// Which argument of an argument vector it is.
    pub(crate) argument: Option<usize>,
}

impl Text {
    pub(crate) fn known(&self) -> Option<&str> {
        match &self.word {
            Word::Known(value) => Some(value),
            Word::Unknown(_) => None,
        }
    }

    /// As known, or as written.
    pub(crate) fn shown(&self) -> &str {
        match &self.word {
            Word::Known(text) | Word::Unknown(text) => text,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Stop {
    Syntax,
    TooLarge,
}

pub(crate) type Outcome<T> = Result<T, Stop>;

/// Where a script stands: in another one, behind wrappers, in a pipeline.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) origin: Origin,
    /// All of a script in a word counts as being where the word is.
    pub(crate) base: Option<Position>,
    pub(crate) depth: usize,
    pub(crate) through: Vec<String>,
    /// A wrapper changed the directory or the root.
    pub(crate) moved: bool,
    pub(crate) feed: Feed,
    /// It is bash that reads it, not whatever `sh` is.
    pub(crate) bash: bool,
}

impl Place {
    pub(crate) fn top(origin: Origin) -> Self {
        Self {
            origin,
            base: None,
            depth: 0,
            through: Vec::new(),
            moved: false,
            feed: Feed::Inherited,
            bash: false,
        }
    }
}

pub(crate) struct Reader<'a, 'o> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    lines: Vec<usize>,
    place: Place,
    /// A newline inside a substitution would begin the body of a here-document outside it.
    outer_pending: bool,
    pending: Vec<Heredoc>,
    /// In patterns of `case` and `[[`, round brackets belong to the word.
    pattern: bool,
    outline: &'o mut Outline,
}

/// Reads a script into the outline.
pub(crate) fn script(text: &str, place: Place, outline: &mut Outline) {
    let origin = place.origin;
    let start = place.base.unwrap_or(Position { line: 1, column: 1 });
    if text.len() > SOURCE_BYTES || place.depth > DEPTH {
        return outline.overflow(start, origin);
    }
    if text.contains('\0') {
        return outline.blind(Unclear::Syntax, "a NUL byte", start, origin);
    }
    let lines = if place.base.is_some() {
        Vec::new()
    } else {
        let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).map(|it| it + 1);
        std::iter::once(0).chain(breaks).collect()
    };
    Reader {
        text,
        bytes: text.as_bytes(),
        at: 0,
        lines,
        place,
        outer_pending: false,
        pending: Vec::new(),
        pattern: false,
        outline,
    }
    .all();
}

impl Reader<'_, '_> {
    fn all(mut self) {
        while self.at < self.bytes.len() && !self.outline.is_full() {
            let before = self.at;
            let depth = self.place.depth;
            match self.list(&[]) {
                Ok(()) => {}
                Err(Stop::TooLarge) => {
                    let at = self.position(self.at);
                    return self.outline.overflow(at, self.place.origin);
                }
                Err(Stop::Syntax) => {
                    self.blind(Unclear::Syntax, before, self.at);
                    // What follows may still run, if it is the reader who is wrong.
                    self.place.depth = depth;
                    self.place.feed = Feed::Inherited;
                    self.pattern = false;
                    self.outer_pending = false;
                    self.pending.clear();
                    self.recover(before);
                }
            }
        }
        if !self.pending.is_empty() {
            self.blind(Unclear::Syntax, self.at, self.at);
        }
    }

    fn recover(&mut self, before: usize) {
        if self.at == before {
            self.at += 1;
        }
        let rest = self
            .bytes
            .get(self.at.saturating_sub(1)..)
            .unwrap_or_default();
        let ends = rest.iter().position(|it| matches!(it, b'\n' | b';'));
        let skipped = ends.map_or(rest.len(), |it| it + 1);
        self.at = (self.at.saturating_sub(1) + skipped)
            .max(before + 1)
            .min(self.bytes.len());
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn ahead(&self, by: usize) -> Option<u8> {
        self.bytes.get(self.at + by).copied()
    }

    fn starts(&self, with: &str) -> bool {
        self.bytes
            .get(self.at..)
            .is_some_and(|it| it.starts_with(with.as_bytes()))
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.starts(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn expect(&mut self, text: &str) -> Outcome<()> {
        if self.eat(text) {
            Ok(())
        } else {
            Err(Stop::Syntax)
        }
    }

    fn slice(&self, from: usize, to: usize) -> &str {
        self.text.get(from..to).unwrap_or_default()
    }

    fn position(&self, offset: usize) -> Position {
        if let Some(base) = self.place.base {
            return base;
        }
        let line = self.lines.partition_point(|it| *it <= offset).max(1);
        let begins = self.lines.get(line - 1).copied().unwrap_or_default();
        // Columns count bytes on very long lines: counting characters would be quadratic.
        let before = offset.saturating_sub(begins);
        let column = if before > 512 {
            before
        } else {
            self.slice(begins, offset).chars().count()
        };
        let small = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
        Position {
            line: small(line),
            column: small(column + 1),
        }
    }

    fn blind(&mut self, why: Unclear, from: usize, to: usize) {
        let at = self.position(from);
        let source = self.text.get(from..to.min(from + 1024)).or_else(|| {
            let end = self.text.floor_char_boundary(to.min(from + 1024));
            self.text.get(from..end)
        });
        let source = source.unwrap_or_default().to_owned();
        self.outline.blind(why, &source, at, self.place.origin);
    }

    /// What was read from there on is something else to other shells.
    fn dialect(&mut self, from: usize) {
        if !self.place.bash {
            self.blind(Unclear::Dialect, from, self.at);
        }
    }

    /// One level deeper, with what belongs to this level put away.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        if self.place.depth >= DEPTH || self.outline.is_full() {
            return Err(Stop::TooLarge);
        }
        self.place.depth += 1;
        let result = inner(self);
        self.place.depth -= 1;
        result
    }

    fn inside(&self, base: Position) -> Place {
        Place {
            base: Some(base),
            depth: self.place.depth + 1,
            ..self.place.clone()
        }
    }
}
