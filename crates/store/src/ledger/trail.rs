//! The way along the index that a search takes, and how far it goes at once. The index lists, for
//! each term, the entries that have it; a search walks along the shortest of the lists that it
//! needs and looks each entry up in the others. A walk ends after so many entries even when it
//! finds nothing, so a page costs the same in a ledger of any length.

use glovebox_model::{Code, Error, Result, SpaceId, Stage};

use super::chain::ENTRY_COLUMNS;
use super::query::EntryFilter;
use crate::failure::Doing;
use crate::page::sql_limit;
use crate::sql::{Session, Value};

/// Entries that one page looks at, when it has to look.
pub(crate) const LOOKED_AT: i64 = 20_000;
/// Lists are counted up to the first of these lengths, and if all are longer, up to the second: one
/// that is longer than that cannot be walked to its end anyway.
const COUNTED: [i64; 2] = [500, LOOKED_AT];

/// What one search may ask for: each is one more list to look into.
const TERMS_MOST: usize = 32;

/// A time, and among the entries of that time a number.
type Place = (i64, i64);

#[derive(Debug)]
pub(crate) struct Trail<'v> {
    pub(crate) sql: String,
    pub(crate) values: Vec<Value<'v>>,
    /// What the index does not reach yet has to be looked at besides.
    pub(crate) is_along_index: bool,
    /// The last entry that is looked at. None when the walk goes to its end.
    pub(crate) last: Option<Place>,
}

impl<'v> Trail<'v> {
    /// `reach`: what the index does not reach is not looked for.
    pub(crate) fn of(
        session: &Session,
        space: &'v SpaceId,
        filter: &EntryFilter,
        reach: i64,
    ) -> Result<Self> {
        let (terms, without) = (filter.terms(), filter.without_terms());
        if terms.len() + without.len() > TERMS_MOST {
            return Err(too_many());
        }
        let is_along_index = !terms.is_empty();
        let looks = terms.len() > 1 || !without.is_empty();
        let mut walk = Walk::new(space, filter)?;
        let terms = match terms.len() > 1 {
            true => walk.shortest_first(session, terms)?,
            false => terms,
        };
        let last = match looks {
            true => walk.last(session, terms.first())?,
            false => None,
        };
        let (from, walked) = walked(is_along_index);
        let mut sql = format!("SELECT {ENTRY_COLUMNS} FROM {from}");
        if is_along_index {
            let reach = walk.bind(reach);
            sql.push_str(&format!(" AND t.seq <= {reach}"));
        }
        for (index, term) in terms.iter().enumerate() {
            let term = walk.bind(session.indexed(term).into_owned());
            sql.push_str(&match index {
                0 => format!(" AND t.term = {term}"),
                _ => format!(" AND {}", has(walked, &term)),
            });
        }
        for term in &without {
            let term = walk.bind(session.indexed(term).into_owned());
            sql.push_str(&format!(" AND NOT {}", has(walked, &term)));
        }
        if let Some((at, seq)) = last {
            let (at, seq) = (walk.bind(at), walk.bind(seq));
            sql.push_str(&format!(
                " AND ({walked}.at, {walked}.seq) >= ({at}, {seq})"
            ));
        }
        let most = walk.bind(sql_limit(filter.limit));
        sql.push_str(&format!("{} LIMIT {most}", within(walked)));
        Ok(Self {
            sql,
            values: walk.values,
            is_along_index,
            last,
        })
    }

    /// Whether an entry belongs to this page's part of the way.
    pub(crate) fn passes(&self, place: Place) -> bool {
        self.last.is_none_or(|last| place >= last)
    }
}

fn too_many() -> Error {
    let message = format!("a query has at most {TERMS_MOST} conditions");
    Error::new(Code::InvalidArgument, Stage::Parse, message)
        .hint("leave out the tags that nearly every entry has")
}

/// The table that is walked, and what it is called.
fn walked(is_along_index: bool) -> (&'static str, &'static str) {
    match is_along_index {
        // CROSS: to SQLite that means in this order, along the index.
        true => (
            "ledger_terms t CROSS JOIN ledger_entries e
             WHERE e.space_id = t.space_id AND e.seq = t.seq AND t.space_id = ?1",
            "t",
        ),
        false => ("ledger_entries e WHERE e.space_id = ?1", "e"),
    }
}

fn has(walked: &str, term: &str) -> String {
    format!(
        "EXISTS (SELECT 1 FROM ledger_terms o WHERE o.space_id = {walked}.space_id
         AND o.term = {term} AND o.at = {walked}.at AND o.seq = {walked}.seq)"
    )
}

/// Between the two ends of the walk, the newest first.
fn within(walked: &str) -> String {
    format!(
        " AND ({walked}.at, {walked}.seq) < (?2, ?3) AND {walked}.at >= ?4
         ORDER BY {walked}.at DESC, {walked}.seq DESC"
    )
}

pub(crate) fn length_of_list() -> String {
    format!(
        "SELECT count(*) FROM (SELECT 1 FROM ledger_terms t
         WHERE t.space_id = ?1 AND t.term = ?5{} LIMIT ?6) c",
        within("t")
    )
}

pub(crate) fn end_of_walk(is_along_index: bool) -> String {
    let from = match is_along_index {
        true => "ledger_terms t WHERE t.space_id = ?1 AND t.term = ?5",
        false => "ledger_entries t WHERE t.space_id = ?1",
    };
    format!(
        "SELECT t.at, t.seq FROM {from}{} LIMIT 1 OFFSET {}",
        within("t"),
        LOOKED_AT - 1
    )
}

/// The values that every statement of a walk begins with: the space and the two ends.
struct Walk<'v> {
    values: Vec<Value<'v>>,
}

impl<'v> Walk<'v> {
    fn new(space: &'v SpaceId, filter: &EntryFilter) -> Result<Self> {
        let (end_at, end_seq) = filter.end()?;
        Ok(Self {
            values: vec![
                Value::from(space.as_str()),
                Value::from(end_at),
                Value::from(end_seq),
                Value::from(filter.start()),
            ],
        })
    }

    fn bind(&mut self, value: impl Into<Value<'v>>) -> String {
        self.values.push(value.into());
        format!("?{}", self.values.len())
    }

    /// The same values, and one more.
    fn with(&self, value: Value<'v>) -> Vec<Value<'v>> {
        self.values.iter().cloned().chain([value]).collect()
    }

    fn shortest_first(&self, session: &Session, terms: Vec<String>) -> Result<Vec<String>> {
        let mut counted: Vec<(i64, String)> = terms.into_iter().map(|term| (0, term)).collect();
        for most in COUNTED {
            for (count, term) in &mut counted {
                *count = self.length(session, term, most)?;
            }
            if counted.iter().any(|(count, _)| *count < most) {
                break;
            }
        }
        // Stable: of those that are equally long, as they were.
        counted.sort_by_key(|(count, _)| *count);
        Ok(counted.into_iter().map(|(_, term)| term).collect())
    }

    /// How many entries have the term, as far as they are counted.
    fn length(&self, session: &Session, term: &str, most: i64) -> Result<i64> {
        let mut values = self.with(Value::from(session.indexed(term).into_owned()));
        values.push(Value::from(most));
        let count: Option<i64> = session
            .row(&length_of_list(), &values, |row| row.get(0))
            .doing("query the ledger")?;
        Ok(count.unwrap_or_default())
    }

    /// Where the walk is cut off.
    fn last(&self, session: &Session, term: Option<&String>) -> Result<Option<Place>> {
        let values = match term {
            Some(term) => self.with(Value::from(session.indexed(term).into_owned())),
            None => self.values.clone(),
        };
        session
            .row(&end_of_walk(term.is_some()), &values, |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .doing("query the ledger")
    }
}
