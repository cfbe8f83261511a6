//! The contents of one entry, decompressed, counted and compared with what was promised.

use std::io::{self, Read, SeekFrom, Take};

use flate2::Crc;
use flate2::read::DeflateDecoder;

use super::super::UnpackLimits;
use super::super::refusal::{Limit, Refusal};
use super::super::stream::{Stopped, from_reading};
use super::Seekable;
use super::directory::Listed;
use super::entry::STORED;

/// What all entries together may take.
#[derive(Debug)]
pub(super) struct Budget {
    limits: UnpackLimits,
    bytes: u64,
    packed: u64,
}

impl Budget {
    pub(super) fn new(limits: UnpackLimits) -> Self {
        Self {
            limits,
            bytes: 0,
            packed: 0,
        }
    }

    fn overrun(&self) -> Option<Limit> {
        if self.bytes > self.limits.total_bytes {
            return Some(Limit::TotalBytes(self.limits.total_bytes));
        }
        let most = self.packed.saturating_mul(self.limits.ratio);
        (self.bytes > self.limits.ratio_from_bytes && self.bytes > most)
            .then_some(Limit::Ratio(self.limits.ratio))
    }
}

pub(super) struct Contents<'a> {
    inner: Inner<'a>,
    sum: Crc,
    read: u64,
    size: u64,
    packed: u64,
    expected: u32,
    budget: &'a mut Budget,
}

enum Inner<'a> {
    Stored(Take<&'a mut dyn Seekable>),
    Deflated(DeflateDecoder<Take<&'a mut dyn Seekable>>),
}

impl<'a> Contents<'a> {
    pub(super) fn open(
        source: &'a mut dyn Seekable,
        listed: &Listed,
        budget: &'a mut Budget,
    ) -> Result<Self, Refusal> {
        let sought = source.seek(SeekFrom::Start(listed.start));
        sought.map_err(|error| from_reading(&error))?;
        budget.packed = budget.packed.saturating_add(listed.packed);
        let raw = source.take(listed.packed);
        let inner = match listed.described.method {
            STORED if listed.size != listed.packed => return Err(Refusal::Disagree("size")),
            STORED => Inner::Stored(raw),
            _ => Inner::Deflated(DeflateDecoder::new(raw)),
        };
        Ok(Self {
            inner,
            sum: Crc::new(),
            read: 0,
            size: listed.size,
            packed: listed.packed,
            expected: listed.described.sum,
            budget,
        })
    }

    /// Reads what is left, and says whether all of it was what it claimed to be.
    pub(super) fn finish(mut self) -> Result<(), Refusal> {
        io::copy(&mut self, &mut io::sink()).map_err(|error| from_reading(&error))?;
        let left = match &self.inner {
            Inner::Stored(raw) => raw.limit(),
            // Bytes behind the end of the stream would be somebody else's contents.
            Inner::Deflated(decoder) => self.packed - decoder.total_in().min(self.packed),
        };
        if left != 0 || self.read != self.size {
            return Err(Refusal::Disagree("size"));
        }
        match self.sum.sum() == self.expected {
            true => Ok(()),
            false => Err(Refusal::Compression),
        }
    }
}

impl Read for Contents<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let stop = |why| Err(io::Error::other(Stopped(why)));
        let read = match &mut self.inner {
            Inner::Stored(raw) => raw.read(buffer)?,
            Inner::Deflated(decoder) => match decoder.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
                Err(_) => return stop(Refusal::Compression),
                Ok(read) => read,
            },
        };
        self.sum.update(&buffer[..read]);
        self.read += read as u64;
        self.budget.bytes = self.budget.bytes.saturating_add(read as u64);
        if self.read > self.size {
            return stop(Refusal::Disagree("size"));
        }
        match self.budget.overrun() {
            Some(limit) => stop(Refusal::Limit(limit)),
            None => Ok(read),
        }
    }
}
