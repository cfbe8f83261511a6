//! `glovebox workspace rollback`.

use glovebox_model::Result;

use crate::args::{Global, RollbackArgs};
use crate::commands::snapshot::{resolve, told, way_back};
use crate::exit::Exit;
use crate::human::time;
use crate::workspaces::{self, Missing, present};
use crate::{render, stdout};

pub(super) fn run(global: &Global, args: &RollbackArgs) -> Result<Exit> {
    let workspace = workspaces::open(global, &args.which, Missing::Refuse)?;
    let to = args
        .to
        .as_ref()
        .map(|name| resolve(&workspace, name))
        .transpose()?;
    let done = workspace.rollback(to.as_ref(), present(args.no_snapshot_before))?;
    if global.json {
        stdout::json(&done)?;
    } else if !global.quiet {
        render::note(&format!(
            "as in `{}`, verified {}: {}",
            done.snapshot_id,
            time(done.verified_at),
            told(&done.restored)
        ));
        done.before
            .iter()
            .for_each(|it| render::note(&way_back(it)));
    }
    Ok(Exit::SUCCESS)
}
