//! Asking the server that runs an exec to cancel it, through the database.

use glovebox_model::{ExecId, Result, SpaceId};

use crate::failure::Doing;
use crate::rows::parse_ids;
use crate::sql::values;
use crate::store::Store;

impl Store {
    /// For an exec that another server runs. Asking again, or for one that has ended, does nothing.
    pub fn ask_cancel(&self, space: &SpaceId, id: &ExecId) -> Result<()> {
        let (space, id) = (space.clone(), id.clone());
        self.write(move |chains| {
            chains
                .session()
                .execute(
                    "INSERT INTO cancel_asks (space_id, exec_id)
                     SELECT space_id, exec_id FROM sandbox_execs
                     WHERE space_id = ?1 AND exec_id = ?2 AND closed_seq IS NULL
                     ON CONFLICT (space_id, exec_id) DO NOTHING",
                    values![space.as_str(), id.as_str()],
                )
                .doing("ask to cancel the exec")?;
            Ok(())
        })
    }

    /// Open execs of this owner that somebody asked to cancel.
    pub fn cancels_asked(&self, owner: &str) -> Result<Vec<(SpaceId, ExecId)>> {
        let asked: Vec<(String, String)> = self.ask("look for cancellations", |session| {
            session.rows(
                "SELECT c.space_id, c.exec_id FROM cancel_asks c JOIN sandbox_execs x
                 ON x.space_id = c.space_id AND x.exec_id = c.exec_id
                 WHERE x.owner_id = ?1 AND x.closed_seq IS NULL",
                values![owner],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
        })?;
        parse_ids(asked)
    }
}
