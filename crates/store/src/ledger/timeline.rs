//! Everything of one task, in the order in which it was begun: what was planned and how it ended
//! side by side. The order is that of time, as in a query.

use std::collections::{BTreeSet, HashSet};

use glovebox_model::{ExecId, Result, SpaceId};
use serde::{Deserialize, Serialize};

use super::chain::{ENTRY_COLUMNS, read_entry};
use super::entry::{Entry, Kind, StoredEntry, term};
use super::index;
use crate::failure::{Doing, tampered};
use crate::page::{bad_cursor, page_size};
use crate::sql::{Session, values};
use crate::store::Store;

/// Entries of one exec that are shown. It has a handful; each question to people adds a few.
const OF_ONE_EXEC: usize = 1000;
/// How often a page looks for more steps. A page that is not full then has a next all the same.
const ROUNDS: usize = 20;
const DOING: &str = "read the task's entries";

#[derive(Debug, Clone, Default)]
pub struct TimelineFilter {
    pub task_id: String,
    /// At most so many steps; 0 means the default of 50, and nobody gets more than 1000.
    pub limit: usize,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

/// One page, the oldest step first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timeline<E = Entry> {
    pub task_id: String,
    pub steps: Vec<Step<E>>,
    /// The cursor of the next page; `None` on the last.
    pub next: Option<String>,
}

/// What the ledger says of one exec, or an entry about none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step<E = Entry> {
    pub exec_id: Option<ExecId>,
    /// What was about to happen. None of what was refused at once.
    pub planned: Option<E>,
    /// How it ended; none while it runs.
    pub outcome: Option<E>,
    /// Everything else, in order: its start after a wait, what people were asked and said, what
    /// became of its changes.
    pub others: Vec<E>,
}

impl<E> Timeline<E> {
    /// The same steps, each entry shown otherwise.
    pub fn map<F>(self, mut each: impl FnMut(E) -> F) -> Timeline<F> {
        let steps = self.steps.into_iter().map(|step| Step {
            exec_id: step.exec_id,
            planned: step.planned.map(&mut each),
            outcome: step.outcome.map(&mut each),
            others: step.others.into_iter().map(&mut each).collect(),
        });
        Timeline {
            task_id: self.task_id,
            steps: steps.collect(),
            next: self.next,
        }
    }
}

impl Step {
    fn of(exec_id: Option<ExecId>, entries: Vec<Entry>) -> Self {
        let mut step = Self {
            exec_id,
            planned: None,
            outcome: None,
            others: Vec::new(),
        };
        for entry in entries {
            match entry.kind {
                Kind::Planned => step.planned = Some(entry),
                Kind::Outcome | Kind::Refused | Kind::Recovered => step.outcome = Some(entry),
                Kind::Started | Kind::Administered => step.others.push(entry),
            }
        }
        step
    }
}

impl Store {
    pub fn timeline(&self, space: &SpaceId, filter: &TimelineFilter) -> Result<Timeline> {
        let mut after = filter.after()?;
        let wanted = page_size(filter.limit);
        self.read(|session| {
            let threads = Threads::of(session, space)?;
            let task = term("task_id", &filter.task_id);
            let (mut steps, mut seen) = (Vec::new(), HashSet::new());
            for _ in 0..ROUNDS {
                let entries = threads.after(&task, after, wanted)?;
                let is_end = entries.len() < wanted;
                for entry in entries {
                    if steps.len() == wanted {
                        return Ok(filter.page(steps, Some(after)));
                    }
                    after = place(&entry);
                    if entry.exec_id.is_empty() || seen.insert(entry.exec_id.clone()) {
                        steps.extend(threads.begun_by(entry)?);
                    }
                }
                if is_end {
                    return Ok(filter.page(steps, None));
                }
            }
            Ok(filter.page(steps, Some(after)))
        })
    }
}

impl TimelineFilter {
    fn after(&self) -> Result<Place> {
        let Some(cursor) = &self.cursor else {
            return Ok((i64::MIN, i64::MIN));
        };
        cursor
            .split_once('.')
            .and_then(|(at, seq)| Some((at.parse().ok()?, seq.parse().ok()?)))
            .ok_or_else(|| bad_cursor(cursor))
    }

    fn page(&self, steps: Vec<Step>, next: Option<Place>) -> Timeline {
        Timeline {
            task_id: self.task_id.clone(),
            steps,
            next: next.map(|(at, seq)| format!("{at}.{seq}")),
        }
    }
}

/// A time, and among the entries of that time a number.
type Place = (i64, i64);

/// CROSS: to SQLite that means in this order, along the index.
pub(crate) fn along_thread() -> String {
    format!(
        "SELECT {ENTRY_COLUMNS} FROM ledger_terms t CROSS JOIN ledger_entries e
         WHERE e.space_id = t.space_id AND e.seq = t.seq AND t.space_id = ?1
         AND t.term = ?2 AND t.seq <= ?3 AND (t.at, t.seq) > (?4, ?5)
         ORDER BY t.at, t.seq LIMIT ?6"
    )
}

fn place(entry: &StoredEntry) -> Place {
    (entry.at_us, entry.seq)
}

/// The entries of a space that have one term, oldest first, whether the index reaches them or not.
struct Threads<'s> {
    session: &'s Session,
    space: &'s SpaceId,
    reach: i64,
    /// Those that the index does not reach, with what they are found by.
    unreached: Vec<(BTreeSet<String>, StoredEntry)>,
}

impl<'s> Threads<'s> {
    fn of(session: &'s Session, space: &'s SpaceId) -> Result<Self> {
        let reach = index::reach(session, space.as_str()).doing(DOING)?;
        let unreached = index::after(session, space.as_str(), reach).doing(DOING)?;
        let unreached = unreached.into_iter().map(|entry| {
            let unreadable = || tampered(format!("ledger entry {} cannot be read", entry.seq));
            Ok((entry.terms().ok_or_else(unreadable)?, entry))
        });
        Ok(Self {
            session,
            space,
            reach,
            unreached: unreached.collect::<Result<_>>()?,
        })
    }

    fn after(&self, term: &str, after: Place, most: usize) -> Result<Vec<StoredEntry>> {
        let limit = i64::try_from(most).unwrap_or(i64::MAX);
        let mut entries = self
            .session
            .rows(
                &along_thread(),
                values![
                    self.space.as_str(),
                    self.session.indexed(term),
                    self.reach,
                    after.0,
                    after.1,
                    limit
                ],
                read_entry,
            )
            .doing(DOING)?;
        let unreached = self.unreached.iter();
        entries.extend(
            unreached
                .filter(|(terms, entry)| terms.contains(term) && place(entry) > after)
                .map(|(_, entry)| entry.clone()),
        );
        entries.sort_by_key(place);
        entries.truncate(most);
        Ok(entries)
    }

    /// The step that begins with this entry. None when it began with an earlier one.
    fn begun_by(&self, entry: StoredEntry) -> Result<Option<Step>> {
        if entry.exec_id.is_empty() {
            return Ok(Some(Step::of(None, vec![entry.into_entry()?])));
        }
        let exec = term("exec_id", &entry.exec_id);
        let entries = self.after(&exec, (i64::MIN, i64::MIN), OF_ONE_EXEC)?;
        if entries.first().map(place) != Some(place(&entry)) {
            return Ok(None);
        }
        let entries: Vec<Entry> = entries
            .into_iter()
            .map(StoredEntry::into_entry)
            .collect::<Result<_>>()?;
        let exec_id = entries.first().and_then(|first| first.exec_id.clone());
        Ok(Some(Step::of(exec_id, entries)))
    }
}
