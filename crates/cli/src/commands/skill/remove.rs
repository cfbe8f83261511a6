//! `glovebox skill rm`.

use glovebox_model::Result;
use serde_json::json;

use crate::args::{Global, SkillRmArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::{render, stdout};

pub(super) fn run(global: &Global, args: &SkillRmArgs) -> Result<Exit> {
    let context = Context::new(global);
    let config = context.config()?;
    let root = super::directory(&config)?;
    let mut exit = Exit::SUCCESS;
    for id in &args.ids {
        match glovebox_skill::remove(id, root) {
            Ok(path) if global.json => {
                stdout::json(&json!({"id": id, "path": path}))?;
            }
            Ok(_) => {
                stdout::text(&format!("{id}\n"))?;
                // One of the same id may have stood behind it.
                let shipped = context.skills()?.find(id).is_ok();
                if !global.quiet {
                    render::note(match shipped {
                        true => "removed; the one that came with Glovebox is called from now on",
                        false => "removed",
                    });
                }
            }
            // Alone it is the command's own error; among others it is one of them.
            Err(error) if args.ids.len() == 1 => return Err(error),
            Err(error) => {
                render::error(&error, global.json);
                exit = Exit::FAILURE;
            }
        }
    }
    Ok(exit)
}
