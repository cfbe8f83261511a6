//! `glovebox policy shadow`.

use std::fmt::Write as _;

use glovebox_model::{Page, Permit, Reason, Result};
use glovebox_store::{Entry, EntryFilter, Kind};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::replay::reason;
use crate::args::{Global, ShadowArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::human::{clip, time};
use crate::render::{self, one_line};
use crate::stdout;

/// The event under which it is in the ledger.
const TAG: &str = "event:policy.shadow";
const COMMAND_MOST: usize = 100;

/// What was decided, and what would have been.
#[derive(Debug, Serialize)]
struct Shadow {
    seq: u64,
    at: Timestamp,
    #[serde(flatten)]
    said: Said,
}

/// As it is in the ledger.
#[derive(Debug, Serialize, Deserialize)]
struct Said {
    said: Permit,
    would_say: Permit,
    reasons: Vec<Reason>,
    command: Option<String>,
}

impl Shadow {
    /// `None` for an entry of a form that this version does not know.
    fn of(entry: &Entry) -> Option<Self> {
        Some(Self {
            seq: entry.seq,
            at: entry.at,
            said: serde_json::from_value(entry.body["details"].clone()).ok()?,
        })
    }

    fn text(&self) -> String {
        let Said {
            said,
            would_say,
            reasons,
            command,
        } = &self.said;
        let command = one_line(command.as_deref().unwrap_or("-"));
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{:>6}  {}  {said} -> {would_say}  {}",
            self.seq,
            time(self.at),
            clip(&command, COMMAND_MOST)
        );
        let decisive = reasons.iter().filter(|it| it.permit == *would_say);
        text.extend(decisive.map(reason));
        text
    }
}

pub(super) fn run(global: &Global, args: ShadowArgs) -> Result<Exit> {
    let filter = EntryFilter {
        kind: Some(Kind::Administered),
        tags: vec![TAG.to_owned()],
        limit: usize::from(args.limit),
        cursor: args.cursor,
        ..EntryFilter::default()
    };
    let page = match Context::new(global).records()? {
        Some(records) => records.query(&filter)?,
        None => Page {
            items: Vec::new(),
            next: None,
        },
    };
    let told = Page {
        items: page.items.iter().filter_map(Shadow::of).collect(),
        next: page.next,
    };
    if global.json {
        stdout::json(&told)?;
        return Ok(Exit::SUCCESS);
    }
    if told.items.is_empty() && !global.quiet {
        render::note(
            "no shadow policy has decided otherwise; `--shadow-policy FILE` tries one beside yours",
        );
    }
    stdout::text(&told.items.iter().map(Shadow::text).collect::<String>())?;
    if let Some(cursor) = told.next.filter(|_| !global.quiet) {
        render::note(&format!("there are more: `--cursor {cursor}`"));
    }
    Ok(Exit::SUCCESS)
}
