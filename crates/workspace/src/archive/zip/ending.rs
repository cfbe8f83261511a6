//! The record at the end, which says where the directory lies.

use std::io::SeekFrom;

use super::super::refusal::{Limit, Refusal};
use super::super::{UnpackLimits, from_reading};
use super::Seekable;
use super::bytes::Fields;

const END: &[u8] = b"PK\x05\x06";
const END_BYTES: usize = 22;
const LONGEST_COMMENT: usize = u16::MAX as usize;
const LOCATOR: &[u8] = b"PK\x06\x07";
const LOCATOR_BYTES: u64 = 20;
const WIDE_END: &[u8] = b"PK\x06\x06";
const WIDE_END_BYTES: u64 = 56;
/// Names and fields of all entries; they are held while the archive is unpacked.
const LARGEST_DIRECTORY: u64 = 64 << 20;

/// Where the directory lies. It ends where the records about it begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ending {
    pub(super) entries: u64,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

pub(super) fn find(source: &mut dyn Seekable, limits: UnpackLimits) -> Result<Ending, Refusal> {
    let size = source
        .seek(SeekFrom::End(0))
        .map_err(|error| from_reading(&error))?;
    let tail = size.min((END_BYTES + LONGEST_COMMENT) as u64);
    let bytes = read_at(source, size - tail, tail)?;
    let at = last_record(&bytes)?;
    let (narrow, one_disk) = narrow(&bytes[at..])?;
    if !one_disk {
        return Err(Refusal::Volumes);
    }
    let end = size - tail + at as u64;
    let (ending, records) = match wide(source, end)? {
        None => (narrow, end),
        Some((wide, begins)) => {
            // The narrow record repeats what fits into it.
            let repeats = |narrow: u64, wide: u64, full: u64| narrow == full || narrow == wide;
            let agree = repeats(narrow.entries, wide.entries, u64::from(u16::MAX))
                && repeats(narrow.bytes, wide.bytes, u64::from(u32::MAX))
                && repeats(narrow.offset, wide.offset, u64::from(u32::MAX));
            if !agree {
                return Err(Refusal::Disagree("directory"));
            }
            (wide, begins)
        }
    };
    if ending.offset.checked_add(ending.bytes) != Some(records) {
        return Err(Refusal::Gap);
    }
    if ending.entries > limits.entries {
        return Err(Refusal::Limit(Limit::Entries(limits.entries)));
    }
    if ending.bytes > LARGEST_DIRECTORY {
        return Err(Refusal::Limit(Limit::ExtensionBytes(LARGEST_DIRECTORY)));
    }
    Ok(ending)
}

/// The comment behind it may hold anything, another record too; then nobody can tell which is
/// meant, and readers do differ.
fn last_record(tail: &[u8]) -> Result<usize, Refusal> {
    let last = tail.len().checked_sub(END_BYTES).ok_or(Refusal::NotAZip)?;
    let fits = |at: &usize| {
        let comment = u16::from_le_bytes([tail[at + 20], tail[at + 21]]);
        tail[*at..].starts_with(END) && at + END_BYTES + usize::from(comment) == tail.len()
    };
    let mut found = (0..=last).rev().filter(fits);
    let at = found.next().ok_or(Refusal::NotAZip)?;
    match found.next() {
        None => Ok(at),
        Some(_) => Err(Refusal::Disagree("directory")),
    }
}

fn narrow(record: &[u8]) -> Result<(Ending, bool), Refusal> {
    let mut fields = Fields::new(record);
    fields.take(4)?;
    let disks = (fields.u16()?, fields.u16()?);
    let here = fields.u16()?;
    let entries = fields.u16()?;
    let ending = Ending {
        entries: u64::from(entries),
        bytes: u64::from(fields.u32()?),
        offset: u64::from(fields.u32()?),
    };
    Ok((ending, disks == (0, 0) && here == entries))
}

/// The wide record and where it begins, when a locator stands in front of the narrow one.
fn wide(source: &mut dyn Seekable, end: u64) -> Result<Option<(Ending, u64)>, Refusal> {
    let Some(at) = end.checked_sub(LOCATOR_BYTES) else {
        return Ok(None);
    };
    let locator = read_at(source, at, LOCATOR_BYTES)?;
    if !locator.starts_with(LOCATOR) {
        return Ok(None);
    }
    let mut fields = Fields::new(&locator[4..]);
    let (disk, begins, disks) = (fields.u32()?, fields.u64()?, fields.u32()?);
    if disk != 0 || disks > 1 {
        return Err(Refusal::Volumes);
    }
    if begins.checked_add(WIDE_END_BYTES) != Some(at) {
        return Err(Refusal::Gap);
    }
    let record = read_at(source, begins, WIDE_END_BYTES)?;
    let mut fields = Fields::new(&record);
    if fields.take(4)? != WIDE_END || fields.u64()? != WIDE_END_BYTES - 12 {
        return Err(Refusal::Header);
    }
    fields.take(4)?;
    if (fields.u32()?, fields.u32()?) != (0, 0) {
        return Err(Refusal::Volumes);
    }
    let (here, entries) = (fields.u64()?, fields.u64()?);
    if here != entries {
        return Err(Refusal::Volumes);
    }
    let bytes = fields.u64()?;
    let offset = fields.u64()?;
    let ending = Ending {
        entries,
        offset,
        bytes,
    };
    Ok(Some((ending, begins)))
}

/// `length` was bounded by the caller.
pub(super) fn read_at(
    source: &mut dyn Seekable,
    offset: u64,
    length: u64,
) -> Result<Vec<u8>, Refusal> {
    let mut bytes = vec![0; usize::try_from(length).map_err(|_| Refusal::Size)?];
    source
        .seek(SeekFrom::Start(offset))
        .and_then(|_| source.read_exact(&mut bytes))
        .map_err(|error| from_reading(&error))?;
    Ok(bytes)
}
