//! `glovebox file watch`.

use glovebox_api::{WatchChange, WatchKind};
use glovebox_model::Result;
use serde::Serialize;

use super::start;
use crate::args::{Global, WatchArgs};
use crate::exit::Exit;
use crate::render::{self, one_line};
use crate::stdout::{self, Reader};
use crate::workspaces::{self, Missing, Seen};

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Told<'e> {
    Change(&'e WatchChange),
    Overflow,
    End,
}

pub(super) fn run(global: &Global, args: &WatchArgs) -> Result<Exit> {
    let path = start(args.under.path.as_deref())?;
    let workspace = workspaces::open(global, &args.under.which, Missing::Refuse)?;
    let mut left = args.limit.unwrap_or(u64::MAX);
    workspace.watch(path.as_ref(), &mut |seen| {
        let reader = match &seen {
            Seen::Change(event) => {
                left -= 1;
                match global.json {
                    true => stdout::json(&Told::Change(event))?,
                    false => stdout::text(&line(event))?,
                }
            }
            Seen::Overflow if global.json => stdout::json(&Told::Overflow)?,
            Seen::Ended if global.json => stdout::json(&Told::End)?,
            Seen::Overflow => note("some changes are lost: look at everything anew"),
            Seen::Ended => note("the directory is gone"),
            Seen::Partial => note("there are more directories than can be watched"),
        };
        Ok(reader == Reader::Listening && left > 0)
    })?;
    Ok(Exit::SUCCESS)
}

fn note(text: &str) -> Reader {
    render::note(text);
    Reader::Listening
}

fn line(event: &WatchChange) -> String {
    let slash = if event.is_dir { "/" } else { "" };
    let path = format!("{}{slash}", event.path.display());
    let shown = match (event.kind, &event.from) {
        (WatchKind::Moved, Some(from)) => format!("{} -> {path}", from.display()),
        _ => path,
    };
    format!("{:<8} {}\n", event.kind.as_str(), one_line(&shown))
}
