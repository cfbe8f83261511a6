//! `glovebox approval ls`.

use glovebox_model::{Approval, ApprovalState, Result};
use glovebox_store::ApprovalFilter;
use jiff::Timestamp;

use crate::approvals::Approvals;
use crate::args::{ApprovalLsArgs, Global};
use crate::exit::Exit;
use crate::human::{age, clip};
use crate::paint::{Paint, Tone};
use crate::render::{self, one_line};
use crate::stdout;
use crate::table::{Cell, Table};

const WHAT_MOST: usize = 48;

pub(super) fn run(global: &Global, approvals: &Approvals, args: ApprovalLsArgs) -> Result<Exit> {
    let state = match (args.state, args.all) {
        (Some(state), _) => Some(state),
        (None, true) => None,
        (None, false) => Some(ApprovalState::Pending),
    };
    let page = approvals.list(ApprovalFilter {
        space: None,
        state,
        exec: args.exec,
        conversation_id: args.conversation,
        limit: usize::from(args.limit),
        cursor: args.cursor,
    })?;
    if global.json {
        stdout::json(&page)?;
        return Ok(Exit::SUCCESS);
    }
    if global.quiet {
        let ids = page.items.iter().map(|it| format!("{}\n", it.id));
        stdout::text(&ids.collect::<String>())?;
        return Ok(Exit::SUCCESS);
    }
    if page.items.is_empty() {
        render::note(match state {
            Some(ApprovalState::Pending) => {
                "nothing waits for an answer; `--all` lists what was answered"
            }
            _ => "there are none",
        });
        return Ok(Exit::SUCCESS);
    }
    let paint = Paint::on(&std::io::stdout());
    stdout::text(&table(&page.items, Timestamp::now()).text(paint))?;
    if let Some(cursor) = page.next {
        render::note(&format!("there are more: `--cursor {cursor}`"));
    }
    Ok(Exit::SUCCESS)
}

pub(super) fn table(approvals: &[Approval], now: Timestamp) -> Table<6> {
    let mut table = Table::new(["ID", "STATE", "TIER", "BY", "WHAT", "AGE"]);
    for approval in approvals {
        let what = one_line(&approval.ask.description);
        table.push([
            Cell::from(approval.id.as_str()),
            Cell::toned(tone(approval.state), approval.state.as_str()),
            Cell::from(approval.ask.tier.as_str()),
            Cell::from(&approval.requested_by),
            Cell::from(clip(&what, WHAT_MOST)),
            Cell::from(age(approval.created_at, now)),
        ]);
    }
    table
}

pub(super) const fn tone(state: ApprovalState) -> Tone {
    match state {
        ApprovalState::Pending => Tone::Caution,
        ApprovalState::Approved | ApprovalState::Used => Tone::Good,
        ApprovalState::Denied | ApprovalState::Expired | ApprovalState::Void => Tone::Bad,
    }
}
