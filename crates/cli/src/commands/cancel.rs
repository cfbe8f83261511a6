//! `glovebox cancel`.

use glovebox_model::{Code, Error, Result, Stage};

use crate::args::{CancelArgs, Global};
use crate::context::Context;
use crate::exit::Exit;
use crate::records::Records;
use crate::{render, stdout};

pub(crate) fn run(global: &Global, args: &CancelArgs) -> Result<Exit> {
    let Some(remote) = Context::new(global).server()? else {
        return Err(Error::new(
            Code::InvalidArgument,
            Stage::Parse,
            "a run without a server is canceled where it runs, with Ctrl-C",
        )
        .hint("for one at a server: `glovebox --server URL cancel EXEC`"));
    };
    let records = Records::of(remote);
    let before = records.find(&args.exec)?;
    let exec = match before.status.is_final() {
        true => before,
        false => records.cancel(&before)?,
    };
    if global.json {
        stdout::json(&exec)?;
    } else if !global.quiet {
        let (id, status) = (&exec.exec_id, exec.status);
        render::note(&match status.is_final() {
            true => format!("`{id}` stands as `{status}`"),
            false => format!("`{id}` was asked to end; `glovebox show {id}` says how it did"),
        });
    }
    Ok(Exit::SUCCESS)
}
