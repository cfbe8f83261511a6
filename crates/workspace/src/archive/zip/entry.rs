//! What the fields of one entry mean.

use super::super::refusal::Refusal;
use super::bytes::Fields;
use super::directory::Listed;

pub(super) const STORED: u16 = 0;
pub(super) const DEFLATED: u16 = 8;
const WIDE: u16 = 0x0001;
const TIMES: u16 = 0x5455;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flags(u16);

impl Flags {
    pub(super) const ENCRYPTED: u16 = 1;
    pub(super) const SIZES_FOLLOW: u16 = 1 << 3;
    const PATCH: u16 = 1 << 5;
    const STRONGLY_ENCRYPTED: u16 = 1 << 6;
    const MASKED: u16 = 1 << 13;

    pub(super) fn has(self, flag: u16) -> bool {
        self.0 & flag != 0
    }
}

/// The part that stands in both places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Described {
    pub(super) flags: Flags,
    pub(super) method: u16,
    time: u16,
    date: u16,
    pub(super) sum: u32,
}

impl Described {
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Refusal> {
        Ok(Self {
            flags: Flags(fields.u16()?),
            method: fields.u16()?,
            time: fields.u16()?,
            date: fields.u16()?,
            sum: fields.u32()?,
        })
    }

    pub(super) fn check(&self) -> Result<(), Refusal> {
        let hidden = Flags::ENCRYPTED | Flags::STRONGLY_ENCRYPTED | Flags::MASKED;
        if self.flags.has(hidden) {
            return Err(Refusal::Encrypted);
        }
        if self.flags.has(Flags::PATCH) {
            return Err(Refusal::Method(self.method));
        }
        match self.method {
            STORED | DEFLATED => Ok(()),
            other => Err(Refusal::Method(other)),
        }
    }

    /// Two seconds are the finest step, and no time zone is told.
    pub(super) fn modified(&self) -> i64 {
        let part = |value: u16, shift: u16, mask: u16| (value >> shift & mask).cast_signed();
        let small = |value: i16| i8::try_from(value).unwrap_or(0);
        let moment = jiff::civil::DateTime::new(
            1980 + part(self.date, 9, 0x7f),
            small(part(self.date, 5, 0xf)),
            small(part(self.date, 0, 0x1f)),
            small(part(self.time, 11, 0x1f)),
            small(part(self.time, 5, 0x3f)),
            small((part(self.time, 0, 0x1f) * 2).min(59)),
            0,
        );
        moment
            .and_then(|moment| moment.to_zoned(jiff::tz::TimeZone::UTC))
            .map_or(0, |moment| moment.timestamp().as_second())
    }
}

/// Sizes and the place of the header, from the wide record where the narrow fields are full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extra {
    pub(super) size: u64,
    pub(super) packed: u64,
    pub(super) offset: u64,
    pub(super) modified: Option<i64>,
}

impl Extra {
    pub(super) fn read(
        bytes: &[u8],
        size: u32,
        packed: u32,
        offset: Option<u32>,
    ) -> Result<Self, Refusal> {
        let mut extra = Self {
            size: u64::from(size),
            packed: u64::from(packed),
            offset: u64::from(offset.unwrap_or(0)),
            modified: None,
        };
        let mut wide = false;
        let mut fields = Fields::new(bytes);
        while !fields.is_empty() {
            let (id, length) = (fields.u16()?, fields.u16()?);
            let mut record = Fields::new(fields.take(usize::from(length))?);
            match id {
                // Which of two counts is where readers differ.
                WIDE if wide => return Err(Refusal::Disagree("size")),
                WIDE => {
                    wide = true;
                    for (narrow, field) in [
                        (Some(size), &mut extra.size),
                        (Some(packed), &mut extra.packed),
                        (offset, &mut extra.offset),
                    ] {
                        if narrow == Some(u32::MAX) {
                            *field = record.u64()?;
                        }
                    }
                    // Some writers repeat what did not need it; then it must be the same.
                    if !record.is_empty() {
                        same_again(record, &extra, size, packed)?;
                    }
                }
                TIMES if length >= 5 => {
                    let given = record.take(1)?[0];
                    let modified = i64::from(record.u32()?.cast_signed());
                    extra.modified = (given & 1 != 0).then_some(modified);
                }
                _ => {}
            }
        }
        let full = [Some(size), Some(packed), offset].contains(&Some(u32::MAX));
        match full && !wide {
            // Exactly 4 GiB less one byte is nobody's file; it is a wide entry without its record.
            true => Err(Refusal::Size),
            false => Ok(extra),
        }
    }
}

fn same_again(
    mut record: Fields<'_>,
    extra: &Extra,
    size: u32,
    packed: u32,
) -> Result<(), Refusal> {
    let unread = [(size, extra.size), (packed, extra.packed)];
    for (narrow, known) in unread {
        if narrow != u32::MAX && !record.is_empty() && record.u64()? != known {
            return Err(Refusal::Disagree("size"));
        }
    }
    match record.is_empty() {
        true => Ok(()),
        false => Err(Refusal::Extension),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    Link,
}

/// Written by a Unix or a macOS system, so the upper half of the attributes is a mode.
pub(super) fn by_unix(made_by: u16) -> bool {
    matches!(made_by >> 8, 3 | 19)
}

/// The name and the attributes must agree on what is a directory.
pub(super) fn kind(listed: &Listed) -> Result<Kind, Refusal> {
    let slash = listed.name.ends_with(b"/");
    let kind = match listed.unix.map_or(0, |mode| mode & 0o170_000) {
        0 if slash || listed.dos_directory => Kind::Directory,
        0 | 0o100_000 => Kind::File,
        0o040_000 => Kind::Directory,
        0o120_000 => Kind::Link,
        0o010_000 => return Err(Refusal::Special("a FIFO")),
        0o020_000 => return Err(Refusal::Special("a character device")),
        0o060_000 => return Err(Refusal::Special("a block device")),
        0o140_000 => return Err(Refusal::Special("a socket")),
        _ => return Err(Refusal::Header),
    };
    if slash != (kind == Kind::Directory) {
        return Err(Refusal::Disagree("type"));
    }
    match kind == Kind::Directory && listed.size != 0 {
        true => Err(Refusal::ContentsWithoutFile),
        false => Ok(kind),
    }
}

pub(super) fn mode(listed: &Listed) -> u32 {
    let permissions = listed.unix.map(|mode| u32::from(mode) & 0o777);
    match (permissions, listed.name.ends_with(b"/")) {
        (Some(mode), _) if mode != 0 => mode,
        (_, true) => 0o755,
        (_, false) => 0o644,
    }
}
