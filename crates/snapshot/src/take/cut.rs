//! Cutting a file into chunks where its contents say so, and making each ready to be stored.

use std::fs::File;
use std::os::unix::fs::FileExt;

use fastcdc::v2020::FastCDC;
use glovebox_model::Result;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::fault::{internal, io, os};
use crate::hash::ChunkHash;
use crate::pack::{Batch, Form};

/// A file below the minimum is one chunk. On average 64 KiB: an edit in a large file stores about
/// that much anew.
pub(super) const MIN: usize = 16 << 10;
const AVERAGE: usize = 64 << 10;
const MAX: usize = 256 << 10;

const BUFFER: usize = 1 << 20;
const LEVEL: i32 = 1;
/// Shrinking by less is not worth expanding it again.
const GAIN: usize = 16;
const DULL: u32 = 2;
const RETRY: u32 = 8;

pub(super) struct Cutter {
    zstd: zstd::bulk::Compressor<'static>,
    buffer: Vec<u8>,
    scratch: Vec<u8>,
    /// Chunks in a row that did not shrink.
    dull: u32,
}

impl Cutter {
    pub(super) fn new() -> Result<Self> {
        let zstd = zstd::bulk::Compressor::new(LEVEL)
            .map_err(|error| internal(format!("cannot compress: {error}")))?;
        Ok(Self {
            zstd,
            buffer: Vec::new(),
            scratch: Vec::new(),
            dull: 0,
        })
    }

    /// What came before says nothing about the next file.
    pub(super) fn begin(&mut self) {
        self.dull = 0;
    }

    /// Compresses when that shrinks. In a file that has not shrunk for a while it is only tried now
    /// and then.
    pub(super) fn store(&mut self, hash: ChunkHash, plain: &[u8], batch: &mut Batch) -> Result<()> {
        let length = u32::try_from(plain.len()).map_err(|_| internal("a chunk too large"))?;
        if self.dull < DULL || self.dull.is_multiple_of(RETRY) {
            self.scratch.clear();
            self.scratch
                .reserve(zstd::zstd_safe::compress_bound(plain.len()));
            let packed = self
                .zstd
                .compress_to_buffer(plain, &mut self.scratch)
                .map_err(|error| internal(format!("cannot compress: {error}")))?;
            if packed < plain.len() - plain.len() / GAIN {
                self.dull = 0;
                return batch.push(hash, length, Form::Zstd, &self.scratch);
            }
        }
        self.dull += 1;
        batch.push(hash, length, Form::Plain, plain)
    }

    /// Calls `each` with every chunk of one run of a file; says how many bytes there were, which are
    /// fewer than `length` if the file was cut off meanwhile.
    pub(super) fn cut(
        &mut self,
        file: &File,
        path: &[u8],
        from: u64,
        length: u64,
        each: &mut dyn FnMut(&mut Self, &[u8]) -> Result<()>,
    ) -> Result<u64> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let done = self.cut_with(&mut buffer, file, path, from, length, each);
        self.buffer = buffer;
        done
    }

    fn cut_with(
        &mut self,
        buffer: &mut Vec<u8>,
        file: &File,
        path: &[u8],
        from: u64,
        length: u64,
        each: &mut dyn FnMut(&mut Self, &[u8]) -> Result<()>,
    ) -> Result<u64> {
        let wanted = usize::try_from(length).unwrap_or(usize::MAX).min(BUFFER);
        if buffer.len() < wanted {
            buffer.resize(wanted, 0);
        }
        let (mut filled, mut read, mut ended) = (0usize, 0u64, false);
        loop {
            while !ended && filled < wanted {
                let left = usize::try_from(length - read).unwrap_or(usize::MAX);
                let end = wanted.min(filled.saturating_add(left));
                if end == filled {
                    ended = true;
                    break;
                }
                match file.read_at(&mut buffer[filled..end], from + read) {
                    Ok(0) => ended = true,
                    Ok(count) => {
                        filled += count;
                        read += count as u64;
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(io("read", path, &error)),
                }
            }
            ended = ended || read == length;
            let mut at = 0;
            let window = &buffer[..filled];
            let cdc = FastCDC::new(window, MIN, AVERAGE, MAX);
            while at < filled && (ended || filled - at >= MAX) {
                let (_, end) = cdc.cut(at, filled - at);
                let end = end.clamp(at + 1, filled);
                each(self, &window[at..end])?;
                at = end;
            }
            if ended {
                return Ok(read);
            }
            buffer.copy_within(at..filled, 0);
            filled -= at;
        }
    }
}

/// Calls `each` with every run of a file that holds data, from the start; holes lie between. A file
/// that takes as much as it is long has none, and is not asked.
pub(super) fn each_extent(
    file: &File,
    path: &[u8],
    size: u64,
    allocated: u64,
    mut each: impl FnMut(u64, u64) -> Result<bool>,
) -> Result<()> {
    if allocated >= size {
        if size > 0 {
            each(0, size)?;
        }
        return Ok(());
    }
    let mut at = 0;
    while at < size {
        let start = match seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            // Nothing but a hole up to the end.
            Err(Errno::NXIO) => return Ok(()),
            Err(errno) => return Err(os("read", path, errno)),
        };
        let end = match seek(file, SeekFrom::Hole(start)) {
            Ok(end) => end.min(size),
            Err(Errno::NXIO) => return Ok(()),
            Err(errno) => return Err(os("read", path, errno)),
        };
        // A file that is cut off while we look may lead anywhere; only forward counts.
        if start >= size || end <= start || !each(start, end - start)? {
            return Ok(());
        }
        at = end;
    }
    Ok(())
}
