//! `glovebox backend`.

mod grid;
mod probe;

use glovebox_api::Target;
use glovebox_engine::{BackendView, Engine};
use glovebox_model::Result;
use glovebox_store::StateDir;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::args::{BackendCommand, BackendVerb, Global};
use crate::context::{self, Context};
use crate::exit::Exit;
use crate::paint::Paint;
use crate::stdout;
use glovebox_api::client::Client;

#[derive(Debug, Serialize, Deserialize)]
struct Listed {
    items: Vec<BackendView>,
}

pub(crate) fn run(global: &Global, command: BackendCommand) -> Result<Exit> {
    match command.verb {
        BackendVerb::Ls(_) => list(global),
        BackendVerb::Probe(args) => probe::run(global, &args),
    }
}

fn list(global: &Global) -> Result<Exit> {
    let context = Context::new(global);
    let listed = match context.server()? {
        Some(remote) => of_server(&remote)?,
        // What this host has, which needs no store and so no API.
        None => {
            let (engine, _place) = looking(&context)?;
            Listed {
                items: engine
                    .sandboxes
                    .backends_here(&context::local_ids(None), None),
            }
        }
    };
    if global.json {
        stdout::json(&listed)?;
    } else {
        stdout::text(&grid::text(&listed.items, Paint::on(&std::io::stdout())))?;
    }
    Ok(Exit::SUCCESS)
}

fn of_server(remote: &Client) -> Result<Listed> {
    remote.get_slowly(Target::new("/v1/backends"))
}

/// An engine to ask. Where nothing ever ran it has a directory that is gone afterwards: none is made
/// only to be looked at.
fn looking(context: &Context<'_>) -> Result<(Engine, Option<TempDir>)> {
    if context.place()?.state.exists() {
        return Ok((context.engine()?, None));
    }
    let place = probe::temporary()?;
    let engine = context.engine_in(StateDir::open(place.path())?)?;
    Ok((engine, Some(place)))
}

/// `native`, `docker` with what its engine chooses, or `docker/runsc`.
fn title(view: &BackendView) -> String {
    match &view.runtime {
        Some(runtime) => format!("{}/{runtime}", view.name),
        None => view.name.to_string(),
    }
}
