//! Whether an entry is believed where it is used, and whether the row of an exec is as the entries
//! about it say. Verification looks at all of a chain; here it is only the entry and its neighbours.

use glovebox_model::{ExecId, Result, SpaceId};
use serde_json::Value as Json;

use super::chain::{ENTRY_COLUMNS, StoredHead, read_entry};
use super::entry::{StoredEntry, term};
use super::index;
use super::vouch::VouchedRow;
use crate::failure::{Doing, tampered};
use crate::sql::{Session, values};
use crate::summary::{OWNER, RECORD_DIGEST};

/// So many entries about one exec are looked at, the newest first. It has a few that name its record,
/// and one or two for each question that people were asked about it.
const LOOKED_AT: i64 = 1000;

/// The entry at a place, when its hash is that of its content, it follows from the one before it, and
/// the one after it, or the chain's head, follows from it.
pub(super) fn believed(session: &Session, space: &str, seq: i64) -> Result<Option<StoredEntry>> {
    let around = session
        .rows(
            &format!(
                "SELECT {ENTRY_COLUMNS} FROM ledger_entries e
                 WHERE e.space_id = ?1 AND e.seq >= ?2 AND e.seq <= ?3 ORDER BY e.seq"
            ),
            values![space, seq.saturating_sub(1), seq.saturating_add(1)],
            read_entry,
        )
        .doing("read what an entry says")?;
    let Some(place) = around.iter().position(|entry| entry.seq == seq) else {
        return Ok(None);
    };
    let entry = &around[place];
    let before = match place.checked_sub(1).and_then(|place| around.get(place)) {
        Some(before) => before.hash.as_slice(),
        None if seq == 1 => &[0; 32],
        None => return Ok(None),
    };
    let follows = entry.hash == entry.expected_hash() && entry.prev_hash == before;
    let head = StoredHead::read(session, space).doing("read the ledger's head")?;
    let after = around.get(place + 1).map(|after| &after.prev_hash);
    let led_to = match head {
        Some(head) if head.seq > seq => after == Some(&entry.hash),
        Some(head) if head.seq == seq => head.hash == entry.hash,
        // Of this very transaction, whose head is written at its end. One that was invented there is
        // in the way of the next that is appended, so nothing starts on its word.
        Some(_) | None => true,
    };
    let led_to = led_to && after.is_none_or(|after| *after == entry.hash);
    Ok((follows && led_to).then(|| entry.clone()))
}

/// Whether the row of an exec that has not ended is not as the last entries about it say. To be asked
/// before it is handed on or ended by somebody else than who made it.
pub(crate) fn is_exec_forged(session: &Session, space: &SpaceId, id: &ExecId) -> Result<bool> {
    let row = VouchedRow::of(session, space.as_str(), id.as_str())?;
    let Some(row) = row else {
        return Ok(true);
    };
    let (mut record, mut owner) = (None, None);
    for entry in about(session, space.as_str(), id.as_str())? {
        let body: Json = serde_json::from_str(&entry.body).unwrap_or_default();
        let text = |name: &str| body.get(name).and_then(Json::as_str).map(str::to_owned);
        let said = (text(RECORD_DIGEST), text(OWNER));
        let is_new =
            (record.is_none() && said.0.is_some()) || (owner.is_none() && said.1.is_some());
        if is_new && believed(session, space.as_str(), entry.seq)?.is_none() {
            return Ok(true);
        }
        record = record.or(said.0);
        owner = owner.or(said.1);
    }
    Ok(!row.is(record.as_deref(), owner.as_deref()))
}

/// What was forged is not built on by who has a record of its own, either.
pub(crate) fn ensure_exec_unchanged(session: &Session, id: &(SpaceId, ExecId)) -> Result<()> {
    match is_exec_forged(session, &id.0, &id.1)? {
        false => Ok(()),
        true => Err(forged(&id.1).of_exec(id.1.clone())),
    }
}

pub(crate) fn forged(id: &ExecId) -> glovebox_model::Error {
    tampered(format!(
        "the row of exec `{id}` is not as the ledger says: it was edited"
    ))
}

/// The entries about an exec, the newest first: those that the index has, and the few that it does
/// not reach.
fn about(session: &Session, space: &str, id: &str) -> Result<Vec<StoredEntry>> {
    let what = "read what entries say of an exec";
    let reach = index::reach(session, space).doing(what)?;
    let mut found = index::after(session, space, reach).doing(what)?;
    found.retain(|entry| entry.exec_id == id);
    let indexed = session.rows(
        &format!(
            "SELECT {ENTRY_COLUMNS} FROM ledger_terms t
             JOIN ledger_entries e ON e.space_id = t.space_id AND e.seq = t.seq
             WHERE t.space_id = ?1 AND t.term = ?2 AND t.seq <= ?3 AND e.exec_id = ?4
             ORDER BY t.at DESC, t.seq DESC LIMIT {LOOKED_AT}"
        ),
        values![space, session.indexed(&term("exec_id", id)), reach, id],
        read_entry,
    );
    found.extend(indexed.doing(what)?);
    found.sort_by_key(|entry| std::cmp::Reverse(entry.seq));
    Ok(found)
}
