//! Finding execs.

use std::collections::HashSet;

use glovebox_model::{
    ClientId, Code, Error, Exec, ExecId, Page, ProjectId, Result, SpaceId, Stage, Status,
};

use crate::failure::{Doing, tampered};
use crate::leases::NOBODY;
use crate::owner::is_dead;
use crate::page::{bad_cursor, page_size, sql_limit};
use crate::rows::{COLUMNS, parse_ids, read_row};
use crate::sql::{Session, Value, values};
use crate::state_dir::StateDir;
use crate::store::Store;

/// Which execs to list.
#[derive(Debug, Clone, Default)]
pub struct ExecFilter {
    pub status: Option<Status>,
    pub task_id: Option<String>,
    pub conversation_id: Option<String>,
    pub agent_id: Option<String>,
    pub project_id: Option<ProjectId>,
    /// What their ids begin with: `e_` and hexadecimal digits.
    pub id_prefix: Option<String>,
    /// At most so many; 0 means the default of 50, and nobody gets more than 1000.
    pub limit: usize,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

impl ExecFilter {
    pub(crate) fn query<'v>(
        &'v self,
        session: &Session,
        space: &'v SpaceId,
    ) -> Result<(String, Vec<Value<'v>>)> {
        let mut sql =
            format!("SELECT {COLUMNS}, opened_seq FROM sandbox_execs WHERE space_id = ?1");
        let mut values = vec![Value::from(space.as_str())];
        // Past every hexadecimal digit, so the range holds exactly what starts with the prefix.
        if let Some(prefix) = &self.id_prefix {
            values.push(Value::from(prefix.as_str()));
            values.push(Value::from(format!("{prefix}g")));
            sql.push_str(" AND exec_id >= ?2 AND exec_id < ?3");
        }
        // The narrowest first: its index is walked. The others are only looked at, and what is
        // done to the column keeps them out of the choice of index.
        let conditions = [
            ("task_id", self.task_id.as_deref()),
            ("conversation_id", self.conversation_id.as_deref()),
            ("agent_id", self.agent_id.as_deref()),
            ("project_id", self.project_id.as_ref().map(|id| id.as_str())),
            ("status", self.status.map(Status::as_str)),
        ];
        for (column, wanted) in conditions {
            let Some(wanted) = wanted else { continue };
            let walked = values.len() == 1;
            values.push(Value::from(session.indexed(wanted)));
            let place = values.len();
            sql.push_str(&if walked {
                format!(" AND {column} = ?{place}")
            } else {
                format!(" AND {column} || '' = ?{place}")
            });
        }
        if let Some(cursor) = &self.cursor {
            let before: i64 = cursor.parse().map_err(|_| bad_cursor(cursor))?;
            values.push(Value::from(before));
            sql.push_str(&format!(" AND opened_seq < ?{}", values.len()));
        }
        values.push(Value::from(sql_limit(self.limit)));
        // Few begin alike: they are sorted, and the index of arrival is not walked in search of them.
        let arrival = match self.id_prefix {
            Some(_) => "opened_seq + 0",
            None => "opened_seq",
        };
        sql.push_str(&format!(" ORDER BY {arrival} DESC LIMIT ?{}", values.len()));
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
        let row = self.ask("read the exec", |session| {
            session.row(
                &format!(
                    "SELECT {COLUMNS} FROM sandbox_execs WHERE space_id = ?1 AND exec_id = ?2"
                ),
                values![space.as_str(), id.as_str()],
                read_row,
            )
        })?;
        row.ok_or_else(|| not_found(id.as_str()))?.into_exec()
    }

    /// The execs that clients gave this id, the newest first: each agent may give it once.
    pub fn find_client(&self, space: &SpaceId, client: &ClientId) -> Result<Vec<ExecId>> {
        let found: Vec<String> = self.ask("look for the exec", |session| {
            session.rows(
                "SELECT exec_id FROM sandbox_execs WHERE space_id = ?1 AND client_id = ?2
                 ORDER BY opened_seq DESC",
                values![space.as_str(), client.as_str()],
                |row| row.get(0),
            )
        })?;
        found.into_iter().map(valid_id).collect()
    }

    /// Newest first.
    pub fn list(&self, space: &SpaceId, filter: &ExecFilter) -> Result<Page<Exec>> {
        self.read(|session| {
            let (sql, values) = filter.query(session, space)?;
            let rows = session
                .rows(&sql, &values, |row| {
                    Ok((read_row(row)?, row.get::<i64>(4)?))
                })
                .doing("list the execs")?;
            Page::cut(rows, page_size(filter.limit), |(_, opened)| {
                opened.to_string()
            })
            .try_map(|(row, _)| row.into_exec())
        })
    }

    /// The execs of a space that have not ended, whoever has them.
    pub fn open_anywhere(&self, space: &SpaceId) -> Result<HashSet<ExecId>> {
        let open = self.ask("look for open execs", |session| {
            session.rows(
                "SELECT space_id, exec_id FROM sandbox_execs WHERE closed_seq IS NULL",
                &[],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
        })?;
        let open = parse_ids(open)?.into_iter();
        Ok(open.filter(|it| it.0 == *space).map(|it| it.1).collect())
    }

    /// Whether the process that runs it is gone without having said how it ended. Who opens the
    /// store next writes that down.
    pub fn is_abandoned(&self, state: &StateDir, exec: &Exec) -> Result<bool> {
        if exec.status != Status::Running {
            return Ok(false);
        }
        let Some(owner) = self.open_owner(exec)? else {
            return Ok(false);
        };
        let is_gone = match self.is_shared() {
            true => is_dead(state, &owner)? || self.owners_without_lease()?.contains(&owner),
            false => is_dead(state, &owner)? || !state.owners().join(&owner).exists(),
        };
        // It may have ended in between, and its owner's file with it.
        Ok(is_gone && self.open_owner(exec)?.is_some_and(|it| it == owner))
    }

    /// Who has an exec that has not ended.
    fn open_owner(&self, exec: &Exec) -> Result<Option<String>> {
        let owner: Option<String> = self.ask("look for the exec's owner", |session| {
            session.row(
                "SELECT owner_id FROM sandbox_execs
                 WHERE space_id = ?1 AND exec_id = ?2 AND closed_seq IS NULL",
                values![exec.ids.space_id.as_str(), exec.exec_id.as_str()],
                |row| row.get(0),
            )
        })?;
        Ok(owner.filter(|owner| owner != NOBODY))
    }

    /// Owners that left execs open or sandboxes standing and gave up their identity, or whose file did not survive a
    /// power cut: what [`dead_owners`](crate::dead_owners) cannot see. Ready for
    /// [`Store::recover`].
    pub fn stray_owners(&self, state: &StateDir) -> Result<Vec<String>> {
        if self.is_shared() {
            return self.owners_without_lease();
        }
        let mut owners: Vec<String> = self.ask("look for open execs", |session| {
            session.rows(
                "SELECT owner_id FROM sandbox_execs WHERE closed_seq IS NULL
                 UNION SELECT owner_id FROM sandboxes WHERE owner_id IS NOT NULL",
                &[],
                |row| row.get(0),
            )
        })?;
        // In this order: an owner's file is there before its first row and until after its last.
        let owners_dir = state.owners();
        owners.retain(|owner| owner != NOBODY && !owners_dir.join(owner).exists());
        Ok(owners)
    }
}

fn valid_id(id: String) -> Result<ExecId> {
    id.parse()
        .map_err(|error| tampered("an exec has no valid id").caused_by(error))
}
