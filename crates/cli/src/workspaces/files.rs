//! The files of a workspace.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use glovebox_api::client::{FileContent, HeaderName, IF_MATCH, IF_NONE_MATCH, RANGE, WatchEvent};
use glovebox_api::{
    CopyAnswer, CopyRequest, FileInfo, FileKind, GlobAnswer, GlobRequest, Listing, Looked,
    MkdirRequest, MoveRequest, ReplaceAnswer, ReplaceRequest, SearchAnswer, SearchRequest, Target,
    UnpackAnswer, WatchChange, WatchKind,
};
use glovebox_model::{ByteString, Code, Error, Result, Stage};
use glovebox_workspace::RelPath;
use hyper::header::HeaderValue;

use super::Workspace;
use crate::args::{ArchiveFormat, ByteRange};
use crate::stop::{Stop, canceled};

/// A page of a directory.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) depth: u16,
    pub(crate) limit: u16,
    pub(crate) after: Option<String>,
}

/// What must stand where a file is written.
#[derive(Debug)]
pub(crate) enum Expected {
    Anything,
    Nothing,
    /// The file with this mark.
    Marked(String),
}

/// What a watch saw.
#[derive(Debug)]
pub(crate) enum Seen {
    Change(WatchChange),
    /// Some were lost: look at the tree anew.
    Overflow,
    /// There are more directories than are watched.
    Partial,
    /// The directory is gone.
    Ended,
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, Stage::Parse, message)
}

fn header(name: HeaderName, value: &str) -> Result<(HeaderName, HeaderValue)> {
    let value = HeaderValue::from_str(value)
        .map_err(|_| invalid("a mark holds characters that no mark has"))?;
    Ok((name, value))
}

/// The directory of an archive, which the API takes as text.
fn text(path: Option<&RelPath>) -> Result<Option<String>> {
    let text = path.map(|path| String::from_utf8(path.as_bytes().to_vec()));
    text.transpose()
        .map_err(|_| invalid("only paths in UTF-8 are taken here"))
}

/// Something may stand where something is to be put.
fn occupied(error: Error, overwrite: bool) -> Error {
    match error.code {
        Code::Conflict if !overwrite => error.hint("`--force` replaces a file that is there"),
        _ => error,
    }
}

/// Whether a directory went away with this, by itself or with one above it.
fn is_gone(path: &RelPath, event: &WatchChange) -> bool {
    let left = match event.kind {
        WatchKind::Removed => Some(&event.path),
        WatchKind::Moved => event.from.as_ref(),
        WatchKind::Created | WatchKind::Modified => None,
    };
    left.is_some_and(|left| {
        let rest = path.as_bytes().strip_prefix(left.as_bytes());
        rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
    })
}

/// A path that is left out is the workspace itself.
impl Workspace {
    fn file(&self, path: Option<&RelPath>) -> Target {
        let files = self.target().segment("files");
        match path {
            Some(path) => files.path(path.as_bytes()),
            None => files,
        }
    }

    pub(crate) fn list(&self, path: Option<&RelPath>, page: &Listed) -> Result<Listing> {
        let target = self
            .file(path)
            .query("depth", page.depth)
            .query("limit", page.limit)
            .optional("after", page.after.as_deref());
        let no_directory =
            || invalid("this is no directory").hint("`glovebox file cat` prints a file");
        // The API answers with the bytes of a file, and follows a link to a directory.
        if matches!(self.stat(path)?.kind, FileKind::File | FileKind::Other) {
            return Err(no_directory());
        }
        match self.found(self.client.get(target))? {
            Looked::Directory(listing) => Ok(listing),
            Looked::File(_) => Err(no_directory()),
        }
    }

    pub(crate) fn read(
        &self,
        path: &RelPath,
        range: Option<ByteRange>,
        out: &mut dyn Write,
    ) -> Result<()> {
        if self.stat(Some(path))?.kind == FileKind::Directory {
            return Err(invalid("this is a directory").hint("`glovebox file ls` lists one"));
        }
        let range = range.map(|range| match range {
            ByteRange::From { first, last } => {
                let last = last.map(|last| last.to_string()).unwrap_or_default();
                format!("bytes={first}-{last}")
            }
            ByteRange::Last(bytes) => format!("bytes=-{bytes}"),
        });
        let headers = range.map(|range| header(RANGE, &range)).transpose()?;
        let target = self.file(Some(path));
        self.client
            .copy_with(target, headers.into_iter().collect(), out)
    }

    pub(crate) fn write(
        &self,
        path: &RelPath,
        source: File,
        mode: Option<u32>,
        expected: &Expected,
    ) -> Result<FileInfo> {
        let mut target = self.file(Some(path));
        if let Some(mode) = mode {
            target = target.query("mode", format!("{mode:03o}"));
        }
        let headers = match expected {
            Expected::Anything => None,
            Expected::Nothing => Some(header(IF_NONE_MATCH, "*")?),
            Expected::Marked(etag) => Some(header(IF_MATCH, &format!("\"{etag}\""))?),
        };
        let headers = headers.into_iter().collect();
        self.send(source, |file| self.client.put_file(target, file, headers))
    }

    /// A file that is read until it ends, or Ctrl-C ends it.
    fn send<T>(&self, file: File, ask: impl FnOnce(FileContent) -> Result<T>) -> Result<T> {
        if self.client.is_remote() {
            return self.found(ask(FileContent::new(file)));
        }
        let stop = Stop::listen()?;
        let file = stop.over(file)?;
        let sent = self.found(ask(FileContent::new(file)));
        sent.map_err(|error| match stop.wait(Duration::ZERO) {
            true => canceled(),
            false => error,
        })
    }

    pub(crate) fn stat(&self, path: Option<&RelPath>) -> Result<FileInfo> {
        self.found(self.client.get(self.file(path).query("stat", true)))
    }

    pub(crate) fn mkdir(&self, ask: &MkdirRequest) -> Result<FileInfo> {
        self.found(self.client.post(self.target().segment("mkdir"), ask))
    }

    pub(crate) fn remove(&self, path: &RelPath, recursive: bool) -> Result<()> {
        let target = self.file(Some(path)).query("recursive", recursive);
        self.found(self.client.delete_quietly(target))
    }

    pub(crate) fn rename(&self, ask: &MoveRequest) -> Result<FileInfo> {
        let target = self.target().segment("move");
        let moved = self.found(self.client.post(target, ask));
        moved.map_err(|error| occupied(error, ask.overwrite))
    }

    pub(crate) fn copy(&self, ask: &CopyRequest) -> Result<CopyAnswer> {
        let target = self.target().segment("copy");
        let copied = self.found(self.client.post_slowly(target, ask));
        copied.map_err(|error| occupied(error, ask.overwrite))
    }

    pub(crate) fn grep(&self, ask: &SearchRequest) -> Result<SearchAnswer> {
        self.found(self.client.post(self.target().segment("search"), ask))
    }

    pub(crate) fn glob(&self, ask: &GlobRequest) -> Result<GlobAnswer> {
        self.found(self.client.post(self.target().segment("glob"), ask))
    }

    pub(crate) fn replace(&self, ask: &ReplaceRequest) -> Result<ReplaceAnswer> {
        self.found(self.client.post(self.target().segment("replace"), ask))
    }

    /// All of the workspace is watched; what lies elsewhere is passed over here. False ends it.
    pub(crate) fn watch(
        &self,
        path: Option<&RelPath>,
        listener: &mut dyn FnMut(Seen) -> Result<bool>,
    ) -> Result<()> {
        if let Some(path) = path {
            let is_link = self.stat(Some(path))?.kind == FileKind::Symlink;
            if path.climbs() || is_link {
                return Err(invalid("what is watched is a directory, not a way to one")
                    .hint("name the directory itself, from the top of the workspace"));
            }
        }
        let is_below = |at: &ByteString| match path {
            None => true,
            Some(path) => {
                let rest = at.as_bytes().strip_prefix(path.as_bytes());
                rest.is_some_and(|rest| rest.first() == Some(&b'/'))
            }
        };
        let target = self.target().segment("watch");
        let watched = self.client.watch(&target, &mut |event| match event {
            WatchEvent::Ready(data) => match data["partial"] == true {
                true => listener(Seen::Partial),
                false => Ok(true),
            },
            WatchEvent::Change(data) => {
                let event: WatchChange = serde_json::from_value(data).map_err(|error| {
                    let message = "the server's event cannot be read";
                    Error::new(Code::Internal, Stage::Admit, message).caused_by(error)
                })?;
                if path.is_some_and(|path| is_gone(path, &event)) {
                    listener(Seen::Ended)?;
                    return Ok(false);
                }
                match (is_below(&event.path), event.from.as_ref().map(is_below)) {
                    (true, None | Some(true)) => listener(Seen::Change(event)),
                    (true, Some(false)) => listener(Seen::Change(WatchChange {
                        kind: WatchKind::Created,
                        from: None,
                        ..event
                    })),
                    (false, Some(true)) => listener(Seen::Change(WatchChange {
                        kind: WatchKind::Removed,
                        path: event.from.clone().unwrap_or_default(),
                        from: None,
                        ..event
                    })),
                    (false, None | Some(false)) => Ok(true),
                }
            }
            WatchEvent::Overflow => listener(Seen::Overflow),
            WatchEvent::End => listener(Seen::Ended),
        });
        self.found(watched)
    }

    pub(crate) fn upload(&self, path: Option<&RelPath>, archive: File) -> Result<UnpackAnswer> {
        let target = self.target().segment("archive");
        let target = target.optional("path", text(path)?);
        self.send(archive, |file| {
            self.client.put_file(target, file, Vec::new())
        })
    }

    pub(crate) fn download(
        &self,
        path: Option<&RelPath>,
        format: ArchiveFormat,
        out: &mut dyn Write,
    ) -> Result<()> {
        let target = self
            .target()
            .segment("archive")
            .query("format", format.as_str())
            .optional("path", text(path)?);
        self.found(self.client.copy(target, out))
    }
}
