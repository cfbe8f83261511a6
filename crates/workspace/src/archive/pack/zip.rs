//! ZIP, written straight through: sizes and checksums follow each file.

use std::io::{self, Read, Write};

use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::Packer;
use crate::stat::Stat;

/// From here on the wide fields of the format are needed; some room for what compression adds to
/// bytes that cannot be compressed.
const WIDE_FROM: u64 = u32::MAX as u64 - (64 << 20);

struct ZipPacker<'w>(ZipWriter<StreamWriter<&'w mut dyn Write>>);

pub(crate) fn zip_packer<'w>(sink: &'w mut dyn Write) -> Box<dyn Packer + 'w> {
    Box::new(ZipPacker(ZipWriter::new_stream(sink)))
}

fn options(stat: &Stat) -> SimpleFileOptions {
    SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .unix_permissions(stat.mode)
        .large_file(stat.size >= WIDE_FROM)
        .last_modified_time(time(stat.modified.sec))
}

/// By UTC, since the format knows no zone. What it cannot hold becomes its first day.
fn time(sec: i64) -> DateTime {
    let known = || {
        let at = jiff::Timestamp::from_second(sec).ok()?;
        let at = at.to_zoned(jiff::tz::TimeZone::UTC);
        DateTime::from_date_and_time(
            u16::try_from(at.year()).ok()?,
            at.month().cast_unsigned(),
            at.day().cast_unsigned(),
            at.hour().cast_unsigned(),
            at.minute().cast_unsigned(),
            at.second().cast_unsigned(),
        )
        .ok()
    };
    known().unwrap_or_default()
}

fn text(bytes: &[u8]) -> io::Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}

impl Packer for ZipPacker<'_> {
    /// Other names mean something else, or nothing, on other systems.
    fn takes(&self, path: &[u8]) -> bool {
        std::str::from_utf8(path).is_ok() && !path.contains(&b'\\')
    }

    fn directory(&mut self, path: &[u8], stat: &Stat) -> io::Result<()> {
        let options = options(stat).compression_method(CompressionMethod::Stored);
        Ok(self.0.add_directory(text(path)?, options)?)
    }

    fn link(&mut self, path: &[u8], stat: &Stat, target: &[u8]) -> io::Result<()> {
        Ok(self
            .0
            .add_symlink(text(path)?, text(target)?, options(stat))?)
    }

    fn file(&mut self, path: &[u8], stat: &Stat, contents: &mut dyn Read) -> io::Result<()> {
        self.0.start_file(text(path)?, options(stat))?;
        io::copy(contents, &mut self.0).map(drop)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.0.finish()?.into_inner().flush()
    }
}
