//! `glovebox bench`: this program beside others on this host, in one run. It reports and never
//! judges: what is fast enough is not for a host under load to decide.

mod bundle;
mod bwrap;
mod command;
mod container;
mod contender;
mod host;
mod interrupt;
mod memory;
mod native;
mod peer;
mod process;
mod report;
mod rounds;
mod samples;
mod stage;
mod standing;
mod text;

use clap::{Args, ValueEnum};
use glovebox_cage::Spawner;
use glovebox_model::Result;
use serde::Serialize;

use crate::args::Global;
use crate::exit::Exit;
use crate::paint::Paint;
use crate::{render, stdout};
use contender::Contender;
use interrupt::Interrupt;
use peer::{Absent, Peer};
use report::Report;
use stage::Stage;

/// Measure this program beside the peers found on this host
///
/// Everybody runs the same programs in turns, so that whatever the host does meanwhile happens to
/// all of them; ratios of the middle samples are what to read. Nothing is installed or kept.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox bench                        beside every peer that is found
  glovebox bench --against bwrap        beside one
  glovebox bench --list                 who would take part, and how to get the others
  glovebox bench --runs 300 --json      with more rounds, for a script")]
pub(crate) struct BenchArgs {
    /// Peers to run beside
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PEER,...")]
    against: Option<Vec<Peer>>,
    /// Rounds; who is slow takes part in fewer of them
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    runs: u16,
    /// Show who would take part, and measure nothing
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(global: &Global, args: BenchArgs) -> Result<Exit> {
    // First of all, as in a server: its keepers have what this process has now.
    let spawner = (!args.list).then(Spawner::fork);
    let interrupt = Interrupt::listen()?;
    let stage = Stage::set()?;
    let peers = args
        .against
        .unwrap_or_else(|| Peer::value_variants().to_vec());
    let (contenders, absent) = contender::gather(&stage, &peers, &interrupt)?;
    if args.list {
        let text = |paint| text::list(&contenders, &absent, paint);
        show(global, &listing(&contenders, &absent), text)?;
        return Ok(Exit::SUCCESS);
    }
    if !global.quiet {
        let count = contenders.len();
        render::note(&format!("measuring {count} contenders, about a minute"));
        if cfg!(debug_assertions) {
            render::note("this is a debug build: its figures mean nothing");
        }
    }
    let outcomes = rounds::measure(&contenders, usize::from(args.runs), &stage, &interrupt)?;
    let memory = memory::look(&stage, spawner.as_ref(), &contenders, &interrupt)?;
    let report = Report::new(&contenders, outcomes, memory, absent);
    show(global, &report, |paint| text::report(&report, paint))?;
    Ok(Exit::SUCCESS)
}

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    what: &'static str,
    payload: stage::Payload,
    argv: Vec<String>,
}

#[derive(Serialize)]
struct Listing<'a> {
    contenders: Vec<Listed>,
    absent: &'a [Absent],
}

fn listing<'a>(contenders: &[Contender], absent: &'a [Absent]) -> Listing<'a> {
    let contenders = contenders.iter().map(|contender| Listed {
        name: contender.name(),
        what: contender.what(),
        payload: contender.payload,
        argv: contender.argv(),
    });
    Listing {
        contenders: contenders.collect(),
        absent,
    }
}

fn show(global: &Global, value: &impl Serialize, text: impl FnOnce(Paint) -> String) -> Result<()> {
    if global.json {
        stdout::json(value)?;
    } else {
        stdout::text(&text(Paint::on(&std::io::stdout())))?;
    }
    Ok(())
}
