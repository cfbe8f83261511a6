//! `glovebox sandbox create`.

use std::io::IsTerminal;

use glovebox_model::{BackendName, Result, SandboxState};

use super::request;
use crate::args::{Global, SandboxCreateArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::{render, sandboxes, stdout};

pub(crate) fn run(global: &Global, args: SandboxCreateArgs) -> Result<Exit> {
    let request = request(args.scope)?;
    if !global.quiet && !global.json && std::io::stderr().is_terminal() {
        render::note("the sandbox is being made");
    }
    let made = sandboxes::create(&Context::new(global), request)?;
    if global.json {
        stdout::json(&made)?;
        return Ok(Exit::SUCCESS);
    }
    // A server's word, which may not steer a terminal.
    let name = render::one_line(&made.name);
    stdout::text(&format!("{name}\n"))?;
    if !global.quiet {
        let how = match (made.state, made.config.backend) {
            (SandboxState::Down, BackendName::Native | BackendName::Host) => {
                "it stood, and is built again for each run; a server keeps it standing"
            }
            (SandboxState::Down, BackendName::Docker)
            | (SandboxState::Idle | SandboxState::Acquiring | SandboxState::Busy, _) => "it stands",
        };
        render::note(&format!("{how}: `glovebox exec {name} -- CMD`"));
    }
    Ok(Exit::SUCCESS)
}
