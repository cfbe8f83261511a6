//! The directory at the end of the archive, compared with what stands in front of each entry.

use super::super::refusal::Refusal;
use super::super::{UnpackError, UnpackLimits, UnpackResult};
use super::bytes::Fields;
use super::ending::{self, read_at};
use super::entry::{Described, Extra, Flags};
use super::{Seekable, entry};

const CENTRAL: &[u8] = b"PK\x01\x02";
const LOCAL: &[u8] = b"PK\x03\x04";
const LOCAL_BYTES: u64 = 30;
const DESCRIPTOR: &[u8] = b"PK\x07\x08";

/// One entry that both places agree on, and that shares no byte with another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) name: Vec<u8>,
    pub(super) described: Described,
    pub(super) size: u64,
    pub(super) packed: u64,
    pub(super) modified: i64,
    /// Upper half of the external attributes, when a Unix system wrote them.
    pub(super) unix: Option<u16>,
    /// The directory bit of the lower half.
    pub(super) dos_directory: bool,
    header: u64,
    /// Where its contents begin.
    pub(super) start: u64,
}

impl Listed {
    pub(super) fn kind(&self) -> Result<entry::Kind, Refusal> {
        entry::kind(self)
    }

    pub(super) fn mode(&self) -> u32 {
        entry::mode(self)
    }
}

pub(super) fn read(source: &mut dyn Seekable, limits: UnpackLimits) -> UnpackResult<Vec<Listed>> {
    let whole = UnpackError::of_archive;
    let ending = ending::find(source, limits).map_err(whole)?;
    let bytes = read_at(source, ending.offset, ending.bytes).map_err(whole)?;
    let mut fields = Fields::new(&bytes);
    let mut entries = Vec::new();
    while !fields.is_empty() {
        if entries.len() as u64 == ending.entries {
            return Err(whole(Refusal::Disagree("number of entries")));
        }
        entries.push(central(&mut fields)?);
    }
    if entries.len() as u64 != ending.entries {
        return Err(whole(Refusal::Disagree("number of entries")));
    }
    entries.sort_by_key(|listed: &Listed| listed.header);
    let mut free = 0;
    for listed in &mut entries {
        free = local(source, listed, free, ending.offset)
            .map_err(|why| UnpackError::of_entry(&listed.name, why))?;
    }
    match free == ending.offset {
        true => Ok(entries),
        false => Err(whole(Refusal::Gap)),
    }
}

fn central(fields: &mut Fields<'_>) -> UnpackResult<Listed> {
    let whole = UnpackError::of_archive;
    let mut head = || -> Result<_, Refusal> {
        if fields.take(4)? != CENTRAL {
            return Err(Refusal::Header);
        }
        let made_by = fields.u16()?;
        fields.u16()?;
        let described = Described::read(fields)?;
        let (packed, size) = (fields.u32()?, fields.u32()?);
        let lengths = (fields.u16()?, fields.u16()?, fields.u16()?);
        let disk = fields.u16()?;
        fields.u16()?;
        let attributes = fields.u32()?;
        let header = fields.u32()?;
        let name = fields.take(usize::from(lengths.0))?;
        let extra = fields.take(usize::from(lengths.1))?;
        fields.take(usize::from(lengths.2))?;
        Ok((
            made_by, described, packed, size, disk, attributes, header, name, extra,
        ))
    };
    let (made_by, described, packed, size, disk, attributes, header, name, extra) =
        head().map_err(whole)?;
    let rest = || -> Result<Listed, Refusal> {
        if disk != 0 {
            return Err(Refusal::Volumes);
        }
        described.check()?;
        let extra = Extra::read(extra, size, packed, Some(header))?;
        Ok(Listed {
            name: name.to_vec(),
            modified: extra.modified.unwrap_or_else(|| described.modified()),
            described,
            size: extra.size,
            packed: extra.packed,
            unix: entry::by_unix(made_by).then_some((attributes >> 16) as u16),
            dos_directory: attributes & 0x10 != 0,
            header: extra.offset,
            start: 0,
        })
    };
    rest().map_err(|why| UnpackError::of_entry(name, why))
}

/// Checks what stands in front of the contents, and says where they end. `free` is where the entry
/// before it ended: this one begins exactly there.
fn local(
    source: &mut dyn Seekable,
    listed: &mut Listed,
    free: u64,
    directory: u64,
) -> Result<u64, Refusal> {
    match listed.header.cmp(&free) {
        std::cmp::Ordering::Less => return Err(Refusal::Overlap),
        std::cmp::Ordering::Greater => return Err(Refusal::Gap),
        std::cmp::Ordering::Equal => {}
    }
    let within = |end: Option<u64>| end.filter(|end| *end <= directory).ok_or(Refusal::Overlap);
    within(listed.header.checked_add(LOCAL_BYTES))?;
    let head = read_at(source, listed.header, LOCAL_BYTES)?;
    let mut fields = Fields::new(&head);
    if fields.take(4)? != LOCAL {
        return Err(Refusal::Header);
    }
    fields.u16()?;
    let described = Described::read(&mut fields)?;
    let (packed, size) = (fields.u32()?, fields.u32()?);
    let lengths = (u64::from(fields.u16()?), u64::from(fields.u16()?));
    let start = listed.header + LOCAL_BYTES + lengths.0 + lengths.1;
    let end = within(start.checked_add(listed.packed))?;
    let name = read_at(source, listed.header + LOCAL_BYTES, lengths.0)?;
    if name != listed.name {
        return Err(Refusal::Disagree("path"));
    }
    let extra = read_at(source, listed.header + LOCAL_BYTES + lengths.0, lengths.1)?;
    let extra = Extra::read(&extra, size, packed, None)?;
    let later = described.flags.has(Flags::SIZES_FOLLOW);
    let sum_here = later && described.sum == 0;
    if !sum_here && described.sum != listed.described.sum {
        return Err(Refusal::Disagree("checksum"));
    }
    if described.flags != listed.described.flags || described.method != listed.described.method {
        return Err(Refusal::Disagree("compression"));
    }
    let empty = later && (extra.size, extra.packed) == (0, 0);
    if !empty && (extra.size, extra.packed) != (listed.size, listed.packed) {
        return Err(Refusal::Disagree("size"));
    }
    listed.start = start;
    match later {
        false => Ok(end),
        true => within(Some(end + descriptor(source, listed, end, directory)?)),
    }
}

/// The sizes once more behind the contents: with a mark or without, narrow or wide. The form is
/// the one that says the same as the directory.
fn descriptor(
    source: &mut dyn Seekable,
    listed: &Listed,
    at: u64,
    directory: u64,
) -> Result<u64, Refusal> {
    let sum = listed.described.sum.to_le_bytes().to_vec();
    let wide = [listed.packed.to_le_bytes(), listed.size.to_le_bytes()].concat();
    let narrow = match (u32::try_from(listed.packed), u32::try_from(listed.size)) {
        (Ok(packed), Ok(size)) => Some([packed.to_le_bytes(), size.to_le_bytes()].concat()),
        _ => None,
    };
    let room = directory.saturating_sub(at).min(24);
    let there = read_at(source, at, room)?;
    // A longer form begins like a shorter one in no case but that of an empty entry, where the
    // longer is meant if it fits.
    for sizes in [Some(wide), narrow].into_iter().flatten() {
        for mark in [DESCRIPTOR, b""] {
            let form = [mark, &sum, &sizes].concat();
            if there.starts_with(&form) {
                return Ok(form.len() as u64);
            }
        }
    }
    Err(Refusal::Disagree("size"))
}
