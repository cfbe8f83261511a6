//! `glovebox snapshot`.

mod compare;
mod list;
mod upkeep;

use glovebox_api::RestoreCounts;
use glovebox_api::SnapshotRequest;
use glovebox_model::{Code, Error, Result, SnapshotId, Stage};

use crate::args::{Global, RestoreArgs, SnapshotCommand, SnapshotRmArgs, SnapshotVerb, TakeArgs};
use crate::exit::Exit;
use crate::human::{count, size};
use crate::workspaces::{self, Missing, Workspace, present};
use crate::{render, stdout};

pub(crate) fn run(global: &Global, command: SnapshotCommand) -> Result<Exit> {
    match command.verb {
        SnapshotVerb::Take(args) => take(global, args),
        SnapshotVerb::Ls(args) => list::all(global, &args),
        SnapshotVerb::Show(args) => list::one(global, &args),
        SnapshotVerb::Diff(args) => compare::run(global, &args),
        SnapshotVerb::Restore(args) => restore(global, &args),
        SnapshotVerb::Rm(args) => remove(global, &args),
        SnapshotVerb::Gc(_) => upkeep::collect(global),
        SnapshotVerb::Verify(_) => upkeep::verify(global),
    }
}

fn take(global: &Global, args: TakeArgs) -> Result<Exit> {
    let workspace = workspaces::open(global, &args.which, Missing::Refuse)?;
    let taken = workspace.take(&SnapshotRequest {
        label: args.label,
        note: args.note,
        live: args.live,
    })?;
    if global.json {
        stdout::json(&taken)?;
        return Ok(Exit::SUCCESS);
    }
    let snapshot = &taken.snapshot;
    stdout::text(&format!("{}\n", snapshot.snapshot_id))?;
    if !global.quiet {
        let files = count(snapshot.counts.files, "file", "files");
        let (held, grew) = (size(snapshot.counts.bytes), size(taken.stored_bytes));
        render::note(&format!("{files}, {held}; the store grew by {grew}"));
        if !taken.unstable.is_empty() {
            let unstable = count(taken.unstable.len() as u64, "file", "files");
            render::note(&format!("{unstable} changed while being read"));
        }
    }
    Ok(Exit::SUCCESS)
}

fn restore(global: &Global, args: &RestoreArgs) -> Result<Exit> {
    let workspace = workspaces::open(global, &args.which, Missing::Refuse)?;
    let id = resolve(&workspace, &args.id)?;
    let done = workspace.restore(&id, present(args.no_snapshot_before))?;
    if global.json {
        stdout::json(&done)?;
    } else if !global.quiet {
        render::note(&format!("restored `{id}`: {}", told(&done.restored)));
        done.before
            .iter()
            .for_each(|it| render::note(&way_back(it)));
    }
    Ok(Exit::SUCCESS)
}

/// What was done to make files what a snapshot says.
pub(crate) fn told(done: &RestoreCounts) -> String {
    let parts = [
        (done.files_written, "file written", "files written"),
        (done.made, "entry made", "entries made"),
        (done.adjusted, "entry adjusted", "entries adjusted"),
        (done.removed, "entry removed", "entries removed"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(number, one, many)| count(number, one, many))
        .collect();
    match parts.is_empty() {
        true => "nothing differed".to_owned(),
        false => parts.join(", "),
    }
}

pub(crate) fn way_back(before: &SnapshotId) -> String {
    format!("as it was just before: `glovebox snapshot restore {before}`")
}

fn remove(global: &Global, args: &SnapshotRmArgs) -> Result<Exit> {
    let workspace = workspaces::open(global, &args.which, Missing::Refuse)?;
    let mut exit = Exit::SUCCESS;
    for name in &args.ids {
        let removed =
            resolve(&workspace, name).and_then(|id| workspace.remove_snapshot(&id).map(|()| id));
        match removed {
            Ok(id) if global.json => {
                stdout::json(&serde_json::json!({ "snapshot_id": id }))?;
            }
            Ok(id) => {
                stdout::text(&format!("{id}\n"))?;
            }
            // Alone it is the command's own error; among others it is one of them.
            Err(error) if args.ids.len() == 1 => return Err(error),
            Err(error) => {
                render::error(&error, global.json);
                exit = Exit::FAILURE;
            }
        }
    }
    if !global.quiet && !global.json && exit == Exit::SUCCESS {
        render::note("removed; `glovebox snapshot gc` frees the room");
    }
    Ok(exit)
}

/// A whole id, or enough of the beginning of one, with or without `snap_`.
pub(crate) fn resolve(workspace: &Workspace, name: &str) -> Result<SnapshotId> {
    if let Ok(id) = name.parse() {
        return Ok(id);
    }
    let unknown = || {
        let shown = render::one_line(name);
        let message = format!("no snapshot of this workspace starts with `{shown}`");
        Error::new(Code::NotFound, Stage::Parse, message).hint("`glovebox snapshot ls` lists them")
    };
    let digits = name.strip_prefix("snap_").unwrap_or(name);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(unknown());
    }
    let beginning = format!("snap_{}", digits.to_ascii_lowercase());
    let found: Vec<SnapshotId> = workspace
        .snapshots()?
        .items
        .into_iter()
        .map(|it| it.snapshot_id)
        .filter(|id| id.as_str().starts_with(&beginning))
        .collect();
    match found.as_slice() {
        [] => Err(unknown()),
        [id] => Ok(id.clone()),
        [..] => {
            let ids: Vec<&str> = found.iter().take(4).map(SnapshotId::as_str).collect();
            let message = format!("more than one snapshot starts with `{beginning}`");
            Err(Error::new(Code::InvalidArgument, Stage::Parse, message)
                .hint(format!("say more of it: {}", ids.join(", "))))
        }
    }
}
