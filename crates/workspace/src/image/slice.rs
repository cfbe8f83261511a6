//! A stretch of a file, read without moving anybody's position in it.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

#[derive(Debug)]
pub(super) struct Slice<'f> {
    file: &'f File,
    at: u64,
    left: u64,
}

impl<'f> Slice<'f> {
    pub(super) fn new(file: &'f File, at: u64, length: u64) -> Self {
        Self {
            file,
            at,
            left: length,
        }
    }
}

impl Read for Slice<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let most = most.min(buffer.len());
        let read = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}
