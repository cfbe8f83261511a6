//! Finding execs.

use glovebox_model::{Code, Error, Exec, ExecId, Result, SpaceId, Stage, Status};
use rusqlite::types::Value;
use rusqlite::{OptionalExtension, params, params_from_iter};

use crate::failure::{Doing, tampered};
use crate::page::{Page, bad_cursor, page_size, sql_limit};
use crate::rows::{COLUMNS, read_row};
use crate::state_dir::StateDir;
use crate::store::Store;

/// Which execs to list.
#[derive(Debug, Clone, Default)]
pub struct ExecFilter {
    pub status: Option<Status>,
    pub task_id: Option<String>,
    /// At most so many; 0 means the default of 50, and nobody gets more than 1000.
    pub limit: usize,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

impl ExecFilter {
    fn query(&self, space: &SpaceId) -> Result<(String, Vec<Value>)> {
        let mut sql = format!("SELECT {COLUMNS}, opened_seq FROM sandbox_execs WHERE space_id = ?");
        let mut values = vec![Value::from(space.as_str().to_owned())];
        // The task first: it is the narrower of the two, and has an index of its own.
        match (&self.task_id, self.status) {
            (Some(task), status) => {
                sql.push_str(" AND task_id = ?");
                values.push(Value::from(task.clone()));
                if let Some(status) = status {
                    // The plus keeps this out of the choice of index.
                    sql.push_str(" AND +status = ?");
                    values.push(Value::from(status.as_str().to_owned()));
                }
            }
            (None, Some(status)) => {
                sql.push_str(" AND status = ?");
                values.push(Value::from(status.as_str().to_owned()));
            }
            (None, None) => {}
        }
        if let Some(cursor) = &self.cursor {
            let before: i64 = cursor.parse().map_err(|_| bad_cursor(cursor))?;
            sql.push_str(" AND opened_seq < ?");
            values.push(Value::from(before));
        }
        sql.push_str(" ORDER BY opened_seq DESC LIMIT ?");
        values.push(Value::from(sql_limit(self.limit)));
        Ok((sql, values))
    }
}

fn not_found(id: &str) -> Error {
    Error::new(
        Code::NotFound,
        Stage::Parse,
        format!("there is no exec `{id}`"),
    )
    .hint("list them: `glovebox ps --all`")
}

impl Store {
    /// Another space's exec is not found.
    pub fn get(&self, space: &SpaceId, id: &ExecId) -> Result<Exec> {
        self.read(|connection| {
            let row = connection
                .prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM sandbox_execs WHERE space_id = ?1 AND exec_id = ?2"
                ))
                .and_then(|mut get| {
                    get.query_row(params![space.as_str(), id.as_str()], read_row)
                        .optional()
                })
                .doing("read the exec")?;
            row.ok_or_else(|| not_found(id.as_str()))?.into_exec()
        })
    }

    /// Newest first.
    pub fn list(&self, space: &SpaceId, filter: &ExecFilter) -> Result<Page<Exec>> {
        let (sql, values) = filter.query(space)?;
        self.read(|connection| {
            let rows = connection
                .prepare_cached(&sql)
                .and_then(|mut list| {
                    list.query_map(params_from_iter(values), |row| {
                        Ok((read_row(row)?, row.get::<_, i64>(4)?))
                    })?
                    .collect::<rusqlite::Result<Vec<_>>>()
                })
                .doing("list the execs")?;
            Page::cut(rows, page_size(filter.limit), |(_, opened)| {
                opened.to_string()
            })
            .try_map(|(row, _)| row.into_exec())
        })
    }

    /// The exec whose id starts with this text (with or without `e_`), when there is only one.
    pub fn resolve_prefix(&self, space: &SpaceId, prefix: &str) -> Result<ExecId> {
        let digits = prefix.strip_prefix("e_").unwrap_or(prefix);
        let hexadecimal = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        let well_formed = (1..=32).contains(&digits.len()) && digits.bytes().all(hexadecimal);
        if !well_formed {
            let shown: String = prefix
                .chars()
                .take(80)
                .flat_map(char::escape_debug)
                .collect();
            return Err(not_found(&shown).hint("an exec id is `e_` and hexadecimal digits"));
        }
        let first = format!("e_{digits}");
        // Past every hexadecimal digit, so the range holds exactly what starts with `first`.
        let end = format!("{first}g");
        let matches: Vec<String> = self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT exec_id FROM sandbox_execs
                     WHERE space_id = ?1 AND exec_id >= ?2 AND exec_id < ?3
                     ORDER BY exec_id LIMIT 4",
                )
                .and_then(|mut find| {
                    find.query_map(params![space.as_str(), first, end], |row| row.get(0))?
                        .collect()
                })
                .doing("look for the exec")
        })?;
        match matches.as_slice() {
            [] => Err(not_found(prefix)),
            [id] => id
                .parse()
                .map_err(|error| tampered("an exec has no valid id").caused_by(error)),
            several => Err(Error::new(
                Code::InvalidArgument,
                Stage::Parse,
                format!("more than one exec starts with `{prefix}`"),
            )
            .hint(format!("say more of it: {}", several.join(", ")))),
        }
    }

    /// Owners that left execs open and gave up their identity, or whose file did not survive a
    /// power cut: what [`dead_owners`](crate::dead_owners) cannot see. Ready for
    /// [`Store::recover`].
    pub fn stray_owners(&self, state: &StateDir) -> Result<Vec<String>> {
        let mut owners: Vec<String> = self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT DISTINCT owner_id FROM sandbox_execs WHERE closed_seq IS NULL",
                )
                .and_then(|mut open| open.query_map((), |row| row.get(0))?.collect())
                .doing("look for open execs")
        })?;
        // In this order: an owner's file is there before its first row and until after its last.
        let owners_dir = state.owners();
        owners.retain(|owner| !owners_dir.join(owner).exists());
        Ok(owners)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Many rows of one space, with as little in each as the columns need.
    const FILL: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
        INSERT INTO sandbox_execs (space_id, exec_id, owner_id, opened_seq, closed_seq, closed_hash, record)
        SELECT 'local', format('e_%032x', i * 7919), 'o', i, i, x'00', json_object(
            'status', iif(i % 1000 = 0, 'failed', 'succeeded'),
            'client_id', format('c%d', i),
            'ids', json_object('task_id', format('t%d', i / 10)))
        FROM n";

    fn plan(connection: &rusqlite::Connection, sql: &str, values: &[Value]) -> String {
        let mut explain = connection
            .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
            .unwrap();
        let steps = explain
            .query_map(params_from_iter(values), |row| row.get::<_, String>(3))
            .unwrap();
        steps
            .collect::<rusqlite::Result<Vec<_>>>()
            .unwrap()
            .join("\n")
    }

    #[test]
    fn every_listing_walks_an_index_and_sorts_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        let store = Store::open(&state).unwrap();
        let connection = rusqlite::Connection::open(state.database()).unwrap();
        connection.execute_batch(FILL).unwrap();
        let space = SpaceId::local();
        let statuses = [None, Some(Status::Failed)];
        let tasks = [None, Some("t7".to_owned())];
        for (status, task_id, cursor) in statuses.into_iter().flat_map(|status| {
            tasks.clone().into_iter().flat_map(move |task| {
                [None, Some("15000".to_owned())].map(|cursor| (status, task.clone(), cursor))
            })
        }) {
            let index = match (&task_id, status) {
                (Some(_), _) => "execs_by_task",
                (None, Some(_)) => "execs_by_status",
                (None, None) => "execs_by_arrival",
            };
            let filter = ExecFilter {
                status,
                task_id,
                limit: 10,
                cursor,
            };
            let (sql, values) = filter.query(&space).unwrap();
            let plan = plan(&connection, &sql, &values);
            assert!(
                plan.contains(&format!("USING INDEX {index} ")),
                "{filter:?}: {plan}"
            );
            assert!(
                !plan.contains("SCAN") && !plan.contains("TEMP"),
                "{filter:?}: {plan}"
            );
        }
        let open = plan(
            &connection,
            "SELECT DISTINCT owner_id FROM sandbox_execs WHERE closed_seq IS NULL",
            &[],
        );
        assert!(open.contains("execs_still_open"), "{open}");
        assert!(store.stray_owners(&state).unwrap().is_empty());
    }
}
