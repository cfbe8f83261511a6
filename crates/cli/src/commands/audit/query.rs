//! `glovebox audit query`.

use glovebox_model::Result;
use glovebox_store::{EntryFilter, Page};
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
    let filter = filter(args, records.as_ref())?;
    let page = match &records {
        Some(records) => records.query(&filter)?,
        None => Page {
            items: Vec::new(),
            next: None,
        },
    };
    if global.json {
        stdout::json(&page)?;
        return Ok(Exit::SUCCESS);
    }
    if page.items.is_empty() {
        if !global.quiet {
            render::note("no entry matches");
        }
        return Ok(Exit::SUCCESS);
    }
    let paint = Paint::on(&std::io::stdout());
    let mut text = header(paint);
    text.extend(page.items.iter().map(|entry| line(entry, paint)));
    stdout::text(&text)?;
    if let Some(cursor) = page.next.filter(|_| !global.quiet) {
        render::note(&format!("there are more: `--cursor {cursor}`"));
    }
    Ok(Exit::SUCCESS)
}

fn filter(args: QueryArgs, records: Option<&Records>) -> Result<EntryFilter> {
    let now = Timestamp::now();
    let moment = |flag: &str, text: Option<String>| {
        text.map(|text| moment::parse(flag, &text, now)).transpose()
    };
    let exec_id = match (args.exec, records) {
        (Some(name), Some(records)) => Some(records.resolve(&name)?),
        (_, None) | (None, _) => None,
    };
    Ok(EntryFilter {
        exec_id,
        kind: args.kind,
        tags: args.tag,
        since: moment("--since", args.since)?,
        until: moment("--until", args.until)?,
        task_id: args.task,
        agent_id: args.agent,
        limit: usize::from(args.limit),
        cursor: args.cursor,
        ..EntryFilter::default()
    })
}
