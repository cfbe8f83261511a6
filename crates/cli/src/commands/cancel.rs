//! `glovebox cancel`.

use glovebox_model::{Code, Error, Exec, Result, Stage};

use crate::args::{CancelArgs, Global};
use crate::context::Context;
use crate::exit::Exit;
use crate::records::Records;
use crate::sessions::Sessions;
use crate::{render, stdout};

pub(crate) fn run(global: &Global, args: &CancelArgs) -> Result<Exit> {
    let context = Context::new(global);
    let Some(remote) = context.server()? else {
        // A session has no terminal at which Ctrl-C would end it.
        if let Some(sessions) = Sessions::open_if_there(&context)?
            && let Ok(info) = sessions.find(&args.exec)
        {
            let info = sessions.kill(&info.session_id)?;
            return canceled(global, &sessions.record(&info.session_id)?);
        }
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
    canceled(global, &exec)
}

fn canceled(global: &Global, exec: &Exec) -> Result<Exit> {
    if global.json {
        stdout::json(exec)?;
    } else if !global.quiet {
        let (id, status) = (&exec.exec_id, exec.status);
        render::note(&match status.is_final() {
            true => format!("`{id}` stands as `{status}`"),
            false => format!("`{id}` was asked to end; `glovebox show {id}` says how it did"),
        });
    }
    Ok(Exit::SUCCESS)
}
