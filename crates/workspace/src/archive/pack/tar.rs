//! Tar, plain or compressed.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::Packer;
use crate::stat::Stat;

/// The longest target that a header has room for.
const LINK_BYTES: usize = 100;
/// What every tar calls the entry that holds a longer one.
const LONG: &[u8] = b"././@LongLink";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compressed {
    No,
    Gzip,
    Zstd,
}

pub(crate) fn tar_packer<'w>(
    sink: &'w mut dyn Write,
    compressed: Compressed,
) -> io::Result<Box<dyn Packer + 'w>> {
    Ok(match compressed {
        Compressed::No => Box::new(TarPacker(Builder::new(Plain(sink)))),
        Compressed::Gzip => {
            let encoder = GzEncoder::new(sink, flate2::Compression::default());
            Box::new(TarPacker(Builder::new(encoder)))
        }
        Compressed::Zstd => {
            let encoder = zstd::stream::write::Encoder::new(sink, zstd::DEFAULT_COMPRESSION_LEVEL)?;
            Box::new(TarPacker(Builder::new(encoder)))
        }
    })
}

/// What writes an end of its own.
trait Ending: Write {
    fn end(self) -> io::Result<()>;
}

struct Plain<'w>(&'w mut dyn Write);

impl Write for Plain<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Ending for Plain<'_> {
    fn end(self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Ending for GzEncoder<&mut dyn Write> {
    fn end(self) -> io::Result<()> {
        self.finish()?.flush()
    }
}

impl Ending for zstd::stream::write::Encoder<'_, &mut dyn Write> {
    fn end(self) -> io::Result<()> {
        self.finish()?.flush()
    }
}

struct TarPacker<W: Ending>(Builder<W>);

impl<W: Ending> TarPacker<W> {
    fn append(
        &mut self,
        path: &[u8],
        mut header: Header,
        contents: &mut dyn Read,
    ) -> io::Result<()> {
        self.0
            .append_data(&mut header, Path::new(OsStr::from_bytes(path)), contents)
    }
}

/// Nobody's owner, and no bits but permissions.
fn header(kind: EntryType, stat: &Stat, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(stat.mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(u64::try_from(stat.modified.sec).unwrap_or(0));
    header.set_size(size);
    header
}

impl<W: Ending> Packer for TarPacker<W> {
    fn takes(&self, _: &[u8]) -> bool {
        true
    }

    fn directory(&mut self, path: &[u8], stat: &Stat) -> io::Result<()> {
        let path = [path, b"/"].concat();
        self.append(
            &path,
            header(EntryType::Directory, stat, 0),
            &mut io::empty(),
        )
    }

    /// The text as it is: the crate would tidy it up, and the link would be another.
    fn link(&mut self, path: &[u8], stat: &Stat, text: &[u8]) -> io::Result<()> {
        let mut link = header(EntryType::Symlink, stat, 0);
        if text.len() > LINK_BYTES {
            let mut long = Header::new_gnu();
            long.as_mut_bytes()[..LONG.len()].copy_from_slice(LONG);
            long.set_entry_type(EntryType::GNULongLink);
            long.set_mode(0o644);
            long.set_uid(0);
            long.set_gid(0);
            long.set_mtime(0);
            let text = [text, b"\0"].concat();
            long.set_size(text.len() as u64);
            long.set_cksum();
            self.0.append(&long, text.as_slice())?;
            link.set_link_name_literal(&text[..LINK_BYTES])?;
        } else {
            link.set_link_name_literal(text)?;
        }
        self.append(path, link, &mut io::empty())
    }

    fn file(&mut self, path: &[u8], stat: &Stat, contents: &mut dyn Read) -> io::Result<()> {
        self.append(path, header(EntryType::Regular, stat, stat.size), contents)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.0.into_inner()?.end()
    }
}
