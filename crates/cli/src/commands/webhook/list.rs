//! `glovebox webhook ls`.

use glovebox_api::{Target, WebhookList};
use glovebox_engine::{Webhook, webhooks_of};
use glovebox_model::Result;

use crate::args::Global;
use crate::context::Context;
use crate::exit::Exit;
use crate::paint::Paint;
use crate::table::{Cell, Table};
use crate::{render, stdout};

pub(super) fn run(global: &Global) -> Result<Exit> {
    let context = Context::new(global);
    let listed: WebhookList = match context.server()? {
        Some(remote) => remote.get(Target::new("/v1/webhooks"))?,
        // A process that sends nothing has no webhooks to ask for: they are read from the file.
        None => WebhookList {
            items: webhooks_of(&context.config()?)?
                .iter()
                .map(Webhook::info)
                .collect(),
        },
    };
    if global.json {
        stdout::json(&listed)?;
    } else if global.quiet {
        let names = listed.items.iter().map(|it| format!("{}\n", it.name));
        stdout::text(&names.collect::<String>())?;
    } else if listed.items.is_empty() {
        render::note("there are none; `[[webhook]]` of the configuration makes one");
    } else {
        let mut table = Table::new(["NAME", "WHERE", "EVENTS", "SPACE"]);
        for it in &listed.items {
            let events: Vec<&str> = it.events.iter().map(|it| it.as_str()).collect();
            table.push([
                Cell::from(it.name.as_str()),
                Cell::from(it.origin.as_str()),
                Cell::from(events.join(", ")),
                Cell::from(it.space_id.as_ref().map_or("all", |it| it.as_str())),
            ]);
        }
        stdout::text(&table.text(Paint::on(&std::io::stdout())))?;
    }
    Ok(Exit::SUCCESS)
}
