//! Appending to the ledger inside one transaction.

use std::collections::HashMap;

use glovebox_model::{ExecId, ReceiptRef, Result, SpaceId};
use jiff::Timestamp;

use super::encoding::Hash;
use super::entry::{Kind, StoredEntry};
use super::index;
use super::key::{Claim, LedgerKey, SignatureBytes};
use super::operator::is_operator;
use super::row_proof;
use crate::failure::{Doing, internal, tampered};
use crate::hex;
use crate::sql::{Row, Session, SqlResult, values};

/// Every so many entries a signed checkpoint is kept.
pub(crate) const CHECKPOINT_EVERY: u64 = 256;

pub(crate) const ENTRY_COLUMNS: &str =
    "e.space_id, e.seq, e.at, e.kind, e.exec_id, e.ids, e.tags, e.body, e.prev_hash, e.hash";

pub(crate) fn read_entry(row: &Row<'_>) -> SqlResult<StoredEntry> {
    Ok(StoredEntry {
        space: row.text(0)?,
        seq: row.get(1)?,
        at_us: row.get(2)?,
        kind: row.text(3)?,
        exec_id: row.text(4)?,
        ids: row.text(5)?,
        tags: row.text(6)?,
        body: row.text(7)?,
        prev_hash: row.get(8)?,
        hash: row.get(9)?,
    })
}

/// Where a chain ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) seq: u64,
    pub(crate) hash: Hash,
}

/// Before the first entry.
const NOTHING: Head = Head {
    seq: 0,
    hash: [0; 32],
};

/// A head as it is stored.
#[derive(Debug)]
pub(crate) struct StoredHead {
    pub(crate) seq: i64,
    pub(crate) hash: Vec<u8>,
    pub(crate) public_key: Vec<u8>,
    pub(crate) signature: Vec<u8>,
}

impl StoredHead {
    pub(crate) fn read(session: &Session, space: &str) -> SqlResult<Option<Self>> {
        session.row(
            "SELECT seq, hash, public_key, signature FROM ledger_heads WHERE space_id = ?1",
            values![space],
            |row| {
                Ok(Self {
                    seq: row.get(0)?,
                    hash: row.get(1)?,
                    public_key: row.get(2)?,
                    signature: row.get(3)?,
                })
            },
        )
    }

    /// `None` unless this key signed it.
    pub(crate) fn signed_by(&self, key: &[u8; 32], space: &str) -> Option<Head> {
        let seq = u64::try_from(self.seq).ok()?;
        let hash = self.hash.as_slice().try_into().ok()?;
        let signature = self.signature.as_slice().try_into().ok()?;
        let ours = self.public_key == key && Claim::Head.holds(space, seq, &hash, key, &signature);
        ours.then_some(Head { seq, hash })
    }
}

/// What an entry will say; its place and time are given by the chain.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) space: SpaceId,
    pub(crate) kind: Kind,
    pub(crate) exec_id: Option<ExecId>,
    /// Canonical JSON, like `tags` and `body`.
    pub(crate) ids: String,
    pub(crate) tags: String,
    pub(crate) body: String,
}

/// Where an appended entry is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    pub(crate) seq: i64,
    pub(crate) hash: Hash,
}

impl Link {
    pub(crate) fn receipt(self) -> ReceiptRef {
        ReceiptRef {
            seq: self.seq.unsigned_abs(),
            hash: hex::encode(&self.hash),
        }
    }
}

/// The chains of one transaction. Heads are written once, by [`Chains::finish`].
#[derive(Debug)]
pub(crate) struct Chains<'t> {
    session: &'t Session,
    key: &'t LedgerKey,
    /// Heads that this process signed or checked before.
    known: &'t HashMap<SpaceId, Head>,
    heads: HashMap<SpaceId, Head>,
    /// The last checkpoint of the operator's chain in this transaction.
    passed: Option<Head>,
    now: Timestamp,
}

impl<'t> Chains<'t> {
    pub(crate) fn new(
        session: &'t Session,
        key: &'t LedgerKey,
        known: &'t HashMap<SpaceId, Head>,
        now: Timestamp,
    ) -> Self {
        Self {
            session,
            key,
            known,
            heads: HashMap::new(),
            passed: None,
            now,
        }
    }

    pub(crate) fn session(&self) -> &'t Session {
        self.session
    }

    /// One time for everything in the transaction.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// To be given back to [`Chains::restore`] when the rows written since were undone.
    pub(crate) fn position(&self) -> HashMap<SpaceId, Head> {
        self.heads.clone()
    }

    pub(crate) fn restore(&mut self, position: HashMap<SpaceId, Head>) {
        self.heads = position;
    }

    pub(crate) fn append(&mut self, draft: Draft) -> Result<Link> {
        let head = self.head(&draft.space)?;
        let seq = i64::try_from(head.seq)
            .ok()
            .and_then(|seq| seq.checked_add(1))
            .ok_or_else(|| internal("the ledger is full"))?;
        let mut entry = StoredEntry {
            space: draft.space.as_str().to_owned(),
            seq,
            at_us: self.now.as_microsecond(),
            kind: draft.kind.as_str().to_owned(),
            exec_id: draft.exec_id.map(String::from).unwrap_or_default(),
            ids: draft.ids,
            tags: draft.tags,
            body: match head == NOTHING && is_operator(draft.space.as_str()) {
                true => row_proof::marked(&draft.body)?,
                false => draft.body,
            },
            prev_hash: head.hash.to_vec(),
            hash: Vec::new(),
        };
        let hash = entry.expected_hash();
        entry.hash = hash.to_vec();
        if entry.terms().is_none() {
            return Err(internal("the entry cannot be indexed"));
        }
        self.insert(&entry).doing("write the ledger")?;
        if index::reaches(seq) == seq {
            index::extend(self.session, &entry.space, seq).doing("write the ledger's index")?;
        }
        let head = Head {
            seq: head.seq + 1,
            hash,
        };
        if head.seq.is_multiple_of(CHECKPOINT_EVERY) {
            self.keep_checkpoint(&entry.space, head)
                .doing("write the ledger's checkpoint")?;
            if is_operator(&entry.space) {
                self.passed = Some(head);
            }
        }
        self.heads.insert(draft.space.clone(), head);
        self.note_if_due(&draft.space, head)?;
        Ok(Link { seq, hash })
    }

    /// The place of the entry that is appended next.
    pub(crate) fn next_seq(&self, space: &SpaceId) -> Result<i64> {
        Ok(self.head(space)?.seq.cast_signed() + 1)
    }

    pub(super) fn sign(&self, claim: Claim, space: &str, head: Head) -> SignatureBytes {
        self.key.sign(claim, space, head.seq, &head.hash)
    }

    /// The operator's chain has a head before its first entry: without one it was deleted.
    pub(crate) fn begin(&mut self) {
        self.heads.entry(SpaceId::local()).or_insert(NOTHING);
    }

    /// The checkpoint of the operator's chain that was passed, unless it was undone.
    pub(crate) fn passed(&self) -> Option<Head> {
        let end = self.heads.get(&SpaceId::local())?;
        self.passed.filter(|passed| passed.seq <= end.seq)
    }

    /// Signs the heads. Returns them for the next transaction.
    pub(crate) fn finish(self) -> Result<HashMap<SpaceId, Head>> {
        for (space, head) in &self.heads {
            let signature = self.sign(Claim::Head, space.as_str(), *head);
            self.session
                .change_one(
                    "INSERT INTO ledger_heads (space_id, seq, hash, public_key, signature)
                     VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT (space_id) DO UPDATE SET seq = excluded.seq, hash = excluded.hash,
                         public_key = excluded.public_key, signature = excluded.signature",
                    values![
                        space.as_str(),
                        head.seq.cast_signed(),
                        &head.hash,
                        &self.key.public(),
                        &signature
                    ],
                )
                .doing("write the ledger's head")?;
        }
        Ok(self.heads)
    }

    /// Extending a head that we did not sign would sign what somebody else made of the ledger.
    pub(super) fn head(&self, space: &SpaceId) -> Result<Head> {
        if let Some(head) = self.heads.get(space) {
            return Ok(*head);
        }
        let stored =
            StoredHead::read(self.session, space.as_str()).doing("read the ledger's head")?;
        let Some(stored) = stored else {
            return self.first_head(space);
        };
        if let Some(known) = self.known.get(space) {
            let known_seq = known.seq.cast_signed();
            if stored.seq < known_seq {
                return Err(tampered(format!(
                    "the ledger of space `{space}` ended at entry {known_seq} and now ends at {}",
                    stored.seq
                )));
            }
            if stored.seq == known_seq && stored.hash == known.hash {
                return Ok(*known);
            }
        }
        stored
            .signed_by(&self.key.public(), space.as_str())
            .ok_or_else(|| {
                tampered(format!(
                    "the head of the ledger of space `{space}` is not signed by `ledger.key`"
                ))
            })
    }

    fn first_head(&self, space: &SpaceId) -> Result<Head> {
        let any = self
            .session
            .exists(
                "SELECT EXISTS (SELECT 1 FROM ledger_entries WHERE space_id = ?1)",
                values![space.as_str()],
            )
            .doing("read the ledger")?;
        if any {
            return Err(tampered(format!(
                "the ledger of space `{space}` has entries and no head"
            )));
        }
        self.ensure_new(space)?;
        Ok(NOTHING)
    }

    fn insert(&self, entry: &StoredEntry) -> SqlResult<()> {
        self.session.change_one(
            "INSERT INTO ledger_entries (space_id, seq, at, kind, exec_id, ids, tags, body,
                 prev_hash, hash)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            values![
                &entry.space,
                entry.seq,
                entry.at_us,
                &entry.kind,
                &entry.exec_id,
                &entry.ids,
                &entry.tags,
                &entry.body,
                &entry.prev_hash,
                &entry.hash
            ],
        )
    }

    fn keep_checkpoint(&self, space: &str, head: Head) -> SqlResult<()> {
        let signature = self.sign(Claim::Checkpoint, space, head);
        self.session.change_one(
            "INSERT INTO ledger_checkpoints (space_id, seq, hash, signature)
             VALUES (?1, ?2, ?3, ?4)",
            values![space, head.seq.cast_signed(), &head.hash, &signature],
        )
    }
}
