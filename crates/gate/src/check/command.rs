//! `command`: a program that judges agrees.

use glovebox_model::FailureCode;

use super::Found;
use crate::command::{COMMAND_TAIL_MAX, CommandCheck};
use crate::evidence::Evidence;
use crate::finding::Finding;

const TAIL_SHOWN: usize = 600;

pub(super) fn try_on(check: &CommandCheck, evidence: &Evidence<'_>) -> Found {
    let shown = check.argv.join(" ");
    let shown: String = shown.chars().take(80).collect();
    let outcome = evidence.runner.run_command(check).map_err(|error| {
        Finding::bad(
            FailureCode::ToolError,
            format!("`{shown}` could not be run: {error}"),
            "make sure that the program is there, and try again",
        )
    })?;
    let what = match (outcome.timed_out, outcome.exit_code, &outcome.error) {
        (true, _, _) => format!("took longer than {}", check.timeout),
        (false, _, Some(error)) => format!("failed: {error}"),
        (false, Some(0), None) => return Ok(Finding::good()),
        (false, Some(code), None) => format!("ended with exit code {code}"),
        (false, None, None) => "was ended by a signal".to_owned(),
    };
    let tail = end_of(&outcome.tail, COMMAND_TAIL_MAX.min(TAIL_SHOWN)).trim();
    let bad = Finding::bad(
        FailureCode::ToolError,
        format!("`{shown}` {what}"),
        format!("run `{shown}` on the changes, and mend what it complains about"),
    );
    Err(bad.quoting(tail))
}

/// At most so many bytes, from a place where a character begins.
fn end_of(text: &str, most: usize) -> &str {
    let mut from = text.len().saturating_sub(most);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}
