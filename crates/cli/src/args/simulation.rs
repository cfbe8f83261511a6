//! Simulating, and what becomes of it.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use glovebox_model::{EffectKind, Mode};

/// How much of it really happens.
#[derive(Debug, Default, Args)]
pub(crate) struct SimulationOptions {
    /// Capture what it would do to files, processes and the network; nothing happens
    #[arg(
        long,
        conflicts_with_all = ["hold", "keep_if_ok", "sandbox", "lifetime"],
        help_heading = "Simulation",
    )]
    pub(crate) simulate: bool,
    /// Keep what it writes only if it succeeds and the gates agree
    #[arg(
        long,
        conflicts_with_all = ["simulate", "hold", "keep_if_ok", "sandbox", "lifetime"],
        help_heading = "Simulation",
    )]
    pub(crate) transactional: bool,
    /// What a simulated program is told: JSON with `responses`, `faults`, `data`
    #[arg(
        long,
        value_name = "FILE",
        requires = "simulate",
        help_heading = "Simulation",
        hide_short_help = true
    )]
    pub(crate) responses: Option<PathBuf>,
    /// Tell reads of files too
    #[arg(
        long,
        requires = "simulate",
        help_heading = "Simulation",
        hide_short_help = true
    )]
    pub(crate) reads: bool,
    /// Tell effects as they are seen, on standard error
    #[arg(
        long,
        requires = "simulate",
        help_heading = "Simulation",
        hide_short_help = true
    )]
    pub(crate) live: bool,
    /// Run it on changes that wait, as if they had been kept; what it writes is thrown away
    #[arg(
        long,
        value_name = "EXEC",
        conflicts_with_all = ["simulate", "transactional", "hold", "keep_if_ok", "scratch"],
        help_heading = "Simulation",
        hide_short_help = true,
    )]
    pub(crate) over: Option<String>,
}

impl SimulationOptions {
    pub(crate) const fn mode(&self) -> Mode {
        match (self.simulate, self.transactional) {
            (true, _) => Mode::Simulate,
            (false, true) => Mode::Transactional,
            (false, false) => Mode::Run,
        }
    }
}

/// Show what an exec did, or would do
///
/// Of a simulation: files, requests, processes and what tools said of themselves, each with whether
/// policy would let it happen.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox run --simulate -- ./migrate.sh
  glovebox effects e_3f0c
  glovebox effects e_3f0c --type network_request --json")]
pub(crate) struct EffectsArgs {
    /// Its id, enough of the beginning of it, or its client id
    #[arg(value_name = "EXEC")]
    pub(crate) exec: String,
    /// Only these; repeatable
    #[arg(long = "type", value_name = "TYPE", value_parser = kind())]
    pub(crate) kinds: Vec<EffectKind>,
    /// Only what policy would not let happen
    #[arg(long)]
    pub(crate) violations: bool,
}

fn kind() -> impl TypedValueParser<Value = EffectKind> {
    PossibleValuesParser::new(EffectKind::ALL.map(EffectKind::as_str)).try_map(|text| {
        let mut all = EffectKind::ALL.into_iter();
        all.find(|it| it.as_str() == text).ok_or("no such effect")
    })
}

/// Apply the changes of a simulation
///
/// Keeps exactly the files that it wrote, all or none, unless the workspace has changed there since.
/// With `--rerun` it is run for real instead: its scripts must be the same, whatever leaves must be
/// what the simulation showed, and the first request that is not is stopped. What it writes is kept
/// if it is what was shown.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox diff e_3f0c
  glovebox apply e_3f0c
  glovebox apply e_3f0c --rerun")]
pub(crate) struct ApplyArgs {
    /// Its id, enough of the beginning of it, or its client id
    #[arg(value_name = "EXEC")]
    pub(crate) exec: String,
    /// Run it for real, held to what it showed
    #[arg(long)]
    pub(crate) rerun: bool,
}

/// Drop what a simulation, or an exec with `--hold`, wrote
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox discard e_3f0c")]
pub(crate) struct DiscardArgs {
    /// Its id, enough of the beginning of it, or its client id
    #[arg(value_name = "EXEC")]
    pub(crate) exec: String,
}
