//! The files of a workspace here, through the library that the server uses too.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use glovebox_model::{Code, Error, Result, Stage};
use glovebox_serve::answer::{
    CopyAnswer, FileInfo, GlobAnswer, Listing, ReplaceAnswer, SearchAnswer, UnpackAnswer,
    WatchChange,
};
use glovebox_workspace::archive::{Refusal, UnpackLimits};
use glovebox_workspace::files::{
    self, Case, Condition, CopyLimits, Cursor, DownloadLimits, Etag, FileError, Format,
    GlobOptions, GrepLimits, GrepOptions, Hidden, ListOptions, Needle, Occurrence, Parents,
    Placement, Range, Recursive, Source, Watch, WatchLimits, WriteOptions,
};
use glovebox_workspace::{Existing, FsErrorKind, RelPath};
use serde_json::json;

use super::here::Here;
use super::{
    Expected, Files, GlobAsk, GrepAsk, ListAsk, Listener, MoveAsk, ReplaceAsk, Seen, WriteAsk,
};
use crate::args::{ArchiveFormat, ByteRange};
use crate::stop::{Stop, canceled};

/// A file in which something is replaced, before and after.
const TEXT_BYTES: u64 = 64 << 20;
const FILE_BYTES: u64 = 4 << 30;
const LINE_BYTES: usize = 500;
/// Lines of one answer, with those around each match.
const LINES: usize = 5000;
const TURN: Duration = Duration::from_secs(3600);
const TURN_EVENTS: usize = 1000;

fn told(error: FileError) -> Error {
    let told = error.at(Stage::Parse);
    match told.code {
        Code::NotFound => told.hint("`glovebox file ls` lists what is there"),
        _ => told,
    }
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

/// A path with `..` in it leads somewhere that only the kernel knows.
fn plain(path: &RelPath) -> Result<&RelPath> {
    match path.climbs() {
        false => Ok(path),
        true => {
            let message = "a path to something that is changed cannot hold `..`";
            Err(Error::new(Code::InvalidArgument, Stage::Parse, message)
                .hint("name it from the top of the workspace"))
        }
    }
}

impl Files for Here<'_> {
    fn list(&self, path: Option<&RelPath>, page: &ListAsk) -> Result<Listing> {
        let after = page.after.as_deref().map(Cursor::parse).transpose();
        let options = ListOptions {
            depth: page.depth.into(),
            entries: page.limit.into(),
            after: after.map_err(told)?,
            ..ListOptions::default()
        };
        let workspace = self.workspace()?;
        let listed = files::list(workspace.work()?, path, &options).map_err(told)?;
        Ok(Listing::new(path, listed))
    }

    fn read(&self, path: &RelPath, range: Option<ByteRange>, out: &mut dyn Write) -> Result<()> {
        let range = match range {
            None => Range::Whole,
            Some(ByteRange::From { first, last }) => Range::From { first, last },
            Some(ByteRange::Last(bytes)) => Range::Last(bytes),
        };
        let workspace = self.workspace()?;
        let mut reading = files::open(workspace.work()?, path, range).map_err(told)?;
        let copied = std::io::copy(&mut reading, out);
        copied.map_err(unwritten).map(drop)
    }

    fn write(&self, path: &RelPath, source: File, ask: &WriteAsk) -> Result<FileInfo> {
        let path = plain(path)?;
        let stop = Stop::listen()?;
        let workspace = self.workspace()?;
        let writing = workspace.writing()?;
        let (work, room) = (writing.work(), writing.room());
        // How large it is, nobody knows yet.
        writing.fits(path, 0)?;
        let left = writing.largest_at(path);
        let options = WriteOptions {
            condition: match &ask.condition {
                Expected::Anything => Condition::Always,
                Expected::Nothing => Condition::Absent,
                Expected::Marked(etag) => Condition::Matches(Etag::new(etag)),
            },
            parents: Parents::Make,
            mode: ask.mode,
            most_bytes: FILE_BYTES.min(left),
            ..WriteOptions::default()
        };
        let written = files::write(work, path, &mut stop.over(source), &options);
        let stat = written.map_err(|error| match &error {
            _ if stop.wait(Duration::ZERO) => canceled(),
            FileError::Fs(fault) => match fault.kind() {
                FsErrorKind::TooLarge { .. } if left < FILE_BYTES => room.passed(),
                FsErrorKind::Exists => conflict(&error),
                _ => told(error),
            },
            _ => told(error),
        })?;
        let details = json!({ "path": path.to_byte_string(), "bytes": stat.size });
        workspace.note("file.written", details)?;
        Ok(FileInfo::new(Some(path), stat))
    }

    fn stat(&self, path: Option<&RelPath>) -> Result<FileInfo> {
        let workspace = self.workspace()?;
        let stat = files::stat(workspace.work()?, path).map_err(told)?;
        Ok(FileInfo::new(path, stat))
    }

    fn mkdir(&self, path: &RelPath, make_parents: bool) -> Result<FileInfo> {
        let path = plain(path)?;
        let workspace = self.workspace()?;
        let writing = workspace.writing()?;
        writing.room().take(0, writing.missing(path))?;
        let made = files::mkdir(writing.work(), path, parents(make_parents)).map_err(told)?;
        workspace.note("directory.made", json!({ "path": path.to_byte_string() }))?;
        Ok(FileInfo::new(Some(path), made))
    }

    fn remove(&self, path: &RelPath, recursive: bool) -> Result<()> {
        let path = plain(path)?;
        let recursive = match recursive {
            true => Recursive::Yes,
            false => Recursive::No,
        };
        let workspace = self.workspace()?;
        let writing = workspace.writing()?;
        files::remove(writing.work(), path, recursive).map_err(|error| match error {
            FileError::NeedsRecursive { .. } => {
                let mut told = told(error);
                told.hints = vec!["`--recursive` removes everything in it too".to_owned()];
                told
            }
            error => told(error),
        })?;
        workspace.note("file.removed", json!({ "path": path.to_byte_string() }))
    }

    fn rename(&self, paths: &MoveAsk) -> Result<FileInfo> {
        let (from, to) = (plain(&paths.from)?, plain(&paths.to)?);
        let workspace = self.workspace()?;
        let writing = workspace.writing()?;
        let work = writing.work();
        let (existing, parents) = (existing(paths.overwrite), parents(paths.parents));
        files::rename(work, from, to, existing, parents).map_err(occupied)?;
        let details = json!({ "from": from.to_byte_string(), "to": to.to_byte_string() });
        workspace.note("file.moved", details)?;
        let stat = files::stat(work, Some(to)).map_err(told)?;
        Ok(FileInfo::new(Some(to), stat))
    }

    fn copy(&self, paths: &MoveAsk) -> Result<CopyAnswer> {
        let (from, to) = (plain(&paths.from)?, plain(&paths.to)?);
        let workspace = self.workspace()?;
        let writing = workspace.writing()?;
        let (room, usual) = (writing.room(), CopyLimits::default());
        // With the directories above it.
        let made = writing.missing(to).max(1);
        room.take(0, made)?;
        let limits = CopyLimits {
            entries: usual.entries.min(room.files().saturating_sub(made - 1)),
            bytes: usual.bytes.min(room.bytes()),
            ..usual
        };
        let (existing, parents) = (existing(paths.overwrite), parents(paths.parents));
        let copied = files::copy(writing.work(), from, to, existing, parents, limits);
        let copied = copied.map_err(|error| match error {
            FileError::Limit(_) if limits != usual => room.passed(),
            error => occupied(error),
        })?;
        workspace.note(
            "file.copied",
            json!({ "from": from.to_byte_string(), "to": to.to_byte_string(),
                "files": copied.files, "bytes": copied.bytes }),
        )?;
        Ok(CopyAnswer::new(to, copied))
    }

    fn grep(&self, ask: &GrepAsk) -> Result<SearchAnswer> {
        let context = usize::from(ask.context);
        let options = GrepOptions {
            case: match ask.ignore_case {
                true => Case::Ignore,
                false => Case::Exact,
            },
            context,
            include: ask.include.clone(),
            exclude: ask.exclude.clone(),
            hidden: hidden(ask.hidden),
            limits: GrepLimits {
                matches: usize::from(ask.limit).min(LINES / (1 + 2 * context)),
                line_bytes: LINE_BYTES,
                ..GrepLimits::default()
            },
        };
        let needle = match ask.regex {
            true => Needle::Regex(ask.pattern.clone()),
            false => Needle::Literal(ask.pattern.clone()),
        };
        let (workspace, under) = (self.workspace()?, ask.path.as_ref());
        let found = files::grep(workspace.work()?, under, &needle, &options).map_err(told)?;
        Ok(SearchAnswer::new(under, found))
    }

    fn glob(&self, ask: &GlobAsk) -> Result<GlobAnswer> {
        let options = GlobOptions {
            hidden: hidden(ask.hidden),
            paths: ask.limit.into(),
            ..GlobOptions::default()
        };
        let (workspace, under) = (self.workspace()?, ask.path.as_ref());
        let found = files::glob(workspace.work()?, under, &ask.pattern, &options).map_err(told)?;
        Ok(GlobAnswer::new(under, found))
    }

    fn replace(&self, path: &RelPath, ask: &ReplaceAsk) -> Result<ReplaceAnswer> {
        let path = plain(path)?;
        let workspace = self.workspace()?;
        let writing = workspace.writing()?;
        let work = writing.work();
        let cap = TEXT_BYTES.min(writing.largest_at(path));
        let occurrence = match ask.all {
            true => Occurrence::All,
            false => Occurrence::Once,
        };
        let etag = ask.etag.as_ref().map(Etag::new);
        let (old, new) = (ask.old.as_bytes(), ask.new.as_bytes());
        let replaced = files::replace(work, path, old, new, occurrence, etag.as_ref(), cap);
        let replaced = replaced.map_err(|error| match error {
            FileError::Occurs { times: 2.., .. } => {
                told(error).hint("`--all` replaces every one of them")
            }
            error => told(error),
        })?;
        let details = json!({ "path": path.to_byte_string(), "bytes": replaced.stat.size });
        workspace.note("file.replaced", details)?;
        Ok(ReplaceAnswer::new(path, replaced))
    }

    fn watch(&self, path: Option<&RelPath>, listener: &mut Listener<'_>) -> Result<()> {
        let workspace = self.workspace()?;
        let watch = Watch::start(workspace.work()?, path, WatchLimits::default()).map_err(told)?;
        let (mut seq, mut is_partial) = (watch.now(), false);
        loop {
            let news = watch.after(seq, TURN_EVENTS, TURN);
            seq = news.seq;
            if news.overflow && !listener(Seen::Overflow)? {
                return Ok(());
            }
            if news.partial && !is_partial {
                is_partial = true;
                if !listener(Seen::Partial)? {
                    return Ok(());
                }
            }
            for change in news.events {
                if !listener(Seen::Change(WatchChange::new(path, change)))? {
                    return Ok(());
                }
            }
            if news.ended {
                return listener(Seen::Ended).map(drop);
            }
        }
    }

    fn upload(&self, path: Option<&RelPath>, mut archive: File) -> Result<UnpackAnswer> {
        path.map(plain).transpose()?;
        let workspace = self.workspace()?;
        let writing = workspace.writing()?;
        let (room, usual) = (writing.room(), UnpackLimits::FILES);
        let limits = UnpackLimits {
            entries: usual.entries.min(room.files()),
            total_bytes: usual.total_bytes.min(room.bytes()),
            ..usual
        };
        let stop = Stop::listen()?;
        let is_zip = matches!(Source::of(&mut archive).map_err(told)?, Source::Zip(_));
        let mut archive = stop.around(archive);
        let source = match is_zip {
            true => Source::Zip(&mut archive),
            false => Source::Tar(&mut archive),
        };
        let (work, placement) = (writing.work(), Placement::Whole);
        let unpacked = files::upload(work, path, source, placement, Parents::Make, limits);
        let unpacked = unpacked.map_err(|error| match &error {
            _ if stop.wait(Duration::ZERO) => canceled(),
            FileError::Archive(why)
                if limits != usual && matches!(why.why(), Refusal::Limit(_)) =>
            {
                room.passed()
            }
            _ => told(error),
        })?;
        workspace.note(
            "archive.unpacked",
            json!({ "path": path.map(RelPath::to_byte_string), "files": unpacked.files,
                "bytes": unpacked.bytes }),
        )?;
        Ok(unpacked.into())
    }

    fn download(
        &self,
        path: Option<&RelPath>,
        format: ArchiveFormat,
        out: &mut dyn Write,
    ) -> Result<()> {
        let format = library_format(format);
        let workspace = self.workspace()?;
        let limits = DownloadLimits::default();
        let packed = files::download(workspace.work()?, path, format, limits, out);
        packed.map_err(told).map(drop)
    }
}

pub(crate) const fn library_format(format: ArchiveFormat) -> Format {
    match format {
        ArchiveFormat::Tar => Format::Tar,
        ArchiveFormat::TarGzip => Format::TarGzip,
        ArchiveFormat::TarZstd => Format::TarZstd,
        ArchiveFormat::Zip => Format::Zip,
    }
}

/// Something stands where something is to be put.
fn occupied(error: FileError) -> Error {
    match &error {
        FileError::Fs(fault) if fault.kind() == FsErrorKind::Exists => {
            conflict(&error).hint("`--force` replaces a file that is there")
        }
        _ => told(error),
    }
}

fn conflict(error: &FileError) -> Error {
    Error::new(Code::Conflict, Stage::Parse, error.to_string())
}

fn unwritten(error: std::io::Error) -> Error {
    let code = match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Code::DiskFull,
        _ => Code::Internal,
    };
    Error::new(code, Stage::Close, "cannot pass the file on").caused_by(error)
}
