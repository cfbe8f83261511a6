//! The files of a workspace, read and changed from outside its execs. Every change stays within the
//! quota and is written into the ledger.

use std::io::{Read, Seek, SeekFrom, Write};
use std::time::Duration;

use glovebox_api::{
    CopyAnswer, CopyRequest, FileInfo, GlobAnswer, GlobRequest, Listing, MkdirRequest, MoveRequest,
    ReplaceAnswer, ReplaceRequest, SearchAnswer, SearchRequest, UnpackAnswer, WatchChange,
};
use glovebox_model::{ByteString, Code, Error, Result, Stage};
use glovebox_workspace::archive::{Refusal, UnpackLimits};
use glovebox_workspace::files::{
    self, Case, Condition, CopyLimits, Cursor, DownloadLimits, Etag, FileError, Format,
    GlobOptions, GrepLimits, GrepOptions, Hidden, ListOptions, Needle, Occurrence, Parents,
    Placement, Range, Reading, Recursive, Source, WriteOptions,
};
use glovebox_workspace::{Existing, FsErrorKind, PathError, RelPath};
use serde_json::json;

use super::Workspace;
use super::answer::{copy_answer, file_info, glob_answer, listing, search_answer, watch_change};

/// A file in which something is replaced, before and after.
const TEXT_BYTES: u64 = 64 << 20;
/// A file that is written, if nobody knows how large it is.
const FILE_BYTES: u64 = 4 << 30;
/// Lines of one answer, with those around each match.
const LINES: usize = 5000;
const LINE_BYTES: usize = 500;
const MATCHES: usize = 1000;
const PATHS: usize = 10_000;
const LISTED: usize = 1000;
const LIST_TIME: Duration = Duration::from_secs(10);

/// A page of a directory.
#[derive(Debug, Clone, Default)]
pub struct ListRequest {
    /// Levels; 1 without it.
    pub depth: Option<usize>,
    pub limit: Option<usize>,
    /// `next` of the page before.
    pub after: Option<String>,
}

/// What stands where a file is to be read.
#[derive(Debug)]
pub enum Opened {
    File(Reading),
    Directory,
    /// The range begins behind the end.
    Beyond {
        size: u64,
        error: Error,
    },
}

/// What must stand there for a write to be done.
#[derive(Clone, Copy)]
#[expect(
    missing_debug_implementations,
    reason = "a function has nothing to show"
)]
pub enum Expected<'e> {
    Anything,
    Nothing,
    /// A file whose mark this accepts.
    Marked(&'e dyn Fn(&Etag) -> bool),
}

/// A path that a request names: none is the workspace itself. What cannot be the name of a file names
/// none, and the error says why.
pub fn file_path(path: &[u8]) -> Result<Option<RelPath>> {
    let end = path.iter().rposition(|byte| *byte != b'/');
    match &path[..end.map_or(0, |last| last + 1)] {
        b"" if !path.is_empty() => Err(no_name(PathError::Absolute, path)),
        b"" | b"." => Ok(None),
        path => RelPath::new(path)
            .map(Some)
            .map_err(|why| no_name(why, path)),
    }
}

/// The same of something to be changed: a name in the workspace, and no way back on the way to it.
pub fn changed_path(path: &[u8]) -> Result<RelPath> {
    let path = file_path(path)?.ok_or_else(|| no_name(PathError::Itself, b"."))?;
    match path.climbs() {
        false => Ok(path),
        true => {
            let message = "a path to something that is changed cannot hold `..`";
            Err(Error::new(Code::NotFound, Stage::Parse, message)
                .hint("name it from the top of the workspace"))
        }
    }
}

fn no_name(error: PathError, path: &[u8]) -> Error {
    let mut error = error.at(Stage::Parse, path);
    error.code = Code::NotFound;
    error
}

fn failed(error: FileError) -> Error {
    error.at(Stage::Open)
}

const fn parents(make: bool) -> Parents {
    match make {
        true => Parents::Make,
        false => Parents::Require,
    }
}

const fn existing(overwrite: bool) -> Existing {
    match overwrite {
        true => Existing::Replace,
        false => Existing::Refuse,
    }
}

const fn hidden(show: bool) -> Hidden {
    match show {
        true => Hidden::Show,
        false => Hidden::Skip,
    }
}

impl Workspace<'_> {
    pub fn stat(&self, path: Option<&RelPath>) -> Result<FileInfo> {
        let stat = files::stat(self.work()?, path).map_err(failed)?;
        Ok(file_info(path, stat))
    }

    pub fn list(&self, path: Option<&RelPath>, page: &ListRequest) -> Result<Listing> {
        let after = page.after.as_deref().map(Cursor::parse).transpose();
        let options = ListOptions {
            depth: page.depth.unwrap_or(1),
            entries: page.limit.unwrap_or(LISTED),
            after: after.map_err(failed)?,
            time: LIST_TIME,
        };
        let page = files::list(self.work()?, path, &options).map_err(failed)?;
        Ok(listing(path, page))
    }

    pub fn open(&self, path: &RelPath, range: Range) -> Result<Opened> {
        match files::open(self.work()?, path, range) {
            Ok(reading) => Ok(Opened::File(reading)),
            Err(FileError::Fs(error)) if error.kind() == FsErrorKind::IsADirectory => {
                Ok(Opened::Directory)
            }
            Err(error @ FileError::Range { size }) => Ok(Opened::Beyond {
                size,
                error: error.at(Stage::Parse),
            }),
            Err(error) => Err(failed(error)),
        }
    }

    /// Whole or not at all. None: what stands there is not what is expected. `size` is how much there
    /// is to read, where that is known.
    pub fn write(
        &self,
        path: &RelPath,
        contents: &mut dyn Read,
        size: Option<u64>,
        mode: Option<u32>,
        expected: Expected<'_>,
    ) -> Result<Option<FileInfo>> {
        let writing = self.writing()?;
        let (work, room) = (writing.work(), writing.room());
        let there = files::stat(work, Some(path)).ok();
        let condition = match expected {
            Expected::Anything => Condition::Always,
            Expected::Nothing => Condition::Absent,
            Expected::Marked(accepts) => match there.filter(|it| accepts(&it.etag)) {
                Some(stat) => Condition::Matches(stat.etag),
                None => return Ok(None),
            },
        };
        writing.fits(path, size.unwrap_or(0))?;
        let left = writing.largest_at(path);
        let options = WriteOptions {
            condition,
            parents: Parents::Make,
            mode,
            most_bytes: size.unwrap_or_else(|| FILE_BYTES.min(left)),
            ..WriteOptions::default()
        };
        let stat = match files::write(work, path, contents, &options) {
            Ok(stat) => stat,
            Err(FileError::Changed { .. }) => return Ok(None),
            Err(FileError::Fs(fault)) => match (fault.kind(), expected) {
                (FsErrorKind::Exists, Expected::Nothing) => return Ok(None),
                (FsErrorKind::TooLarge { .. }, _) if size.is_none() && left < FILE_BYTES => {
                    return Err(room.passed());
                }
                _ => return Err(failed(FileError::Fs(fault))),
            },
            Err(error) => return Err(failed(error)),
        };
        let details = json!({ "path": path.to_byte_string(), "bytes": stat.size });
        self.note("file.written", details)?;
        Ok(Some(file_info(Some(path), stat)))
    }

    pub fn mkdir(&self, asked: &MkdirRequest) -> Result<FileInfo> {
        let path = changed_path(asked.path.as_bytes())?;
        let writing = self.writing()?;
        writing.room().take(0, writing.missing(&path))?;
        let made = files::mkdir(writing.work(), &path, parents(asked.parents)).map_err(failed)?;
        self.note("directory.made", json!({ "path": path.to_byte_string() }))?;
        Ok(file_info(Some(&path), made))
    }

    /// A file, a link itself, or a directory with everything in it where that is wanted.
    pub fn remove_file(&self, path: &RelPath, with_contents: bool) -> Result<()> {
        let recursive = match with_contents {
            true => Recursive::Yes,
            false => Recursive::No,
        };
        let writing = self.writing()?;
        files::remove(writing.work(), path, recursive).map_err(failed)?;
        self.note("file.removed", json!({ "path": path.to_byte_string() }))
    }

    pub fn rename(&self, asked: &MoveRequest) -> Result<FileInfo> {
        let (from, to) = (
            changed_path(asked.from.as_bytes())?,
            changed_path(asked.to.as_bytes())?,
        );
        let writing = self.writing()?;
        let work = writing.work();
        let (existing, parents) = (existing(asked.overwrite), parents(asked.parents));
        files::rename(work, &from, &to, existing, parents).map_err(failed)?;
        let details = json!({ "from": from.to_byte_string(), "to": to.to_byte_string() });
        self.note("file.moved", details)?;
        let stat = files::stat(work, Some(&to)).map_err(failed)?;
        Ok(file_info(Some(&to), stat))
    }

    pub fn copy(&self, asked: &CopyRequest) -> Result<CopyAnswer> {
        let (from, to) = (
            changed_path(asked.from.as_bytes())?,
            changed_path(asked.to.as_bytes())?,
        );
        let writing = self.writing()?;
        let (room, usual) = (writing.room(), CopyLimits::default());
        // With the directories above it.
        let made = writing.missing(&to).max(1);
        room.take(0, made)?;
        let limits = CopyLimits {
            entries: usual.entries.min(room.files().saturating_sub(made - 1)),
            bytes: usual.bytes.min(room.bytes()),
            ..usual
        };
        let (existing, parents) = (existing(asked.overwrite), parents(asked.parents));
        let copied = files::copy(writing.work(), &from, &to, existing, parents, limits);
        let copied = copied.map_err(|error| match error {
            FileError::Limit(_) if limits != usual => room.passed(),
            error => failed(error),
        })?;
        self.note(
            "file.copied",
            json!({ "from": from.to_byte_string(), "to": to.to_byte_string(),
                "files": copied.files, "bytes": copied.bytes }),
        )?;
        Ok(copy_answer(&to, copied))
    }

    pub fn replace(&self, asked: &ReplaceRequest) -> Result<ReplaceAnswer> {
        let path = changed_path(asked.path.as_bytes())?;
        let writing = self.writing()?;
        let most = TEXT_BYTES.min(writing.largest_at(&path));
        let occurrence = match asked.all {
            true => Occurrence::All,
            false => Occurrence::Once,
        };
        let etag = asked.etag.as_ref().map(Etag::new);
        let (old, new) = (asked.old.as_bytes(), asked.new.as_bytes());
        let work = writing.work();
        let replaced = files::replace(work, &path, old, new, occurrence, etag.as_ref(), most);
        let replaced = replaced.map_err(failed)?;
        let details = json!({ "path": path.to_byte_string(), "bytes": replaced.stat.size });
        self.note("file.replaced", details)?;
        Ok(ReplaceAnswer {
            times: replaced.times,
            file: file_info(Some(&path), replaced.stat),
        })
    }

    pub fn search(&self, asked: SearchRequest) -> Result<SearchAnswer> {
        let under = under(asked.path.as_ref())?;
        let context = usize::try_from(asked.context).unwrap_or(0);
        let wanted = asked.limit.map_or(MATCHES, |limit| limit as usize);
        let options = GrepOptions {
            case: match asked.ignore_case {
                true => Case::Ignore,
                false => Case::Exact,
            },
            context,
            include: asked.include,
            exclude: asked.exclude,
            hidden: hidden(asked.hidden),
            limits: GrepLimits {
                matches: wanted.min(LINES / (1 + 2 * context)),
                line_bytes: LINE_BYTES,
                ..GrepLimits::default()
            },
        };
        let needle = match asked.regex {
            true => Needle::Regex(asked.pattern),
            false => Needle::Literal(asked.pattern),
        };
        let found = files::grep(self.work()?, under.as_ref(), &needle, &options);
        Ok(search_answer(under.as_ref(), found.map_err(failed)?))
    }

    pub fn glob(&self, asked: &GlobRequest) -> Result<GlobAnswer> {
        let under = under(asked.path.as_ref())?;
        let options = GlobOptions {
            hidden: hidden(asked.hidden),
            paths: asked.limit.map_or(PATHS, |limit| limit as usize),
            ..GlobOptions::default()
        };
        let found = files::glob(self.work()?, under.as_ref(), &asked.pattern, &options);
        Ok(glob_answer(under.as_ref(), found.map_err(failed)?))
    }

    /// A tar, plain or compressed, or a ZIP: all of it, or nothing.
    pub fn unpack<R: Read + Seek>(
        &self,
        under: Option<&RelPath>,
        mut archive: R,
    ) -> Result<UnpackAnswer> {
        let writing = self.writing()?;
        let (room, usual) = (writing.room(), UnpackLimits::FILES);
        // With the directories above it.
        let made = under.map_or(0, |it| writing.missing(it));
        let limits = UnpackLimits {
            entries: usual.entries.min(room.files().saturating_sub(made)),
            total_bytes: usual.total_bytes.min(room.bytes()),
            ..usual
        };
        let source = match is_zip(&mut archive)? {
            true => Source::Zip(&mut archive),
            false => Source::Tar(&mut archive),
        };
        let (work, placement) = (writing.work(), Placement::Whole);
        let unpacked = files::upload(work, under, source, placement, Parents::Make, limits);
        let unpacked = unpacked.map_err(|error| match &error {
            FileError::Archive(why)
                if limits != usual && matches!(why.why(), Refusal::Limit(_)) =>
            {
                room.passed()
            }
            _ => failed(error),
        })?;
        self.note(
            "archive.unpacked",
            json!({ "path": under.map(RelPath::to_byte_string), "files": unpacked.files,
                "bytes": unpacked.bytes }),
        )?;
        Ok(UnpackAnswer {
            entries: unpacked.entries,
            files: unpacked.files,
            bytes: unpacked.bytes,
        })
    }

    /// A directory as an archive, made while it is written.
    pub fn pack(&self, under: Option<&RelPath>, format: Format, out: &mut dyn Write) -> Result<()> {
        let packed = files::download(self.work()?, under, format, DownloadLimits::default(), out);
        packed.map(drop).map_err(failed)
    }
}

/// Where a search begins.
fn under(path: Option<&ByteString>) -> Result<Option<RelPath>> {
    path.map_or(Ok(None), |path| file_path(path.as_bytes()))
}

fn is_zip(archive: &mut (impl Read + Seek)) -> Result<bool> {
    let mut magic = [0; 4];
    let mut read = 0;
    let unreadable = |error: std::io::Error| {
        let message = "the archive cannot be read";
        Error::new(Code::InvalidArgument, Stage::Parse, message).caused_by(error)
    };
    while read < magic.len() {
        match archive.read(&mut magic[read..]).map_err(unreadable)? {
            0 => break,
            count => read += count,
        }
    }
    archive.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    Ok(matches!(&magic, b"PK\x03\x04" | b"PK\x05\x06"))
}

/// What a watch of the whole workspace saw, as it is told.
pub fn watched(change: files::Change) -> WatchChange {
    watch_change(None, change)
}
