//! `glovebox bench`: this program beside others on this host. `glovebox_bench` measures.

mod text;

use glovebox_bench::{Interrupt, Peer};
use glovebox_model::Result;
use serde::Serialize;

use crate::args::{BenchArgs, Global};
use crate::exit::Exit;
use crate::interrupt::{self, Asker};
use crate::paint::Paint;
use crate::{context, render, stdout};

pub(crate) fn run(global: &Global, args: BenchArgs) -> Result<Exit> {
    let peers = args.against.unwrap_or_else(|| Peer::ALL.to_vec());
    if args.list {
        let (interrupt, _asker) = listen()?;
        let listing = glovebox_bench::list(&peers, &interrupt)?;
        return show(global, &listing, |paint| text::listing(&listing, paint));
    }
    // Before signals are listened for: what it forks has none of the handlers.
    let spawner = context::fork_spawner()?;
    let (interrupt, _asker) = listen()?;
    let begin = |count: usize| {
        if !global.quiet {
            render::note(&format!("measuring {count} contenders, about a minute"));
            if cfg!(debug_assertions) {
                render::note("this is a debug build: its figures mean nothing");
            }
        }
    };
    let report = glovebox_bench::measure(&peers, args.runs, &spawner, &interrupt, begin)?;
    show(global, &report, |paint| text::report(&report, paint))
}

/// The asker is to live as long as the interrupt.
fn listen() -> Result<(Interrupt, Asker)> {
    let (cancel, asker) = interrupt::listen()?;
    Ok((Interrupt::new(interrupt::flag()?, cancel), asker))
}

fn show(
    global: &Global,
    value: &impl Serialize,
    text: impl FnOnce(Paint) -> String,
) -> Result<Exit> {
    if global.json {
        stdout::json(value)?;
    } else {
        stdout::text(&text(Paint::on(&std::io::stdout())))?;
    }
    Ok(Exit::SUCCESS)
}
