//! Numbers as they lie in a header, lowest byte first.

use super::super::refusal::Refusal;

/// Reads on from left to right; what is missing is an error and never a zero.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'b>(&'b [u8]);

impl<'b> Fields<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'b [u8], Refusal> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Refusal::Header)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn u16(&mut self) -> Result<u16, Refusal> {
        let bytes = self.take(2)?;
        Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Refusal> {
        Ok(u32::from(self.u16()?) | u32::from(self.u16()?) << 16)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Refusal> {
        Ok(u64::from(self.u32()?) | u64::from(self.u32()?) << 32)
    }
}
