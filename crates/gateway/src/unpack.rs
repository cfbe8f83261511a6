//! What a body holds in a compressed form, whatever its headers say. It is decoded on the side as it
//! passes, only to be searched: a program could decode it as well.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use glovebox_capture::{Secrets, Window};

use crate::budget::Budget;
use crate::decode::{Decoder, Step, is_large_brotli};

/// Bytes by which a format shows.
const MAGIC: usize = 4;
/// A form within a form within a form is looked through no further.
const DEPTH: u8 = 3;
/// What is decoded is searched in pieces of this size.
const SEARCHED: usize = 64 * 1024;
/// What is kept to decode on is as large as what was decoded, where a form sets no smaller window.
const LARGE_MOST: u64 = 32 << 20;
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
    budget: Arc<Budget>,
    followed: Vec<Followed>,
    found: Finding,
}

/// One reading of the bytes from some place on.
enum Followed {
    /// The first bytes, until the format can be told, and what the stream before them told to.
    Begun(Vec<u8>, Option<Sink>),
    Decoded(Decoder<Sink>),
}

/// Where another stream may begin, by how much is left there, and what the one before it told to: who
/// decodes several streams has them as one. The first place is read first, and each once: what is wrong
/// has broken, and is dropped, before what is behind it is begun.
type Starts<'a> = BTreeMap<usize, (&'a [u8], Option<Sink>)>;

impl fmt::Debug for Unpacked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unpacked")
    }
}

impl Unpacked {
    pub(crate) fn new(secrets: &Secrets) -> Self {
        Self::at(secrets, 1, Arc::default())
    }

    fn at(secrets: &Secrets, depth: u8, budget: Arc<Budget>) -> Self {
        Self {
            secrets: secrets.clone(),
            depth,
            budget,
            followed: vec![Followed::Begun(Vec::new(), None)],
            found: Finding::Nothing,
        }
    }

    /// What is cut anyway is not read further.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.depth == 1 {
            self.budget.comes(bytes.len());
        }
        if self.found == Finding::Nothing {
            self.read(bytes, MAGIC);
        }
    }

    /// Nothing more comes.
    pub(crate) fn finish(&mut self) {
        self.read(&[], 1);
        for followed in &mut self.followed {
            match followed {
                Followed::Decoded(decoder) => decoder.sink().finish(),
                Followed::Begun(_, before) => before.iter_mut().for_each(Sink::finish),
            }
        }
    }

    /// By all that has come.
    pub(crate) fn finding(&mut self) -> Finding {
        let found = self.followed.iter_mut().map(|it| match it {
            Followed::Begun(_, None) => Finding::Nothing,
            Followed::Begun(_, Some(before)) => before.finding(),
            Followed::Decoded(decoder) => decoder.sink().finding(),
        });
        self.found = self.found.max(found.max().unwrap_or(Finding::Nothing));
        self.found
    }

    /// Reads on. Where a stream ends another may begin.
    fn read(&mut self, bytes: &[u8], enough: usize) {
        let mut begun = Vec::new();
        let mut starts = Starts::new();
        for followed in std::mem::take(&mut self.followed) {
            match followed {
                Followed::Begun(first, before) => {
                    begun.push(([&first[..], bytes].concat(), before));
                }
                Followed::Decoded(decoder) => self.decode(decoder, bytes, &mut starts),
            }
        }
        for (first, before) in &mut begun {
            starts.insert(first.len(), (first, before.take()));
        }
        while let Some((left, (rest, before))) = starts.pop_last() {
            if left < enough {
                self.followed.push(Followed::Begun(rest.to_vec(), before));
                continue;
            }
            let most = match is_large_brotli(rest) {
                true => LARGE_MOST,
                false => u64::MAX,
            };
            let sink = || Sink::new(&self.secrets, self.depth, &self.budget, most);
            for decoder in Decoder::for_bytes(rest, before, sink) {
                self.decode(decoder, rest, &mut starts);
            }
        }
    }

    fn decode<'a>(&mut self, mut decoder: Decoder<Sink>, bytes: &'a [u8], starts: &mut Starts<'a>) {
        match decoder.decode(bytes) {
            Step::On => self.keep(decoder),
            Step::Ended(read) => {
                if !self.is_over(&mut decoder) {
                    return;
                }
                let rest = &bytes[read..];
                let start = starts.entry(rest.len()).or_insert((rest, None));
                start.1 = start.1.take().or_else(|| decoder.into_certain_sink());
            }
            Step::Broken => {
                self.is_over(&mut decoder);
                if decoder.is_certain() {
                    self.found = self.found.max(Finding::Unreadable);
                }
            }
        }
    }

    fn keep(&mut self, decoder: Decoder<Sink>) {
        if self.budget.has_place() {
            self.followed.push(Followed::Decoded(decoder));
        } else if decoder.is_certain() {
            self.found = self.found.max(Finding::Unreadable);
        }
    }

    /// Searches the last of what a decoder told; whether what comes behind it is looked at.
    fn is_over(&mut self, decoder: &mut Decoder<Sink>) -> bool {
        let is_certain = decoder.is_certain();
        let sink = decoder.sink();
        if !is_certain {
            sink.finish();
        }
        self.found = self.found.max(sink.finding());
        if !is_certain && sink.made < TRIED_LEAST {
            return false;
        }
        let may_start = self.budget.starts();
        if !may_start && is_certain {
            self.found = self.found.max(Finding::Unreadable);
        }
        may_start
    }
}

/// Where decoded bytes are searched and forgotten.
pub(crate) struct Sink {
    window: Window,
    deeper: Option<Box<Unpacked>>,
    budget: Arc<Budget>,
    made: u64,
    most: u64,
    out: Vec<u8>,
    is_bomb: bool,
}

impl Sink {
    fn new(secrets: &Secrets, depth: u8, budget: &Arc<Budget>, most: u64) -> Self {
        let deeper = || Box::new(Unpacked::at(secrets, depth + 1, Arc::clone(budget)));
        budget.enter();
        Self {
            window: secrets.window(),
            deeper: (depth < DEPTH).then(deeper),
            budget: Arc::clone(budget),
            made: 0,
            most,
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

impl Drop for Sink {
    fn drop(&mut self) {
        self.budget.leave();
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.made += bytes.len() as u64;
        if !self.budget.grows(bytes.len()) || self.made > self.most {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        coder.write_all(bytes).unwrap();
        coder.finish().unwrap()
    }

    const VALUE: &[u8] = b"sk-live-9f8e7d6c5b4a39281706";

    fn found_in(body: &[u8]) -> Finding {
        let name = "api-key".parse().unwrap();
        let mut unpacked = Unpacked::new(&Secrets::compile([(name, VALUE.to_vec())]).unwrap());
        for frame in body.chunks(128 * 1024) {
            unpacked.push(frame);
        }
        unpacked.finish();
        unpacked.finding()
    }

    #[test]
    fn many_small_streams_at_once_are_not_followed() {
        assert_eq!(found_in(&gzip(b"a").repeat(900)), Finding::Nothing);
        assert_eq!(found_in(&gzip(b"a").repeat(1050)), Finding::Unreadable);
        let behind = [gzip(b"a").repeat(900), gzip(VALUE)].concat();
        assert_eq!(found_in(&behind), Finding::Secret);
    }

    /// Who decodes them has them as one.
    #[test]
    fn a_value_over_several_streams_is_found() {
        let (one, other) = VALUE.split_at(9);
        let whole = gzip(VALUE);
        let (head, tail) = whole.split_at(whole.len() / 2);
        let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
        for body in [
            [gzip(one), gzip(other)].concat(),
            [gzip(one), gzip(b""), gzip(other)].concat(),
            gzip(&[gzip(one), gzip(other)].concat()),
            zstd(&[gzip(one), gzip(other)].concat()),
            [zstd(one), zstd(other)].concat(),
            [gzip(head), gzip(tail)].concat(),
        ] {
            assert_eq!(found_in(&body), Finding::Secret);
            let name = "api-key".parse().unwrap();
            let mut unpacked = Unpacked::new(&Secrets::compile([(name, VALUE.to_vec())]).unwrap());
            body.iter().for_each(|byte| unpacked.push(&[*byte]));
            unpacked.finish();
            assert_eq!(unpacked.finding(), Finding::Secret);
        }
        assert_eq!(
            found_in(&[gzip(one), gzip(b"-")].concat()),
            Finding::Nothing
        );
    }

    /// Neither grows 200 times by itself.
    #[test]
    fn what_grows_in_each_of_its_forms_is_a_bomb() {
        let mixed = (0..1750u32).flat_map(|it| it.wrapping_mul(2_654_435_761).to_le_bytes());
        let text = mixed.collect::<Vec<_>>().repeat(100);
        let inner = gzip(&text);
        let outer = gzip(&inner.repeat(100));
        assert!(200 * inner.len() > text.len() && 200 * outer.len() > 100 * inner.len());
        assert_eq!(found_in(&inner), Finding::Nothing);
        assert_eq!(found_in(&gzip(&inner.repeat(2))), Finding::Nothing);
        assert_eq!(found_in(&outer), Finding::Unreadable);
    }

    #[test]
    fn a_window_that_is_too_large_is_not_followed() {
        for (window, found) in [(15, Finding::Nothing), (16, Finding::Unreadable)] {
            // A frame of one block, with three bytes as they are.
            let frame = [b"\x28\xb5\x2f\xfd\0", &[window << 3][..], b"\x19\0\0abc"].concat();
            assert_eq!(found_in(&frame), found, "{window}");
        }
    }
}
