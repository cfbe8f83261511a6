//! `glovebox audit timeline`.

use glovebox_model::Result;
use glovebox_store::{AgedEntry, Entry, Step, Timeline, TimelineFilter};
use jiff::Timestamp;

use super::line::{tone, what};
use crate::args::{Global, TimelineArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::human::time;
use crate::paint::{Paint, Tone};
use crate::render::one_line;
use crate::{render, stdout};

pub(crate) fn run(global: &Global, args: TimelineArgs) -> Result<Exit> {
    let filter = TimelineFilter {
        task_id: args.task,
        limit: usize::from(args.limit),
        cursor: args.cursor,
    };
    let timeline = match Context::new(global).records()? {
        Some(records) => records.timeline(&filter)?,
        None => Timeline {
            task_id: filter.task_id,
            steps: Vec::new(),
            next: None,
        },
    };
    if global.json {
        let now = Timestamp::now();
        stdout::json(&timeline.map(|entry| AgedEntry::new(entry, now)))?;
        return Ok(Exit::SUCCESS);
    }
    let paint = Paint::on(&std::io::stdout());
    stdout::text(
        &timeline
            .steps
            .iter()
            .map(|it| page(it, paint))
            .collect::<String>(),
    )?;
    if global.quiet {
        return Ok(Exit::SUCCESS);
    }
    if timeline.steps.is_empty() {
        render::note("the ledger has no entry of this task");
    }
    if let Some(cursor) = timeline.next {
        render::note(&format!("there are more: `--cursor {cursor}`"));
    }
    Ok(Exit::SUCCESS)
}

/// The exec, then what happened to it, each on a line of its own.
fn page(step: &Step, paint: Paint) -> String {
    let title = step.exec_id.as_ref().map_or("-", |id| id.as_str());
    let mut text = paint.apply(Tone::Heading, title) + "\n";
    let mut entries: Vec<&Entry> = step.planned.iter().chain(&step.others).collect();
    entries.extend(&step.outcome);
    // What was decided after its end comes after it.
    entries.sort_by_key(|entry| entry.seq);
    for entry in entries {
        let kind = paint.apply(tone(entry), &format!("{:<12}", entry.kind.as_str()));
        let (at, what) = (time(entry.at), one_line(&what(entry)));
        text.push_str(&format!("  {:>6}  {at:<20}  {kind}  {what}\n", entry.seq));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_model::SpaceId;
    use glovebox_store::Kind;
    use serde_json::{Value, json};

    fn entry(seq: u64, kind: Kind, body: Value) -> Entry {
        Entry {
            space_id: SpaceId::local(),
            seq,
            at: "2026-08-01T10:00:00.123456Z".parse().unwrap(),
            kind,
            exec_id: None,
            ids: [].into(),
            tags: Vec::new(),
            body,
            prev_hash: String::new(),
            hash: String::new(),
        }
    }

    #[test]
    fn a_step_is_shown_in_the_order_of_the_ledger() {
        let step = Step {
            exec_id: Some(format!("e_{}", "0a".repeat(16)).parse().unwrap()),
            planned: Some(entry(7, Kind::Planned, json!({"cmd": "make"}))),
            outcome: Some(entry(9, Kind::Outcome, json!({"status": "succeeded"}))),
            others: vec![entry(
                12,
                Kind::Administered,
                json!({"event": "changes.kept"}),
            )],
        };
        assert_eq!(
            page(&step, Paint::Plain),
            "e_0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a
       7  2026-08-01T10:00:00Z  planned       make
       9  2026-08-01T10:00:00Z  outcome       succeeded
      12  2026-08-01T10:00:00Z  administered  changes.kept
"
        );
    }
}
