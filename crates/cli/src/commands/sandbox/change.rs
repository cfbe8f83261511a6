//! `glovebox sandbox recreate`, `prune` and `rm`. One that fails never stops the rest.

use glovebox_api::RecreateRequest;
use glovebox_engine::Trouble;
use glovebox_model::{Code, Error, Result, Stage};

use crate::args::{Global, SandboxRecreateArgs, SandboxRmArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::sandboxes::Sandboxes;
use crate::{render, stdout};

pub(crate) fn recreate(global: &Global, args: SandboxRecreateArgs) -> Result<Exit> {
    const ANEW: &str = "built from today's configuration when it is next used";
    let sandboxes = Sandboxes::open(&Context::new(global))?;
    if let Some(name) = &args.sandbox {
        let row = sandboxes.recreate_one(name)?;
        match global.json {
            true => drop(stdout::json(&row)?),
            false => told(global, std::iter::once(row.name.as_str()), ANEW)?,
        }
        return Ok(Exit::SUCCESS);
    }
    let done = sandboxes.recreate(&selection(args)?)?;
    if global.json {
        stdout::json(&done)?;
    } else {
        told(
            global,
            done.recreated.iter().map(|row| row.name.as_str()),
            ANEW,
        )?;
        if done.recreated.is_empty() && done.failed.is_empty() && !global.quiet {
            render::note("no sandbox is meant");
        }
        failed(&done.failed);
    }
    Ok(verdict(&done.failed))
}

fn selection(args: SandboxRecreateArgs) -> Result<RecreateRequest> {
    let SandboxRecreateArgs {
        sandbox: _,
        mismatched,
        all,
        agent,
        session,
    } = args;
    let agent = agent.as_deref().map(RecreateRequest::of_agent);
    let session = session.as_deref().map(RecreateRequest::of_session);
    let named = agent
        .or(session)
        .or(mismatched.then(RecreateRequest::mismatched))
        .or(all.then(RecreateRequest::all));
    // The command line demands one of them.
    named.ok_or_else(|| Error::new(Code::InvalidArgument, Stage::Parse, "none is named"))
}

pub(crate) fn prune(global: &Global) -> Result<Exit> {
    let Some(sandboxes) = Sandboxes::open_if_there(&Context::new(global))? else {
        return nothing(global);
    };
    let done = sandboxes.prune()?;
    if global.json {
        stdout::json(&done)?;
    } else {
        told(global, done.removed.iter().map(String::as_str), "removed")?;
        if done.removed.is_empty() && done.failed.is_empty() && !global.quiet {
            render::note("nothing is old enough to be removed");
        }
        failed(&done.failed);
    }
    Ok(verdict(&done.failed))
}

fn nothing(global: &Global) -> Result<Exit> {
    if global.json {
        stdout::json(&glovebox_engine::Pruned::default())?;
    } else if !global.quiet {
        render::note("no sandbox is kept");
    }
    Ok(Exit::SUCCESS)
}

pub(crate) fn remove(global: &Global, args: &SandboxRmArgs) -> Result<Exit> {
    let sandboxes = Sandboxes::open(&Context::new(global))?;
    let mut exit = Exit::SUCCESS;
    for name in &args.sandboxes {
        match sandboxes.remove(name) {
            Ok(row) if global.json => {
                stdout::json(&row)?;
            }
            Ok(row) => {
                told(global, std::iter::once(row.name.as_str()), "removed")?;
            }
            // Alone it is the command's own error; among others it is one of them.
            Err(error) if args.sandboxes.len() == 1 => return Err(error),
            Err(error) => {
                render::error(&error, global.json);
                exit = Exit::FAILURE;
            }
        }
    }
    Ok(exit)
}

/// Names on standard output, for whoever goes on with them; what became of them as a remark.
fn told<'n>(global: &Global, names: impl Iterator<Item = &'n str>, what: &str) -> Result<()> {
    let mut any = false;
    for name in names {
        stdout::text(&format!("{}\n", render::one_line(name)))?;
        any = true;
    }
    if any && !global.quiet {
        render::note(what);
    }
    Ok(())
}

fn failed(failed: &[Trouble]) {
    for Trouble { name, error } in failed {
        let mut error = error.clone();
        error.message = format!("`{name}`: {}", error.message);
        render::error(&error, false);
    }
}

fn verdict(failed: &[Trouble]) -> Exit {
    match failed {
        [] => Exit::SUCCESS,
        _ => Exit::FAILURE,
    }
}
