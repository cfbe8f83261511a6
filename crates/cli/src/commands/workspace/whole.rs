//! `glovebox workspace seed`, `reset`, `undo`, `fork` and `rm`.

use glovebox_api::{ResetRequest, SeedAnswer};
use glovebox_model::{Code, Error, Result, Stage};

use crate::args::{ForkArgs, Global, ResetArgs, SeedArgs, UndoArgs, WorkspaceRmArgs};
use crate::commands::snapshot::{resolve, told, way_back};
use crate::context::Context;
use crate::cut_off::CutOff;
use crate::exit::Exit;
use crate::human::count;
use crate::render::{self, one_line};
use crate::stdout;
use crate::workspaces::{self, Missing, Space, present};

/// Entries that are named one by one.
const NAMED: usize = 10;

pub(super) fn seed(global: &Global, args: &SeedArgs) -> Result<Exit> {
    let workspace = workspaces::open(global, &args.which, Missing::Make)?;
    let left = Error::new(
        Code::Canceled,
        Stage::Open,
        "canceled by the caller; what was copied until then stays",
    )
    .hint("the same command copies the rest, and touches nothing that is there");
    let cut_off = cut_off(global, left)?;
    let seeded = workspace.seed(args.from.as_deref())?;
    drop(cut_off);
    if global.json {
        stdout::json(&seeded)?;
    } else if !global.quiet {
        tell(&seeded);
    }
    Ok(Exit::SUCCESS)
}

fn tell(seeded: &SeedAnswer) {
    let made = count(seeded.made, "entry made", "entries made");
    let kept = match seeded.kept {
        0 => String::new(),
        kept => format!(", {kept} left as they were"),
    };
    render::note(&format!("{made}{kept}"));
    for it in seeded.skipped.iter().take(NAMED) {
        render::note(&format!(
            "`{}` was left out: {}",
            one_line(&it.path.display()),
            one_line(&it.why)
        ));
    }
    if seeded.skipped.len() > NAMED {
        let more = seeded.skipped.len() - NAMED;
        render::note(&format!("and {more} more were left out"));
    }
}

/// A server finishes by itself what it was asked for.
fn cut_off(global: &Global, left: Error) -> Result<Option<CutOff>> {
    match Context::new(global).server()? {
        Some(_) => Ok(None),
        None => CutOff::listen(global.json, left).map(Some),
    }
}

pub(super) fn reset(global: &Global, args: &ResetArgs) -> Result<Exit> {
    if !args.yes {
        let message = "everything in the workspace would be removed";
        return Err(Error::new(Code::InvalidArgument, Stage::Parse, message)
            .hint("say so with `--yes`")
            .hint("`glovebox snapshot take` keeps what is there now"));
    }
    let workspace = workspaces::open(global, &args.which, Missing::Refuse)?;
    let left = Error::new(
        Code::Canceled,
        Stage::Open,
        "canceled by the caller; the workspace is half reset",
    )
    .hint("the same command finishes it");
    let cut_off = cut_off(global, left)?;
    let done = workspace.reset(&ResetRequest {
        inputs: args.inputs,
        artifacts: args.artifacts,
    })?;
    drop(cut_off);
    if global.json {
        stdout::json(&done)?;
    } else if !global.quiet {
        render::note("the workspace is as on its first day");
        if done.seeded.made > 0 || !done.seeded.skipped.is_empty() {
            tell(&done.seeded);
        }
        if done.artifacts_removed > 0 {
            let execs = count(done.artifacts_removed, "exec", "execs");
            render::note(&format!("artifacts and output of {execs} are gone"));
        }
    }
    Ok(Exit::SUCCESS)
}

pub(super) fn undo(global: &Global, args: &UndoArgs) -> Result<Exit> {
    let exec = args
        .exec
        .as_ref()
        .map(|name| Context::new(global).some_records()?.find(name))
        .transpose()?;
    let workspace = match (&exec, &args.which.project) {
        (Some(exec), None) => workspaces::of_exec(global, exec)?,
        _ => workspaces::open(global, &args.which, Missing::Refuse)?,
    };
    let present = present(args.no_snapshot_before);
    let undone = workspace.undo(exec.as_ref().map(|it| &it.exec_id), present)?;
    if global.json {
        stdout::json(&undone)?;
    } else if !global.quiet {
        render::note(&format!(
            "as it was before `{}`: {}",
            undone.exec_id,
            told(&undone.restored)
        ));
        undone
            .before
            .iter()
            .for_each(|it| render::note(&way_back(it)));
    }
    Ok(Exit::SUCCESS)
}

pub(super) fn fork(global: &Global, args: &ForkArgs) -> Result<Exit> {
    let workspace = workspaces::open(global, &args.which, Missing::Refuse)?;
    let from = args
        .snapshot
        .as_ref()
        .map(|name| resolve(&workspace, name))
        .transpose()?;
    let forked = workspace.fork(from.as_ref(), &args.name)?;
    if global.json {
        stdout::json(&forked)?;
        return Ok(Exit::SUCCESS);
    }
    stdout::text(&format!("{}\n", forked.project_id))?;
    if !global.quiet {
        let name = &forked.project_id;
        render::note(&format!(
            "it has the files of `{}`: `glovebox run --project {name} -- CMD`",
            forked.snapshot_id
        ));
    }
    Ok(Exit::SUCCESS)
}

pub(super) fn remove(global: &Global, args: &WorkspaceRmArgs) -> Result<Exit> {
    let space = Space::open(global)?;
    let mut exit = Exit::SUCCESS;
    for name in &args.names {
        let removed = match &space {
            Some(space) => space.remove(name),
            None => Err(workspaces::unknown(name)),
        };
        match removed {
            Ok(()) if global.json => {
                stdout::json(&serde_json::json!({ "project_id": name }))?;
            }
            Ok(()) => {
                stdout::text(&format!("{name}\n"))?;
            }
            // Alone it is the command's own error; among others it is one of them.
            Err(error) if args.names.len() == 1 => return Err(error),
            Err(error) => {
                render::error(&error, global.json);
                exit = Exit::FAILURE;
            }
        }
    }
    if exit == Exit::SUCCESS && !global.quiet && !global.json {
        render::note("removed; their snapshots stay until `glovebox snapshot gc`");
    }
    Ok(exit)
}
