//! `glovebox secret`.

mod grants;
mod keeping;
mod list;
mod rotate;
mod set;
mod value;

use glovebox_engine::Hold;
use glovebox_model::Result;

use crate::args::{Global, SecretCommand, SecretVerb};
use crate::context::Context;
use crate::exit::Exit;
use crate::render;
use crate::stdout;
use keeping::Keeping;

pub(crate) fn run(global: &Global, command: SecretCommand) -> Result<Exit> {
    let context = Context::new(global);
    match command.verb {
        SecretVerb::Set(args) => set::run(global, &context, args),
        SecretVerb::Ls(args) => list::run(global, &Keeping::open(&context)?, &args),
        SecretVerb::Rm(args) => {
            let removal = Keeping::open(&context)?.remove(&args.name)?;
            if global.json {
                stdout::json(&removal)?;
            } else if !global.quiet {
                render::note(&format!(
                    "`{}` is gone, with all its values",
                    removal.secret.name
                ));
                tell_of_grants(removal.revoked.len());
                tell_of_holds(&removal.still_held);
            }
            Ok(Exit::SUCCESS)
        }
        SecretVerb::Grant(args) => grants::grant(global, &Keeping::open(&context)?, args),
        SecretVerb::Grants(args) => grants::list(global, &Keeping::open(&context)?, args),
        SecretVerb::Revoke(args) => grants::revoke(global, &Keeping::open(&context)?, args),
        SecretVerb::RotateKey(args) => rotate::run(global, &context, args),
    }
}

fn tell_of_grants(count: usize) {
    if count > 0 {
        let grants = crate::human::count(count as u64, "grant", "grants");
        render::note(&format!("{grants} ended with it"));
    }
}

/// What could not be reached.
fn tell_of_holds(holds: &[Hold]) {
    for hold in holds {
        let Hold {
            exec_id,
            secret,
            delivery,
            ..
        } = hold;
        render::note(&format!(
            "`{exec_id}` runs and has `{secret}` as `{delivery}`; only its end takes it away: \
             `glovebox cancel {exec_id}`, and change the value where it is used"
        ));
    }
}
