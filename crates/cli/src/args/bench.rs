//! `glovebox bench`.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use glovebox_bench::Peer;

/// Measure this program beside the peers found on this host
///
/// All of them run the same programs in turns, so that other work of the host disturbs all alike;
/// ratios of the middle samples are what to read. Nothing is installed or kept.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox bench                        beside every peer that is found
  glovebox bench --against bwrap        beside one
  glovebox bench --list                 what would be measured, and how to get the others
  glovebox bench --runs 300 --json      with more rounds, for a script")]
pub(crate) struct BenchArgs {
    /// Peers to run beside
    #[arg(long, value_parser = peer(), value_delimiter = ',', value_name = "PEER,...")]
    pub(crate) against: Option<Vec<Peer>>,
    /// Rounds; slow contenders take part in fewer of them
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) runs: u16,
    /// Show what would be measured, and measure nothing
    #[arg(long)]
    pub(crate) list: bool,
}

fn peer() -> impl TypedValueParser<Value = Peer> {
    let values = Peer::ALL.map(|peer| PossibleValue::new(peer.as_str()).help(peer.describe()));
    PossibleValuesParser::new(values).try_map(|text| Peer::parse(&text).ok_or("no such peer"))
}
