//! What the entries say about the rows of execs, compared with the rows. The last entry about an
//! exec vouches for its record, and the last that names an owner for its owner.

use std::collections::HashMap;

use serde_json::Value;

use super::encoding::sha256;
use super::entry::{Kind, StoredEntry};
use super::walk::Walk;
use crate::columns;
use crate::hex;
use crate::sql::{Row, Session, SqlResult};
use crate::summary::{OWNER, RECORD_DIGEST};

/// The row that an entry is about, as far as the ledger vouches for it.
pub(super) struct VouchedRow {
    owner: String,
    opened_seq: i64,
    closed_seq: Option<i64>,
    closed_hash: Option<Vec<u8>>,
    record_digest: String,
    /// Whether the columns beside the record say what it says.
    agrees: bool,
}

impl VouchedRow {
    /// Of `sandbox_execs x`.
    pub(super) fn columns(session: &Session) -> String {
        let beside = columns::names(session)
            .map(|name| format!(", x.{name}"))
            .collect::<String>();
        format!("x.opened_seq, x.closed_seq, x.closed_hash, x.owner_id, x.record{beside}")
    }

    pub(super) fn read(session: &Session, row: &Row<'_>, first: usize) -> SqlResult<Option<Self>> {
        let Some(opened_seq) = row.get(first)? else {
            return Ok(None);
        };
        let record = row.raw(first + 4)?;
        Ok(Some(Self {
            opened_seq,
            closed_seq: row.get(first + 1)?,
            closed_hash: row.get(first + 2)?,
            owner: row.text(first + 3)?,
            record_digest: hex::encode(&sha256(&record)),
            agrees: columns::agree(session, &record, row, first + 5)?,
        }))
    }
}

/// What was said last about an exec that has not ended yet.
struct Claim {
    row: VouchedRow,
    owner: Option<String>,
    owner_seq: i64,
    digest: Option<String>,
    digest_seq: i64,
}

#[derive(Default)]
pub(super) struct Vouching {
    open: HashMap<String, Claim>,
}

impl Vouching {
    /// To be called for each entry, after the walk has passed it.
    pub(super) fn entry(
        &mut self,
        entry: &StoredEntry,
        row: Option<VouchedRow>,
        walk: &mut Walk<'_>,
    ) {
        if entry.exec_id.is_empty() {
            return;
        }
        let id = &entry.exec_id;
        let body: Value = serde_json::from_str(&entry.body).unwrap_or_default();
        let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
        // What was asked and answered about an exec says nothing about its row, which may not be
        // there yet, or have ended.
        let claims = text(OWNER).is_some() || text(RECORD_DIGEST).is_some();
        if entry.kind == Kind::Administered.as_str() && !claims {
            return;
        }
        let Some(row) = row else {
            walk.problem_here(format!("the row of exec `{id}` is missing"));
            return;
        };
        let Some(kind) = Kind::parse(&entry.kind) else {
            walk.problem_here(format!("entry has the unknown kind `{}`", entry.kind));
            return;
        };
        let opens = matches!(kind, Kind::Planned | Kind::Refused);
        let closes = matches!(kind, Kind::Outcome | Kind::Recovered | Kind::Refused);
        if opens && row.opened_seq != entry.seq {
            walk.problem_here(format!(
                "the row of exec `{id}` names another opening entry"
            ));
        }
        if closes
            && (row.closed_seq, &row.closed_hash) != (Some(entry.seq), &Some(entry.hash.clone()))
        {
            walk.problem_here(format!(
                "the row of exec `{id}` names another closing entry"
            ));
        }
        let mut claim = Claim {
            row,
            owner: text(OWNER),
            owner_seq: entry.seq,
            digest: text(RECORD_DIGEST),
            digest_seq: entry.seq,
        };
        if claim.owner.is_none()
            && let Some(before) = self.open.remove(id)
        {
            (claim.owner, claim.owner_seq) = (before.owner, before.owner_seq);
        }
        if closes {
            self.open.remove(id);
            claim.check_owner(id, walk);
            claim.check_record(id, walk);
        } else {
            self.open.insert(id.clone(), claim);
        }
    }

    /// What is still open by the ledger.
    pub(super) fn finish(self, walk: &mut Walk<'_>) {
        let mut open: Vec<(String, Claim)> = self.open.into_iter().collect();
        open.sort_by_key(|(_, claim)| claim.digest_seq);
        for (id, claim) in open {
            claim.check_owner(&id, walk);
            // One that claims an end is found where its closing entry is looked for.
            if claim.row.closed_seq.is_none() {
                claim.check_record(&id, walk);
            }
        }
    }
}

impl Claim {
    fn check_owner(&self, id: &str, walk: &mut Walk<'_>) {
        if self.owner.as_ref() != Some(&self.row.owner) {
            walk.problem(
                Some(self.owner_seq.unsigned_abs()),
                format!("the row of exec `{id}` names another owner"),
            );
        }
    }

    fn check_record(&self, id: &str, walk: &mut Walk<'_>) {
        let seq = Some(self.digest_seq.unsigned_abs());
        if self.digest.as_ref() != Some(&self.row.record_digest) {
            walk.problem(seq, format!("the record of exec `{id}` was edited"));
        } else if !self.row.agrees {
            walk.problem(
                seq,
                format!("the columns of exec `{id}` say something else than its record"),
            );
        }
    }
}
