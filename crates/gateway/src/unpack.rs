//! What a body holds in a compressed form, whatever its headers say. It is decoded on the side as it
//! passes, only to be searched: a program could decode it as well.

use std::fmt;
use std::io::{self, Write};

use glovebox_capture::{Secrets, Window};

use crate::decode::{Decoder, Step};

/// Bytes by which a format shows.
const MAGIC: usize = 4;
/// A form within a form within a form is looked through no further.
const DEPTH: u8 = 3;
/// As retrieval has it: what people wrote does not get larger than this many times.
const GROWTH_MOST: u64 = 200;
/// Small things may.
const GROWTH_FREE: u64 = 1 << 20;
/// What is decoded is searched in pieces of this size.
const SEARCHED: usize = 64 * 1024;
/// Streams that begin where another ended, beside one for so many bytes: each costs a decoder.
const STARTS_FREE: u64 = 1000;
const STARTS_EVERY: u64 = 256;
/// Decoders of one body at a time.
const FOLLOWED_MOST: usize = 32;
/// What is only tried and decodes to less was no stream.
const TRIED_LEAST: u64 = 8;

/// What is known of a body so far. That it holds the beginning of a secret is no finding: whoever
/// could see that would learn the next letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Finding {
    Nothing,
    /// It is compressed, and cannot be decoded, or decodes to more than is searched.
    Unreadable,
    Secret,
}

pub(crate) struct Unpacked {
    secrets: Secrets,
    depth: u8,
    came: u64,
    starts: u64,
    followed: Vec<Followed>,
    found: Finding,
}

/// One reading of the bytes from some place on.
enum Followed {
    /// The first bytes, until the format can be told.
    Begun(Vec<u8>),
    Decoded(Decoder<Sink>),
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
            came: 0,
            starts: 0,
            followed: vec![Followed::Begun(Vec::new())],
            found: Finding::Nothing,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.came += bytes.len() as u64;
        for followed in std::mem::take(&mut self.followed) {
            self.follow(followed, bytes, MAGIC);
        }
    }

    /// Nothing more comes.
    pub(crate) fn finish(&mut self) {
        for followed in std::mem::take(&mut self.followed) {
            self.follow(followed, &[], 1);
        }
        for followed in &mut self.followed {
            if let Followed::Decoded(decoder) = followed {
                decoder.sink().finish();
            }
        }
    }

    /// By all that has come.
    pub(crate) fn finding(&mut self) -> Finding {
        let found = self.followed.iter_mut().map(|it| match it {
            Followed::Begun(_) => Finding::Nothing,
            Followed::Decoded(decoder) => decoder.sink().finding(),
        });
        self.found = self.found.max(found.max().unwrap_or(Finding::Nothing));
        self.found
    }

    /// Reads on. Where a stream ends another may begin.
    fn follow(&mut self, followed: Followed, bytes: &[u8], enough: usize) {
        let mut todo = vec![(followed, bytes.to_vec())];
        while let Some((followed, bytes)) = todo.pop() {
            match followed {
                Followed::Begun(mut first) => {
                    first.extend_from_slice(&bytes);
                    match first.len() {
                        few if few < enough => self.keep(Followed::Begun(first)),
                        _ => {
                            let sink = || Sink::new(&self.secrets, self.depth);
                            let all = Decoder::for_bytes(&first, sink);
                            let all = all.into_iter().map(Followed::Decoded);
                            todo.extend(all.map(|it| (it, first.clone())));
                        }
                    }
                }
                Followed::Decoded(mut decoder) => {
                    decoder.sink().came += bytes.len() as u64;
                    match decoder.decode(&bytes) {
                        Step::On => self.keep(Followed::Decoded(decoder)),
                        Step::Ended(read) => {
                            if self.is_over(&mut decoder) {
                                todo.push((Followed::Begun(Vec::new()), bytes[read..].to_vec()));
                            }
                        }
                        Step::Broken => {
                            self.is_over(&mut decoder);
                            if decoder.is_certain() {
                                self.found = self.found.max(Finding::Unreadable);
                            }
                        }
                    }
                }
            }
        }
    }

    fn keep(&mut self, followed: Followed) {
        if self.followed.len() < FOLLOWED_MOST {
            return self.followed.push(followed);
        }
        let is_certain = matches!(&followed, Followed::Decoded(it) if it.is_certain());
        if is_certain {
            self.found = self.found.max(Finding::Unreadable);
        }
    }

    /// Searches the last of what a decoder told; whether what comes behind it is looked at.
    fn is_over(&mut self, decoder: &mut Decoder<Sink>) -> bool {
        let is_certain = decoder.is_certain();
        let sink = decoder.sink();
        sink.finish();
        self.found = self.found.max(sink.finding());
        if !is_certain && sink.made < TRIED_LEAST {
            return false;
        }
        self.starts += 1;
        let too_many = self.starts > STARTS_FREE + self.came / STARTS_EVERY;
        if too_many && is_certain {
            self.found = self.found.max(Finding::Unreadable);
        }
        !too_many
    }
}

/// Where decoded bytes are searched and forgotten.
pub(crate) struct Sink {
    window: Window,
    deeper: Option<Box<Unpacked>>,
    came: u64,
    made: u64,
    out: Vec<u8>,
    is_bomb: bool,
}

impl Sink {
    fn new(secrets: &Secrets, depth: u8) -> Self {
        let deeper = (depth < DEPTH).then(|| Box::new(Unpacked::at(secrets, depth + 1)));
        Self {
            window: secrets.window(),
            deeper,
            came: 0,
            made: 0,
            out: Vec::new(),
            is_bomb: false,
        }
    }

    fn search(&mut self) {
        self.window.release(self.window.waiting(), &mut self.out);
        self.out.clear();
    }

    fn finish(&mut self) {
        if let Some(deeper) = &mut self.deeper {
            deeper.finish();
        }
    }

    fn finding(&mut self) -> Finding {
        self.search();
        let here = match (self.window.masked(), self.is_bomb) {
            (1.., _) => Finding::Secret,
            (0, true) => Finding::Unreadable,
            (0, false) => Finding::Nothing,
        };
        let deeper = self.deeper.as_mut().map(|it| it.finding());
        here.max(deeper.unwrap_or(Finding::Nothing))
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.made += bytes.len() as u64;
        if self.made > GROWTH_FREE.max(self.came.saturating_mul(GROWTH_MOST)) {
            self.is_bomb = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.window.push(bytes);
        if self.window.waiting() >= SEARCHED {
            self.search();
        }
        if let Some(deeper) = &mut self.deeper {
            deeper.push(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
