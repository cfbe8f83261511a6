//! `glovebox doctor`.

mod containers;
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

pub(super) use report::{Health, Lines, Trial};
pub(super) use trial::run_in;

use report::{Backend, Report};

pub(crate) fn run(global: &Global) -> Result<Exit> {
    // Before anything that might start a thread.
    let keeper = Keeper::fork();
    let trial = trial::run(keeper);
    let context = Context::new(global);
    let state = context.state_path();
    let mut checks = host::checks(state.clone());
    checks.extend(match context.config() {
        Ok(config) => containers::check(&config, state.ok().as_deref()),
        Err(error) => Some(host::bad_config(&error)),
    });
    let report = Report::new(checks, Backend::new(BackendName::Native, probe(), trial));
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
