//! The operator's chain, that of the space `local`, holds the signed heads of all the others: noted
//! when a space begins, at each of its checkpoints, and when an older ledger is taken up. So a space
//! that was deleted, or put back to what it was before a note, is missed.

use std::collections::BTreeMap;

use glovebox_model::{Result, SpaceId};
use serde_json::{Value, json};

use super::chain::{CHECKPOINT_EVERY, Chains, ENTRY_COLUMNS, Head, read_entry};
use super::encoding::Hash;
use super::entry::StoredEntry;
use super::key::{Claim, PublicKey};
use super::walk::Walk;
use crate::administration::administered_about;
use crate::failure::{Doing, tampered};
use crate::hex;
use crate::sql::{Session, values};

pub(crate) const EVENT: &str = "space.head";
/// Of what `ledger_rows` says about whole spaces.
const KIND: &str = "spaces";

pub(crate) fn is_operator(space: &str) -> bool {
    space == SpaceId::local().as_str()
}

impl Chains<'_> {
    /// To be called after each append. A checkpoint is signed, not a head: a kept head could be
    /// passed off as that of a chain whose tail was cut.
    pub(super) fn note_if_due(&mut self, space: &SpaceId, head: Head) -> Result<()> {
        let due = head.seq == 1 || head.seq.is_multiple_of(CHECKPOINT_EVERY);
        match due && !is_operator(space.as_str()) {
            true => self.note_head(space, head),
            false => Ok(()),
        }
    }

    pub(crate) fn note_present_head(&mut self, space: &SpaceId) -> Result<()> {
        let head = self.head(space)?;
        self.note_head(space, head)
    }

    fn note_head(&mut self, space: &SpaceId, head: Head) -> Result<()> {
        let operator = SpaceId::local();
        let signature = self.sign(Claim::Checkpoint, space.as_str(), head);
        let details = json!({
            "space_id": space,
            "seq": head.seq,
            "hash": hex::encode(&head.hash),
            "signature": hex::encode(&signature),
        });
        let tags = vec![format!("space:{space}")];
        let draft = administered_about(&operator, EVENT, None, None, tags, details)?;
        let link = self.append(draft)?;
        self.place(&operator, KIND, space.as_str(), link)
    }

    /// A space without a head begins. One that the operator's chain knows had one.
    pub(super) fn ensure_new(&self, space: &SpaceId) -> Result<()> {
        let noted = self
            .session()
            .exists(
                "SELECT EXISTS (SELECT 1 FROM ledger_rows
                 WHERE space_id = ?1 AND kind = ?2 AND key = ?3)",
                values![SpaceId::local().as_str(), KIND, space.as_str()],
            )
            .doing("read the operator's ledger")?;
        match noted || is_operator(space.as_str()) {
            false => Ok(()),
            true => Err(tampered(format!(
                "the ledger of space `{space}` is gone, which had begun"
            ))),
        }
    }
}

/// What the operator's chain says about the others.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// By space, oldest first.
    heads: BTreeMap<String, Vec<Noted>>,
}

#[derive(Debug)]
struct Noted {
    /// Where the note stands in the operator's chain.
    by: i64,
    seq: u64,
    hash: String,
}

impl Notes {
    /// To be called for each entry of the operator's chain, after the walk has passed it.
    pub(super) fn entry(
        &mut self,
        entry: &StoredEntry,
        key: Option<&PublicKey>,
        walk: &mut Walk<'_>,
    ) {
        if !entry.body.contains(EVENT) {
            return;
        }
        let body: Value = serde_json::from_str(&entry.body).unwrap_or_default();
        if body.get("event").and_then(Value::as_str) != Some(EVENT) {
            return;
        }
        let details = &body["details"];
        let text = |name: &str| details[name].as_str().unwrap_or_default();
        let (space, hash, seq) = (text("space_id"), text("hash"), details["seq"].as_u64());
        let parts = (
            hex::decode::<32>(hash),
            hex::decode(text("signature")),
            seq,
            key,
        );
        let signed = match parts {
            (Some(hash), Some(signature), Some(seq), Some(key)) => {
                Claim::Checkpoint.holds(space, seq, &hash as &Hash, key, &signature)
            }
            _ => false,
        };
        if !signed {
            walk.problem_here("the head that is noted here is not signed by `ledger.key`");
        }
        let heads = self.heads.entry(space.to_owned()).or_default();
        heads.push(Noted {
            by: entry.seq,
            seq: seq.unwrap_or(0),
            hash: hash.to_owned(),
        });
    }

    /// Only the last about one space, from where `ledger_rows` says.
    pub(super) fn read_last(
        &mut self,
        session: &Session,
        space: &str,
        key: Option<&PublicKey>,
        walk: &mut Walk<'_>,
    ) -> Result<()> {
        let entry = session
            .row(
                &format!(
                    "SELECT {ENTRY_COLUMNS} FROM ledger_rows r
                     JOIN ledger_entries e ON e.space_id = r.space_id AND e.seq = r.seq
                     WHERE r.space_id = ?1 AND r.kind = ?2 AND r.key = ?3"
                ),
                values![SpaceId::local().as_str(), KIND, space],
                read_entry,
            )
            .doing("read the operator's ledger")?;
        if let Some(entry) = entry {
            self.entry(&entry, key, walk);
        }
        Ok(())
    }

    pub(super) fn spaces(&self) -> impl Iterator<Item = &String> {
        self.heads.keys()
    }

    /// What the walk along this space must meet.
    pub(super) fn expect<'n>(&'n self, space: &str, walk: &mut Walk<'n>) {
        for noted in self.heads.get(space).into_iter().flatten() {
            walk.await_entry(noted.seq, &noted.hash, "the operator's ledger");
        }
    }

    /// To be called when the whole space was walked along.
    pub(super) fn check(&self, space: &str, walk: &mut Walk<'_>) {
        let last = walk.last().0.unsigned_abs();
        match self.heads.get(space).and_then(|heads| heads.last()) {
            // One that never began is known by none.
            None if last == 0 => {}
            None => walk.problem(None, "the operator's ledger does not know this space"),
            Some(noted) if noted.seq < last - last % CHECKPOINT_EVERY => walk.problem(
                Some(last - last % CHECKPOINT_EVERY),
                "the operator's ledger does not have the head of this checkpoint",
            ),
            Some(_) => {}
        }
    }

    /// Whether `ledger_rows` says where the last notes stand.
    pub(super) fn check_places(&self, session: &Session, walk: &mut Walk<'_>) -> Result<()> {
        let places: Vec<(String, i64)> = session
            .rows(
                "SELECT key, seq FROM ledger_rows WHERE space_id = ?1 AND kind = ?2",
                values![SpaceId::local().as_str(), KIND],
                |row| Ok((row.text(0)?, row.get(1)?)),
            )
            .doing("read the operator's ledger")?;
        let mut places: BTreeMap<String, i64> = places.into_iter().collect();
        for (space, heads) in &self.heads {
            let noted = heads.last().map(|noted| noted.by);
            if places.remove(space) != noted {
                let seq = noted.map(i64::unsigned_abs);
                walk.problem(
                    seq,
                    format!("the place of the last note about space `{space}` was edited"),
                );
            }
        }
        for space in places.keys() {
            walk.problem(None, format!("a note about space `{space}` was invented"));
        }
        Ok(())
    }
}
