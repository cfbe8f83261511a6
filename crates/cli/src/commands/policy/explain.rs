//! `glovebox policy explain`.

use glovebox_engine::host_facts;
use glovebox_model::{Call, Code, Result};
use glovebox_policy::{Assessed, Config, Decision, Explanation, Surface, assess, resolve};

use crate::args::{ExplainArgs, Global};
use crate::commands::execute::call;
use crate::commands::run::program;
use crate::context::Context;
use crate::exit::Exit;
use crate::render::printable;
use crate::stdout;

pub(crate) fn run(global: &Global, args: ExplainArgs) -> Result<Exit> {
    let config = Context::new(global).config()?;
    let call = call(args.options, program(args.command)?)?;
    let explanation = match decide(&config, call) {
        Ok(assessed) => Explanation::of(Ok(&assessed)),
        Err(error) if error.code == Code::PolicyDenied => Explanation::of(Err(&error)),
        Err(error) => return Err(error),
    };
    if global.json {
        stdout::json(&explanation)?;
    } else {
        stdout::text(&printable(&explanation.render_text()))?;
    }
    Ok(match explanation.decision {
        Decision::Allow => Exit::SUCCESS,
        Decision::Deny => Exit::REFUSED,
    })
}

/// The first two stages of the path, which touch nothing.
fn decide(config: &Config, call: Call) -> Result<Assessed> {
    let system = config.system(Surface::Local, host_facts())?;
    let layers = config.layers_for(&call.ids);
    Ok(assess(resolve(call, &system, &layers)?))
}
