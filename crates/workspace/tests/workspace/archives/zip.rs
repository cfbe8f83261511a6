//! ZIP archives written byte by byte, since writers refuse to write what matters here.

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;

pub(crate) const UNIX: u16 = 3 << 8;

/// One entry. The second of a pair stands in front of the contents, the first in the directory.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) name: (Vec<u8>, Vec<u8>),
    pub(crate) flags: (u16, u16),
    pub(crate) method: (u16, u16),
    pub(crate) sum: (u32, u32),
    pub(crate) packed: (u32, u32),
    pub(crate) size: (u32, u32),
    pub(crate) extra: (Vec<u8>, Vec<u8>),
    pub(crate) made_by: u16,
    pub(crate) attributes: u32,
    /// None is where it really stands.
    pub(crate) offset: Option<u32>,
    pub(crate) data: Vec<u8>,
    /// Behind the data.
    pub(crate) behind: Vec<u8>,
}

fn both<T: Clone>(value: T) -> (T, T) {
    (value.clone(), value)
}

fn wide(length: usize) -> u32 {
    u32::try_from(length).unwrap()
}

fn narrow(length: usize) -> u16 {
    u16::try_from(length).unwrap()
}

pub(crate) fn sum(bytes: &[u8]) -> u32 {
    let mut sum = flate2::Crc::new();
    sum.update(bytes);
    sum.sum()
}

impl Item {
    pub(crate) fn file(name: &str, contents: impl AsRef<[u8]>) -> Self {
        let contents = contents.as_ref();
        Self {
            name: both(name.as_bytes().to_vec()),
            flags: (0, 0),
            method: (0, 0),
            sum: both(sum(contents)),
            packed: both(wide(contents.len())),
            size: both(wide(contents.len())),
            extra: (vec![], vec![]),
            made_by: UNIX,
            attributes: 0o100_644 << 16,
            offset: None,
            data: contents.to_vec(),
            behind: vec![],
        }
    }

    pub(crate) fn deflated(name: &str, contents: &[u8]) -> Self {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(contents).unwrap();
        let data = encoder.finish().unwrap();
        Self {
            method: (8, 8),
            packed: both(wide(data.len())),
            data,
            ..Self::file(name, contents)
        }
    }

    pub(crate) fn dir(name: &str) -> Self {
        Self {
            attributes: 0o040_755 << 16,
            ..Self::file(name, "")
        }
    }

    pub(crate) fn link(name: &str, target: &str) -> Self {
        Self {
            attributes: 0o120_777 << 16,
            ..Self::file(name, target)
        }
    }

    /// Sizes behind the contents, as writers do that cannot go back.
    pub(crate) fn streamed(mut self) -> Self {
        self.flags = (8, 8);
        self.behind = [
            b"PK\x07\x08".to_vec(),
            self.sum.0.to_le_bytes().to_vec(),
            self.packed.0.to_le_bytes().to_vec(),
            self.size.0.to_le_bytes().to_vec(),
        ]
        .concat();
        self.sum.1 = 0;
        self.packed.1 = 0;
        self.size.1 = 0;
        self
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Zip {
    pub(crate) items: Vec<Item>,
    /// Between the last entry and the directory.
    pub(crate) gap: Vec<u8>,
    pub(crate) comment: Vec<u8>,
    /// What the end says about the number of entries, when it lies.
    pub(crate) count: Option<u16>,
    /// Between the directory and the end.
    pub(crate) records: Vec<u8>,
}

impl Zip {
    pub(crate) fn of(items: impl IntoIterator<Item = Item>) -> Self {
        Self {
            items: items.into_iter().collect(),
            ..Self::default()
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut directory = Vec::new();
        for item in &self.items {
            let at = wide(out.len());
            local(&mut out, item);
            central(&mut directory, item, item.offset.unwrap_or(at));
        }
        out.extend_from_slice(&self.gap);
        let at = wide(out.len());
        out.extend_from_slice(&directory);
        out.extend_from_slice(&self.records);
        let count = self.count.unwrap_or(narrow(self.items.len()));
        out.extend_from_slice(b"PK\x05\x06\0\0\0\0");
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&wide(directory.len()).to_le_bytes());
        out.extend_from_slice(&at.to_le_bytes());
        out.extend_from_slice(&narrow(self.comment.len()).to_le_bytes());
        out.extend_from_slice(&self.comment);
        out
    }
}

/// 2020-01-01 00:00.
const DATE: u16 = 40 << 9 | 1 << 5 | 1;

fn local(out: &mut Vec<u8>, item: &Item) {
    out.extend_from_slice(b"PK\x03\x04\x14\0");
    for word in [item.flags.1, item.method.1, 0, DATE] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    for word in [item.sum.1, item.packed.1, item.size.1] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(&narrow(item.name.1.len()).to_le_bytes());
    out.extend_from_slice(&narrow(item.extra.1.len()).to_le_bytes());
    out.extend_from_slice(&item.name.1);
    out.extend_from_slice(&item.extra.1);
    out.extend_from_slice(&item.data);
    out.extend_from_slice(&item.behind);
}

fn central(out: &mut Vec<u8>, item: &Item, offset: u32) {
    out.extend_from_slice(b"PK\x01\x02");
    let head = [item.made_by, 20, item.flags.0, item.method.0, 0, DATE];
    for word in head {
        out.extend_from_slice(&word.to_le_bytes());
    }
    for word in [item.sum.0, item.packed.0, item.size.0] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    let lengths = [item.name.0.len(), item.extra.0.len(), 0, 0, 0];
    for word in lengths {
        out.extend_from_slice(&narrow(word).to_le_bytes());
    }
    out.extend_from_slice(&item.attributes.to_le_bytes());
    out.extend_from_slice(&offset.to_le_bytes());
    out.extend_from_slice(&item.name.0);
    out.extend_from_slice(&item.extra.0);
}
