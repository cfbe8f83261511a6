//! Finding entries: newest first by time, by any of their properties.

use glovebox_model::{ExecId, Result, SpaceId};
use jiff::Timestamp;

use super::chain::{ENTRY_COLUMNS, read_entry};
use super::entry::{Entry, Kind, StoredEntry, term};
use crate::failure::Doing;
use crate::page::{Page, bad_cursor, page_size, sql_limit};
use crate::sql::{Session, Value, values};
use crate::store::Store;

/// Which entries to find: those that match everything that is set.
#[derive(Debug, Clone, Default)]
pub struct EntryFilter {
    pub exec_id: Option<ExecId>,
    pub kind: Option<Kind>,
    /// All of them.
    pub tags: Vec<String>,
    /// From this time on.
    pub since: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
    pub user_id: Option<String>,
    pub conversation_id: Option<String>,
    pub turn_id: Option<String>,
    pub task_id: Option<String>,
    pub workflow_id: Option<String>,
    pub agent_id: Option<String>,
    pub session_id: Option<String>,
    /// At most so many; 0 means the default of 50, and nobody gets more than 1000.
    pub limit: usize,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

impl EntryFilter {
    /// The narrowest first: the index is walked along that one.
    fn terms(&self) -> Vec<String> {
        let named = [
            ("exec_id", self.exec_id.as_ref().map(ExecId::as_str)),
            ("turn_id", self.turn_id.as_deref()),
            ("task_id", self.task_id.as_deref()),
            ("session_id", self.session_id.as_deref()),
            ("workflow_id", self.workflow_id.as_deref()),
            ("conversation_id", self.conversation_id.as_deref()),
            ("agent_id", self.agent_id.as_deref()),
            ("user_id", self.user_id.as_deref()),
        ];
        let mut terms: Vec<String> = named
            .into_iter()
            .filter_map(|(name, value)| Some(term(name, value?)))
            .collect();
        terms.extend(self.tags.iter().map(|tag| term("tag", tag)));
        terms.extend(self.kind.map(|kind| term("kind", kind.as_str())));
        terms
    }

    /// Entries before this place are wanted: a time, and among those of that time a number.
    fn end(&self) -> Result<(i64, i64)> {
        let until = self.until.map_or(i64::MAX, round_up);
        let Some(cursor) = &self.cursor else {
            return Ok((until, 0));
        };
        let place = cursor
            .split_once('.')
            .and_then(|(at, seq)| Some((at.parse().ok()?, seq.parse().ok()?)))
            .ok_or_else(|| bad_cursor(cursor))?;
        Ok(place.min((until, 0)))
    }

    pub(crate) fn query<'v>(
        &self,
        session: &Session,
        space: &'v SpaceId,
    ) -> Result<(String, Vec<Value<'v>>)> {
        let terms = self.terms();
        let (end_at, end_seq) = self.end()?;
        let mut values = vec![
            Value::from(space.as_str()),
            Value::from(end_at),
            Value::from(end_seq),
            Value::from(self.since.map_or(i64::MIN, round_up)),
            Value::from(sql_limit(self.limit)),
        ];
        let walked = if terms.is_empty() { "e" } else { "t" };
        let mut sql = format!("SELECT {ENTRY_COLUMNS} FROM ");
        if terms.is_empty() {
            sql.push_str("ledger_entries e WHERE e.space_id = ?1");
        } else {
            // CROSS: to SQLite that means in this order, along the index.
            sql.push_str(
                "ledger_terms t CROSS JOIN ledger_entries e
                 WHERE e.space_id = t.space_id AND e.seq = t.seq AND t.space_id = ?1",
            );
        }
        for (index, term) in terms.into_iter().enumerate() {
            values.push(Value::from(session.indexed(&term).into_owned()));
            let parameter = values.len();
            sql.push_str(&if index == 0 {
                format!(" AND t.term = ?{parameter}")
            } else {
                format!(
                    " AND EXISTS (SELECT 1 FROM ledger_terms o WHERE o.space_id = t.space_id
                     AND o.term = ?{parameter} AND o.at = t.at AND o.seq = t.seq)"
                )
            });
        }
        sql.push_str(&format!(
            " AND ({walked}.at, {walked}.seq) < (?2, ?3) AND {walked}.at >= ?4
             ORDER BY {walked}.at DESC, {walked}.seq DESC LIMIT ?5"
        ));
        Ok((sql, values))
    }
}

/// The first microsecond that is not before this time.
fn round_up(time: Timestamp) -> i64 {
    let nanoseconds = time.as_nanosecond();
    let microseconds = nanoseconds.div_euclid(1000) + i128::from(nanoseconds.rem_euclid(1000) != 0);
    i64::try_from(microseconds).unwrap_or(i64::MAX)
}

impl Store {
    /// The last entries of a ledger, oldest first.
    pub fn tail(&self, space: &SpaceId, limit: usize) -> Result<Vec<Entry>> {
        let limit = i64::try_from(page_size(limit)).unwrap_or(i64::MAX);
        self.read(|session| {
            let entries = session
                .rows(
                    &format!(
                        "SELECT {ENTRY_COLUMNS} FROM ledger_entries e
                         WHERE e.space_id = ?1 ORDER BY e.seq DESC LIMIT ?2"
                    ),
                    values![space.as_str(), limit],
                    read_entry,
                )
                .doing("read the ledger")?;
            entries
                .into_iter()
                .rev()
                .map(StoredEntry::into_entry)
                .collect()
        })
    }

    /// Newest first by time. Clocks are set back now and then, so this is not always the order of
    /// the chain.
    pub fn query(&self, space: &SpaceId, filter: &EntryFilter) -> Result<Page<Entry>> {
        self.read(|session| {
            let (sql, values) = filter.query(session, space)?;
            let entries = session
                .rows(&sql, &values, read_entry)
                .doing("query the ledger")?;
            Page::cut(entries, page_size(filter.limit), |entry| {
                format!("{}.{}", entry.at_us, entry.seq)
            })
            .try_map(StoredEntry::into_entry)
        })
    }
}
