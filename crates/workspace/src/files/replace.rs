//! Replacing a piece of text in one file. Bytes are bytes: nothing here asks for UTF-8.

use std::io::Read;

use memchr::memmem;

use super::fault::{FileError, FileResult};
use super::stat::{Etag, FileStat};
use super::write::{Condition, Durability, WriteOptions, write};
use crate::dir::{Dir, from_io};
use crate::fault::FsErrorKind;
use crate::relpath::{RelPath, shown};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurrence {
    /// It must be there exactly once; texts that overlap count as two.
    Once,
    All,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    pub times: u64,
    pub stat: FileStat,
}

/// The file keeps its mode. Whoever writes to it between the reading and the writing makes this
/// fail, and what they wrote stays.
pub fn replace(
    dir: &Dir,
    path: &RelPath,
    old: &[u8],
    new: &[u8],
    occurrence: Occurrence,
    expected: Option<&Etag>,
    cap: u64,
) -> FileResult<Replaced> {
    if old.is_empty() {
        return Err(FileError::EmptyNeedle);
    }
    let (file, stat) = dir.open_itself(path)?;
    let etag = Etag::of(&stat);
    if expected.is_some_and(|expected| *expected != etag) {
        return Err(FileError::changed(path));
    }
    let fault = |kind| FileError::new("read", path.as_bytes(), kind);
    let mut text = Vec::new();
    let read = file.take(cap.saturating_add(1)).read_to_end(&mut text);
    read.map_err(|error| fault(from_io(&error)))?;
    if text.len() as u64 > cap {
        return Err(fault(FsErrorKind::TooLarge { cap }));
    }
    let found: Vec<usize> = memmem::find_iter(&text, old).collect();
    let mut times = found.len() as u64;
    if let (Occurrence::Once, [at]) = (occurrence, found.as_slice()) {
        times += u64::from(memmem::find(&text[at + 1..], old).is_some());
    }
    if times == 0 || occurrence == Occurrence::Once && times != 1 {
        let path = shown(path.as_bytes());
        return Err(FileError::Occurs { path, times });
    }
    // Known before anything is built: many short texts may become long ones.
    let kept = text.len() as u64 - times * old.len() as u64;
    let size = kept.saturating_add(times.saturating_mul(new.len() as u64));
    if size > cap {
        return Err(FileError::new(
            "write",
            path.as_bytes(),
            FsErrorKind::TooLarge { cap },
        ));
    }
    let mut changed = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    let mut from = 0;
    for at in found {
        changed.extend_from_slice(&text[from..at]);
        changed.extend_from_slice(new);
        from = at + old.len();
    }
    changed.extend_from_slice(&text[from..]);
    let options = WriteOptions {
        condition: Condition::Matches(etag),
        durability: Durability::Later,
        most_bytes: cap,
        ..WriteOptions::default()
    };
    let stat = write(dir, path, &mut changed.as_slice(), &options)?;
    Ok(Replaced { times, stat })
}
