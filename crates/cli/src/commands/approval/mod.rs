//! `glovebox approval`.

mod grants;
mod info;
mod list;
mod reply;
mod watch;

use glovebox_model::Result;

use crate::approvals::Approvals;
use crate::args::{ApprovalCommand, ApprovalVerb, Global};
use crate::context::Context;
use crate::exit::Exit;

pub(crate) fn run(global: &Global, command: ApprovalCommand) -> Result<Exit> {
    let approvals = Approvals::open(&Context::new(global))?;
    match command.verb {
        ApprovalVerb::Ls(args) => list::run(global, &approvals, args),
        ApprovalVerb::Info(args) => info::run(global, &approvals.get(&args.id)?),
        ApprovalVerb::Approve(args) => reply::approve(global, &approvals, *args),
        ApprovalVerb::Deny(args) => reply::deny(global, &approvals, args),
        ApprovalVerb::Watch(args) => watch::run(global, &approvals, &args),
        ApprovalVerb::Grants(args) => grants::list(global, &approvals, args),
        ApprovalVerb::Revoke(args) => grants::revoke(global, &approvals, &args),
    }
}
