//! An archive's bytes, decompressed by what they are and not by what somebody calls them, and
//! counted on both sides of the decompression.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Cursor, Read};
use std::rc::Rc;

use super::refusal::{Limit, Refusal};
use super::{UnpackError, UnpackLimits, UnpackResult};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const LONGEST_MAGIC: usize = 4;
/// What `zstd -19` needs at most; a frame that asks for more would take its memory from us.
const ZSTD_WINDOW_LOG: u32 = 27;

pub(crate) struct Flow<'r> {
    plain: Box<dyn Read + 'r>,
    /// None when nothing is compressed.
    compressed: Option<Rc<Cell<u64>>>,
    bytes: u64,
    limits: UnpackLimits,
}

impl<'r> Flow<'r> {
    pub(crate) fn new(mut source: impl Read + 'r, limits: UnpackLimits) -> UnpackResult<Self> {
        let mut magic = Vec::with_capacity(LONGEST_MAGIC);
        let read = source
            .by_ref()
            .take(LONGEST_MAGIC as u64)
            .read_to_end(&mut magic);
        read.map_err(|error| UnpackError::of_archive(from_reading(&error)))?;
        let compressed = Rc::new(Cell::new(0));
        let gzip = magic.starts_with(GZIP);
        let zstd = magic.starts_with(ZSTD);
        let source = Counted {
            inner: Cursor::new(magic).chain(source),
            count: Rc::clone(&compressed),
        };
        let plain: Box<dyn Read + 'r> = if gzip {
            Box::new(Decoder(flate2::read::MultiGzDecoder::new(source)))
        } else if zstd {
            let broken = |_| UnpackError::of_archive(Refusal::Compression);
            let mut decoder = zstd::stream::read::Decoder::new(source).map_err(broken)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(broken)?;
            Box::new(Decoder(decoder))
        } else {
            Box::new(source)
        };
        Ok(Self {
            plain,
            compressed: (gzip || zstd).then_some(compressed),
            bytes: 0,
            limits,
        })
    }

    fn overrun(&self) -> Option<Limit> {
        if self.bytes > self.limits.total_bytes {
            return Some(Limit::TotalBytes(self.limits.total_bytes));
        }
        let compressed = self.compressed.as_ref()?.get();
        let most = compressed.saturating_mul(self.limits.ratio);
        (self.bytes > self.limits.ratio_from_bytes && self.bytes > most)
            .then_some(Limit::Ratio(self.limits.ratio))
    }
}

impl Read for Flow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.plain.read(buffer)?;
        self.bytes = self.bytes.saturating_add(read as u64);
        match self.overrun() {
            Some(limit) => Err(io::Error::other(Stopped(Refusal::Limit(limit)))),
            None => Ok(read),
        }
    }
}

struct Counted<R> {
    inner: R,
    count: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer).map_err(|error| {
            // Kept apart from what the decoder itself finds wrong.
            let why = match error.get_ref().is_some_and(|inner| inner.is::<Stopped>()) {
                true => return error,
                false => Refusal::Source(error.to_string()),
            };
            io::Error::other(Stopped(why))
        })?;
        self.count.set(self.count.get().saturating_add(read as u64));
        Ok(read)
    }
}

struct Decoder<R>(R);

impl<R: Read> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| {
            let known = error.get_ref().is_some_and(|inner| inner.is::<Stopped>());
            match known || error.kind() == io::ErrorKind::Interrupted {
                true => error,
                false => io::Error::other(Stopped(Refusal::Compression)),
            }
        })
    }
}

/// Carries our own reason through `std::io`.
#[derive(Debug)]
pub(crate) struct Stopped(pub(crate) Refusal);

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Stopped {}

pub(crate) fn from_reading(error: &io::Error) -> Refusal {
    if let Some(stopped) = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Stopped>())
    {
        return stopped.0.clone();
    }
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Refusal::Truncated,
        _ => Refusal::Source(error.to_string()),
    }
}

impl fmt::Debug for Flow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
