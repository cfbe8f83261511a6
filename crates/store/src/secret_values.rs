//! The sealed values of secrets. What seals them is a key that is not here; here is only its id.

use std::collections::{BTreeMap, BTreeSet};

use glovebox_model::{Code, Error, Result, SecretName, SpaceId, Stage};
use serde_json::{Value as Json, json};

use crate::administration::{Actor, administered};
use crate::failure::{Doing, tampered};
use crate::ledger::chain::Chains;
use crate::ledger::row_proof::{Guarded, ensure_unchanged};
use crate::secrets::stamp;
use crate::sql::{Row, Session, SqlResult, values};
use crate::store::Store;

/// Values before the latest, of one secret. Whatever still runs with an older one has long ended.
const OLDER: i64 = 8;

/// Of a space: all of them are held in memory, in many forms, to be looked for.
const SPACE_BYTES: i64 = 8 << 20;

/// A value that only the key of this id opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedValue {
    pub version: u64,
    pub key_id: String,
    pub sealed: Vec<u8>,
}

/// Where a value belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuePlace {
    pub space: SpaceId,
    pub name: SecretName,
    pub version: u64,
}

struct ValueRow {
    space: String,
    name: String,
    value: SealedValue,
}

const COLUMNS: &str = "space_id, name, version, key_id, sealed";

fn read_row(row: &Row<'_>) -> SqlResult<ValueRow> {
    Ok(ValueRow {
        space: row.get(0)?,
        name: row.get(1)?,
        value: SealedValue {
            version: row.get::<i64>(2)?.unsigned_abs(),
            key_id: row.get(3)?,
            sealed: row.get(4)?,
        },
    })
}

impl ValueRow {
    fn into_parts(self) -> Result<(ValuePlace, SealedValue)> {
        let unreadable = || tampered("a secret's value has no valid name");
        let place = ValuePlace {
            space: self.space.parse().map_err(|_| unreadable())?,
            name: self.name.parse().map_err(|_| unreadable())?,
            version: self.value.version,
        };
        Ok((place, self.value))
    }
}

fn current_key(session: &Session) -> SqlResult<Option<String>> {
    session.row("SELECT key_id FROM secrets_key", &[], |row| row.get(0))
}

fn set_key(session: &Session, id: &str) -> Result<()> {
    ensure_unchanged(session, Guarded::SecretsKey, &SpaceId::local(), "1")?;
    session
        .execute(
            "INSERT INTO secrets_key (one, key_id) VALUES (1, ?1)
             ON CONFLICT (one) DO UPDATE SET key_id = excluded.key_id",
            values![id],
        )
        .doing("write the id of the secrets' key")?;
    Ok(())
}

/// The entry that says which key seals the values now, and vouches for that.
fn note_key(chains: &mut Chains<'_>, event: &str, by: &Actor, details: Json) -> Result<()> {
    let draft = administered(&SpaceId::local(), event, Some(by), None, details)?;
    chains.append_about(draft, &[(Guarded::SecretsKey, "1")])?;
    Ok(())
}

fn is_empty(session: &Session) -> Result<bool> {
    let any = session
        .exists("SELECT EXISTS (SELECT 1 FROM secret_values)", &[])
        .doing("look for secrets")?;
    Ok(!any)
}

pub(crate) fn insert(
    chains: &mut Chains<'_>,
    space: &SpaceId,
    name: &SecretName,
    value: &SealedValue,
    by: &Actor,
) -> Result<()> {
    let session = chains.session();
    let current = current_key(session).doing("look for the secrets' key")?;
    if current.as_ref() != Some(&value.key_id) {
        // All values have one key. Where there is no value any more, a lost one is forgotten.
        if current.is_some() && !is_empty(session)? {
            return Err(other_key(&value.key_id));
        }
        set_key(session, &value.key_id)?;
        let details = json!({ "from": current, "to": value.key_id });
        note_key(chains, "secret.key_set", by, details)?;
    }
    session
        .execute(
            "INSERT INTO secret_values (space_id, name, version, key_id, sealed)
             VALUES (?1, ?2, ?3, ?4, ?5)",
            values![
                space.as_str(),
                name.as_str(),
                value.version.cast_signed(),
                &value.key_id,
                &value.sealed
            ],
        )
        .doing("write the secret's value")?;
    session
        .execute(
            "DELETE FROM secret_values WHERE space_id = ?1 AND name = ?2 AND version < ?3",
            values![
                space.as_str(),
                name.as_str(),
                value.version.cast_signed() - OLDER
            ],
        )
        .doing("forget a secret's oldest value")?;
    ensure_room(session, space)
}

fn ensure_room(session: &Session, space: &SpaceId) -> Result<()> {
    let bytes: Option<i64> = session
        .row(
            "SELECT CAST(coalesce(sum(length(sealed)), 0) AS BIGINT) FROM secret_values
             WHERE space_id = ?1",
            values![space.as_str()],
            |row| row.get(0),
        )
        .doing("measure the secrets")?;
    if bytes.unwrap_or(0) <= SPACE_BYTES {
        return Ok(());
    }
    Err(Error::new(
        Code::Conflict,
        Stage::Parse,
        format!(
            "the secrets of the space `{space}`, older values included, would be larger than \
             {} MiB together",
            SPACE_BYTES >> 20
        ),
    )
    .hint("remove one that nobody needs: `glovebox secret rm NAME`"))
}

fn other_key(id: &str) -> Error {
    Error::new(
        Code::Conflict,
        Stage::Open,
        format!("the secrets are sealed with another key than `{id}`"),
    )
}

pub(crate) fn forget(session: &Session, space: &SpaceId, name: &SecretName) -> Result<()> {
    session
        .execute(
            "DELETE FROM secret_values WHERE space_id = ?1 AND name = ?2",
            values![space.as_str(), name.as_str()],
        )
        .doing("remove the secret's values")?;
    Ok(())
}

impl Store {
    /// The id of the key that seals every value; none before the first.
    pub fn secrets_key(&self) -> Result<Option<String>> {
        self.ask("look for the secrets' key", current_key)
    }

    /// Whether any value is kept, of any space.
    pub fn has_sealed_values(&self) -> Result<bool> {
        self.read(|session| is_empty(session).map(|empty| !empty))
    }

    /// One value of a secret; none when it was removed or rotated away.
    pub fn sealed_value(&self, place: &ValuePlace) -> Result<Option<SealedValue>> {
        let row = self.ask("read the secret", |session| {
            session.row(
                &format!(
                    "SELECT {COLUMNS} FROM secret_values
                     WHERE space_id = ?1 AND name = ?2 AND version = ?3"
                ),
                values![
                    place.space.as_str(),
                    place.name.as_str(),
                    place.version.cast_signed()
                ],
                read_row,
            )
        })?;
        Ok(row.map(|row| row.value))
    }

    /// Every value of a space that is kept, older ones included.
    pub fn sealed_values(&self, space: &SpaceId) -> Result<Vec<(ValuePlace, SealedValue)>> {
        let rows = self.ask("read the secrets", |session| {
            session.rows(
                &format!(
                    "SELECT {COLUMNS} FROM secret_values WHERE space_id = ?1
                     ORDER BY name, version"
                ),
                values![space.as_str()],
                read_row,
            )
        })?;
        rows.into_iter().map(ValueRow::into_parts).collect()
    }

    /// Seals every value anew, all of them or none: whatever happens, one key opens everything.
    /// Returns how many there were.
    pub fn reseal_secrets(
        &self,
        from: &str,
        to: &str,
        by: &Actor,
        mut reseal: impl FnMut(&ValuePlace, &[u8]) -> Result<Vec<u8>> + Send + 'static,
    ) -> Result<u64> {
        let (from, to, by) = (from.to_owned(), to.to_owned(), by.clone());
        self.write(move |chains| {
            let session = chains.session();
            let current = current_key(session).doing("look for the secrets' key")?;
            if current.as_ref() != Some(&from) {
                return Err(other_key(&from).hint("somebody else has exchanged it: look again"));
            }
            let select = format!("SELECT {COLUMNS} FROM secret_values");
            let rows = session
                .rows(&select, &[], read_row)
                .doing("read the secrets")?;
            let count = rows.len() as u64;
            let mut resealed: BTreeMap<SpaceId, BTreeSet<SecretName>> = BTreeMap::new();
            for row in rows {
                let (place, value) = row.into_parts()?;
                let of_space = resealed.entry(place.space.clone()).or_default();
                if of_space.insert(place.name.clone()) {
                    let name = place.name.as_str();
                    ensure_unchanged(session, Guarded::Secrets, &place.space, name)?;
                }
                let sealed = reseal(&place, &value.sealed)?;
                session
                    .execute(
                        "UPDATE secret_values SET key_id = ?4, sealed = ?5
                         WHERE space_id = ?1 AND name = ?2 AND version = ?3",
                        values![
                            place.space.as_str(),
                            place.name.as_str(),
                            place.version.cast_signed(),
                            &to,
                            &sealed
                        ],
                    )
                    .doing("write the secret's value")?;
                stamp(session, &place.space)?;
            }
            for (space, names) in resealed {
                let about = names.iter().map(|name| (Guarded::Secrets, name.as_str()));
                let about: Vec<_> = about.collect();
                let details = json!({ "from": from, "to": to });
                let draft = administered(&space, "secret.resealed", Some(&by), None, details)?;
                chains.append_about(draft, &about)?;
            }
            set_key(session, &to)?;
            let details = json!({ "from": from, "to": to, "values": count });
            note_key(chains, "secret.key_rotated", &by, details)?;
            Ok(count)
        })
    }
}
