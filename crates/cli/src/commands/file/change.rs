//! `glovebox file write`, `mkdir`, `rm`, `mv`, `cp` and `replace`.

use std::fs::File;
use std::io::IsTerminal;
use std::path::Path;

use glovebox_api::{CopyRequest, MkdirRequest, MoveRequest, ReplaceRequest};
use glovebox_model::{ByteString, Code, Error, Result, Stage};
use serde::Serialize;

use crate::args::{CpArgs, FileRmArgs, FromTo, Global, MkdirArgs, MvArgs, ReplaceArgs, WriteArgs};
use crate::exit::Exit;
use crate::human::{count, size};
use crate::render::{self, one_line};
use crate::stdout;
use crate::workspaces::{self, Expected, Missing};

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, Stage::Parse, message)
}

/// What became of it, as JSON or as a remark.
fn say(global: &Global, whole: &impl Serialize, remark: &str) -> Result<Exit> {
    if global.json {
        stdout::json(whole)?;
    } else if !global.quiet {
        render::note(remark);
    }
    Ok(Exit::SUCCESS)
}

fn name(path: &ByteString) -> String {
    one_line(&path.display())
}

pub(super) fn write(global: &Global, args: WriteArgs) -> Result<Exit> {
    let path = workspaces::changed(&args.at.path)?;
    let source = source(args.source.as_deref())?;
    let expected = match (args.if_match, args.new) {
        (Some(etag), _) => Expected::Marked(etag),
        (None, true) => Expected::Nothing,
        (None, false) => Expected::Anything,
    };
    let workspace = workspaces::open(global, &args.at.which, Missing::Make)?;
    let info = workspace.write(&path, source, args.mode, &expected)?;
    let remark = format!("`{}` has {}", name(&info.path), size(info.size));
    say(global, &info, &remark)
}

fn source(path: Option<&Path>) -> Result<File> {
    match path {
        Some(path) if path != Path::new("-") => {
            let shown = path.display();
            let failed = |error| invalid(format!("cannot read `{shown}`")).caused_by(error);
            let file = File::open(path).map_err(failed)?;
            match file.metadata().map_err(failed)?.is_dir() {
                true => Err(invalid(format!("`{shown}` is a directory"))
                    .hint("`glovebox file upload` takes directories")),
                false => Ok(file),
            }
        }
        _ => {
            if std::io::stdin().is_terminal() {
                render::note("reading standard input, to its end with Ctrl-D");
            }
            let own = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3);
            own.map(File::from)
                .map_err(|errno| invalid("standard input is closed").caused_by(errno))
        }
    }
}

pub(super) fn mkdir(global: &Global, args: &MkdirArgs) -> Result<Exit> {
    let path = workspaces::changed(&args.at.path)?;
    let workspace = workspaces::open(global, &args.at.which, Missing::Make)?;
    let info = workspace.mkdir(&MkdirRequest {
        path: path.to_byte_string(),
        parents: args.parents,
    })?;
    let remark = format!("`{}` is there", name(&info.path));
    say(global, &info, &remark)
}

#[derive(Debug, Serialize)]
struct Removed {
    removed: Vec<ByteString>,
}

/// One that fails does not stop the rest.
pub(super) fn remove(global: &Global, args: &FileRmArgs) -> Result<Exit> {
    let paths: Vec<_> = args
        .paths
        .iter()
        .map(|path| workspaces::changed(path))
        .collect::<Result<_>>()?;
    let workspace = workspaces::open(global, &args.which, Missing::Refuse)?;
    let (mut removed, mut exit) = (Vec::new(), Exit::SUCCESS);
    for path in &paths {
        match workspace.remove(path, args.recursive) {
            Ok(()) => removed.push(path.to_byte_string()),
            Err(error) if paths.len() == 1 => return Err(error),
            Err(error) => {
                render::error(&error, global.json);
                exit = Exit::FAILURE;
            }
        }
    }
    if global.json {
        stdout::json(&Removed { removed })?;
    } else if !global.quiet {
        let files = count(removed.len() as u64, "path is gone", "paths are gone");
        render::note(&files);
    }
    Ok(exit)
}

fn paths(paths: &FromTo) -> Result<(ByteString, ByteString)> {
    let (from, to) = (
        workspaces::changed(&paths.from)?,
        workspaces::changed(&paths.to)?,
    );
    Ok((from.to_byte_string(), to.to_byte_string()))
}

pub(super) fn rename(global: &Global, args: &MvArgs) -> Result<Exit> {
    let (from, to) = paths(&args.paths)?;
    let workspace = workspaces::open(global, &args.paths.which, Missing::Refuse)?;
    let info = workspace.rename(&MoveRequest {
        from,
        to,
        overwrite: args.paths.force,
        parents: args.paths.parents,
    })?;
    let remark = format!("it is `{}` now", name(&info.path));
    say(global, &info, &remark)
}

pub(super) fn copy(global: &Global, args: &CpArgs) -> Result<Exit> {
    let (from, to) = paths(&args.paths)?;
    let workspace = workspaces::open(global, &args.paths.which, Missing::Refuse)?;
    let copied = workspace.copy(&CopyRequest {
        from,
        to,
        overwrite: args.paths.force,
        parents: args.paths.parents,
    })?;
    let files = count(copied.files, "file", "files");
    let skipped = match copied.skipped {
        0 => String::new(),
        skipped => format!("; {skipped} left out that cannot be copied"),
    };
    let remark = format!(
        "{files}, {} copied to `{}`{skipped}",
        size(copied.bytes),
        name(&copied.path)
    );
    say(global, &copied, &remark)
}

pub(super) fn replace(global: &Global, args: ReplaceArgs) -> Result<Exit> {
    let path = workspaces::changed(&args.at.path)?;
    let ask = ReplaceRequest {
        path: path.to_byte_string(),
        old: args.old,
        new: args.new,
        all: args.all,
        etag: args.if_match,
    };
    let workspace = workspaces::open(global, &args.at.which, Missing::Refuse)?;
    let replaced = workspace.replace(&ask)?;
    let times = count(replaced.times, "place", "places");
    let remark = format!("replaced in {times} of `{}`", name(&replaced.file.path));
    say(global, &replaced, &remark)
}
