//! Which snapshots were read whole and found sound: a mark, which is an entry of the ledger. The
//! last word about a snapshot holds, so damage that is found later takes the mark away.

use std::collections::HashMap;

use glovebox_model::{ProjectId, ReceiptRef, Result, SnapshotId, SpaceId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::administration::{Actor, administered_about};
use crate::failure::{Doing, tampered};
use crate::ledger::chain::{Draft, ENTRY_COLUMNS, read_entry};
use crate::ledger::entry::{StoredEntry, term};
use crate::ledger::index;
use crate::sql::{Session, values};
use crate::store::Store;

const VERIFIED: &str = "snapshot.verified";
const DAMAGED: &str = "snapshot.damaged";
const DOING: &str = "look for the marks of snapshots";
/// Entries that one transaction writes, so that others have their turn in between.
const AT_ONCE: usize = 500;

/// A snapshot that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedSnapshot {
    pub snapshot_id: SnapshotId,
    pub project_id: ProjectId,
    /// Digest of its manifest: what exactly was found sound.
    pub manifest: String,
    pub sound: bool,
}

/// That a snapshot was found sound, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotMark {
    pub verified_at: Timestamp,
    pub manifest: String,
    pub receipt: ReceiptRef,
}

impl Store {
    /// Writes down what a verification found, one entry for each snapshot.
    pub fn mark_snapshots(
        &self,
        space: &SpaceId,
        by: Option<&Actor>,
        seen: &[VerifiedSnapshot],
    ) -> Result<()> {
        for some in seen.chunks(AT_ONCE) {
            let drafts = some.iter().map(|it| draft(space, by, it));
            let drafts: Vec<Draft> = drafts.collect::<Result<_>>()?;
            self.write(move |chains| {
                for draft in drafts {
                    chains.append(draft)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Those of them that have a mark.
    pub fn snapshot_marks<'i>(
        &self,
        space: &SpaceId,
        ids: impl IntoIterator<Item = &'i SnapshotId>,
    ) -> Result<HashMap<SnapshotId, SnapshotMark>> {
        self.read(|session| {
            let reach = index::reach(session, space.as_str()).doing(DOING)?;
            let unreached = index::after(session, space.as_str(), reach).doing(DOING)?;
            let mut marks = HashMap::new();
            for id in ids {
                let tag = tag(id);
                let newest = unreached.iter().rev().find(|it| judges(it, &tag)).cloned();
                let newest = match newest {
                    Some(entry) => Some(entry),
                    None => last_word(session, space, &tag)?,
                };
                if let Some(mark) = newest.map(mark).transpose()?.flatten() {
                    marks.insert(id.clone(), mark);
                }
            }
            Ok(marks)
        })
    }
}

/// Only what verification found has this tag.
fn tag(id: &SnapshotId) -> String {
    format!("verified:{id}")
}

fn draft(space: &SpaceId, by: Option<&Actor>, seen: &VerifiedSnapshot) -> Result<Draft> {
    let (event, severity) = match seen.sound {
        true => (VERIFIED, None),
        false => (DAMAGED, Some("severity:error")),
    };
    let id = &seen.snapshot_id;
    let mut tags = vec![
        tag(id),
        format!("snapshot:{id}"),
        format!("project:{}", seen.project_id),
    ];
    tags.extend(severity.map(str::to_owned));
    let details = json!({
        "snapshot_id": id,
        "project_id": seen.project_id,
        "manifest": seen.manifest,
    });
    administered_about(space, event, by, None, tags, details)
}

fn judges(entry: &StoredEntry, tag: &str) -> bool {
    let terms = entry.terms();
    terms.is_some_and(|terms| terms.contains(&term("tag", tag)))
}

/// CROSS: to SQLite that means in this order, along the index.
pub(crate) fn newest_of_term() -> String {
    format!(
        "SELECT {ENTRY_COLUMNS} FROM ledger_terms t CROSS JOIN ledger_entries e
         WHERE e.space_id = t.space_id AND e.seq = t.seq AND t.space_id = ?1
         AND t.term = ?2 ORDER BY t.at DESC, t.seq DESC LIMIT 1"
    )
}

fn last_word(session: &Session, space: &SpaceId, tag: &str) -> Result<Option<StoredEntry>> {
    session
        .row(
            &newest_of_term(),
            values![space.as_str(), session.indexed(&term("tag", tag))],
            read_entry,
        )
        .doing(DOING)
}

/// Somebody may go back to it because of this entry, so it has to be what was written.
fn mark(entry: StoredEntry) -> Result<Option<SnapshotMark>> {
    if entry.hash != entry.expected_hash() {
        let message = format!("ledger entry {} is not as it was written", entry.seq);
        return Err(tampered(message));
    }
    let entry = entry.into_entry()?;
    if entry.body["event"] != VERIFIED {
        return Ok(None);
    }
    let manifest = match &entry.body["details"]["manifest"] {
        Json::String(manifest) => manifest.clone(),
        _ => {
            return Err(tampered(format!(
                "ledger entry {} names no manifest",
                entry.seq
            )));
        }
    };
    Ok(Some(SnapshotMark {
        verified_at: entry.at,
        manifest,
        receipt: entry.receipt(),
    }))
}
