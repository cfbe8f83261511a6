//! `glovebox secret rotate-key`.

use glovebox_engine::NewKey;
use glovebox_model::Result;

use super::keeping::{Here, operator};
use crate::args::{Global, RotateKeyArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::human::count;
use crate::render;
use crate::stdout;

pub(super) fn run(global: &Global, context: &Context<'_>, args: RotateKeyArgs) -> Result<Exit> {
    let new = args.new_key_file.map_or(NewKey::Generated, NewKey::File);
    let rotated = Here::open(context)?
        .secrets()
        .rotate_key(new, &operator())?;
    if global.json {
        stdout::json(&rotated)?;
    } else if !global.quiet {
        let values = count(rotated.values, "value is", "values are");
        render::note(&format!(
            "{values} sealed with the key `{}` now, and no more with `{}`",
            rotated.to, rotated.from
        ));
        if let Some(file) = &rotated.key_file {
            render::note(&format!(
                "from now on: `--secrets-key-file {}`, or `GLOVEBOX_SECRETS_KEY_FILE`",
                file.display()
            ));
        }
    }
    Ok(Exit::SUCCESS)
}
