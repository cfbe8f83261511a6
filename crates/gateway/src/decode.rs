//! Decoders that follow a stream as it comes. They tell all that can be decoded, also what stands before
//! something wrong: checksums are not looked at, and what is told before an error stays told.

use std::io::{self, Write};

use brotli_decompressor::DecompressorWriter;
use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, Decoder as ZstdDecoder, Operation};

const PIECE: usize = 16 * 1024;
/// The longest header of a frame. Zstandard reads a frame that is here as a whole at once, and tells
/// nothing of it if its checksum is wrong; one whose header comes by itself it reads block by block.
const ZSTD_HEADER_MOST: usize = 18;
/// 32 MiB, as much as packages are written with. A larger window shows, and is not followed.
const ZSTD_WINDOW_LOG: u32 = 25;

/// How far a decoder came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    On,
    /// The stream is over, after this many of the bytes.
    Ended(usize),
    /// It is none, or wrong.
    Broken,
}

pub(crate) struct Decoder<S: Write> {
    form: Form<S>,
    /// The format shows by its first bytes. Text does not begin with them.
    is_certain: bool,
}

enum Form<S: Write> {
    Deflated(Box<Deflated<S>>),
    Zstd(Box<ZstdDecoder<'static>>, usize, S),
    Brotli(Box<DecompressorWriter<S>>),
}

/// Deflate by itself, or between the head and the end of gzip or zlib.
struct Deflated<S> {
    head: Head,
    inflate: Decompress,
    is_over: bool,
    /// What is left of the checksum and the length behind it.
    after: usize,
    sink: S,
}

impl<S: Write> Decoder<S> {
    /// All that a body may be. Deflate and Brotli do not show: they are tried until they fail. A format
    /// that shows goes on where the stream before it told to, if there is one.
    pub(crate) fn for_bytes(first: &[u8], before: Option<S>, sink: impl Fn() -> S) -> Vec<Self> {
        let decoder = |form, is_certain| Self { form, is_certain };
        let deflated =
            |head, after, sink| Form::Deflated(Box::new(Deflated::new(head, after, sink)));
        let brotli = DecompressorWriter::new(sink(), PIECE);
        let mut all = vec![
            decoder(deflated(Head::Read, 0, sink()), false),
            decoder(Form::Brotli(Box::new(brotli)), false),
        ];
        let on = || before.unwrap_or_else(&sink);
        match first {
            [0x1f, 0x8b, ..] => {
                let gzip = Head::Gzip(Gzip::Fixed(0, 0));
                all.push(decoder(deflated(gzip, 8, on()), true));
            }
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                let zstd = zstd_decoder().ok();
                all.extend(zstd.map(|it| decoder(Form::Zstd(Box::new(it), 0, on()), true)));
            }
            [one, two, ..]
                if one & 0x0f == 8 && u16::from_be_bytes([*one, *two]).is_multiple_of(31) =>
            {
                // `80` and `x ` are such bytes too; these three are written by whoever compresses.
                let is_certain = matches!(first, [0x78, 0x01 | 0x9c | 0xda, ..]);
                all.push(decoder(deflated(Head::Zlib(0), 4, on()), is_certain));
            }
            _ => {}
        }
        all
    }

    pub(crate) fn is_certain(&self) -> bool {
        self.is_certain
    }

    pub(crate) fn sink(&mut self) -> &mut S {
        match &mut self.form {
            Form::Deflated(deflated) => &mut deflated.sink,
            Form::Zstd(_, _, sink) => sink,
            Form::Brotli(writer) => writer.get_mut(),
        }
    }

    /// For the stream that comes behind it.
    pub(crate) fn into_certain_sink(self) -> Option<S> {
        match self.form {
            Form::Deflated(deflated) if self.is_certain => Some(deflated.sink),
            Form::Zstd(_, _, sink) if self.is_certain => Some(sink),
            Form::Deflated(_) | Form::Zstd(..) | Form::Brotli(_) => None,
        }
    }

    pub(crate) fn decode(&mut self, bytes: &[u8]) -> Step {
        match &mut self.form {
            Form::Deflated(deflated) => deflated.decode(bytes),
            Form::Zstd(decoder, read, sink) => unzstd(decoder, read, sink, bytes),
            Form::Brotli(writer) => unbrotli(writer, bytes),
        }
    }
}

/// Brotli with a window of up to 1 GiB. Programs read it, so it is followed as well.
pub(crate) fn is_large_brotli(first: &[u8]) -> bool {
    first.first() == Some(&0x11)
}

fn zstd_decoder() -> io::Result<ZstdDecoder<'static>> {
    let mut decoder = ZstdDecoder::new()?;
    decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG))?;
    Ok(decoder)
}

fn unbrotli<S: Write>(writer: &mut DecompressorWriter<S>, bytes: &[u8]) -> Step {
    if bytes.is_empty() {
        return Step::On;
    }
    match writer.write(bytes) {
        Ok(read) if read == bytes.len() => Step::On,
        Ok(read) => Step::Ended(read),
        Err(_) => Step::Broken,
    }
}

/// `read` are the bytes of the frame so far, as long as they may be of its header.
fn unzstd<S: Write>(
    decoder: &mut ZstdDecoder<'static>,
    read: &mut usize,
    sink: &mut S,
    bytes: &[u8],
) -> Step {
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    let mut is_full = false;
    while at < bytes.len() || is_full {
        let end = match *read < ZSTD_HEADER_MOST {
            true => bytes.len().min(at + 1),
            false => bytes.len(),
        };
        let Ok(status) = decoder.run_on_buffers(&bytes[at..end], &mut piece) else {
            return Step::Broken;
        };
        at += status.bytes_read;
        *read = ZSTD_HEADER_MOST.min(*read + status.bytes_read);
        is_full = status.bytes_written == piece.len();
        if sink.write_all(&piece[..status.bytes_written]).is_err() {
            return Step::Broken;
        }
        if status.remaining == 0 && *read > 0 {
            return Step::Ended(at);
        }
        if status.bytes_read == 0 && status.bytes_written == 0 {
            break;
        }
    }
    Step::On
}

impl<S: Write> Deflated<S> {
    fn new(head: Head, after: usize, sink: S) -> Self {
        Self {
            head,
            inflate: Decompress::new(false),
            is_over: false,
            after,
            sink,
        }
    }

    fn decode(&mut self, bytes: &[u8]) -> Step {
        let Some(mut at) = self.head.read(bytes) else {
            return Step::Broken;
        };
        if self.head == Head::Read && !self.is_over {
            match self.inflate(&bytes[at..]) {
                Step::Ended(read) => {
                    self.is_over = true;
                    at += read;
                }
                step => return step,
            }
        }
        if !self.is_over {
            return Step::On;
        }
        let skipped = self.after.min(bytes.len() - at);
        self.after -= skipped;
        match self.after {
            0 => Step::Ended(at + skipped),
            _ => Step::On,
        }
    }

    fn inflate(&mut self, bytes: &[u8]) -> Step {
        let mut piece = vec![0; PIECE];
        let mut at = 0;
        loop {
            let (read, made) = (self.inflate.total_in(), self.inflate.total_out());
            let flush = FlushDecompress::None;
            let status = self.inflate.decompress(&bytes[at..], &mut piece, flush);
            let made = usize::try_from(self.inflate.total_out() - made).unwrap_or(0);
            at += usize::try_from(self.inflate.total_in() - read).unwrap_or(0);
            if self.sink.write_all(&piece[..made]).is_err() {
                return Step::Broken;
            }
            match status {
                Ok(Status::StreamEnd) => return Step::Ended(at),
                Ok(_) if made == piece.len() || (at < bytes.len() && made > 0) => {}
                Ok(_) if at < bytes.len() => return Step::Broken,
                Ok(_) => return Step::On,
                Err(_) => return Step::Broken,
            }
        }
    }
}

/// What stands before the deflated bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Head {
    /// So many bytes of two.
    Zlib(usize),
    Gzip(Gzip),
    /// All of it.
    Read,
}

/// The flags, from the part behind the first ten bytes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gzip {
    /// So many bytes of ten, and the flags.
    Fixed(usize, u8),
    /// The low byte of the length of the extra field, once it is known.
    Length(Option<u8>, u8),
    Extra(u16, u8),
    Name(u8),
    Comment(u8),
    /// So many bytes of two.
    Checksum(usize),
}

const HAS_CHECKSUM: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;

impl Head {
    /// How many of the bytes are of it. None if it is no such head.
    fn read(&mut self, bytes: &[u8]) -> Option<usize> {
        for (at, byte) in bytes.iter().enumerate() {
            *self = match *self {
                Self::Read => return Some(at),
                Self::Zlib(0) => Self::Zlib(1),
                Self::Zlib(_) => Self::Read,
                Self::Gzip(part) => part.next(*byte)?,
            };
        }
        Some(bytes.len())
    }
}

impl Gzip {
    fn next(self, byte: u8) -> Option<Head> {
        Some(match self {
            // Deflate is the only method that there is.
            Self::Fixed(2, _) if byte != 8 => return None,
            Self::Fixed(3, _) => Head::Gzip(Self::Fixed(4, byte)),
            Self::Fixed(9, flags) => Self::after_fixed(flags),
            Self::Fixed(at, flags) => Head::Gzip(Self::Fixed(at + 1, flags)),
            Self::Length(None, flags) => Head::Gzip(Self::Length(Some(byte), flags)),
            Self::Length(Some(low), flags) => match u16::from_le_bytes([low, byte]) {
                0 => Self::after_extra(flags),
                length => Head::Gzip(Self::Extra(length, flags)),
            },
            Self::Extra(1, flags) => Self::after_extra(flags),
            Self::Extra(left, flags) => Head::Gzip(Self::Extra(left - 1, flags)),
            Self::Name(flags) if byte == 0 => Self::after_name(flags),
            Self::Comment(flags) if byte == 0 => Self::after_comment(flags),
            Self::Checksum(0) => Head::Gzip(Self::Checksum(1)),
            Self::Checksum(_) => Head::Read,
            same @ (Self::Name(_) | Self::Comment(_)) => Head::Gzip(same),
        })
    }

    fn after_fixed(flags: u8) -> Head {
        match flags & HAS_EXTRA {
            0 => Self::after_extra(flags),
            _ => Head::Gzip(Self::Length(None, flags)),
        }
    }

    fn after_extra(flags: u8) -> Head {
        match flags & HAS_NAME {
            0 => Self::after_name(flags),
            _ => Head::Gzip(Self::Name(flags)),
        }
    }

    fn after_name(flags: u8) -> Head {
        match flags & HAS_COMMENT {
            0 => Self::after_comment(flags),
            _ => Head::Gzip(Self::Comment(flags)),
        }
    }

    fn after_comment(flags: u8) -> Head {
        match flags & HAS_CHECKSUM {
            0 => Head::Read,
            _ => Head::Gzip(Self::Checksum(0)),
        }
    }
}
