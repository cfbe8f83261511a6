//! What agents used of what they may use in any hour, counted by the minute.

use glovebox_model::{Budget, Code, Error, Exec, Result, SpaceId, Stage};
use jiff::Timestamp;

use crate::failure::Doing;
use crate::sql::{Session, values};

/// Minutes that may hold something of the last hour: the one at each end is cut.
const WINDOW: i64 = 60;
const MINUTE_MS: i64 = 60_000;

/// Whose budget, and how much.
#[derive(Debug, Clone, Copy)]
pub struct BudgetTerms<'a> {
    pub agent: &'a str,
    pub budget: Budget,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Used {
    execs: i64,
    cpu_ms: i64,
    bytes_out: i64,
}

impl Used {
    pub(crate) const ONE_EXEC: Self = Self {
        execs: 1,
        cpu_ms: 0,
        bytes_out: 0,
    };
}

/// What an ended exec used, and for whom.
pub(crate) fn used_by(record: &Exec) -> Option<(String, Used)> {
    let agent = record.ids.agent_id.clone()?;
    let artifacts = record.artifacts.iter().map(|artifact| artifact.size);
    let bytes = artifacts
        .chain([record.stdout_bytes, record.stderr_bytes])
        .fold(0, u64::saturating_add);
    let used = Used {
        execs: 0,
        cpu_ms: clamped(record.usage.cpu_ms),
        bytes_out: clamped(bytes),
    };
    Some((agent, used))
}

/// So that no sum of an hour overflows.
fn clamped(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX).min(1 << 48)
}

fn minute(now: Timestamp) -> i64 {
    now.as_millisecond().div_euclid(MINUTE_MS)
}

pub(crate) fn add(
    session: &Session,
    space: &SpaceId,
    agent: &str,
    now: Timestamp,
    used: Used,
) -> Result<()> {
    session
        .execute(
            "INSERT INTO budget_minutes (space_id, agent, minute, execs, cpu_ms, bytes_out)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (space_id, agent, minute) DO UPDATE SET
                 execs = budget_minutes.execs + excluded.execs,
                 cpu_ms = budget_minutes.cpu_ms + excluded.cpu_ms,
                 bytes_out = budget_minutes.bytes_out + excluded.bytes_out",
            values![
                space.as_str(),
                session.indexed(agent),
                minute(now),
                used.execs,
                used.cpu_ms,
                used.bytes_out
            ],
        )
        .doing("count what the agent used")?;
    Ok(())
}

/// Refuses one more exec when any part of the budget is used up.
pub(crate) fn ensure_left(
    session: &Session,
    space: &SpaceId,
    agent: &str,
    now: Timestamp,
    budget: &Budget,
) -> Result<()> {
    let limits = [
        ("execs", budget.execs_per_hour.map(i64::from)),
        (
            "cpu seconds",
            budget
                .cpu_seconds_per_hour
                .map(|seconds| i64::from(seconds) * 1000),
        ),
        ("bytes of output", budget.bytes_out_per_hour.map(i64::from)),
    ];
    if limits.iter().all(|(_, limit)| limit.is_none()) {
        return Ok(());
    }
    let now_minute = minute(now);
    // A clock that was set back leaves minutes of the future: those count, up to an hour of them.
    let minutes: Vec<(i64, [i64; 3])> = session
        .rows(
            "SELECT minute, execs, cpu_ms, bytes_out FROM budget_minutes
             WHERE space_id = ?1 AND agent = ?2 AND minute >= ?3 AND minute <= ?4
             ORDER BY minute",
            values![
                space.as_str(),
                session.indexed(agent),
                now_minute - WINDOW,
                now_minute + WINDOW
            ],
            |row| Ok((row.get(0)?, [row.get(1)?, row.get(2)?, row.get(3)?])),
        )
        .doing("read what the agent used")?;
    let mut exceeded: Option<(&str, Option<i64>)> = None;
    for (part, (name, limit)) in limits.into_iter().enumerate() {
        let Some(limit) = limit else { continue };
        let mut left: i64 = minutes.iter().map(|(_, used)| used[part]).sum();
        if left < limit {
            continue;
        }
        let free = minutes.iter().find_map(|(minute, used)| {
            left -= used[part];
            (left < limit).then_some(*minute)
        });
        // Never sooner than the part that takes longest.
        exceeded = Some(match exceeded {
            None => (name, free),
            Some((before, other)) => (before, free.zip(other).map(|(one, two)| one.max(two))),
        });
    }
    let Some((name, free)) = exceeded else {
        return Ok(());
    };
    let mut error = Error::new(
        Code::BudgetExceeded,
        Stage::Open,
        format!("the agent `{agent}` has used up its {name} of an hour"),
    );
    match free {
        Some(minute) => {
            let at = (minute + WINDOW + 1) * MINUTE_MS;
            let wait = at.saturating_sub(now.as_millisecond()).max(1);
            error.retry.after_ms = Some(wait.unsigned_abs());
            error = error.hint("wait, or ask the operator for a larger budget");
        }
        None => {
            error.retry.allowed = false;
            error = error.hint("the budget is nothing: ask the operator for a larger one");
        }
    }
    Err(error)
}

/// Returns how many were forgotten.
pub(crate) fn forget_old(session: &Session, now: Timestamp, most: i64) -> Result<u64> {
    session
        .execute(
            "DELETE FROM budget_minutes WHERE (space_id, agent, minute) IN
             (SELECT space_id, agent, minute FROM budget_minutes WHERE minute < ?1
              ORDER BY minute LIMIT ?2)",
            values![minute(now) - WINDOW, most],
        )
        .doing("forget what agents used")
}
