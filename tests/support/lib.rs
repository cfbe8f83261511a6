//! What the whole-product tests share: the binary, a trial with its own directories that leaves
//! nothing behind, callers, fixtures on the host and the escape probes.

mod api;
mod binary;
mod caller;
mod column;
mod database;
mod docker;
mod ears;
mod engine;
mod furnished;
mod helper;
mod http;
mod leftovers;
mod mcp_tools;
mod neighbour;
mod orders;
mod probes;
mod registry;
mod server;
mod site;
mod tier;
mod trial;

pub use api::{Api, Operation};
pub use binary::{beside_the_repository, glovebox, release_glovebox};
pub use caller::{Account, Caller};
pub use column::Column;
pub use database::Database;
pub use docker::{Docker, missing};
pub use ears::Ears;
pub use engine::OwnEngine;
pub use furnished::{Furnished, outward};
pub use helper::{Helper, python};
pub use http::{Client, Event, Events, Response};
pub use leftovers::{processes_with, still_there, wait_until};
pub use mcp_tools::{Era, McpTools};
pub use neighbour::Neighbour;
pub use orders::{Gate, is_final, sh, with};
pub use probes::{
    Fixtures, Row, Verdict, bundle_rows, inside, own_probe, own_probe_in, parse_rows, print_table,
    probe_source,
};
pub use registry::Registry;
pub use server::{Server, Start};
pub use site::{Asked, Said, Site};
pub use tier::is_full;
pub use trial::{Outcome, Run, Trial};
