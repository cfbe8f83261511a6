//! `glovebox approval approve` and `deny`.

use std::io::Read;
use std::path::Path;

use glovebox_model::{Answer, Approval, ApprovalId, ApprovalState, Code, Error, Result, Stage};
use jiff::Timestamp;

use crate::approvals::Approvals;
use crate::args::{ApproveArgs, DenyArgs, Global};
use crate::commands::execute;
use crate::exit::Exit;
use crate::{expiry, narrowing, render, rewrite, stdout};

/// What fits into one argument of a program.
const LONGEST: u64 = 128 << 10;

pub(super) fn approve(global: &Global, approvals: &Approvals, args: ApproveArgs) -> Result<Exit> {
    // Before anything is answered: an answer cannot be taken back.
    let follows = match (args.run, approvals.server()) {
        (false, _) => None,
        (true, Some(server)) => Some(server),
        (true, None) => return Err(runs_elsewhere(&args.id)),
    };
    let approval = approvals.get(&args.id)?;
    let reason = args.reason;
    let answer = match (args.kind, args.edit) {
        (true, _) => Answer::AllowKind {
            reason,
            expires_at: expiry::end(args.expires, Timestamp::now())?,
        },
        (false, Some(file)) => {
            let (form, _) = rewrite::text(&approval.ask.argv);
            let program = rewrite::program(form, &read(&file)?)?;
            Answer::Edit { program, reason }
        }
        (false, None) if args.narrow.is_empty() => Answer::AllowOnce { reason },
        (false, None) => Answer::Narrow {
            overrides: narrowing::profile(args.narrow),
            reason,
        },
    };
    let approval = approvals.reply(&approval, answer)?;
    let Some(remote) = follows else {
        return tell(global, &approval);
    };
    if approval.state == ApprovalState::Pending {
        tell(global, &approval)?;
        return Ok(Exit::WAITING);
    }
    execute::go_on(global, remote, &approval.exec_id)
}

fn runs_elsewhere(id: &ApprovalId) -> Error {
    let message = "`--run` follows an exec at a server, and none is named";
    Error::new(Code::InvalidArgument, Stage::Parse, message)
        .hint(format!(
            "`glovebox --server URL approval approve {id} --run`"
        ))
        .hint("what a command asks at its own terminal runs there: answer without `--run`")
}

pub(super) fn deny(global: &Global, approvals: &Approvals, args: DenyArgs) -> Result<Exit> {
    let approval = approvals.get(&args.id)?;
    let answer = Answer::Deny {
        reason: args.reason,
    };
    tell(global, &approvals.reply(&approval, answer)?)
}

fn tell(global: &Global, approval: &Approval) -> Result<Exit> {
    if global.json {
        stdout::json(approval)?;
    } else if !global.quiet {
        render::note(&outcome(approval));
    }
    Ok(Exit::SUCCESS)
}

/// What became of it.
pub(super) fn outcome(approval: &Approval) -> String {
    let (id, exec) = (&approval.id, &approval.exec_id);
    match approval.state {
        ApprovalState::Pending => match approval.wanting() {
            1 => format!("`{id}` waits for one more person"),
            more => format!("`{id}` waits for {more} more people"),
        },
        ApprovalState::Approved => format!("`{id}` is approved; `{exec}` starts soon"),
        ApprovalState::Used => format!("`{id}` is approved: `glovebox show {exec}`"),
        ApprovalState::Denied => format!("`{id}` is denied; `{exec}` does not run"),
        ApprovalState::Expired => format!("`{id}` has expired; `{exec}` does not run"),
        ApprovalState::Void => format!("`{id}` is void; `{exec}` does not run"),
    }
}

fn read(file: &Path) -> Result<String> {
    let shown = file.display();
    let invalid = |message: String| Error::new(Code::InvalidArgument, Stage::Parse, message);
    let mut text = String::new();
    let read = match file == Path::new("-") {
        true => std::io::stdin()
            .lock()
            .take(LONGEST + 1)
            .read_to_string(&mut text),
        false => std::fs::File::open(file)
            .and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text)),
    };
    read.map_err(|error| invalid(format!("cannot read `{shown}`")).caused_by(error))?;
    match text.len() as u64 > LONGEST {
        true => Err(invalid(format!(
            "the program in `{shown}` is longer than 128 KiB"
        ))),
        false => Ok(text),
    }
}
