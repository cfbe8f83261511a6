//! Putting a database under proof: a new one, which starts with the operator's signed head, and one
//! of an older version, whose rows and spaces the ledger did not vouch for. What was done to those
//! before cannot be found; from here on it is.

use std::collections::{BTreeMap, HashMap};

use glovebox_model::{Result, SpaceId};
use jiff::Timestamp;
use serde_json::json;

use crate::administration::administered;
use crate::failure::{Doing, tampered};
use crate::ledger::chain::{Chains, StoredHead};
use crate::ledger::key::LedgerKey;
use crate::ledger::operator::is_operator;
use crate::ledger::row_proof::{Guarded, is_under_proof};
use crate::sql::{Session, values};

const EVENT: &str = "ledger.rows_adopted";
/// Rows that one entry vouches for.
const AT_ONCE: usize = 200;

/// To be called in the transaction that brings the database to the version that has `ledger_rows`.
pub(crate) fn put_under_proof(session: &Session, key: &LedgerKey) -> Result<()> {
    let known = HashMap::new();
    let mut chains = Chains::new(session, key, &known, Timestamp::now());
    let operator = SpaceId::local();
    // Taking rows up a second time would vouch for what was done to them in between.
    if is_under_proof(session)? {
        return Err(tampered(
            "the database claims to be of an older version, and its ledger says that it is not",
        ));
    }
    match head(session, operator.as_str())? {
        None => chains.begin(),
        Some(_) => {
            let details = json!({ "table": null, "count": 0 });
            let draft = administered(&operator, EVENT, None, None, details)?;
            chains.append_about(draft, &[])?;
        }
    }
    for (table, spaces) in rows(session)? {
        for (space, keys) in spaces {
            let invented = || tampered(format!("a row of `{}` was invented", table.table()));
            // Whatever made a row wrote an entry too.
            head(session, &space)?.ok_or_else(invented)?;
            let space: SpaceId = space.parse().map_err(|_| invented())?;
            for some in keys.chunks(AT_ONCE) {
                let rows: Vec<_> = some.iter().map(|key| (table, key.as_str())).collect();
                let details = json!({ "table": table.table(), "count": some.len() });
                chains.append_about(administered(&space, EVENT, None, None, details)?, &rows)?;
            }
        }
    }
    let spaces: Vec<String> = session
        .rows("SELECT space_id FROM ledger_heads", &[], |row| row.get(0))
        .doing("read the ledger's heads")?;
    for space in spaces.iter().filter(|space| !is_operator(space)) {
        let space = space
            .parse()
            .map_err(|_| tampered("a head of the ledger is of no space"))?;
        chains.note_present_head(&space)?;
    }
    chains.finish()?;
    Ok(())
}

fn head(session: &Session, space: &str) -> Result<Option<StoredHead>> {
    StoredHead::read(session, space).doing("read the ledger's head")
}

type Keys = BTreeMap<String, Vec<String>>;

/// The keys of every row, by table and space.
fn rows(session: &Session) -> Result<Vec<(Guarded, Keys)>> {
    let keys_of = |table: Guarded| {
        let sql = format!(
            "SELECT {}, {key} FROM {} t ORDER BY {key}",
            table.space(),
            table.table(),
            key = table.key()
        );
        let rows: Vec<(String, String)> = session
            .rows(&sql, values![], |row| Ok((row.get(0)?, row.get(1)?)))
            .doing("read what is put under proof")?;
        let mut keys = Keys::new();
        for (space, key) in rows {
            keys.entry(space).or_default().push(key);
        }
        Ok((table, keys))
    };
    Guarded::ALL.into_iter().map(keys_of).collect()
}
