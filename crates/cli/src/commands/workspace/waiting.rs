//! `glovebox workspace changes`, `keep` and `discard`.

use std::collections::HashMap;
use std::io::IsTerminal;

use glovebox_api::{ChangeWhat, DecidedAnswer, FileKind, WaitingAnswer, WaitingChange};
use glovebox_model::{ByteString, ChangeCount, Exec, Result};

use crate::args::{ChangesArgs, Global};
use crate::context::Context;
use crate::exit::Exit;
use crate::human::{count, size};
use crate::paint::{Paint, Tone};
use crate::patch::{Patch, Sides};
use crate::table::{Cell, Table};
use crate::{render, stdout, workspaces};

fn find(global: &Global, name: &str) -> Result<Exec> {
    Context::new(global).some_records()?.find(name)
}

pub(crate) fn show(global: &Global, args: &ChangesArgs) -> Result<Exit> {
    let exec = find(global, &args.exec)?;
    let changes = workspaces::of_exec(global, &exec)?.changes(&exec.exec_id)?;
    if global.json {
        stdout::json(&changes)?;
        return Ok(Exit::SUCCESS);
    }
    let paint = Paint::on(&std::io::stdout());
    let text = match args.stat {
        true => stat(&changes, paint),
        false => patch(&changes, Patch::new(paint, std::io::stdout().is_terminal())),
    };
    stdout::text(&text)?;
    if !global.quiet {
        if changes.changes.is_empty() {
            render::note("it changed nothing");
        }
        if !changes.skipped.is_empty() {
            let skipped = count(changes.skipped.len() as u64, "entry is", "entries are");
            render::note(&format!(
                "{skipped} never carried over: a FIFO, a socket or a device"
            ));
        }
    }
    Ok(Exit::SUCCESS)
}

const fn what(what: ChangeWhat) -> (&'static str, Tone) {
    match what {
        ChangeWhat::Created => ("created", Tone::Good),
        ChangeWhat::Modified => ("modified", Tone::Caution),
        ChangeWhat::Replaced => ("replaced", Tone::Caution),
        ChangeWhat::Removed => ("removed", Tone::Bad),
        ChangeWhat::Touched => ("touched", Tone::Plain),
    }
}

fn patch(changes: &WaitingAnswer, mut patch: Patch) -> String {
    let texts: HashMap<&ByteString, &str> = changes
        .texts
        .iter()
        .map(|it| (&it.path, it.unified.as_str()))
        .collect();
    for change in &changes.changes {
        let path = change.path.display();
        patch.entry(&path, &remarks(change));
        if let Some(unified) = texts.get(&change.path) {
            let sides = match change.what {
                ChangeWhat::Created => Sides::After,
                ChangeWhat::Removed => Sides::Before,
                ChangeWhat::Modified | ChangeWhat::Replaced | ChangeWhat::Touched => Sides::Both,
            };
            patch.hunks(&path, sides, hunks(unified));
        }
    }
    patch.text()
}

/// Without the lines that name the two files, if there are any.
fn hunks(unified: &str) -> &str {
    match unified.starts_with("--- ") {
        true => unified.find("@@ ").map_or("", |at| &unified[at..]),
        false => unified,
    }
}

fn remarks(change: &WaitingChange) -> Vec<String> {
    let (before, after) = (change.before.as_ref(), change.after.as_ref());
    let kind = after.or(before).map_or(FileKind::Other, |side| side.kind);
    let mut remarks = vec![format!("{} {}", what(change.what).0, kind.as_str())];
    if let (Some(before), Some(after)) = (before, after)
        && before.mode != after.mode
    {
        remarks.push(format!("old mode {}", before.mode));
        remarks.push(format!("new mode {}", after.mode));
    }
    for (name, side) in [("old", before), ("new", after)] {
        if let Some(target) = side.and_then(|side| side.target.as_ref()) {
            remarks.push(format!("{name} target {}", target.display()));
        }
    }
    remarks
}

fn stat(changes: &WaitingAnswer, paint: Paint) -> String {
    let mut table = Table::new(["WHAT", "SIZE", "PATH"]);
    for change in &changes.changes {
        let (word, tone) = what(change.what);
        let bytes = change.after.as_ref().map(|side| size(side.size));
        table.push([
            Cell::toned(tone, word),
            Cell::from(bytes.unwrap_or_else(|| "-".to_owned())),
            Cell::from(change.path.display()),
        ]);
    }
    match changes.changes.is_empty() {
        true => String::new(),
        false => table.body(paint) + &change_count(&changes.count) + "\n",
    }
}

/// `1 created, 2 modified, 0 removed, 1.2 KiB`.
pub(crate) fn change_count(count: &ChangeCount) -> String {
    let more = if count.truncated { ", and more" } else { "" };
    format!(
        "{} created, {} modified, {} removed, {}{more}",
        count.created,
        count.modified,
        count.removed,
        size(count.bytes)
    )
}

pub(super) fn keep(global: &Global, name: &str) -> Result<Exit> {
    let exec = find(global, name)?;
    let decided = workspaces::of_exec(global, &exec)?.keep(&exec.exec_id)?;
    decision(global, &decided, "kept")
}

pub(super) fn discard(global: &Global, name: &str) -> Result<Exit> {
    let exec = find(global, name)?;
    let decided = workspaces::of_exec(global, &exec)?.discard(&exec.exec_id)?;
    decision(global, &decided, "discarded")
}

pub(crate) fn decision(global: &Global, decided: &DecidedAnswer, what: &str) -> Result<Exit> {
    if global.json {
        stdout::json(decided)?;
    } else if !global.quiet {
        render::note(&format!("{what}: {}", change_count(&decided.count)));
    }
    Ok(Exit::SUCCESS)
}
