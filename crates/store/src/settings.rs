//! The settings that are changed while servers run: one value with a version.

use glovebox_model::{Result, Settings, SpaceId};
use serde_json::{Map, Value, json};

use crate::administration::{Actor, administered};
use crate::failure::{Doing, internal, tampered};
use crate::ledger::row_proof::{Guarded, ensure_unchanged};
use crate::sql::{Session, SqlResult, values};
use crate::store::Store;

fn find(session: &Session) -> SqlResult<Option<(String, i64)>> {
    session.row("SELECT settings, version FROM settings", &[], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })
}

/// Before the first change: the defaults, as version 0.
fn parsed(kept: Option<(String, i64)>) -> Result<(Settings, u64)> {
    let Some((text, version)) = kept else {
        return Ok((Settings::default(), 0));
    };
    let settings = serde_json::from_slice(text.as_bytes())
        .map_err(|error| tampered("the settings cannot be read").caused_by(error))?;
    Ok((settings, version.unsigned_abs()))
}

fn as_json(settings: &Settings) -> Result<Value> {
    serde_json::to_value(settings)
        .map_err(|error| internal("the settings cannot be written").caused_by(error))
}

impl Store {
    /// The settings and their version.
    pub fn settings(&self) -> Result<(Settings, u64)> {
        parsed(self.ask("read the settings", find)?)
    }

    /// Changes the settings, given their version: no other change comes in between, on any server. A change to what they
    /// are already has no effect and no entry. The change is made while nobody else can write: it
    /// must be quick, and must not use the store.
    pub fn change_settings(
        &self,
        by: &Actor,
        change: impl FnOnce(Settings, u64) -> Result<Settings> + Send + 'static,
    ) -> Result<(Settings, u64)> {
        let by = by.clone();
        self.write(move |chains| {
            let session = chains.session();
            ensure_unchanged(session, Guarded::Settings, &SpaceId::local(), "1")?;
            let (before, version) = parsed(find(session).doing("read the settings")?)?;
            let after = change(before.clone(), version)?;
            if after == before {
                return Ok((before, version));
            }
            let version = version + 1;
            let (old, new) = (as_json(&before)?, as_json(&after)?);
            session
                .execute(
                    "INSERT INTO settings (one, version, settings) VALUES (1, ?1, ?2)
                     ON CONFLICT (one) DO UPDATE SET version = excluded.version,
                         settings = excluded.settings",
                    values![version.cast_signed(), new.to_string()],
                )
                .doing("write the settings")?;
            let details = json!({ "version": version, "changes": changes(&old, &new) });
            let event = "settings.changed";
            let draft = administered(&SpaceId::local(), event, Some(&by), None, details)?;
            chains.append_about(draft, &[(Guarded::Settings, "1")])?;
            Ok((after, version))
        })
    }
}

/// What differs, with both values.
fn changes(old: &Value, new: &Value) -> Map<String, Value> {
    let fields = new.as_object().into_iter().flatten();
    fields
        .filter(|(name, value)| old.get(name) != Some(value))
        .map(|(name, value)| (name.clone(), json!({ "from": old.get(name), "to": value })))
        .collect()
}
