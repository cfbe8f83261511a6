//! `glovebox audit tail`.

use std::thread;
use std::time::Duration;

use glovebox_model::Result;
use glovebox_store::{AgedEntry, Entry};
use jiff::Timestamp;

use super::line::{header, line};
use crate::args::{Global, TailArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::paint::Paint;
use crate::records::Records;
use crate::render;
use crate::stdout::{self, Reader};

/// How long an entry may lie before it is shown.
const POLL: Duration = Duration::from_millis(250);
/// What the store gives at once. Should more come between two looks, the gap is said.
const MOST: usize = 1000;

pub(crate) fn run(global: &Global, args: &TailArgs) -> Result<Exit> {
    let context = Context::new(global);
    let mut records = context.records()?;
    let first = match &records {
        Some(records) => records.tail(usize::from(args.lines))?,
        None => Vec::new(),
    };
    if !args.follow {
        if first.is_empty() && !global.json && !global.quiet {
            render::note("the ledger is empty; every `glovebox run` writes to it");
        }
        print(global, &first, Head::Shown)?;
        return Ok(Exit::SUCCESS);
    }
    let mut last = first.last().map_or(0, |entry| entry.seq);
    let mut reader = print(global, &first, Head::Shown)?;
    let mut head = if first.is_empty() {
        Head::Shown
    } else {
        Head::Left
    };
    while reader == Reader::Listening {
        thread::sleep(records.as_ref().map_or(POLL, |it| it.pause(POLL)));
        if records.is_none() {
            records = context.records()?;
        }
        let Some(records) = &records else { continue };
        let new = since(records, last)?;
        if let Some(newest) = new.last() {
            last = newest.seq;
            reader = print(global, &new, head)?;
            head = Head::Left;
        }
    }
    Ok(Exit::SUCCESS)
}

/// The entries after this one, oldest first, up to what fits into one answer.
fn since(records: &Records, last: u64) -> Result<Vec<Entry>> {
    let newest = records.tail(1)?;
    let behind = newest
        .last()
        .map_or(0, |entry| entry.seq.saturating_sub(last));
    if behind == 0 {
        return Ok(Vec::new());
    }
    let wanted = usize::try_from(behind).unwrap_or(MOST).min(MOST);
    let mut new = records.tail(wanted)?;
    new.retain(|entry| entry.seq > last);
    let first = new
        .first()
        .map_or(last, |entry| entry.seq.saturating_sub(1));
    if first > last {
        let (from, to) = (last + 1, first);
        render::note(&format!(
            "entries {from} to {to} came too fast to be shown here"
        ));
    }
    Ok(new)
}

/// Whether the names of the columns go before the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Head {
    Shown,
    Left,
}

fn print(global: &Global, entries: &[Entry], head: Head) -> Result<Reader> {
    let now = Timestamp::now();
    let aged = |entry: &Entry| AgedEntry::new(entry.clone(), now);
    let entries: Vec<AgedEntry> = entries.iter().map(aged).collect();
    if global.json {
        for entry in &entries {
            if stdout::json(entry)? == Reader::Gone {
                return Ok(Reader::Gone);
            }
        }
        return Ok(Reader::Listening);
    }
    if entries.is_empty() {
        return Ok(Reader::Listening);
    }
    let paint = Paint::on(&std::io::stdout());
    let mut text = match head {
        Head::Shown => header(paint),
        Head::Left => String::new(),
    };
    text.extend(entries.iter().map(|entry| line(entry, paint)));
    stdout::text(&text)
}
