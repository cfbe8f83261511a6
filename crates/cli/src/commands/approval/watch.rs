//! `glovebox approval watch`.

use std::collections::HashSet;
use std::time::Duration;

use glovebox_model::{Approval, ApprovalId, ApprovalState, Result};
use glovebox_store::ApprovalFilter;
use jiff::Timestamp;

use super::list::table;
use super::reply::outcome;
use crate::approvals::Approvals;
use crate::args::{ApprovalWatchArgs, Global};
use crate::exit::Exit;
use crate::paint::Paint;
use crate::prompt::{Offer, Prompt, Said};
use crate::render;
use crate::stdout::{self, Reader};
use crate::stop::Stop;

/// How long a request may wait before somebody is asked.
const POLL: Duration = Duration::from_secs(1);
/// More than anybody answers between two looks.
const MOST: usize = 1000;

pub(super) fn run(
    global: &Global,
    approvals: &Approvals,
    args: &ApprovalWatchArgs,
) -> Result<Exit> {
    let prompt = match global.json {
        true => None,
        false => Prompt::open()?,
    };
    if !global.quiet && !global.json {
        render::note("waiting for what needs an answer; Ctrl-C ends it");
    }
    let stop = Stop::listen()?;
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut seen: HashSet<ApprovalId> = HashSet::new();
    loop {
        let mut pending = pending(approvals)?;
        // Those that ended are not asked about again, and need not be remembered.
        seen.retain(|id| pending.iter().any(|it| it.id == *id));
        pending.retain(|it| !seen.contains(&it.id));
        for approval in pending {
            let goes_on = match &prompt {
                Some(prompt) => ask(prompt, approvals, &approval),
                None => print(global, &approval)?,
            };
            seen.insert(approval.id);
            left -= 1;
            if !goes_on || left == 0 {
                return Ok(Exit::SUCCESS);
            }
        }
        if stop.wait(POLL) {
            return Ok(Exit::SUCCESS);
        }
    }
}

/// The oldest first.
fn pending(approvals: &Approvals) -> Result<Vec<Approval>> {
    let mut page = approvals.list(ApprovalFilter {
        state: Some(ApprovalState::Pending),
        limit: MOST,
        ..ApprovalFilter::default()
    })?;
    page.items.reverse();
    Ok(page.items)
}

/// Whether there is still somebody to be asked.
fn ask(prompt: &Prompt, approvals: &Approvals, approval: &Approval) -> bool {
    loop {
        let answer = match prompt.answer(approval, Offer::there(approval)) {
            Said::Answer(answer) => *answer,
            Said::Later | Said::TooLate => return true,
            // Nobody said no: others may still answer.
            Said::Closed => return false,
        };
        let error = match approvals.reply(approval, answer) {
            Ok(approval) => {
                prompt.tell(&outcome(&approval));
                return true;
            }
            Err(error) => error,
        };
        prompt.tell(&format!("{}: {}", error.code, error.message));
        error.hints.iter().for_each(|hint| prompt.tell(hint));
        let is_open = approvals
            .get(&approval.id)
            .is_ok_and(|it| it.state == ApprovalState::Pending);
        if !is_open {
            return true;
        }
    }
}

fn print(global: &Global, approval: &Approval) -> Result<bool> {
    let reader = match global.json {
        true => stdout::json(approval)?,
        false => {
            let row = table(std::slice::from_ref(approval), Timestamp::now());
            stdout::text(&row.body(Paint::on(&std::io::stdout())))?
        }
    };
    Ok(reader == Reader::Listening)
}
