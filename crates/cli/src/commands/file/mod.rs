//! `glovebox file`.

mod change;
mod look;
mod trees;
mod watch;

use std::ffi::OsStr;

use glovebox_model::Result;
use glovebox_workspace::RelPath;

use crate::args::{FileCommand, FileVerb, Global};
use crate::exit::Exit;
use crate::workspaces;

pub(crate) fn run(global: &Global, command: FileCommand) -> Result<Exit> {
    match command.verb {
        FileVerb::Ls(args) => look::list(global, args),
        FileVerb::Cat(args) => look::cat(global, &args),
        FileVerb::Stat(args) => look::stat(global, &args),
        FileVerb::Grep(args) => look::grep(global, args),
        FileVerb::Glob(args) => look::glob(global, args),
        FileVerb::Write(args) => change::write(global, args),
        FileVerb::Mkdir(args) => change::mkdir(global, &args),
        FileVerb::Rm(args) => change::remove(global, &args),
        FileVerb::Mv(args) => change::rename(global, &args),
        FileVerb::Cp(args) => change::copy(global, &args),
        FileVerb::Replace(args) => change::replace(global, args),
        FileVerb::Watch(args) => watch::run(global, &args),
        FileVerb::Upload(args) => trees::upload(global, &args),
        FileVerb::Download(args) => trees::download(global, &args),
    }
}

/// None is the workspace itself.
fn start(path: Option<&OsStr>) -> Result<Option<RelPath>> {
    path.map_or(Ok(None), workspaces::place)
}
