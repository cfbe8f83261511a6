//! What is in a directory, page by page.

use std::time::Duration;

use glovebox_model::ByteString;
use rustix::fs::readlinkat;

use super::fault::{Bound, FileError, FileResult};
use super::stat::FileStat;
use super::tour::{Bounds, Next, tour, until};
use crate::dir::Dir;
use crate::hex::hex;
use crate::relpath::RelPath;
use crate::stat::Kind;

/// Most entries of one page.
const MOST_ENTRIES: usize = 10_000;

#[derive(Debug, Clone)]
pub struct ListOptions {
    /// 1 is the directory itself alone.
    pub depth: usize,
    /// Entries of this page.
    pub entries: usize,
    pub after: Option<Cursor>,
    pub time: Duration,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self {
            depth: 1,
            entries: 1000,
            after: None,
            time: Duration::from_secs(10),
        }
    }
}

/// Behind which path a listing goes on. It holds the path itself, so it stays good whatever is made
/// and removed meanwhile: what is there all the time is listed exactly once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(RelPath);

impl Cursor {
    pub fn parse(text: &str) -> FileResult<Self> {
        let digits = text.as_bytes();
        let pairs = digits.chunks_exact(2);
        if !pairs.remainder().is_empty() {
            return Err(FileError::Cursor);
        }
        let bytes: Option<Vec<u8>> = pairs
            .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
            .collect();
        let path = RelPath::new(bytes.ok_or(FileError::Cursor)?);
        let path = path.map_err(|_| FileError::Cursor)?;
        match path.climbs() {
            true => Err(FileError::Cursor),
            false => Ok(Self(path)),
        }
    }
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&hex(self.0.as_bytes()))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Relative to what was listed.
    pub path: ByteString,
    pub stat: FileStat,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Each directory before what is in it, names by their bytes.
    pub entries: Vec<Listed>,
    /// There is more behind it.
    pub next: Option<Cursor>,
    /// Directories on this page that could not be looked into.
    pub unread: u64,
}

pub fn list(dir: &Dir, under: Option<&RelPath>, options: &ListOptions) -> FileResult<Page> {
    let start = dir.under(under)?;
    let wanted = options.entries.clamp(1, MOST_ENTRIES);
    let bounds = Bounds {
        entries: wanted as u64 + 1,
        deadline: until(options.time),
    };
    let mut entries: Vec<Listed> = Vec::new();
    let mut more = false;
    let after = options.after.as_ref().map(|cursor| cursor.0.as_bytes());
    let toured = tour(&start, after, bounds, &mut |seen| {
        if entries.len() == wanted {
            more = true;
            return Ok(Next::Stop);
        }
        let target = match seen.stat.kind {
            // None when it was swapped for something else since.
            Kind::Symlink => readlinkat(seen.dir, seen.name, Vec::new()).ok(),
            _ => None,
        };
        entries.push(Listed {
            path: ByteString::new(seen.path).unwrap_or_default(),
            stat: FileStat::new(&seen.stat, target.map(|text| text.into_bytes())),
        });
        Ok(match seen.depth < options.depth {
            true => Next::Into,
            false => Next::Past,
        })
    })?;
    if toured.cut == Some(Bound::Time) && entries.is_empty() {
        return Err(FileError::Limit(Bound::Time));
    }
    let last = entries.last().filter(|_| more || toured.cut.is_some());
    let next = last.and_then(|last| RelPath::new(last.path.as_bytes()).ok());
    Ok(Page {
        next: next.map(Cursor),
        entries,
        unread: toured.unread,
    })
}
