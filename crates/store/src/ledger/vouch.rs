//! What the entries say about the rows of execs, compared with the rows. The last entry about an
//! exec vouches for its record, and the last that names an owner for its owner.

use std::collections::HashMap;

use glovebox_model::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::encoding::sha256;
use super::entry::{Kind, StoredEntry};
use super::walk::Walk;
use crate::columns;
use crate::failure::Doing;
use crate::hex;
use crate::sql::{Row, Session, SqlResult, values};
use crate::summary::{FORGED, OWNER, RECORD_DIGEST};

/// What of an exec's row the ledger vouches for; a line of an export, too.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VouchedRow {
    pub(super) exec_id: String,
    owner: String,
    opened_seq: i64,
    pub(super) closed_seq: Option<i64>,
    closed_hash: Option<String>,
    record_sha256: String,
    /// Whether the columns beside the record say what it says.
    columns_agree: bool,
}

impl VouchedRow {
    /// Of `sandbox_execs x`.
    pub(super) fn columns(session: &Session) -> String {
        let beside = columns::names(session)
            .map(|name| format!(", x.{name}"))
            .collect::<String>();
        format!(
            "x.opened_seq, x.closed_seq, x.closed_hash, x.owner_id, x.record, x.exec_id{beside}"
        )
    }

    /// A part of a condition: the entry `e` closes an exec, so nothing changes its row after it.
    pub(super) const CLOSES: &str = "e.kind IN ('outcome', 'recovered', 'refused')";

    pub(super) fn read(session: &Session, row: &Row<'_>, first: usize) -> SqlResult<Option<Self>> {
        let Some(opened_seq) = row.get(first)? else {
            return Ok(None);
        };
        let record = row.raw(first + 4)?;
        let closed_hash: Option<Vec<u8>> = row.get(first + 2)?;
        Ok(Some(Self {
            exec_id: row.text(first + 5)?,
            opened_seq,
            closed_seq: row.get(first + 1)?,
            closed_hash: closed_hash.map(|hash| hex::encode(&hash)),
            owner: row.text(first + 3)?,
            record_sha256: hex::encode(&sha256(&record)),
            columns_agree: columns::agree(session, &record, row, first + 6)?,
        }))
    }

    pub(super) fn of(session: &Session, space: &str, id: &str) -> Result<Option<Self>> {
        let sql = format!(
            "SELECT {} FROM sandbox_execs x WHERE x.space_id = ?1 AND x.exec_id = ?2",
            Self::columns(session)
        );
        let row = session.row(&sql, values![space, id], |row| Self::read(session, row, 0));
        Ok(row.doing("read the exec")?.flatten())
    }

    /// Whether it is what the last entries say.
    pub(super) fn is(&self, record: Option<&str>, owner: Option<&str>) -> bool {
        let said = (Some(self.record_sha256.as_str()), Some(self.owner.as_str()));
        said == (record, owner) && self.columns_agree
    }
}

/// What was said last about an exec that has not ended yet.
struct Claim {
    opened: Option<i64>,
    owner: Option<String>,
    owner_seq: i64,
    digest: Option<String>,
    digest_seq: i64,
}

#[derive(Default)]
pub(super) struct Vouching {
    open: HashMap<String, Claim>,
}

/// Whether the row of the exec is looked at with this entry.
pub(super) fn closes(entry: &StoredEntry) -> bool {
    let closing = [Kind::Outcome, Kind::Recovered, Kind::Refused];
    closing.iter().any(|kind| kind.as_str() == entry.kind)
}

impl Vouching {
    /// To be called for each entry, after the walk has passed it; with the row when it closes one.
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
        let Some(kind) = Kind::parse(&entry.kind) else {
            walk.problem_here(format!("entry has the unknown kind `{}`", entry.kind));
            return;
        };
        if body.get(FORGED).is_some() {
            walk.problem_here(format!(
                "the row of exec `{id}` was forged, and ended by this entry"
            ));
        }
        let opens = matches!(kind, Kind::Planned | Kind::Refused);
        let mut claim = Claim {
            opened: opens.then_some(entry.seq),
            owner: text(OWNER),
            owner_seq: entry.seq,
            digest: text(RECORD_DIGEST),
            digest_seq: entry.seq,
        };
        if let Some(before) = self.open.remove(id) {
            claim.opened = claim.opened.or(before.opened);
            if claim.owner.is_none() {
                (claim.owner, claim.owner_seq) = (before.owner, before.owner_seq);
            }
        }
        if !closes(entry) {
            self.open.insert(id.clone(), claim);
            return;
        }
        if let Some(row) = claim.present(id, row, walk) {
            let end = (Some(entry.seq), Some(hex::encode(&entry.hash)));
            if (row.closed_seq, &row.closed_hash) != (end.0, &end.1) {
                walk.problem_here(format!(
                    "the row of exec `{id}` names another closing entry"
                ));
            }
            claim.check_owner(id, &row, walk);
            claim.check_record(id, &row, walk);
        }
    }

    /// What is still open by the ledger.
    pub(super) fn finish(
        self,
        walk: &mut Walk<'_>,
        mut row_of: impl FnMut(&str) -> Result<Option<VouchedRow>>,
    ) -> Result<()> {
        let mut open: Vec<(String, Claim)> = self.open.into_iter().collect();
        open.sort_by_key(|(_, claim)| claim.digest_seq);
        for (id, claim) in open {
            let Some(row) = claim.present(&id, row_of(&id)?, walk) else {
                continue;
            };
            claim.check_owner(&id, &row, walk);
            // One that claims an end is found where its closing entry is looked for.
            if row.closed_seq.is_none() {
                claim.check_record(&id, &row, walk);
            }
        }
        Ok(())
    }
}

impl Claim {
    fn present(
        &self,
        id: &str,
        row: Option<VouchedRow>,
        walk: &mut Walk<'_>,
    ) -> Option<VouchedRow> {
        let opened = self.opened.unwrap_or(self.digest_seq);
        let seq = Some(opened.unsigned_abs());
        if row.is_none() {
            walk.problem(seq, format!("the row of exec `{id}` is missing"));
        }
        let row = row?;
        if self.opened.is_some_and(|opened| opened != row.opened_seq) {
            let what = format!("the row of exec `{id}` names another opening entry");
            walk.problem(seq, what);
        }
        Some(row)
    }

    fn check_owner(&self, id: &str, row: &VouchedRow, walk: &mut Walk<'_>) {
        if self.owner.as_ref() != Some(&row.owner) {
            walk.problem(
                Some(self.owner_seq.unsigned_abs()),
                format!("the row of exec `{id}` names another owner"),
            );
        }
    }

    fn check_record(&self, id: &str, row: &VouchedRow, walk: &mut Walk<'_>) {
        let seq = Some(self.digest_seq.unsigned_abs());
        if self.digest.as_ref() != Some(&row.record_sha256) {
            walk.problem(seq, format!("the record of exec `{id}` was edited"));
        } else if !row.columns_agree {
            walk.problem(
                seq,
                format!("the columns of exec `{id}` say something else than its record"),
            );
        }
    }
}
