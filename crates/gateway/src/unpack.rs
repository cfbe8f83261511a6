//! What a body holds in a compressed form, whatever its headers say. It is decoded on the side as it
//! passes, only to be searched: a program could decode it as well.

use std::fmt;
use std::io::{self, Write};

use brotli_decompressor::DecompressorWriter;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use glovebox_capture::{Redactor, Secrets};
use zstd::stream::write::Decoder as ZstdDecoder;

/// Bytes by which a format shows.
const MAGIC: usize = 4;
/// A form within a form within a form is looked through no further.
const DEPTH: u8 = 3;
/// As retrieval has it: what people wrote does not get larger than this many times.
const GROWTH_MOST: u64 = 200;
/// Small things may.
const GROWTH_FREE: u64 = 1 << 20;
const PIECE: usize = 16 * 1024;

/// What is known of a body so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Finding {
    Nothing,
    /// A secret may begin where the decoded bytes end.
    Open,
    Secret,
    /// It decodes to more than is searched.
    Bomb,
}

pub(crate) struct Unpacked {
    secrets: Secrets,
    depth: u8,
    /// The first bytes, until the format can be told.
    first: Vec<u8>,
    decoders: Option<Vec<Decoder>>,
}

impl fmt::Debug for Unpacked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unpacked")
    }
}

impl Unpacked {
    pub(crate) fn new(secrets: &Secrets) -> Self {
        Self::at(secrets, 1)
    }

    fn at(secrets: &Secrets, depth: u8) -> Self {
        Self {
            secrets: secrets.clone(),
            depth,
            first: Vec::new(),
            decoders: None,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> Finding {
        if self.decoders.is_none() {
            self.first.extend_from_slice(bytes);
            return match self.first.len() {
                0..MAGIC => Finding::Nothing,
                _ => self.begin(),
            };
        }
        self.decode(bytes)
    }

    pub(crate) fn finish(&mut self) -> Finding {
        let before = match self.decoders {
            None if self.first.is_empty() => return Finding::Nothing,
            None => self.begin(),
            Some(_) => Finding::Nothing,
        };
        let decoders = self.decoders.iter_mut().flatten();
        let last = decoders.map(Decoder::finish).max();
        before.max(last.unwrap_or(Finding::Nothing))
    }

    fn begin(&mut self) -> Finding {
        let first = std::mem::take(&mut self.first);
        let sink = || Sink::new(&self.secrets, self.depth);
        self.decoders = Some(Decoder::for_bytes(&first, sink));
        self.decode(&first)
    }

    fn decode(&mut self, bytes: &[u8]) -> Finding {
        let Some(decoders) = &mut self.decoders else {
            return Finding::Nothing;
        };
        let mut finding = Finding::Nothing;
        decoders.retain_mut(|decoder| {
            let goes_on = decoder.decode(bytes).is_ok();
            finding = finding.max(decoder.finding());
            goes_on
        });
        finding
    }
}

enum Decoder {
    Gzip(Box<MultiGzDecoder<Sink>>),
    Zlib(Box<ZlibDecoder<Sink>>),
    Zstd(Box<ZstdDecoder<'static, Sink>>),
    /// Neither shows by its first bytes: it is tried until it fails.
    Deflate(Box<DeflateDecoder<Sink>>),
    Brotli(Box<DecompressorWriter<Sink>>),
}

impl Decoder {
    fn for_bytes(first: &[u8], sink: impl Fn() -> Sink) -> Vec<Self> {
        let mut all = vec![
            Self::Deflate(Box::new(DeflateDecoder::new(sink()))),
            Self::Brotli(Box::new(DecompressorWriter::new(sink(), PIECE))),
        ];
        match first {
            [0x1f, 0x8b, ..] => all.push(Self::Gzip(Box::new(MultiGzDecoder::new(sink())))),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                let decoder = ZstdDecoder::new(sink()).ok();
                all.extend(decoder.map(|it| Self::Zstd(Box::new(it))));
            }
            [one, two, ..]
                if one & 0x0f == 8 && u16::from_be_bytes([*one, *two]).is_multiple_of(31) =>
            {
                all.push(Self::Zlib(Box::new(ZlibDecoder::new(sink()))));
            }
            _ => {}
        }
        all
    }

    fn sink(&mut self) -> &mut Sink {
        match self {
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Zlib(decoder) => decoder.get_mut(),
            Self::Zstd(decoder) => decoder.get_mut(),
            Self::Deflate(decoder) => decoder.get_mut(),
            Self::Brotli(decoder) => decoder.get_mut(),
        }
    }

    fn decode(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sink().came += bytes.len() as u64;
        let decoder: &mut dyn Write = match self {
            Self::Gzip(decoder) => decoder,
            Self::Zlib(decoder) => decoder,
            Self::Zstd(decoder) => decoder,
            Self::Deflate(decoder) => decoder,
            Self::Brotli(decoder) => decoder,
        };
        decoder.write_all(bytes)?;
        // All that is decoded is searched before any of it goes on.
        decoder.flush()
    }

    fn finding(&mut self) -> Finding {
        let may_wait = !matches!(self, Self::Deflate(_) | Self::Brotli(_));
        match self.sink().finding {
            // What is only tried holds nothing up: text may look like it for a while.
            Finding::Open if !may_wait => Finding::Nothing,
            finding => finding,
        }
    }

    fn finish(&mut self) -> Finding {
        let sink = self.sink();
        sink.redactor.finish(&mut sink.out);
        let deeper = sink.deeper.as_mut().map(|it| it.finish());
        sink.note(deeper.unwrap_or(Finding::Nothing));
        self.finding()
    }
}

/// Where decoded bytes are searched and forgotten.
struct Sink {
    redactor: Redactor,
    deeper: Option<Box<Unpacked>>,
    came: u64,
    made: u64,
    out: Vec<u8>,
    finding: Finding,
}

impl Sink {
    fn new(secrets: &Secrets, depth: u8) -> Self {
        let deeper = (depth < DEPTH).then(|| Box::new(Unpacked::at(secrets, depth + 1)));
        Self {
            redactor: secrets.redactor(),
            deeper,
            came: 0,
            made: 0,
            out: Vec::new(),
            finding: Finding::Nothing,
        }
    }

    fn note(&mut self, deeper: Finding) {
        self.out.clear();
        let here = match (self.redactor.masked(), self.redactor.held()) {
            (1.., _) => Finding::Secret,
            (0, 1..) => Finding::Open,
            (0, 0) => Finding::Nothing,
        };
        // What was found stays found; what was open need not be.
        let before = match self.finding {
            Finding::Open => Finding::Nothing,
            found => found,
        };
        self.finding = before.max(here).max(deeper);
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.made += bytes.len() as u64;
        if self.made > GROWTH_FREE.max(self.came.saturating_mul(GROWTH_MOST)) {
            self.finding = Finding::Bomb;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.redactor.push(bytes, &mut self.out);
        let deeper = self.deeper.as_mut().map(|it| it.push(bytes));
        self.note(deeper.unwrap_or(Finding::Nothing));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
