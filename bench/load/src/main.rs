//! A bounded load on a Glovebox server over loopback. It starts its own server on a state directory
//! of its own, and both are gone when it ends.
//!
//! `execs` measures throughput and latency for some numbers of clients; `at-once` asks for many
//! sandboxes at one instant and counts them in /proc; `listing` fills the store and measures how
//! long a page of one task takes.

mod at_once;
mod client;
mod execs;
mod listing;
mod server;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about, version)]
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
        #[arg(long, value_delimiter = ',', default_value = "1,8,64")]
        clients: Vec<usize>,
        /// For each number of clients.
        #[arg(long, default_value_t = 400)]
        requests: usize,
        /// Execs that run at once.
        #[arg(long, default_value_t = 4)]
        concurrent: u32,
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
}

type Fallible<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Fallible {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match &args.what {
            What::Execs {
                clients,
                requests,
                concurrent,
            } => execs::run(&args, clients, *requests, *concurrent).await,
            What::AtOnce { sandboxes } => at_once::run(&args, *sandboxes).await,
            What::Listing { rows } => listing::run(&args, rows).await,
        }
    })
}
