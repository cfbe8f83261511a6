//! Takes a program's output as it comes: the head goes to a file up to a cap, head and tail stay in
//! memory for the record, and everything is counted. Memory is fixed whatever the program writes.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;

use glovebox_model::SHOWN_BYTES_MAX;
use sha2::{Digest, Sha256};

use crate::dir::from_io;
use crate::fault::FsErrorKind;
use crate::hex::hex;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Excerpt {
    pub head: usize,
    pub tail: usize,
}

impl Default for Excerpt {
    fn default() -> Self {
        let half = usize::try_from(SHOWN_BYTES_MAX / 2).unwrap_or(usize::MAX);
        Self {
            head: half,
            tail: half,
        }
    }
}

impl Excerpt {
    /// No more than `cap` bytes, and just as many where there was room for more: what passes the cap
    /// of the file is then cut here too, and what does not is here whole.
    fn within(self, cap: u64) -> Self {
        let cap = usize::try_from(cap).unwrap_or(usize::MAX);
        let head = self.head.min(cap - self.tail.min(cap / 2));
        Self {
            head,
            tail: self.tail.min(cap - head),
        }
    }
}

#[derive(Debug)]
pub struct OutputSink {
    file: File,
    file_cap: u64,
    stored: u64,
    digest: Sha256,
    fault: Option<FsErrorKind>,
    excerpt: Excerpt,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

/// What a stream came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// For people: head, a marker line when something is left out, tail. No more of the stream
    /// than the file may hold.
    pub text: String,
    /// All that was written, kept or not.
    pub bytes: u64,
    /// The file lacks some of it.
    pub truncated: bool,
    /// Bytes in the file, and their SHA-256.
    pub stored: u64,
    pub hash: String,
    /// Why writing the file stopped before the cap, if it did.
    pub fault: Option<FsErrorKind>,
}

impl OutputSink {
    pub fn new(file: File, file_cap: u64, excerpt: Excerpt) -> Self {
        Self {
            file,
            file_cap,
            stored: 0,
            digest: Sha256::new(),
            fault: None,
            excerpt: excerpt.within(file_cap),
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
        }
    }

    /// Never fails: a program must not stall because our disk is full.
    pub fn push(&mut self, chunk: &[u8]) {
        self.store(chunk);
        self.total = self.total.saturating_add(chunk.len() as u64);
        let room = self.excerpt.head - self.head.len();
        let (head, rest) = chunk.split_at(room.min(chunk.len()));
        self.head.extend_from_slice(head);
        // Only the end of a chunk that is longer than the ring can stay in it.
        let rest = &rest[rest.len().saturating_sub(self.excerpt.tail)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.excerpt.tail);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// What was written so far, all of it counted.
    pub fn bytes(&self) -> u64 {
        self.total
    }

    pub fn finish(self) -> Captured {
        Captured {
            text: self.text(),
            bytes: self.total,
            truncated: self.stored < self.total,
            stored: self.stored,
            hash: hex(&self.digest.finalize()),
            fault: self.fault,
        }
    }

    fn store(&mut self, chunk: &[u8]) {
        let room = usize::try_from(self.file_cap - self.stored).unwrap_or(usize::MAX);
        let mut rest = &chunk[..chunk.len().min(room)];
        while !rest.is_empty() && self.fault.is_none() {
            match self.file.write(rest) {
                Ok(0) => self.fault = Some(FsErrorKind::NoSpace),
                Ok(written) => {
                    self.digest.update(&rest[..written]);
                    self.stored += written as u64;
                    rest = &rest[written..];
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => self.fault = Some(from_io(&error)),
            }
        }
    }

    fn text(&self) -> String {
        let mut kept = self.head.clone();
        if self.total == (self.head.len() + self.tail.len()) as u64 {
            kept.extend(&self.tail);
            return String::from_utf8_lossy(&kept).into_owned();
        }
        // The cuts are ours, so a character that they would split is left out whole; bytes that
        // were no text to begin with show as replacement characters.
        kept.truncate(whole_characters(&kept));
        let split = self
            .tail
            .iter()
            .take(3)
            .take_while(|byte| **byte & 0xc0 == 0x80);
        let tail: Vec<u8> = self.tail.iter().skip(split.count()).copied().collect();
        let omitted = self.total - (kept.len() + tail.len()) as u64;
        format!(
            "{}\n… {omitted} bytes omitted …\n{}",
            String::from_utf8_lossy(&kept),
            String::from_utf8_lossy(&tail)
        )
    }
}

/// How much is left when an unfinished character at the end is taken away.
fn whole_characters(bytes: &[u8]) -> usize {
    let unfinished =
        bytes
            .utf8_chunks()
            .last()
            .map_or(0, |chunk| match std::str::from_utf8(chunk.invalid()) {
                Err(error) if error.error_len().is_none() => chunk.invalid().len(),
                _ => 0,
            });
    bytes.len() - unfinished
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sink(cap: u64, head: usize, tail: usize) -> OutputSink {
        let file = tempfile::tempfile().unwrap();
        OutputSink::new(file, cap, Excerpt { head, tail })
    }

    fn stored(file: &mut File) -> Vec<u8> {
        use std::io::{Read, Seek};
        let mut bytes = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    }

    fn captured(cap: u64, head: usize, tail: usize, chunks: &[&[u8]]) -> Captured {
        let mut sink = sink(cap, head, tail);
        for chunk in chunks {
            sink.push(chunk);
        }
        sink.finish()
    }

    #[test]
    fn d_13_the_file_keeps_the_head_and_the_record_both_ends() {
        let mut sink = sink(6, 4, 3);
        for chunk in [&b"01"[..], b"2345", b"6789"] {
            sink.push(chunk);
        }
        assert_eq!(stored(&mut sink.file), b"012345");
        let captured = sink.finish();
        assert_eq!(captured.text, "012\n… 4 bytes omitted …\n789");
        assert_eq!((captured.bytes, captured.stored), (10, 6));
        assert!(captured.truncated && captured.fault.is_none());
    }

    #[test]
    fn what_fits_is_kept_as_it_is() {
        let captured = captured(7, 4, 3, &[b"0123456"]);
        assert_eq!(captured.text, "0123456");
        assert!(!captured.truncated);
        let empty = super::tests::captured(0, 4, 3, &[]);
        assert_eq!((empty.text.as_str(), empty.truncated), ("", false));
    }

    #[test]
    fn d4_12_a_cut_never_splits_a_character() {
        // Each letter takes two bytes and both cuts fall into one.
        let captured = captured(100, 3, 3, &["éèàùç".as_bytes()]);
        assert_eq!(captured.text, "é\n… 6 bytes omitted …\nç");
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_and_counted() {
        let captured = captured(100, 4, 4, &[b"a\xffb\xc3(middle)\x80\x80\xfez"]);
        assert_eq!(captured.text, "a\u{fffd}b\n… 11 bytes omitted …\n\u{fffd}z");
        assert_eq!(captured.bytes, 16);
    }

    #[test]
    fn a_full_disk_stops_the_file_and_not_the_program() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut sink = OutputSink::new(full, 1000, Excerpt { head: 4, tail: 4 });
        for _ in 0..100 {
            sink.push(b"0123456789");
        }
        assert_eq!(sink.bytes(), 1000);
        let captured = sink.finish();
        assert_eq!(captured.fault, Some(FsErrorKind::NoSpace));
        assert_eq!((captured.stored, captured.truncated), (0, true));
        assert!(captured.text.starts_with("0123\n… 992 bytes omitted"));
    }

    proptest! {
        #[test]
        fn any_split_into_chunks_gives_the_same_result(
            bytes in proptest::collection::vec(prop_oneof![
                any::<u8>(), Just(b'a'), Just(0xc3), Just(0xa9),
            ], 0..200),
            cuts in proptest::collection::vec(0usize..200, 0..8),
            cap in 0u64..250,
            head in 0usize..40,
            tail in 0usize..40,
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let mut split = sink(cap, head, tail);
            for pair in cuts.windows(2) {
                split.push(&bytes[pair[0]..pair[1]]);
                prop_assert!(split.head.len() <= head && split.tail.len() <= tail);
                prop_assert!((split.head.len() + split.tail.len()) as u64 <= cap);
            }
            let kept = &bytes[..bytes.len().min(usize::try_from(cap).unwrap())];
            prop_assert_eq!(stored(&mut split.file), kept);
            let split = split.finish();
            let whole = captured(cap, head, tail, &[&bytes]);
            prop_assert_eq!(&split, &whole);
            prop_assert_eq!(split.bytes, bytes.len() as u64);
            prop_assert_eq!(split.truncated, kept.len() < bytes.len());
            prop_assert_eq!(split.hash, hex(&Sha256::digest(kept)));
            if bytes.len() <= kept.len().min(head + tail) {
                prop_assert_eq!(split.text, String::from_utf8_lossy(&bytes));
            } else {
                prop_assert!(split.text.contains(" bytes omitted …\n"));
            }
        }

        #[test]
        fn cutting_text_adds_nothing_to_it(text in "\\PC{0,60}", head in 0usize..30, tail in 0usize..30) {
            let captured = captured(1000, head, tail, &[text.as_bytes()]);
            let Some((before, rest)) = captured.text.split_once("\n… ") else {
                prop_assert_eq!(captured.text, text);
                return Ok(());
            };
            let (omitted, after) = rest.split_once(" bytes omitted …\n").unwrap();
            prop_assert!(text.starts_with(before) && text.ends_with(after));
            let omitted: usize = omitted.parse().unwrap();
            prop_assert_eq!(before.len() + omitted + after.len(), text.len());
        }
    }
}
