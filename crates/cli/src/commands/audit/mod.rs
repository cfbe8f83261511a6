//! `glovebox audit`.

mod export;
mod line;
mod moment;
mod query;
mod tail;
mod timeline;
mod verify;

use glovebox_model::Result;

use crate::args::{AuditCommand, AuditVerb, Global};
use crate::exit::Exit;

pub(crate) fn run(global: &Global, command: AuditCommand) -> Result<Exit> {
    match command.verb {
        AuditVerb::Tail(args) => tail::run(global, &args),
        AuditVerb::Query(args) => query::run(global, args),
        AuditVerb::Timeline(args) => timeline::run(global, args),
        AuditVerb::Verify(args) => verify::run(global, args),
        AuditVerb::Export(args) => export::run(global, args),
    }
}
