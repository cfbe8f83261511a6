//! Bytes and texts in the memory of a process, with their limits.

use glovebox_cage::observe::read_memory;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// The smallest of any machine: what lies in one is there or is not.
const PAGE: u64 = 4096;
/// Most texts are shorter.
const FIRST: u64 = 256;

/// Part of one page. What its owner may only write the kernel reads all the same, and so do we.
fn page(pid: i32, address: u64, buffer: &mut [u8]) -> Result<(), Errno> {
    match read_memory(pid, address, buffer) {
        Err(Errno::FAULT) => {}
        read => return read,
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let memory = rustix::fs::open(format!("/proc/{pid}/mem"), flags, Mode::empty())?;
    match rustix::io::pread(memory, &mut *buffer, address)? {
        read if read == buffer.len() => Ok(()),
        _ => Err(Errno::FAULT),
    }
}

/// All of them, or an error.
pub(super) fn bytes(pid: i32, address: u64, buffer: &mut [u8]) -> Result<(), Errno> {
    let (mut at, mut rest) = (address, buffer);
    while !rest.is_empty() {
        let length = usize::try_from(left_of_page(at)).map_err(|_| Errno::FAULT)?;
        let (part, others) = rest.split_at_mut(length.min(rest.len()));
        page(pid, at, part)?;
        at = at.checked_add(part.len() as u64).ok_or(Errno::FAULT)?;
        rest = others;
    }
    Ok(())
}

pub(super) fn number(pid: i32, address: u64) -> Result<u64, Errno> {
    let mut buffer = [0; 8];
    bytes(pid, address, &mut buffer)?;
    Ok(u64::from_ne_bytes(buffer))
}

/// Up to its end or to so many bytes, and whether that was all.
pub(super) fn text(pid: i32, address: u64, most: usize) -> Result<(Vec<u8>, bool), Errno> {
    let mut text = Vec::new();
    let (mut at, mut length) = (address, FIRST);
    while text.len() <= most {
        let part = length.min(left_of_page(at));
        let mut buffer = vec![0; usize::try_from(part).map_err(|_| Errno::FAULT)?];
        page(pid, at, &mut buffer)?;
        let end = buffer.iter().position(|byte| *byte == 0);
        text.extend_from_slice(&buffer[..end.unwrap_or(buffer.len())]);
        if end.is_some() {
            let whole = text.len() <= most;
            text.truncate(most);
            return Ok((text, whole));
        }
        at = at.checked_add(part).ok_or(Errno::FAULT)?;
        length = PAGE;
    }
    text.truncate(most);
    Ok((text, false))
}

fn left_of_page(at: u64) -> u64 {
    PAGE - at % PAGE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> i32 {
        std::process::id().cast_signed()
    }

    #[test]
    fn texts_end_where_they_end_or_at_their_limit() {
        for length in [0, 1, 255, 256, 257, 4095, 4096, 9000] {
            let mut there = vec![b'x'; length];
            there.push(0);
            let read = |most| text(own(), there.as_ptr() as u64, most).unwrap();
            assert_eq!(read(length), (there[..length].to_vec(), true));
            let half = (there[..length / 2].to_vec(), length == 0);
            assert_eq!(read(length / 2), half);
        }
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        assert!(text(own(), 0, 10).is_err());
        assert!(bytes(own(), u64::MAX - 3, &mut [0; 8]).is_err());
        assert!(number(own(), 8).is_err());
    }
}
