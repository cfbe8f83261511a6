//! The files of a workspace at a server.

use std::fs::File;
use std::io::{Read, Write};

use glovebox_model::{ByteString, Code, Error, Result, Stage};
use glovebox_serve::answer::{
    CopyAnswer, FileInfo, FileKind, GlobAnswer, Listing, Looked, ReplaceAnswer, SearchAnswer,
    UnpackAnswer, WatchChange,
};
use glovebox_workspace::RelPath;
use hyper::header::{HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH, RANGE};
use serde::Serialize;

use super::there::There;
use super::{
    Expected, Files, GlobAsk, GrepAsk, ListAsk, Listener, MoveAsk, ReplaceAsk, Seen, WriteAsk,
};
use crate::args::{ArchiveFormat, ByteRange};
use crate::remote::{Target, Told};

/// What a server takes in one file or archive.
pub(crate) const BODY_BYTES: u64 = 64 << 20;

#[derive(Debug, Serialize)]
struct MkdirRequest {
    path: ByteString,
    parents: bool,
}

#[derive(Debug, Serialize)]
struct MoveRequest {
    from: ByteString,
    to: ByteString,
    overwrite: bool,
    parents: bool,
}

impl MoveRequest {
    fn new(paths: &MoveAsk) -> Self {
        Self {
            from: paths.from.to_byte_string(),
            to: paths.to.to_byte_string(),
            overwrite: paths.overwrite,
            parents: paths.parents,
        }
    }
}

#[derive(Debug, Serialize)]
struct ReplaceRequest<'a> {
    path: ByteString,
    old: &'a str,
    new: &'a str,
    all: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct SearchRequest<'a> {
    pattern: &'a str,
    regex: bool,
    ignore_case: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<ByteString>,
    context: u8,
    include: &'a [String],
    exclude: &'a [String],
    hidden: bool,
    limit: u16,
}

#[derive(Debug, Serialize)]
struct GlobRequest<'a> {
    pattern: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<ByteString>,
    hidden: bool,
    limit: u16,
}

fn file(there: &There, path: Option<&RelPath>) -> Target {
    let files = there.target().segment("files");
    match path {
        Some(path) => files.path(path.as_bytes()),
        None => files,
    }
}

/// The directory of an archive, which the API takes as text.
fn text(path: Option<&RelPath>) -> Result<Option<String>> {
    let text = path.map(|path| String::from_utf8(path.as_bytes().to_vec()));
    text.transpose()
        .map_err(|_| invalid("a server takes only paths in UTF-8 here"))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, Stage::Parse, message)
}

fn header(name: HeaderName, value: &str) -> Result<(HeaderName, HeaderValue)> {
    let value = HeaderValue::from_str(value)
        .map_err(|_| invalid("a mark holds characters that no mark has"))?;
    Ok((name, value))
}

impl Files for There {
    fn list(&self, path: Option<&RelPath>, page: &ListAsk) -> Result<Listing> {
        let target = file(self, path)
            .query("depth", page.depth)
            .query("limit", page.limit)
            .optional("after", page.after.as_deref());
        match self.remote().get(target)? {
            Looked::Directory(listing) => Ok(listing),
            Looked::File(_) => {
                Err(invalid("this is no directory").hint("`glovebox file cat` prints a file"))
            }
        }
    }

    fn read(&self, path: &RelPath, range: Option<ByteRange>, out: &mut dyn Write) -> Result<()> {
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
        let target = file(self, Some(path));
        self.remote()
            .copy_with(target, headers.into_iter().collect(), out)
    }

    fn write(&self, path: &RelPath, mut source: File, ask: &WriteAsk) -> Result<FileInfo> {
        let bytes = whole(&mut source)?;
        let mut target = file(self, Some(path));
        if let Some(mode) = ask.mode {
            target = target.query("mode", format!("{mode:03o}"));
        }
        let headers = match &ask.condition {
            Expected::Anything => None,
            Expected::Nothing => Some(header(IF_NONE_MATCH, "*")?),
            Expected::Marked(etag) => Some(header(IF_MATCH, &format!("\"{etag}\""))?),
        };
        self.remote()
            .put(target, bytes, headers.into_iter().collect())
    }

    fn stat(&self, path: Option<&RelPath>) -> Result<FileInfo> {
        self.remote().get(file(self, path).query("stat", true))
    }

    fn mkdir(&self, path: &RelPath, parents: bool) -> Result<FileInfo> {
        let body = MkdirRequest {
            path: path.to_byte_string(),
            parents,
        };
        self.remote().post(self.target().segment("mkdir"), &body)
    }

    fn remove(&self, path: &RelPath, recursive: bool) -> Result<()> {
        let target = file(self, Some(path)).query("recursive", recursive);
        self.remote().delete_quietly(target)
    }

    fn rename(&self, paths: &MoveAsk) -> Result<FileInfo> {
        let target = self.target().segment("move");
        self.remote().post(target, &MoveRequest::new(paths))
    }

    fn copy(&self, paths: &MoveAsk) -> Result<CopyAnswer> {
        let target = self.target().segment("copy");
        self.remote().post_slowly(target, &MoveRequest::new(paths))
    }

    fn grep(&self, ask: &GrepAsk) -> Result<SearchAnswer> {
        let body = SearchRequest {
            pattern: &ask.pattern,
            regex: ask.regex,
            ignore_case: ask.ignore_case,
            path: ask.path.as_ref().map(RelPath::to_byte_string),
            context: ask.context,
            include: &ask.include,
            exclude: &ask.exclude,
            hidden: ask.hidden,
            limit: ask.limit,
        };
        self.remote().post(self.target().segment("search"), &body)
    }

    fn glob(&self, ask: &GlobAsk) -> Result<GlobAnswer> {
        let body = GlobRequest {
            pattern: &ask.pattern,
            path: ask.path.as_ref().map(RelPath::to_byte_string),
            hidden: ask.hidden,
            limit: ask.limit,
        };
        self.remote().post(self.target().segment("glob"), &body)
    }

    fn replace(&self, path: &RelPath, ask: &ReplaceAsk) -> Result<ReplaceAnswer> {
        let body = ReplaceRequest {
            path: path.to_byte_string(),
            old: &ask.old,
            new: &ask.new,
            all: ask.all,
            etag: ask.etag.as_deref(),
        };
        self.remote().post(self.target().segment("replace"), &body)
    }

    /// The server watches all of it; what lies elsewhere is passed over here.
    fn watch(&self, path: Option<&RelPath>, listener: &mut Listener<'_>) -> Result<()> {
        if let Some(path) = path {
            self.stat(Some(path))?;
        }
        let is_below = |at: &ByteString| match path {
            None => true,
            Some(path) => {
                let rest = at.as_bytes().strip_prefix(path.as_bytes());
                rest.is_some_and(|rest| rest.first() == Some(&b'/'))
            }
        };
        let target = self.target().segment("watch");
        self.remote().watch(&target, &mut |told| match told {
            Told::Ready(data) => match data["partial"] == true {
                true => listener(Seen::Partial),
                false => Ok(true),
            },
            Told::Change(data) => {
                let event: WatchChange = serde_json::from_value(data).map_err(|error| {
                    Error::new(
                        Code::Internal,
                        Stage::Admit,
                        "the server's event cannot be read",
                    )
                    .caused_by(error)
                })?;
                match is_below(&event.path) || event.from.as_ref().is_some_and(is_below) {
                    true => listener(Seen::Change(event)),
                    false => Ok(true),
                }
            }
            Told::Overflow => listener(Seen::Overflow),
            Told::End => listener(Seen::Ended),
        })
    }

    fn upload(&self, path: Option<&RelPath>, mut archive: File) -> Result<UnpackAnswer> {
        let bytes = whole(&mut archive)?;
        let target = self.target().segment("archive");
        let target = target.optional("path", text(path)?);
        self.remote().put(target, bytes, Vec::new())
    }

    fn download(
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
        self.remote().copy(target, out)
    }
}

/// All of it, up to what the API takes.
fn whole(source: &mut dyn Read) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = source.take(BODY_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| invalid("cannot read what is to be sent").caused_by(error))?;
    match bytes.len() as u64 > BODY_BYTES {
        true => Err(Error::new(
            Code::PayloadTooLarge,
            Stage::Parse,
            "this is more than the 64 MiB that a server takes at once",
        )
        .hint("send it in parts, or compressed")),
        false => Ok(bytes),
    }
}
