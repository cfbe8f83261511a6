//! Content codings, decoded as they come, into a buffer that cannot grow past its limit.

use std::io::{self, Write};

use brotli_decompressor::DecompressorWriter;
use flate2::write::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, Operation};

use super::answer::too_large;
use crate::refusal::{Refusal, RefusalCode};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Identity,
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "identity" => Self::Identity,
            "gzip" | "x-gzip" => Self::Gzip,
            "deflate" => Self::Deflate,
            "br" => Self::Brotli,
            "zstd" => Self::Zstd,
            _ => return None,
        })
    }
}

/// What is asked for: those that are common and fast.
pub(super) const ACCEPTED: &str = "gzip, br, zstd";

/// Text that anybody wrote does not get larger than this many times.
const GROWTH_MOST: usize = 200;
/// Small things may: a page of blanks.
const GROWTH_FREE: usize = 1 << 20;
/// The window that RFC 8878 asks of everybody, and no larger one.
const ZSTD_WINDOW_LOG: u32 = 23;
const PIECE: usize = 16 * 1024;

struct Bounded {
    bytes: Vec<u8>,
    most: usize,
    came: usize,
    over: Option<Over>,
}

#[derive(Clone, Copy)]
enum Over {
    Size,
    Growth,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.bytes.len() + bytes.len();
        let grown = GROWTH_FREE.max(self.came.saturating_mul(GROWTH_MOST));
        if length > self.most {
            self.over = Some(Over::Size);
        } else if length > grown {
            self.over = Some(Over::Growth);
        }
        if self.over.is_some() {
            let room = self.most.min(grown).saturating_sub(self.bytes.len());
            self.bytes.extend(bytes.iter().take(room));
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Zlib's format. The writer of its crate does not tell whether the end was seen.
struct Inflate {
    raw: Decompress,
    sink: Bounded,
    ended: bool,
}

impl Inflate {
    fn new(sink: Bounded) -> Self {
        Self {
            raw: Decompress::new(true),
            sink,
            ended: false,
        }
    }

    fn take(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let mut piece = [0; PIECE];
        while !self.ended {
            let (before, made) = (self.raw.total_in(), self.raw.total_out());
            let flush = FlushDecompress::None;
            let status = self.raw.decompress(bytes, &mut piece, flush);
            let status = status.map_err(io::Error::other)?;
            let count = |it: u64| usize::try_from(it).map_err(io::Error::other);
            let (taken, made) = (
                count(self.raw.total_in() - before)?,
                count(self.raw.total_out() - made)?,
            );
            bytes = bytes.get(taken..).unwrap_or_default();
            self.sink.write_all(piece.get(..made).unwrap_or_default())?;
            self.ended = status == Status::StreamEnd;
            if bytes.is_empty() && made < PIECE {
                break;
            }
        }
        Ok(())
    }
}

/// Frames of zstd, one after another. The same holds for the writer of its crate.
struct Frames {
    raw: zstd::stream::raw::Decoder<'static>,
    sink: Bounded,
    ended: bool,
}

impl Frames {
    fn new(sink: Bounded) -> io::Result<Self> {
        let mut raw = zstd::stream::raw::Decoder::new()?;
        raw.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG))?;
        Ok(Self {
            raw,
            sink,
            ended: false,
        })
    }

    fn take(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let mut piece = [0; PIECE];
        loop {
            if self.ended {
                if bytes.is_empty() {
                    return Ok(());
                }
                self.raw.reinit()?;
            }
            let status = self.raw.run_on_buffers(bytes, &mut piece)?;
            let made = status.bytes_written;
            bytes = bytes.get(status.bytes_read..).unwrap_or_default();
            self.sink.write_all(piece.get(..made).unwrap_or_default())?;
            self.ended = status.remaining == 0;
            if bytes.is_empty() && made < PIECE {
                return Ok(());
            }
        }
    }
}

fn complete(ended: bool) -> io::Result<()> {
    match ended {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

enum Inner {
    Identity(Bounded),
    Gzip(MultiGzDecoder<Bounded>),
    Deflate(Inflate),
    Brotli(Box<DecompressorWriter<Bounded>>),
    Zstd(Frames),
}

pub(super) struct Decoder {
    inner: Inner,
    most: usize,
}

impl Decoder {
    pub(super) fn new(coding: Coding, most: usize) -> Result<Self, Refusal> {
        let sink = Bounded {
            bytes: Vec::new(),
            most,
            came: 0,
            over: None,
        };
        let inner = match coding {
            Coding::Identity => Inner::Identity(sink),
            Coding::Gzip => Inner::Gzip(MultiGzDecoder::new(sink)),
            Coding::Deflate => Inner::Deflate(Inflate::new(sink)),
            Coding::Brotli => Inner::Brotli(Box::new(DecompressorWriter::new(sink, PIECE))),
            Coding::Zstd => Inner::Zstd(Frames::new(sink).map_err(|it| malformed(&it))?),
        };
        Ok(Self { inner, most })
    }

    fn sink(&mut self) -> &mut Bounded {
        match &mut self.inner {
            Inner::Identity(sink) => sink,
            Inner::Gzip(decoder) => decoder.get_mut(),
            Inner::Deflate(decoder) => &mut decoder.sink,
            Inner::Brotli(decoder) => decoder.get_mut(),
            Inner::Zstd(decoder) => &mut decoder.sink,
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        self.sink().came += bytes.len();
        let written = match &mut self.inner {
            Inner::Identity(sink) => sink.write_all(bytes),
            Inner::Gzip(decoder) => decoder.write_all(bytes),
            Inner::Deflate(decoder) => decoder.take(bytes),
            Inner::Brotli(decoder) => decoder.write_all(bytes),
            Inner::Zstd(decoder) => decoder.take(bytes),
        };
        self.settle(written)
    }

    /// Everything, if the coded form is complete.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, Refusal> {
        if self.sink().came == 0 {
            // An answer without a body may name a coding all the same.
            return Ok(Vec::new());
        }
        let finished = match &mut self.inner {
            Inner::Identity(_) => Ok(()),
            Inner::Gzip(decoder) => decoder.try_finish(),
            Inner::Deflate(decoder) => complete(decoder.ended),
            Inner::Brotli(decoder) => decoder.close(),
            Inner::Zstd(decoder) => complete(decoder.ended),
        };
        self.settle(finished)?;
        Ok(std::mem::take(&mut self.sink().bytes))
    }

    pub(super) fn so_far(mut self) -> Vec<u8> {
        std::mem::take(&mut self.sink().bytes)
    }

    fn settle(&mut self, done: io::Result<()>) -> Result<(), Refusal> {
        // Some decoders swallow what their sink says.
        match (self.sink().over, done) {
            (Some(Over::Size), _) => Err(too_large(self.most)),
            (Some(Over::Growth), _) => Err(Refusal::new(
                RefusalCode::ResponseTooLarge,
                format!("the body decodes to more than {GROWTH_MOST} times its size"),
            )),
            (None, Ok(())) => Ok(()),
            (None, Err(error)) => Err(malformed(&error)),
        }
    }
}

fn malformed(error: &io::Error) -> Refusal {
    Refusal::new(
        RefusalCode::DecodeError,
        format!("the body cannot be decoded: {error}"),
    )
}
