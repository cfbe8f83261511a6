//! `glovebox shell`.

use std::ffi::OsString;

use glovebox_model::{BackendRef, Result};

use super::run::program;
use super::session::{AtTerminal, run_at_terminal};
use crate::args::{Global, RunOptions, ShellArgs};
use crate::attach::require_terminal;
use crate::context::Context;
use crate::exit::Exit;
use crate::render;
use crate::sandboxes::Sandboxes;

/// Every sandbox that people work in has it; where it is missing, the refusal says what to do.
const SHELL: &str = "bash";
const WHAT: &str = "`glovebox shell`";

pub(crate) fn run(global: &Global, args: ShellArgs) -> Result<Exit> {
    let is_usual = args.command.is_empty();
    let command = match is_usual {
        true => vec![OsString::from(SHELL)],
        false => args.command,
    };
    let mut options = args.what.run_options();
    if let Some(kept) = args.kept {
        be_beside(global, &mut options, &kept)?;
    }
    options.exec.stdin = false;
    let exit = run_at_terminal(
        global,
        AtTerminal {
            what: WHAT,
            options,
            life: args.life,
            detach: args.detach.detach_key,
            program: program(command)?,
        },
    )?;
    if is_usual && exit == Exit::NOT_FOUND && !global.quiet {
        render::note("if there is no `bash` in it: `glovebox shell -- sh`");
    }
    Ok(exit)
}

/// A session has a sandbox of its own: one as that which was named, on the same workspace.
fn be_beside(global: &Global, options: &mut RunOptions, name: &str) -> Result<()> {
    // Before anything is asked of a server.
    require_terminal(WHAT)?;
    let row = Sandboxes::open(&Context::new(global))?.find(name)?;
    if !global.quiet {
        let project = render::one_line(row.project_id.as_str());
        render::note(&format!(
            "the shell has a sandbox of its own, made as `{}` is, on the workspace `{project}`",
            render::one_line(&row.name)
        ));
    }
    options.backend.backend = Some(BackendRef {
        name: row.config.backend,
        runtime: row.config.docker.and_then(|it| it.runtime),
    });
    options.backend.image = row.config.image;
    options.place.project = Some(row.project_id);
    Ok(())
}
