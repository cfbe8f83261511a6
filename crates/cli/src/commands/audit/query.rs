//! `glovebox audit query`.

use glovebox_model::{Page, Result};
use glovebox_store::{AgedEntry, EntryFilter};
use jiff::Timestamp;

use super::line::{header, line};
use super::moment;
use crate::args::{Global, QueryArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::paint::Paint;
use crate::records::Records;
use crate::{render, stdout};

pub(crate) fn run(global: &Global, args: QueryArgs) -> Result<Exit> {
    let records = Context::new(global).records()?;
    let now = Timestamp::now();
    let filter = filter(args, records.as_ref(), now)?;
    let page = match &records {
        Some(records) => records.query(&filter)?,
        None => Page {
            items: Vec::new(),
            next: None,
        },
    };
    let aged = |entry| AgedEntry::new(entry, now);
    let page = Page {
        items: page.items.into_iter().map(aged).collect::<Vec<_>>(),
        next: page.next,
    };
    if global.json {
        stdout::json(&page)?;
        return Ok(Exit::SUCCESS);
    }
    if page.items.is_empty() {
        if !global.quiet {
            render::note(match page.next {
                Some(_) => "no entry matches so far",
                None => "no entry matches",
            });
        }
    } else {
        let paint = Paint::on(&std::io::stdout());
        let mut text = header(paint);
        text.extend(page.items.iter().map(|it| line(it, paint)));
        stdout::text(&text)?;
    }
    if let Some(cursor) = page.next.filter(|_| !global.quiet) {
        render::note(&format!("there are more: `--cursor {cursor}`"));
    }
    Ok(Exit::SUCCESS)
}

fn filter(args: QueryArgs, records: Option<&Records>, now: Timestamp) -> Result<EntryFilter> {
    let moment = |flag: &str, text: Option<String>| {
        text.map(|text| moment::parse(flag, &text, now)).transpose()
    };
    let exec_id = match (args.exec, records) {
        (Some(name), Some(records)) => Some(records.find(&name)?.exec_id),
        (_, None) | (None, _) => None,
    };
    let mut tags = args.tag;
    tags.extend(args.sandbox.map(|id| format!("sandbox:{id}")));
    tags.extend(args.severity.map(|severity| format!("severity:{severity}")));
    let mut filter = EntryFilter {
        exec_id,
        kind: args.kind,
        tags,
        since: moment("--since", args.since)?,
        until: moment("--until", args.until)?,
        task_id: args.task,
        workflow_id: args.workflow,
        agent_id: args.agent,
        limit: usize::from(args.limit),
        cursor: args.cursor,
        ..EntryFilter::default()
    };
    if let Some(mode) = args.mode {
        filter = filter.of_mode(mode);
    }
    Ok(match args.tier {
        Some(tier) => filter.of_tier(tier, now),
        None => filter,
    })
}
