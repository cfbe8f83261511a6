//! Text in files. Every bound that ends a search early is told.

use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

use glovebox_model::ByteString;
use regex::bytes::{Regex, RegexBuilder};
use rustix::fs::OFlags;

use super::fault::{Bound, FileError, FileResult};
use super::pattern::{Hidden, Patterns};
use super::tour::{Bounds, Next, Seen, tour, until};
use crate::dir::{Dir, READING, regular, single};
use crate::relpath::RelPath;
use crate::stat::Kind;

/// What one expression may take when it is compiled, and while it runs.
const REGEX_BYTES: usize = 256 << 10;
const REGEX_CACHE_BYTES: usize = 2 << 20;
const LONGEST_NEEDLE: usize = 4096;
/// An expression costs its own size for every byte in the worst case, and the clock is only looked
/// at between lines: so a longer line is searched up to here.
const SEARCHED_OF_A_LINE: usize = 64 << 10;
const MOST_CONTEXT: usize = 20;
const LINES_A_LOOK: u64 = 256;

#[derive(Debug, Clone)]
pub enum Needle {
    Literal(String),
    /// Searched line by line.
    Regex(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    Exact,
    Ignore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrepLimits {
    /// Lines in the answer.
    pub matches: usize,
    /// Files that are searched.
    pub files: u64,
    /// A larger file is passed over and counted.
    pub file_bytes: u64,
    /// Read in all.
    pub total_bytes: u64,
    /// Of one line in the answer.
    pub line_bytes: usize,
    pub entries: u64,
    pub time: Duration,
}

impl Default for GrepLimits {
    fn default() -> Self {
        Self {
            matches: 1000,
            files: 100_000,
            file_bytes: 8 << 20,
            total_bytes: 1 << 30,
            line_bytes: 1000,
            entries: 1_000_000,
            time: Duration::from_secs(10),
        }
    }
}

#[derive(Debug, Clone)]
pub struct GrepOptions {
    pub case: Case,
    /// Lines before and after each match.
    pub context: usize,
    /// Only files that one of these matches, when there are any.
    pub include: Vec<String>,
    /// Neither files nor directories that one of these matches.
    pub exclude: Vec<String>,
    pub hidden: Hidden,
    pub limits: GrepLimits,
}

impl Default for GrepOptions {
    fn default() -> Self {
        Self {
            case: Case::Exact,
            context: 0,
            include: Vec::new(),
            exclude: Vec::new(),
            hidden: Hidden::Skip,
            limits: GrepLimits::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// From 1.
    pub number: u64,
    /// Without its end, cut to the limit.
    pub text: ByteString,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub path: ByteString,
    pub line: Line,
    /// Where the first match begins in the whole line, in bytes from 0.
    pub column: usize,
    pub before: Vec<Line>,
    pub after: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grepped {
    pub found: Vec<Found>,
    pub files: u64,
    pub bytes: u64,
    /// Files with a NUL byte.
    pub binary: u64,
    /// Files above the limit, unreadable ones, and directories that could not be entered.
    pub skipped: u64,
    /// Lines that were not searched to their end.
    pub long_lines: u64,
    /// There may be more.
    pub truncated: bool,
}

pub fn grep(
    dir: &Dir,
    under: Option<&RelPath>,
    needle: &Needle,
    options: &GrepOptions,
) -> FileResult<Grepped> {
    let start = dir.under(under)?;
    let deadline = until(options.limits.time);
    let mut search = Search {
        expression: compile(needle, options.case)?,
        whole_lines: matches!(needle, Needle::Literal(_)),
        options,
        deadline,
        done: Grepped::default(),
    };
    let include = Patterns::new(&options.include)?;
    let exclude = Patterns::new(&options.exclude)?;
    let bounds = Bounds {
        entries: options.limits.entries,
        deadline,
    };
    let toured = tour(&start, None, bounds, &mut |seen| {
        if options.hidden.skips(seen.name.to_bytes()) || exclude.matches(seen.path) {
            return Ok(Next::Past);
        }
        let wanted = include.is_empty() || include.matches(seen.path);
        if seen.stat.kind != Kind::File || !wanted {
            return Ok(Next::Into);
        }
        Ok(match search.file(seen) {
            Some(_) => {
                search.done.truncated = true;
                Next::Stop
            }
            None => Next::Past,
        })
    })?;
    search.done.truncated |= toured.cut.is_some();
    search.done.skipped += toured.unread;
    Ok(search.done)
}

fn compile(needle: &Needle, case: Case) -> FileResult<Regex> {
    let refused = |why: String| FileError::Regex { why };
    let text = match needle {
        Needle::Literal(text) | Needle::Regex(text) if text.is_empty() => {
            return Err(FileError::EmptyNeedle);
        }
        Needle::Literal(text) | Needle::Regex(text) if text.len() > LONGEST_NEEDLE => {
            return Err(refused(format!("it is longer than {LONGEST_NEEDLE} bytes")));
        }
        Needle::Literal(text) => regex::escape(text),
        Needle::Regex(text) => text.clone(),
    };
    RegexBuilder::new(&text)
        .case_insensitive(case == Case::Ignore)
        .size_limit(REGEX_BYTES)
        .dfa_size_limit(REGEX_CACHE_BYTES)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => refused("it is too large once compiled".to_owned()),
            // The crate points at the place over several lines; the last one says what it is.
            error => refused(
                error
                    .to_string()
                    .lines()
                    .last()
                    .unwrap_or_default()
                    .trim_start_matches("error: ")
                    .to_owned(),
            ),
        })
}

struct Search<'o> {
    expression: Regex,
    /// A literal is found in linear time however long the line is.
    whole_lines: bool,
    options: &'o GrepOptions,
    deadline: Instant,
    done: Grepped,
}

impl Search<'_> {
    /// The bound that was reached.
    fn file(&mut self, seen: Seen<'_>) -> Option<Bound> {
        let limits = self.options.limits;
        if self.done.files >= limits.files {
            return Some(Bound::Entries(limits.files));
        }
        let flags = READING | OFlags::NOFOLLOW;
        let opened = single(seen.dir, seen.name.to_bytes(), flags);
        let opened = opened.and_then(|fd| regular(&fd).map(|stat| (fd, stat)));
        let Ok((fd, stat)) = opened else {
            self.done.skipped += 1;
            return None;
        };
        if stat.size > limits.file_bytes {
            self.done.skipped += 1;
            return None;
        }
        let mut text = Vec::new();
        let read = File::from(fd)
            .take(limits.file_bytes + 1)
            .read_to_end(&mut text);
        if read.is_err() || text.len() as u64 > limits.file_bytes {
            self.done.skipped += 1;
            return None;
        }
        self.done.bytes = self.done.bytes.saturating_add(text.len() as u64);
        if self.done.bytes > limits.total_bytes {
            return Some(Bound::Bytes(limits.total_bytes));
        }
        if memchr::memchr(0, &text).is_some() {
            self.done.binary += 1;
            return None;
        }
        self.done.files += 1;
        self.text(seen.path, &text)
    }

    fn text(&mut self, path: &[u8], text: &[u8]) -> Option<Bound> {
        let limits = self.options.limits;
        let lines = Lines::of(text);
        for number in 0..lines.count() {
            if (number as u64).is_multiple_of(LINES_A_LOOK) && Instant::now() >= self.deadline {
                return Some(Bound::Time);
            }
            let line = lines.get(number);
            let long = !self.whole_lines && line.len() > SEARCHED_OF_A_LINE;
            let searched = if long {
                &line[..SEARCHED_OF_A_LINE]
            } else {
                line
            };
            self.done.long_lines += u64::from(long);
            // A long line takes as long as many short ones.
            if long && Instant::now() >= self.deadline {
                return Some(Bound::Time);
            }
            let Some(hit) = self.expression.find(searched) else {
                continue;
            };
            if self.done.found.len() >= limits.matches {
                return Some(Bound::Entries(limits.matches as u64));
            }
            let context = self.options.context.min(MOST_CONTEXT);
            let around = |range: std::ops::Range<usize>| {
                range
                    .map(|number| lines.shown(number, 0, limits.line_bytes))
                    .collect()
            };
            self.done.found.push(Found {
                path: ByteString::new(path).unwrap_or_default(),
                line: lines.shown(number, hit.start(), limits.line_bytes),
                column: hit.start(),
                before: around(number.saturating_sub(context)..number),
                after: around(number + 1..(number + 1 + context).min(lines.count())),
            });
        }
        None
    }
}

struct Lines<'t> {
    text: &'t [u8],
    /// Where each begins, and where one behind the last would.
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t [u8]) -> Self {
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', text).map(|at| at + 1));
        if starts.last() != Some(&text.len()) {
            // The last line has no end of its own.
            starts.push(text.len() + 1);
        }
        Self { text, starts }
    }

    fn count(&self) -> usize {
        self.starts.len() - 1
    }

    fn get(&self, number: usize) -> &'t [u8] {
        &self.text[self.starts[number]..self.starts[number + 1] - 1]
    }

    /// Cut so that what begins at `around` is in it.
    fn shown(&self, number: usize, around: usize, most: usize) -> Line {
        let line = self.get(number);
        let from = match around < most {
            true => 0,
            false => around - most / 4,
        };
        let text = &line[from..line.len().min(from.saturating_add(most))];
        Line {
            number: number as u64 + 1,
            text: ByteString::new(text).unwrap_or_default(),
        }
    }
}
