//! `glovebox policy explain`.

use glovebox_engine::host_facts;
use glovebox_model::{Call, Program, Result, WorkspaceRef};
use glovebox_policy::{Asking, Config, Decision, Explanation, Surface, explain};

use crate::args::{ExplainArgs, Global};
use crate::commands::execute::call;
use crate::commands::run::program;
use crate::context::Context;
use crate::exit::Exit;
use crate::render::printable;
use crate::stdout;
use glovebox_api::client::Client;
use glovebox_api::{ExecRequest, Target};

pub(crate) fn run(global: &Global, args: ExplainArgs) -> Result<Exit> {
    let context = Context::new(global);
    let call = call(args.options, program(args.command)?)?;
    let explanation = match context.server()? {
        Some(remote) => ask(&remote, call)?,
        None => decide(&context.config()?, call)?,
    };
    if global.json {
        stdout::json(&explanation)?;
    } else {
        stdout::text(&printable(&explanation.render_text()))?;
    }
    Ok(match explanation.decision {
        Decision::Allow | Decision::Ask => Exit::SUCCESS,
        Decision::Deny => Exit::REFUSED,
    })
}

/// The first two stages of the path, which touch nothing: no state directory is needed, as the API
/// would.
fn decide(config: &Config, call: Call) -> Result<Explanation> {
    let system = config.system(Surface::Local, host_facts())?;
    let tool = match call.program {
        Program::Argv { .. } | Program::Shell { .. } => "run_command",
        Program::Python { .. } | Program::Javascript { .. } => "run_code",
    };
    let asking = Asking {
        tool,
        grants: &[],
        secrets: &[],
        simulate: false,
        backend: None,
    };
    explain(config, &system, call, &asking)
}

/// Nothing is run, so it does not matter that a server has no such directory.
fn ask(remote: &Client, mut call: Call) -> Result<Explanation> {
    if let WorkspaceRef::Adopted(_) = call.workspace {
        call.workspace = WorkspaceRef::Scratch;
    }
    remote.post(
        Target::new("/v1/policy/explain"),
        &ExecRequest::of(call, None)?,
    )
}
