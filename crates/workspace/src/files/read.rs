//! Reading a file, or a part of it.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use super::fault::{FileError, FileResult};
use super::stat::FileStat;
use crate::dir::{Dir, from_io};
use crate::fault::FsErrorKind;
use crate::relpath::RelPath;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    Whole,
    /// From byte `first`; `last` is included, and may lie behind the end.
    From {
        first: u64,
        last: Option<u64>,
    },
    /// So many bytes at the end.
    Last(u64),
}

impl Range {
    /// Where it begins and how long it is, in a file of `size` bytes.
    fn within(self, size: u64) -> FileResult<(u64, u64)> {
        let beyond = FileError::Range { size };
        match self {
            Self::Whole => Ok((0, size)),
            Self::From { first, last } => {
                let end = last.map_or(size, |last| last.saturating_add(1).min(size));
                match first < end {
                    true => Ok((first, end - first)),
                    false => Err(beyond),
                }
            }
            Self::Last(0) => Err(beyond),
            Self::Last(bytes) => Ok((size.saturating_sub(bytes), bytes.min(size))),
        }
    }
}

/// A file to be passed on while it is read. It gives exactly `length` bytes, or an error when the
/// file has become shorter: whoever was told the length must not take less for the whole.
#[derive(Debug)]
pub struct Reading {
    file: File,
    at: u64,
    left: u64,
    pub stat: FileStat,
    /// Of the part.
    pub start: u64,
    pub length: u64,
}

/// A link that stays inside is followed, as everywhere but at the end of a path to be changed.
pub fn open(dir: &Dir, path: &RelPath, range: Range) -> FileResult<Reading> {
    let (file, stat) = dir.open_file(path)?;
    let (start, length) = range.within(stat.size)?;
    Ok(Reading {
        file,
        at: start,
        left: length,
        stat: FileStat::new(&stat, None),
        start,
        length,
    })
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let most = most.min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        let read = self.file.read_at(&mut buffer[..most], self.at)?;
        if read == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the file became shorter while it was read",
            ));
        }
        self.at += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    pub bytes: Vec<u8>,
    /// Where they begin.
    pub start: u64,
    /// As it was when the file was opened.
    pub stat: FileStat,
}

/// What is really there, up to `cap` bytes: a file that says less than it holds is read to its
/// end, and one that holds more than `cap` is an error.
pub fn read(dir: &Dir, path: &RelPath, range: Range, cap: u64) -> FileResult<Contents> {
    let (file, stat) = dir.open_file(path)?;
    let fault = |kind| FileError::new("read", path.as_bytes(), kind);
    let (start, most) = match range {
        Range::Whole => (0, None),
        range => range
            .within(stat.size)
            .map(|(start, length)| (start, Some(length)))?,
    };
    if most.unwrap_or(stat.size) > cap {
        return Err(fault(FsErrorKind::TooLarge { cap }));
    }
    let mut bytes = Vec::new();
    let part = Part {
        file: &file,
        at: start,
    };
    let read = part
        .take(most.unwrap_or(cap.saturating_add(1)))
        .read_to_end(&mut bytes);
    read.map_err(|error| fault(from_io(&error)))?;
    match bytes.len() as u64 > cap {
        true => Err(fault(FsErrorKind::TooLarge { cap })),
        false => Ok(Contents {
            bytes,
            start,
            stat: FileStat::new(&stat, None),
        }),
    }
}

struct Part<'f> {
    file: &'f File,
    at: u64,
}

impl Read for Part<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
