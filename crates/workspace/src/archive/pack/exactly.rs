//! A file that may change while it is packed, as long as it was said to be.

use std::io::{self, Read};

/// Cut when the file has grown, filled with zeros when it has shrunk: its length stands in front
/// of it and is already sent.
#[derive(Debug)]
pub(crate) struct Exactly<R> {
    source: R,
    left: u64,
    ended: bool,
}

impl<R: Read> Exactly<R> {
    pub(crate) fn new(source: R, length: u64) -> Self {
        Self {
            source,
            left: length,
            ended: false,
        }
    }

    /// Whether the file was as long as it was said to be.
    pub(crate) fn was_true(mut self) -> bool {
        let more = matches!(self.source.read(&mut [0]), Ok(1));
        !self.ended && !more
    }
}

impl<R: Read> Read for Exactly<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let most = most.min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        let buffer = &mut buffer[..most];
        let mut read = match self.ended {
            true => 0,
            // One that cannot be read any further is as good as one that ended.
            false => match self.source.read(buffer) {
                Err(error) if passed_on(error.kind()) => return Err(error),
                other => other.unwrap_or(0),
            },
        };
        if read == 0 {
            self.ended = true;
            buffer.fill(0);
            read = most;
        }
        self.left -= read as u64;
        Ok(read)
    }
}

fn passed_on(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::Interrupted | io::ErrorKind::TimedOut)
}
