//! What the whole-product tests share: the binary, a trial with its own directories that leaves
//! nothing behind, callers, fixtures on the host and the escape probes.

mod api;
mod binary;
mod caller;
mod database;
mod furnished;
mod helper;
mod http;
mod leftovers;
mod neighbour;
mod orders;
mod probes;
mod server;
mod trial;

pub use api::{Api, Operation};
pub use binary::{beside_the_repository, glovebox, release_glovebox};
pub use caller::{Account, Caller};
pub use database::Database;
pub use furnished::Furnished;
pub use helper::{Helper, python};
pub use http::{Client, Event, Events, Response};
pub use leftovers::{processes_with, wait_until};
pub use neighbour::Neighbour;
pub use orders::{Gate, is_final, sh, with};
pub use probes::{Fixtures, Row, Verdict, bundle_rows, own_probe, parse_rows, print_table};
pub use server::{Server, Start};
pub use trial::{Outcome, Run, Trial};
