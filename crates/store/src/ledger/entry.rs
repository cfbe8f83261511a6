//! One entry of the ledger, as it is kept and hashed, and as it is shown.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use glovebox_model::{ExecId, ReceiptRef, Result, SpaceId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::encoding::{Hash, encode, sha256};
use crate::failure::tampered;
use crate::hex;

const DOMAIN: &str = "glovebox-ledger-entry-v1";

/// What an entry says happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Something is about to start, or to wait for its turn.
    Planned,
    /// What waited for its turn is about to start.
    Started,
    /// It ended.
    Outcome,
    /// It was not started.
    Refused,
    /// The process that ran it is gone; somebody else closed it.
    Recovered,
    /// Something was done to the server itself, or by it.
    Administered,
}

impl Kind {
    pub const ALL: [Self; 6] = [
        Self::Planned,
        Self::Started,
        Self::Outcome,
        Self::Refused,
        Self::Recovered,
        Self::Administered,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Started => "started",
            Self::Outcome => "outcome",
            Self::Refused => "refused",
            Self::Recovered => "recovered",
            Self::Administered => "administered",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// An entry as people and programs see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub space_id: SpaceId,
    pub seq: u64,
    pub at: Timestamp,
    pub kind: Kind,
    pub exec_id: Option<ExecId>,
    /// The correlation ids that were given, by their names in the exec record.
    pub ids: BTreeMap<String, String>,
    pub tags: Vec<String>,
    /// Metadata, digests and summaries; never contents.
    pub body: Value,
    pub prev_hash: String,
    pub hash: String,
}

impl Entry {
    pub fn receipt(&self) -> ReceiptRef {
        ReceiptRef {
            seq: self.seq,
            hash: self.hash.clone(),
        }
    }
}

/// An entry as it is stored: texts, whatever somebody may have made of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredEntry {
    pub(crate) space: String,
    pub(crate) seq: i64,
    pub(crate) at_us: i64,
    pub(crate) kind: String,
    /// Empty when the entry is about no exec.
    pub(crate) exec_id: String,
    pub(crate) ids: String,
    pub(crate) tags: String,
    pub(crate) body: String,
    pub(crate) prev_hash: Vec<u8>,
    pub(crate) hash: Vec<u8>,
}

impl StoredEntry {
    /// What `hash` must be. `ids`, `tags` and `body` are canonical JSON.
    pub(crate) fn expected_hash(&self) -> Hash {
        sha256(&self.encoding())
    }

    fn encoding(&self) -> Vec<u8> {
        encode(&[
            DOMAIN,
            &self.space,
            &self.seq.to_string(),
            &time_text(self.at_us),
            &self.kind,
            &self.exec_id,
            &self.ids,
            &self.tags,
            &self.body,
            &hex::encode(&self.prev_hash),
        ])
    }

    pub(crate) fn terms(&self) -> Option<BTreeSet<String>> {
        let ids: BTreeMap<String, String> = serde_json::from_str(&self.ids).ok()?;
        let tags: Vec<String> = serde_json::from_str(&self.tags).ok()?;
        let mut terms: BTreeSet<String> = ids.iter().map(|(name, id)| term(name, id)).collect();
        terms.extend(tags.iter().map(|tag| term("tag", tag)));
        terms.insert(term("kind", &self.kind));
        if !self.exec_id.is_empty() {
            terms.insert(term("exec_id", &self.exec_id));
        }
        Some(terms)
    }

    pub(crate) fn into_entry(self) -> Result<Entry> {
        let seq = self.seq;
        self.parsed()
            .ok_or_else(|| tampered(format!("ledger entry {seq} cannot be read")))
    }

    fn parsed(self) -> Option<Entry> {
        Some(Entry {
            space_id: self.space.parse().ok()?,
            seq: u64::try_from(self.seq).ok()?,
            at: Timestamp::from_microsecond(self.at_us).ok()?,
            kind: Kind::parse(&self.kind)?,
            exec_id: match self.exec_id.as_str() {
                "" => None,
                id => Some(id.parse().ok()?),
            },
            ids: serde_json::from_str(&self.ids).ok()?,
            tags: serde_json::from_str(&self.tags).ok()?,
            body: serde_json::from_str(&self.body).ok()?,
            prev_hash: hex::encode(&self.prev_hash),
            hash: hex::encode(&self.hash),
        })
    }
}

/// What an entry is found by: one text for each of its properties.
pub(crate) fn term(name: &str, value: &str) -> String {
    format!("{name}={value}")
}

/// RFC 3339 in UTC with exactly six digits: one text for each microsecond.
pub(crate) fn time_text(at_us: i64) -> String {
    match Timestamp::from_microsecond(at_us) {
        Ok(at) => format!("{at:.6}"),
        // No clock says this, so no entry was ever hashed with it.
        Err(_) => format!("{at_us}us"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn example() -> StoredEntry {
        StoredEntry {
            space: "local".to_owned(),
            seq: 7,
            at_us: 1_700_000_000_000_001,
            kind: "planned".to_owned(),
            exec_id: "e_00000000000040008000000000000000".to_owned(),
            ids: r#"{"task_id":"t1"}"#.to_owned(),
            tags: r#"["mode:run"]"#.to_owned(),
            body: r#"{"cmd":"true"}"#.to_owned(),
            prev_hash: vec![0; 32],
            hash: Vec::new(),
        }
    }

    /// The format is a promise: exports of old ledgers must verify for ever.
    #[test]
    fn the_hash_of_a_known_entry_never_changes() {
        let entry = example();
        let mut bytes = Vec::new();
        for field in [
            "glovebox-ledger-entry-v1",
            "local",
            "7",
            "2023-11-14T22:13:20.000001Z",
            "planned",
            "e_00000000000040008000000000000000",
            r#"{"task_id":"t1"}"#,
            r#"["mode:run"]"#,
            r#"{"cmd":"true"}"#,
            &"0".repeat(64),
        ] {
            bytes.extend((field.len() as u64).to_be_bytes());
            bytes.extend(field.bytes());
        }
        assert_eq!(entry.encoding(), bytes);
        assert_eq!(
            hex::encode(&entry.expected_hash()),
            "c3570a50654098e3b2de25f72a3ba400c7c3e2988ffc163fda01d12212f4c12c"
        );
    }

    #[test]
    fn an_entry_is_found_by_each_of_its_properties() {
        let terms: Vec<String> = example().terms().unwrap().into_iter().collect();
        assert_eq!(
            terms,
            [
                "exec_id=e_00000000000040008000000000000000",
                "kind=planned",
                "tag=mode:run",
                "task_id=t1"
            ]
        );
    }

    fn any_entry() -> impl Strategy<Value = StoredEntry> {
        let text = || "[ab0\\-{}\"]{0,3}";
        (
            (text(), 0i64..30, -3i64..3, text(), text()),
            (
                text(),
                text(),
                text(),
                proptest::collection::vec(0u8..3, 0..3),
            ),
        )
            .prop_map(
                |((space, seq, at_us, kind, exec_id), (ids, tags, body, prev_hash))| StoredEntry {
                    space,
                    seq,
                    at_us,
                    kind,
                    exec_id,
                    ids,
                    tags,
                    body,
                    prev_hash,
                    hash: Vec::new(),
                },
            )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn different_entries_have_different_encodings(one in any_entry(), other in any_entry()) {
            prop_assert_eq!(one.encoding() == other.encoding(), one == other);
        }

        #[test]
        fn changing_one_field_changes_the_encoding(entry in any_entry(), field in 0usize..9) {
            let mut edited = entry.clone();
            match field {
                0 => edited.space.push('x'),
                1 => edited.seq += 1,
                2 => edited.at_us += 1,
                3 => edited.kind.push('x'),
                4 => edited.exec_id.push('x'),
                5 => edited.ids.push('x'),
                6 => edited.tags.push('x'),
                7 => edited.body.push('x'),
                _ => edited.prev_hash.push(0),
            }
            prop_assert_ne!(entry.encoding(), edited.encoding());
        }
    }
}
