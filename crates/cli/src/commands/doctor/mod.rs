//! `glovebox doctor`.

mod host;
mod report;
mod trial;

use glovebox_engine::{Keeper, probe};
use glovebox_model::{BackendName, Result};

use crate::args::Global;
use crate::context::Context;
use crate::exit::Exit;
use crate::paint::Paint;
use crate::stdout;
use report::{Backend, Report};

pub(crate) fn run(global: &Global) -> Result<Exit> {
    // Before anything that might start a thread.
    let keeper = Keeper::fork();
    let trial = trial::run(keeper);
    let state = Context::new(global).state_path();
    let report = Report::new(
        host::checks(state),
        Backend::new(BackendName::Native, probe(), trial),
    );
    if global.json {
        stdout::json(&report)?;
    } else {
        stdout::text(&report.text(Paint::on(&std::io::stdout())))?;
    }
    Ok(if report.usable() {
        Exit::SUCCESS
    } else {
        Exit::FAILURE
    })
}
