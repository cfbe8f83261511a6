//! Glovebox beside other sandboxes on one host, measured in turns. Nothing is parsed or printed here,
//! and nothing is judged: a host under load cannot decide what is fast enough.

mod bundle;
mod bwrap;
mod command;
mod container;
mod contender;
mod host;
mod interrupt;
mod kept;
mod memory;
mod native;
mod payload;
mod peer;
mod process;
mod report;
mod rounds;
mod samples;
mod setup;
mod warm;

use glovebox_engine::Spawner;
use glovebox_model::Result;

pub use bwrap::Equivalent;
pub use contender::{Listed, Listing};
pub use host::Host;
pub use interrupt::Interrupt;
pub use memory::MemoryUse;
pub use payload::Payload;
pub use peer::{Absent, Peer};
pub use process::ProcessMemory;
pub use report::{Aim, Comparison, Report, Row};
pub use rounds::Outcome;
pub use samples::Quantiles;

use setup::Setup;

/// The contenders that would be measured beside these peers, and the peers that cannot be.
pub fn list(peers: &[Peer], interrupt: &Interrupt) -> Result<Listing> {
    let setup = Setup::new()?;
    let (contenders, absent) = contender::gather(&setup, peers, interrupt)?;
    Ok(Listing::new(&contenders, absent))
}

/// Measures Glovebox beside these peers in so many rounds. `spawner` was forked before `interrupt` was
/// made, as in a server: its keepers have none of the handlers. `begin` gets the number of
/// contenders before the first of them is measured.
pub fn measure(
    peers: &[Peer],
    rounds: u16,
    spawner: &Spawner,
    interrupt: &Interrupt,
    begin: impl FnOnce(usize),
) -> Result<Report> {
    let setup = Setup::new()?;
    let (contenders, absent) = contender::gather(&setup, peers, interrupt)?;
    begin(contenders.len());
    let outcomes = rounds::measure(&contenders, usize::from(rounds), &setup, interrupt)?;
    let memory = memory::measure(&setup, spawner, &contenders, interrupt)?;
    Ok(Report::new(&contenders, outcomes, memory, absent))
}
