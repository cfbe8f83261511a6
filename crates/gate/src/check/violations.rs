//! `no_violations`: policy would let all of it happen.

use glovebox_model::FailureCode;

use super::Found;
use crate::evidence::Evidence;
use crate::finding::Finding;

const SHOWN: usize = 3;

pub(super) fn try_on(evidence: &Evidence<'_>) -> Found {
    let subject = evidence.subject;
    let refused = subject.effects.iter().filter(|it| !it.would_succeed);
    let refused: Vec<_> = refused.collect();
    let listed = u64::try_from(refused.len()).unwrap_or(u64::MAX);
    let count = subject.effect_count.violations.max(listed);
    if count == 0 {
        // Of what was not told nobody knows.
        evidence.effects()?;
        return Ok(Finding::good());
    }
    let why = |it: &&glovebox_model::Effect| match &it.failure_reason {
        Some(reason) => format!("{} ({reason})", it.kind()),
        None => it.kind().to_string(),
    };
    let shown: Vec<String> = refused.iter().take(SHOWN).map(why).collect();
    let list = match shown.is_empty() {
        true => String::new(),
        false => format!(": {}", shown.join("; ")),
    };
    Err(Finding::bad(
        FailureCode::PolicyViolation,
        format!("policy would refuse {count} of its effects{list}"),
        "leave them out, or ask for what they need before it is run for real",
    ))
}
