//! A tree that goes out as an archive.

use std::fs::File;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, readlinkat};

use super::fault::{Bound, FileError, FileResult};
use super::tour::{Bounds, Next, Seen, tour, until};
use crate::archive::{Compressed, Exactly, Packer, tar_packer, zip_packer};
use crate::dir::{Dir, READING, is_temporary, regular, single};
use crate::relpath::RelPath;
use crate::stat::Kind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Tar,
    TarGzip,
    TarZstd,
    Zip,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DownloadLimits {
    pub entries: u64,
    /// Of files, before they are compressed.
    pub bytes: u64,
    pub time: Duration,
}

impl Default for DownloadLimits {
    fn default() -> Self {
        Self {
            entries: 200_000,
            bytes: 4 << 30,
            time: Duration::from_secs(600),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Download {
    pub files: u64,
    pub directories: u64,
    pub links: u64,
    pub bytes: u64,
    /// Special files, and what could not be read.
    pub skipped: u64,
    /// Names that the format cannot carry.
    pub unnamed: u64,
    /// Files that were cut or filled up, since they changed while they were read.
    pub changed: u64,
}

/// Links are packed as links. A tree above the limits is refused before the first byte; when it
/// grows above them meanwhile, the archive is left without its end, so that nobody takes it for
/// the whole.
pub fn download(
    dir: &Dir,
    under: Option<&RelPath>,
    format: Format,
    limits: DownloadLimits,
    sink: &mut dyn Write,
) -> FileResult<Download> {
    let start = dir.under(under)?;
    let bounds = Bounds {
        entries: limits.entries,
        deadline: until(limits.time),
    };
    measure(&start, bounds, limits.bytes)?;
    let packer = match format {
        Format::Tar => tar_packer(sink, Compressed::No),
        Format::TarGzip => tar_packer(sink, Compressed::Gzip),
        Format::TarZstd => tar_packer(sink, Compressed::Zstd),
        Format::Zip => Ok(zip_packer(sink)),
    };
    let mut packing = Packing {
        packer: packer.map_err(stopped)?,
        limits,
        deadline: bounds.deadline,
        done: Download::default(),
    };
    let toured = tour(&start, None, bounds, &mut |seen| packing.entry(seen))?;
    if let Some(bound) = toured.cut {
        return Err(FileError::Limit(bound));
    }
    packing.done.skipped += toured.unread;
    packing.packer.finish().map_err(stopped)?;
    Ok(packing.done)
}

fn stopped(error: io::Error) -> FileError {
    FileError::Stream(error.to_string())
}

fn measure(start: &Dir, bounds: Bounds, most: u64) -> FileResult<()> {
    let mut bytes = 0u64;
    let toured = tour(start, None, bounds, &mut |seen| {
        if seen.stat.kind == Kind::File {
            bytes = bytes.saturating_add(seen.stat.size);
        }
        match bytes > most {
            true => Err(FileError::Limit(Bound::Bytes(most))),
            false => Ok(Next::Into),
        }
    })?;
    toured
        .cut
        .map_or(Ok(()), |bound| Err(FileError::Limit(bound)))
}

struct Packing<'w> {
    packer: Box<dyn Packer + 'w>,
    limits: DownloadLimits,
    deadline: Instant,
    done: Download,
}

impl Packing<'_> {
    fn entry(&mut self, seen: Seen<'_>) -> FileResult<Next> {
        // Somebody's write that is not done yet.
        if is_temporary(seen.name.to_bytes()) {
            return Ok(Next::Past);
        }
        if !self.packer.takes(seen.path) {
            self.done.unnamed += 1;
            return Ok(Next::Past);
        }
        match seen.stat.kind {
            Kind::Directory => {
                let packed = self.packer.directory(seen.path, &seen.stat);
                packed.map_err(stopped)?;
                self.done.directories += 1;
            }
            Kind::Symlink => match readlinkat(seen.dir, seen.name, Vec::new()) {
                Ok(text) if self.packer.takes(text.as_bytes()) => {
                    let packed = self.packer.link(seen.path, &seen.stat, text.as_bytes());
                    packed.map_err(stopped)?;
                    self.done.links += 1;
                }
                Ok(_) => self.done.unnamed += 1,
                // Swapped for something else since.
                Err(_) => self.done.skipped += 1,
            },
            Kind::File => self.file(seen)?,
            Kind::Fifo | Kind::Socket | Kind::Device | Kind::Unknown => self.done.skipped += 1,
        }
        Ok(Next::Into)
    }

    fn file(&mut self, seen: Seen<'_>) -> FileResult<()> {
        let flags = READING | OFlags::NOFOLLOW;
        let opened = single(seen.dir, seen.name.to_bytes(), flags);
        let Ok((fd, stat)) = opened.and_then(|fd| regular(&fd).map(|stat| (fd, stat))) else {
            self.done.skipped += 1;
            return Ok(());
        };
        self.done.bytes = self.done.bytes.saturating_add(stat.size);
        if self.done.bytes > self.limits.bytes {
            return Err(FileError::Limit(Bound::Bytes(self.limits.bytes)));
        }
        let mut contents = Exactly::new(
            Timed {
                file: File::from(fd),
                deadline: self.deadline,
            },
            stat.size,
        );
        let packed = self.packer.file(seen.path, &stat, &mut contents);
        packed.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => FileError::Limit(Bound::Time),
            _ => stopped(error),
        })?;
        self.done.files += 1;
        self.done.changed += u64::from(!contents.was_true());
        Ok(())
    }
}

/// Fails at the deadline, so that one large file cannot outlast it.
struct Timed {
    file: File,
    deadline: Instant,
}

impl io::Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match Instant::now() >= self.deadline {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => self.file.read(buffer),
        }
    }
}
