//! The entries of a tar stream, one after another. The crate reads the fields of a header; where
//! an entry ends is decided here, from the header's own size and nothing else, and anything that
//! another reader could count differently is refused.

use std::io::{self, Read};

use tar::{EntryType, Header};

use super::pax::Pax;
use super::refusal::{Limit, Refusal};
use super::stream::from_reading;
use super::{UnpackError, UnpackResult};

const BLOCK: usize = 512;
/// Long names, and the attributes of one entry, which are dropped anyhow.
const LARGEST_EXTENSION: u64 = 1 << 20;
/// Headers that only describe the next entry; there are three kinds of them.
const MOST_EXTENSIONS: u32 = 16;
/// A size field can be read as signed by others.
const LARGEST_SIZE: u64 = i64::MAX as u64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    File,
    Directory,
    Symlink(Vec<u8>),
    HardLink(Vec<u8>),
    Special(&'static str),
}

#[derive(Debug)]
pub(crate) struct Member {
    /// As written in the archive.
    pub(crate) path: Vec<u8>,
    pub(crate) entry: Entry,
    pub(crate) size: u64,
    /// As written in the archive, with whatever bits.
    pub(crate) mode: u32,
    pub(crate) modified: i64,
}

/// Must be read one after another: asking for the next one passes over what is left of the last.
#[derive(Debug)]
pub(crate) struct Members<R> {
    source: R,
    /// Of the current entry's contents.
    contents: u64,
    padding: u64,
    position: u64,
}

impl<R: Read> Members<R> {
    pub(crate) fn new(source: R) -> Self {
        Self {
            source,
            contents: 0,
            padding: 0,
            position: 0,
        }
    }

    /// Where the contents of the current entry begin.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    pub(crate) fn into_source(self) -> R {
        self.source
    }

    /// None after the mark that ends every archive; one that just stops was cut off.
    pub(crate) fn advance(&mut self) -> UnpackResult<Option<Member>> {
        let mut described = Described::default();
        for _ in 0..MOST_EXTENSIONS {
            self.pass_over()?;
            let Some(header) = self.header()? else {
                return match described.by_nothing() {
                    true => Ok(None),
                    false => Err(UnpackError::of_archive(Refusal::Truncated)),
                };
            };
            let name = header.path_bytes().into_owned();
            let fault = |why| UnpackError::of_entry(&name, why);
            let size = size_of(&header).map_err(fault)?;
            self.contents = size;
            self.padding = size.next_multiple_of(BLOCK as u64) - size;
            match header.entry_type() {
                EntryType::XHeader => described.pax(self.extension(&name)?).map_err(fault)?,
                EntryType::GNULongName => {
                    described.name(self.extension(&name)?).map_err(fault)?;
                }
                EntryType::GNULongLink => {
                    described.link(self.extension(&name)?).map_err(fault)?;
                }
                EntryType::XGlobalHeader => {
                    let pax = Pax::parse(&self.extension(&name)?).map_err(fault)?;
                    if !pax.says_nothing() {
                        return Err(fault(Refusal::Extension));
                    }
                }
                kind => return described.finish(&header, kind, size).map(Some),
            }
        }
        Err(UnpackError::of_archive(Refusal::Extension))
    }

    fn header(&mut self) -> UnpackResult<Option<Header>> {
        let mut header = Header::new_old();
        let read = self.source.read_exact(header.as_mut_bytes());
        read.map_err(|error| self.reading(&error))?;
        self.position += BLOCK as u64;
        if header.as_bytes().iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let bytes = header.as_bytes();
        let sum: u32 = bytes.iter().map(|byte| u32::from(*byte)).sum();
        // The field itself counts as eight spaces.
        let field: u32 = bytes[148..156].iter().map(|byte| u32::from(*byte)).sum();
        match header.cksum() {
            Ok(written) if written == sum - field + 8 * 32 => Ok(Some(header)),
            _ if self.position == BLOCK as u64 => {
                Err(UnpackError::of_archive(Refusal::NotAnArchive))
            }
            _ => Err(UnpackError::of_archive(Refusal::Header)),
        }
    }

    fn extension(&mut self, name: &[u8]) -> UnpackResult<Vec<u8>> {
        if self.contents > LARGEST_EXTENSION {
            let limit = Limit::ExtensionBytes(LARGEST_EXTENSION);
            return Err(UnpackError::of_entry(name, Refusal::Limit(limit)));
        }
        let mut bytes = Vec::new();
        let read = self.read_to_end(&mut bytes);
        read.map_err(|error| self.reading(&error))?;
        Ok(bytes)
    }

    fn pass_over(&mut self) -> UnpackResult<()> {
        let left = self.contents + self.padding;
        let passed = io::copy(&mut self.source.by_ref().take(left), &mut io::sink());
        let passed = passed.map_err(|error| self.reading(&error))?;
        if passed < left {
            return Err(UnpackError::of_archive(Refusal::Truncated));
        }
        self.position += passed;
        (self.contents, self.padding) = (0, 0);
        Ok(())
    }

    fn reading(&self, error: &io::Error) -> UnpackError {
        let why = match from_reading(error) {
            // Too short for a single header.
            Refusal::Truncated if self.position == 0 => Refusal::NotAnArchive,
            why => why,
        };
        UnpackError::of_archive(why)
    }
}

/// The contents of the current entry. Its end is an error when bytes are missing.
impl<R: Read> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.contents).unwrap_or(usize::MAX);
        let most = most.min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        let read = self.source.read(&mut buffer[..most])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.contents -= read as u64;
        self.position += read as u64;
        Ok(read)
    }
}

/// What came before an entry to describe it.
#[derive(Debug, Default)]
struct Described {
    pax: Option<Pax>,
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
}

impl Described {
    fn by_nothing(&self) -> bool {
        self.pax.is_none() && self.name.is_none() && self.link.is_none()
    }

    fn pax(&mut self, records: Vec<u8>) -> Result<(), Refusal> {
        match self.pax.replace(Pax::parse(&records)?) {
            None => Ok(()),
            Some(_) => Err(Refusal::Extension),
        }
    }

    fn name(&mut self, text: Vec<u8>) -> Result<(), Refusal> {
        match self.name.replace(long_text(text)) {
            None => Ok(()),
            Some(_) => Err(Refusal::Disagree("path")),
        }
    }

    fn link(&mut self, text: Vec<u8>) -> Result<(), Refusal> {
        match self.link.replace(long_text(text)) {
            None => Ok(()),
            Some(_) => Err(Refusal::Disagree("target")),
        }
    }

    fn finish(self, header: &Header, kind: EntryType, size: u64) -> UnpackResult<Member> {
        let pax = self.pax.unwrap_or_default();
        let path = agreed(pax.path, self.name, "path");
        let link = agreed(pax.link, self.link, "target");
        let shown = header.path_bytes();
        let path = path
            .map_err(|why| UnpackError::of_entry(&shown, why))?
            .unwrap_or_else(|| shown.into_owned());
        let member = || -> Result<Member, Refusal> {
            let target = link?
                .or_else(|| header.link_name_bytes().map(|text| text.into_owned()))
                .unwrap_or_default();
            if pax.size.is_some_and(|other| other != size) {
                return Err(Refusal::Disagree("size"));
            }
            let entry = entry_of(kind, target, &path)?;
            if size != 0 && entry != Entry::File {
                return Err(Refusal::ContentsWithoutFile);
            }
            Ok(Member {
                entry,
                size,
                mode: header.mode().map_err(|_| Refusal::Header)?,
                // Some writers leave it out; a wrong time harms nobody.
                modified: header
                    .mtime()
                    .map_or(0, |sec| i64::try_from(sec).unwrap_or(0)),
                path: Vec::new(),
            })
        };
        match member() {
            Ok(member) => Ok(Member { path, ..member }),
            Err(why) => Err(UnpackError::of_entry(&path, why)),
        }
    }
}

fn entry_of(kind: EntryType, target: Vec<u8>, path: &[u8]) -> Result<Entry, Refusal> {
    Ok(match kind {
        // Before directories had a type of their own.
        EntryType::Regular if path.ends_with(b"/") => Entry::Directory,
        EntryType::Regular | EntryType::Continuous => Entry::File,
        EntryType::Directory => Entry::Directory,
        EntryType::Symlink => Entry::Symlink(target),
        EntryType::Link => Entry::HardLink(target),
        EntryType::Char => Entry::Special("a character device"),
        EntryType::Block => Entry::Special("a block device"),
        EntryType::Fifo => Entry::Special("a FIFO"),
        EntryType::GNUSparse => return Err(Refusal::Sparse),
        other => return Err(Refusal::UnknownType(other.as_byte())),
    })
}

/// Either may give it; when both do, they must say the same.
fn agreed(
    pax: Option<Vec<u8>>,
    long: Option<Vec<u8>>,
    what: &'static str,
) -> Result<Option<Vec<u8>>, Refusal> {
    match (pax, long) {
        (Some(pax), Some(long)) if pax != long => Err(Refusal::Disagree(what)),
        (pax, long) => Ok(pax.or(long)),
    }
}

/// Written with the NUL that ends it.
fn long_text(mut text: Vec<u8>) -> Vec<u8> {
    if text.last() == Some(&0) {
        text.pop();
    }
    text
}

fn size_of(header: &Header) -> Result<u64, Refusal> {
    let field = &header.as_old().size;
    // In base 256 the crate reads the last eight bytes alone: whatever the others say would be
    // lost, and a negative number would become a large one.
    let binary = field[0] & 0x80 != 0;
    if binary && (field[0] != 0x80 || field[1..4] != [0; 3]) {
        return Err(Refusal::Size);
    }
    match header.entry_size() {
        Ok(size) if size <= LARGEST_SIZE - BLOCK as u64 => Ok(size),
        _ => Err(Refusal::Size),
    }
}
