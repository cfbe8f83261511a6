//! Finding entries: newest first by time, by any of their properties.

use glovebox_model::{ExecId, Mode, Page, Result, SpaceId};
use jiff::Timestamp;

use super::chain::{ENTRY_COLUMNS, read_entry};
use super::entry::{Entry, Kind, StoredEntry, term};
use super::index;
use super::trail::Trail;
use crate::audit_summary;
use crate::failure::{Doing, tampered};
use crate::page::{bad_cursor, page_size};
use crate::retention::RetentionTier;
use crate::sql::values;
use crate::store::Store;

/// Which entries to find: those that match everything that is set.
#[derive(Debug, Clone, Default)]
pub struct EntryFilter {
    pub exec_id: Option<ExecId>,
    pub kind: Option<Kind>,
    /// All of them.
    pub tags: Vec<String>,
    /// None of them.
    pub without: Vec<String>,
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
    /// Those that usually have the fewest entries first.
    pub(super) fn terms(&self) -> Vec<String> {
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
    pub(super) fn end(&self) -> Result<(i64, i64)> {
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

    pub(super) fn start(&self) -> i64 {
        self.since.map_or(i64::MIN, round_up)
    }

    /// Those about execs of this mode. Of plain runs they are the ends: that is where the usual is
    /// said.
    #[must_use]
    pub fn of_mode(mut self, mode: Mode) -> Self {
        let (tag, without) = match mode {
            Mode::Run => (
                audit_summary::LIVE_EXECUTION,
                Some(audit_summary::TRANSACTIONAL),
            ),
            Mode::Simulate => (audit_summary::SIMULATION_MODE, Some(audit_summary::MOCK)),
            Mode::Transactional => (audit_summary::TRANSACTIONAL, None),
            Mode::Mock => (audit_summary::MOCK, None),
        };
        self.tags.push(tag.to_owned());
        self.without.extend(without.map(str::to_owned));
        self
    }

    /// Those of this age, of the times that are wanted already.
    #[must_use]
    pub fn of_tier(mut self, tier: RetentionTier, now: Timestamp) -> Self {
        let (since, until) = tier.span(now);
        self.since = self.since.max(since);
        self.until = match (self.until, until) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self
    }

    pub(super) fn without_terms(&self) -> Vec<String> {
        self.without.iter().map(|tag| term("tag", tag)).collect()
    }

    /// For an entry that the index does not reach yet.
    fn finds(&self, entry: &StoredEntry) -> Result<bool> {
        if entry.at_us < self.start() || (entry.at_us, entry.seq) >= self.end()? {
            return Ok(false);
        }
        let terms = entry
            .terms()
            .ok_or_else(|| tampered(format!("ledger entry {} cannot be read", entry.seq)))?;
        let unwanted = self.without_terms();
        Ok(self.terms().iter().all(|term| terms.contains(term))
            && !unwanted.iter().any(|term| terms.contains(term)))
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
    /// the chain. A page looks at so many entries and no more: one that is not full, or empty, may
    /// have a next.
    pub fn query(&self, space: &SpaceId, filter: &EntryFilter) -> Result<Page<Entry>> {
        self.read(|session| {
            let doing = "query the ledger";
            let reach = index::reach(session, space.as_str()).doing(doing)?;
            let trail = Trail::of(session, space, filter, reach)?;
            let mut entries = session
                .rows(&trail.sql, &trail.values, read_entry)
                .doing(doing)?;
            if trail.is_along_index {
                for entry in index::after(session, space.as_str(), reach).doing(doing)? {
                    if filter.finds(&entry)? && trail.passes((entry.at_us, entry.seq)) {
                        entries.push(entry);
                    }
                }
            }
            entries.sort_by_key(|entry| std::cmp::Reverse((entry.at_us, entry.seq)));
            let place = |(at, seq): (i64, i64)| format!("{at}.{seq}");
            let mut page = Page::cut(entries, page_size(filter.limit), |entry| {
                place((entry.at_us, entry.seq))
            });
            page.next = page.next.or(trail.last.map(place));
            page.try_map(StoredEntry::into_entry)
        })
    }
}
