//! `glovebox file ls`, `cat`, `stat`, `grep` and `glob`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use glovebox_api::{FileInfo, FileKind, GlobRequest, SearchAnswer, SearchMatch, SearchRequest};
use glovebox_model::{Code, Error, Result, Stage};
use glovebox_workspace::RelPath;
use jiff::Timestamp;
use serde::Serialize;

use super::start;
use crate::args::{CatArgs, FileLsArgs, GlobArgs, Global, GrepArgs, StatArgs};
use crate::exit::Exit;
use crate::human::{age, size, time};
use crate::key_values::KeyValues;
use crate::paint::{Paint, Tone};
use crate::render::{self, one_line};
use crate::screen::Screen;
use crate::stdout;
use crate::table::{Cell, Table};
use crate::workspaces::{self, Listed, Missing};

/// A whole file in one JSON value.
const JSON_BYTES: u64 = 64 << 20;

pub(super) fn list(global: &Global, args: FileLsArgs) -> Result<Exit> {
    let path = start(args.under.path.as_deref())?;
    let page = Listed {
        depth: args.depth,
        limit: args.limit,
        after: args.after,
    };
    let workspace = workspaces::open(global, &args.under.which, Missing::Refuse)?;
    let listing = workspace.list(path.as_ref(), &page)?;
    if global.json {
        stdout::json(&listing)?;
        return Ok(Exit::SUCCESS);
    }
    if global.quiet {
        let paths = listing.entries.iter().map(|entry| entry.path.display());
        stdout::text(&lines(paths))?;
        return Ok(Exit::SUCCESS);
    }
    if listing.entries.is_empty() {
        render::note("the directory is empty");
        return Ok(Exit::SUCCESS);
    }
    let table = table(&listing.entries, Timestamp::now());
    stdout::text(&table.text(Paint::on(&std::io::stdout())))?;
    if let Some(next) = &listing.next {
        render::note(&format!("there are more: `--after {}`", one_line(next)));
    }
    if listing.unread > 0 {
        render::note("some directories could not be looked into");
    }
    Ok(Exit::SUCCESS)
}

fn lines(texts: impl Iterator<Item = String>) -> String {
    texts.map(|text| format!("{}\n", one_line(&text))).collect()
}

fn table(entries: &[FileInfo], now: Timestamp) -> Table<5> {
    let mut table = Table::new(["MODE", "TYPE", "SIZE", "AGE", "PATH"]);
    for entry in entries {
        let shown = match &entry.target {
            Some(target) => format!("{} -> {}", entry.path.display(), target.display()),
            None => entry.path.display(),
        };
        let tone = match entry.kind {
            FileKind::Directory => Tone::Hint,
            FileKind::File | FileKind::Symlink | FileKind::Other => Tone::Plain,
        };
        let since = entry.modified_at.map(|at| age(at, now));
        table.push([
            Cell::from(&entry.mode),
            Cell::from(entry.kind.as_str()),
            Cell::from(size(entry.size)),
            Cell::from(since.unwrap_or_else(|| "-".to_owned())),
            Cell::toned(tone, &shown),
        ]);
    }
    table
}

#[derive(Debug, Serialize)]
struct Contents {
    path: glovebox_model::ByteString,
    content_base64: String,
}

pub(super) fn cat(global: &Global, args: &CatArgs) -> Result<Exit> {
    let path = workspaces::inside(&args.at.path)?;
    let workspace = workspaces::open(global, &args.at.which, Missing::Refuse)?;
    if global.json {
        let mut bytes = Bounded(Vec::new());
        workspace
            .read(&path, args.range, &mut bytes)
            .map_err(|error| match bytes.0.len() as u64 >= JSON_BYTES {
                true => Error::new(
                    Code::PayloadTooLarge,
                    Stage::Close,
                    "the file is larger than 64 MiB, too large for one JSON value",
                )
                .hint("leave out `--json`, or take a part with `--range A-B`"),
                false => error,
            })?;
        stdout::json(&Contents {
            path: path.to_byte_string(),
            content_base64: STANDARD.encode(bytes.0),
        })?;
        return Ok(Exit::SUCCESS);
    }
    let mut screen = Screen::new();
    let printed = workspace.read(&path, args.range, &mut screen);
    screen.settle(printed)?;
    Ok(Exit::SUCCESS)
}

struct Bounded(Vec<u8>);

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let left = JSON_BYTES.saturating_sub(self.0.len() as u64);
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        self.0.extend_from_slice(&bytes[..most]);
        match most {
            0 => Err(std::io::Error::other("there is more than fits")),
            most => Ok(most),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub(super) fn stat(global: &Global, args: &StatArgs) -> Result<Exit> {
    let path = workspaces::place(&args.at.path)?;
    let workspace = workspaces::open(global, &args.at.which, Missing::Refuse)?;
    let info = workspace.stat(path.as_ref())?;
    if global.json {
        stdout::json(&info)?;
        return Ok(Exit::SUCCESS);
    }
    let mut sheet = KeyValues::new(Paint::on(&std::io::stdout()));
    sheet.line("path", &info.path.display());
    sheet.line("type", info.kind.as_str());
    sheet.line(
        "size",
        &format!("{} ({} bytes)", size(info.size), info.size),
    );
    sheet.line("mode", &info.mode);
    sheet.optional("modified", info.modified_at.map(time).as_deref());
    let target = info.target.as_ref().map(|target| target.display());
    sheet.optional("target", target.as_deref());
    sheet.line("etag", &info.etag);
    stdout::text(&sheet.text)?;
    Ok(Exit::SUCCESS)
}

pub(super) fn grep(global: &Global, args: GrepArgs) -> Result<Exit> {
    let under = start(args.under.path.as_deref())?;
    let ask = SearchRequest {
        path: under.as_ref().map(RelPath::to_byte_string),
        pattern: args.pattern,
        regex: !args.fixed,
        ignore_case: args.ignore_case,
        context: args.context.into(),
        include: args.include,
        exclude: args.exclude,
        hidden: args.hidden,
        limit: Some(args.limit.into()),
    };
    let workspace = workspaces::open(global, &args.under.which, Missing::Refuse)?;
    let found = workspace.grep(&ask)?;
    let exit = match found.matches.is_empty() {
        true => Exit::FAILURE,
        false => Exit::SUCCESS,
    };
    if global.json {
        stdout::json(&found)?;
        return Ok(exit);
    }
    let context = ask.context > 0;
    stdout::text(&matches(&found, context, Paint::on(&std::io::stdout())))?;
    if found.truncated && !global.quiet {
        render::note("there may be more: name a smaller part, or raise `--limit`");
    }
    Ok(exit)
}

/// As `grep -n` prints them.
fn matches(found: &SearchAnswer, context: bool, paint: Paint) -> String {
    let mut text = String::new();
    for (number, it) in found.matches.iter().enumerate() {
        if context && number > 0 {
            text.push_str("--\n");
        }
        let SearchMatch {
            path,
            before,
            after,
            ..
        } = it;
        let path = paint.apply(Tone::Hint, &one_line(&path.display()));
        let around = |line: u64, words: &glovebox_model::ByteString| {
            format!("{path}-{line}-{}\n", one_line(&words.display()))
        };
        text.extend(before.iter().map(|it| around(it.line, &it.text)));
        text.push_str(&format!(
            "{path}:{}:{}\n",
            it.line,
            one_line(&it.text.display())
        ));
        text.extend(after.iter().map(|it| around(it.line, &it.text)));
    }
    text
}

pub(super) fn glob(global: &Global, args: GlobArgs) -> Result<Exit> {
    let under = start(args.under.path.as_deref())?;
    let ask = GlobRequest {
        path: under.as_ref().map(RelPath::to_byte_string),
        pattern: args.pattern,
        hidden: args.hidden,
        limit: Some(args.limit.into()),
    };
    let workspace = workspaces::open(global, &args.under.which, Missing::Refuse)?;
    let found = workspace.glob(&ask)?;
    let exit = match found.paths.is_empty() {
        true => Exit::FAILURE,
        false => Exit::SUCCESS,
    };
    if global.json {
        stdout::json(&found)?;
        return Ok(exit);
    }
    stdout::text(&lines(found.paths.iter().map(|it| it.path.display())))?;
    if found.truncated && !global.quiet {
        render::note("there may be more: name a smaller part");
    }
    Ok(exit)
}
