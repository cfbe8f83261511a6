//! A bounded load on a Glovebox server over loopback. It starts its own server on a state directory
//! of its own, and both are gone when it ends.
//!
//! `execs` measures throughput and latency for some numbers of clients; `at-once` asks for many
//! sandboxes at one instant and counts them in /proc; `listing` fills the store and measures how
//! long a page of one task takes; `tools` compares a tool's call with the engine's own.

#![allow(
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a tool for the bench: it prints, gives up, and speaks to the server that it started"
)]

mod at_once;
mod client;
mod execs;
mod listing;
mod mode;
mod server;
mod tools;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    about = "A bounded load on a Glovebox server over loopback, with its own server",
    version
)]
struct Args {
    /// The binary to measure.
    #[arg(long, default_value = "target/release/glovebox", global = true)]
    glovebox: PathBuf,
    /// Where the server keeps its state; a new directory below it is made and removed.
    #[arg(long, default_value = "/var/tmp", global = true)]
    below: PathBuf,
    /// A PostgreSQL instead of SQLite.
    #[arg(long, global = true)]
    database: Option<String>,
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// `POST /v1/execs` of `/bin/true`, waiting for each.
    Execs {
        /// Where sandboxes come from.
        #[arg(long, value_enum, default_value_t = mode::Mode::Pool)]
        mode: mode::Mode,
        /// Not in bursts: those have as many clients as the pool has sandboxes.
        #[arg(long, value_delimiter = ',', default_value = "1,8,64")]
        clients: Vec<usize>,
        /// For each number of clients.
        #[arg(long, default_value_t = 400)]
        requests: usize,
        /// Execs that run at once [default: 4, in bursts all of them].
        #[arg(long)]
        concurrent: Option<u32>,
        /// Agents with a sandbox each, for kept ones.
        #[arg(long, default_value_t = 4, value_parser = at_least_one)]
        agents: usize,
        /// Sandboxes in the pool, and execs of one burst.
        #[arg(long, default_value_t = 16, value_parser = at_least_one)]
        burst: usize,
    },
    /// Many sandboxes at one instant.
    AtOnce {
        #[arg(long, default_value_t = 100)]
        sandboxes: usize,
    },
    /// A page of one task's execs while the store grows.
    Listing {
        #[arg(long, value_delimiter = ',', default_value = "100,1000,10000,100000")]
        rows: Vec<usize>,
    },
    /// `/bin/true` by a tool at `glovebox mcp`, and by the engine itself.
    Tools {
        #[arg(long, default_value_t = 300, value_parser = at_least_one)]
        calls: usize,
    },
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least one is needed".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

type Fallible<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Fallible {
    let args = Args::parse();
    if let What::Tools { calls } = args.what {
        return tools::run(&args, calls);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match &args.what {
            What::Execs {
                mode,
                clients,
                requests,
                concurrent,
                agents,
                burst,
            } => {
                let usual = match mode {
                    mode::Mode::Burst => u32::try_from(*burst)?,
                    mode::Mode::Cold | mode::Mode::Pool | mode::Mode::Kept => 4,
                };
                let load = execs::Load {
                    mode: *mode,
                    clients: clients.clone(),
                    requests: *requests,
                    concurrent: concurrent.unwrap_or(usual),
                    agents: *agents,
                    burst: *burst,
                };
                execs::run(&args, &load).await
            }
            What::AtOnce { sandboxes } => at_once::run(&args, *sandboxes).await,
            What::Listing { rows } => listing::run(&args, rows).await,
            What::Tools { .. } => unreachable!("needs a process without threads"),
        }
    })
}
