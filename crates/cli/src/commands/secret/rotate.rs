//! `glovebox secret rotate-key`.

use glovebox_engine::{NewKey, Secrets, Vault};
use glovebox_model::Result;
use glovebox_store::Actor;

use crate::args::{Global, RotateKeyArgs};
use crate::context::{self, Context};
use crate::exit::Exit;
use crate::human::count;
use crate::render;
use crate::stdout;

pub(super) fn run(global: &Global, context: &Context<'_>, args: RotateKeyArgs) -> Result<Exit> {
    let new = args.new_key_file.map_or(NewKey::Generated, NewKey::File);
    let (state, store) = context.place()?.open()?;
    let vault = Vault::new(&state, context.secrets_key()?);
    let by = Actor {
        token_id: None,
        name: context::user(),
    };
    let rotated = Secrets::new(&store, &vault).rotate_key(new, &by)?;
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
