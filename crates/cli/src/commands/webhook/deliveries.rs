//! `glovebox webhook deliveries`.

use glovebox_api::Target;
use glovebox_model::{DeliveryState, Page, Result, WebhookDelivery};
use glovebox_store::DeliveryFilter;
use jiff::Timestamp;

use crate::args::{DeliveriesArgs, Global};
use crate::context::Context;
use crate::exit::Exit;
use crate::human::{age, clip};
use crate::paint::{Paint, Tone};
use crate::render::{self, one_line};
use crate::stdout;
use crate::table::{Cell, Table};
use glovebox_api::client::Client;

const PROBLEM_MOST: usize = 60;

pub(super) fn run(global: &Global, args: DeliveriesArgs) -> Result<Exit> {
    let context = Context::new(global);
    let filter = DeliveryFilter {
        webhook: args.webhook,
        state: args.state,
        limit: usize::from(args.limit),
        cursor: args.cursor,
    };
    let page = match context.store_api_if_there()? {
        Some(client) => listed(&client, &filter)?,
        None => Page::empty(),
    };
    if global.json {
        stdout::json(&page)?;
        return Ok(Exit::SUCCESS);
    }
    if global.quiet {
        let ids = page.items.iter().map(|it| format!("{}\n", it.message_id));
        stdout::text(&ids.collect::<String>())?;
        return Ok(Exit::SUCCESS);
    }
    if page.items.is_empty() {
        render::note("there are none");
        return Ok(Exit::SUCCESS);
    }
    let table = table(&page.items, Timestamp::now());
    stdout::text(&table.text(Paint::on(&std::io::stdout())))?;
    if let Some(cursor) = page.next {
        render::note(&format!("there are more: `--cursor {cursor}`"));
    }
    Ok(Exit::SUCCESS)
}

pub(super) fn listed(client: &Client, filter: &DeliveryFilter) -> Result<Page<WebhookDelivery>> {
    client.get(
        Target::new("/v1/webhooks/deliveries")
            .optional("webhook", filter.webhook.as_deref())
            .optional("state", filter.state.map(DeliveryState::as_str))
            .optional("limit", Some(filter.limit).filter(|limit| *limit > 0))
            .optional("cursor", filter.cursor.as_deref()),
    )
}

fn table(items: &[WebhookDelivery], now: Timestamp) -> Table<7> {
    let mut table = Table::new([
        "MESSAGE", "WEBHOOK", "EVENT", "STATE", "TRIES", "ANSWER", "AGE",
    ]);
    for it in items {
        let answer = match (it.status_code, &it.problem) {
            (_, Some(problem)) => clip(&one_line(problem), PROBLEM_MOST),
            (Some(status), None) => status.to_string(),
            (None, None) => "-".to_owned(),
        };
        table.push([
            Cell::from(it.message_id.as_str()),
            Cell::from(it.webhook.as_str()),
            Cell::from(it.event.as_str()),
            Cell::toned(tone(it.state), it.state.as_str()),
            Cell::from(it.attempts.to_string()),
            Cell::from(answer),
            Cell::from(age(it.created_at, now)),
        ]);
    }
    table
}

const fn tone(state: DeliveryState) -> Tone {
    match state {
        DeliveryState::Pending => Tone::Caution,
        DeliveryState::Delivered => Tone::Good,
        DeliveryState::Failed => Tone::Bad,
    }
}
