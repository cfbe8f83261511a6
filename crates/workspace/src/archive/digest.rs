//! A reader that remembers the digest of what went through it.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

use crate::hex::hex;

pub(crate) struct Digested<R> {
    inner: R,
    hash: Sha256,
    bytes: u64,
}

impl<R: Read> Digested<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self {
            inner,
            hash: Sha256::new(),
            bytes: 0,
        }
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes
    }

    /// In hexadecimal, of everything that was read so far.
    pub(crate) fn sha256(self) -> String {
        hex(&self.hash.finalize())
    }

    /// Reads on to the end, so that the digest is that of the whole.
    pub(crate) fn drain(&mut self) -> io::Result<()> {
        io::copy(self, &mut io::sink()).map(drop)
    }
}

impl<R: Read> Read for Digested<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hash.update(&buffer[..read]);
        self.bytes = self.bytes.saturating_add(read as u64);
        Ok(read)
    }
}
