//! The rows of `approvals`: what they hold and how they change, always inside a transaction that
//! writes the ledger too.

use glovebox_model::{
    Approval, ApprovalId, ApprovalState, Code, Error, ExecId, Result, SpaceId, Stage,
};
use jiff::Timestamp;
use serde_json::{Value as Json, json};

use crate::administration::{Actor, administered_about};
use crate::failure::{Doing, internal, tampered};
use crate::ledger::chain::{Chains, Draft};
use crate::ledger::encoding::canonical;
use crate::ledger::row_proof::{Guarded, ensure_unchanged, is_forged};
use crate::outbox_rows::Happening;
use crate::sql::{Row, Session, SqlResult, values};
use crate::summary;

pub(crate) const COLUMNS: &str = "approval_id, record";

pub(crate) struct ApprovalRow {
    approval_id: String,
    record: String,
}

pub(crate) fn read_row(row: &Row<'_>) -> SqlResult<ApprovalRow> {
    Ok(ApprovalRow {
        approval_id: row.get(0)?,
        record: row.get(1)?,
    })
}

impl ApprovalRow {
    pub(crate) fn into_approval(self) -> Result<Approval> {
        serde_json::from_slice(self.record.as_bytes()).map_err(|error| {
            let id = &self.approval_id;
            tampered(format!("the record of approval `{id}` cannot be read")).caused_by(error)
        })
    }
}

pub(crate) fn find(session: &Session, id: &ApprovalId) -> Result<Approval> {
    let row = session
        .row(
            &format!("SELECT {COLUMNS} FROM approvals WHERE approval_id = ?1"),
            values![id.as_str()],
            read_row,
        )
        .doing("read the approval")?;
    row.ok_or_else(|| not_found(id))?.into_approval()
}

pub(crate) fn not_found(id: &ApprovalId) -> Error {
    Error::new(
        Code::NotFound,
        Stage::Parse,
        format!("there is no approval `{id}`"),
    )
    .hint("list them: `glovebox approval ls`")
}

pub(crate) const PENDING_OF_EXEC: &str = "SELECT approval_id, record FROM approvals
     WHERE space_id || '' = ?1 AND exec_id = ?2 AND state || '' = 'pending'";

pub(crate) fn pending_of(
    session: &Session,
    space: &SpaceId,
    exec: &ExecId,
) -> Result<Option<Approval>> {
    session
        .row(
            PENDING_OF_EXEC,
            values![space.as_str(), exec.as_str()],
            read_row,
        )
        .doing("look for the approval")?
        .map(ApprovalRow::into_approval)
        .transpose()
}

/// Those of an exec that can still be answered or used, oldest first.
pub(crate) fn open_of(session: &Session, space: &SpaceId, exec: &ExecId) -> Result<Vec<Approval>> {
    session
        .rows(
            &format!(
                "SELECT {COLUMNS} FROM approvals WHERE exec_id = ?2 AND space_id || '' = ?1
                     AND open_until IS NOT NULL
                 ORDER BY created_at, approval_id"
            ),
            values![space.as_str(), exec.as_str()],
            read_row,
        )
        .doing("look for approvals")?
        .into_iter()
        .map(ApprovalRow::into_approval)
        .collect()
}

/// Writes a new request, and the entry that says so.
pub(crate) fn insert(chains: &mut Chains<'_>, approval: &Approval) -> Result<()> {
    ensure_fresh(approval)?;
    let session = chains.session();
    let taken = session
        .exists(
            "SELECT EXISTS (SELECT 1 FROM approvals WHERE approval_id = ?1)",
            values![approval.id.as_str()],
        )
        .doing("look for the approval")?;
    if taken {
        return Err(conflict(format!(
            "there is an approval `{}` already",
            approval.id
        )));
    }
    if let Some(pending) = pending_of(session, &approval.space_id, &approval.exec_id)? {
        return Err(conflict(format!(
            "exec `{}` waits for the answer to approval `{}` already",
            approval.exec_id, pending.id
        ))
        .hint("answer that one, or cancel the exec")
        .of_exec(approval.exec_id.clone()));
    }
    let ask = &approval.ask;
    let details = json!({
        "digest": approval.digest,
        "requested_by": approval.requested_by,
        "quorum": approval.quorum,
        "expires_at": approval.expires_at,
        "tier": ask.tier,
        "backend": ask.backend,
        "network": ask.network,
        "signals": ask.signals.iter().map(|it| &it.name).collect::<Vec<_>>(),
        "reasons": ask.reasons.iter().map(|it| it.kind).collect::<Vec<_>>(),
        "upgrades": ask.upgrades.iter().map(|it| &it.field).collect::<Vec<_>>(),
        "scripts_sha256": ask.scripts.iter().map(|it| &it.digest).collect::<Vec<_>>(),
    });
    let opened_seq = chains.next_seq(&approval.space_id)?;
    let conversation = approval.ids.conversation_id.as_deref();
    session
        .execute(
            "INSERT INTO approvals (approval_id, space_id, exec_id, conversation_id, opened_seq,
                 created_at, open_until, state, record)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            values![
                approval.id.as_str(),
                approval.space_id.as_str(),
                approval.exec_id.as_str(),
                conversation.map(|text| session.indexed(text)),
                opened_seq,
                approval.created_at.as_microsecond(),
                open_until(approval),
                approval.state.as_str(),
                written(approval)?
            ],
        )
        .doing("write the approval")?;
    append(chains, approval, "approval.requested", None, details)?;
    Happening::approval_requested(approval).tell(chains)
}

fn open_until(approval: &Approval) -> Option<i64> {
    (!approval.state.is_final()).then_some(approval.expires_at.as_microsecond())
}

fn ensure_fresh(approval: &Approval) -> Result<()> {
    let wrong = if approval.state != ApprovalState::Pending || !approval.replies.is_empty() {
        "is not new"
    } else if approval.ids.space_id != approval.space_id {
        "is of two spaces"
    } else if approval.quorum == 0 {
        "needs nobody"
    } else if approval.digest.is_empty() {
        "is bound to nothing"
    } else if approval.requested_by.is_empty() {
        "is nobody's request"
    } else {
        return Ok(());
    };
    Err(internal(format!("approval `{}` {wrong}", approval.id)))
}

/// Nothing is said to a forged one, and it lets nothing start.
pub(crate) fn ensure_as_said(session: &Session, approval: &Approval) -> Result<()> {
    let (space, id) = (&approval.space_id, approval.id.as_str());
    ensure_unchanged(session, Guarded::Approvals, space, id)
}

/// Replaces what is kept of it.
pub(crate) fn rewrite(session: &Session, approval: &Approval) -> Result<()> {
    let changed = session
        .execute(
            "UPDATE approvals SET state = ?2, open_until = ?3, record = ?4 WHERE approval_id = ?1",
            values![
                approval.id.as_str(),
                approval.state.as_str(),
                open_until(approval),
                written(approval)?
            ],
        )
        .doing("write the approval")?;
    if changed == 1 {
        return Ok(());
    }
    Err(internal(format!(
        "the row of approval `{}` is gone",
        approval.id
    )))
}

/// Nobody answered, or nothing was started, in time.
pub(crate) fn expire(chains: &mut Chains<'_>, mut approval: Approval) -> Result<Approval> {
    let details = json!({ "was": approval.state, "expires_at": approval.expires_at });
    let pending = approval.state == ApprovalState::Pending;
    approval.state = ApprovalState::Expired;
    let forged = is_forged(
        chains.session(),
        Guarded::Approvals,
        &approval.space_id,
        approval.id.as_str(),
    )?;
    rewrite(chains.session(), &approval)?;
    let draft = entry(&approval, "approval.expired", None, details)?;
    chains.append_ending(draft, (Guarded::Approvals, approval.id.as_str()), forged)?;
    if pending {
        Happening::approval_settled(&approval).tell(chains)?;
    }
    Ok(approval)
}

/// The request goes away. One that has ended stays as it is.
pub(crate) fn void(chains: &mut Chains<'_>, mut approval: Approval, why: &str) -> Result<Approval> {
    if approval.state.is_final() {
        return Ok(approval);
    }
    let details = json!({ "was": approval.state, "why": why });
    let pending = approval.state == ApprovalState::Pending;
    approval.state = ApprovalState::Void;
    let forged = is_forged(
        chains.session(),
        Guarded::Approvals,
        &approval.space_id,
        approval.id.as_str(),
    )?;
    rewrite(chains.session(), &approval)?;
    let draft = entry(&approval, "approval.void", None, details)?;
    chains.append_ending(draft, (Guarded::Approvals, approval.id.as_str()), forged)?;
    if pending {
        Happening::approval_settled(&approval).tell(chains)?;
    }
    Ok(approval)
}

/// What waits for an answer about an exec goes away with the exec.
pub(crate) fn void_of(chains: &mut Chains<'_>, id: &(SpaceId, ExecId), why: &str) -> Result<()> {
    for approval in open_of(chains.session(), &id.0, &id.1)? {
        void(chains, approval, why)?;
    }
    Ok(())
}

/// Uses an approval up, when what is to start is what was approved. The inner error comes with a
/// change that must be kept: that time is over.
pub(crate) fn spend(
    chains: &mut Chains<'_>,
    mut approval: Approval,
    digest: &str,
) -> Result<Result<Approval>> {
    if approval.state != ApprovalState::Approved {
        return Err(settled(&approval).unwrap_or_else(|| {
            Error::new(
                Code::AwaitingApproval,
                Stage::Obtain,
                format!("nobody has answered approval `{}` yet", approval.id),
            )
            .hint(format!(
                "answer it: `glovebox approval approve {}`",
                approval.id
            ))
            .of_exec(approval.exec_id.clone())
        }));
    }
    if approval.has_expired(chains.now()) {
        let approval = expire(chains, approval)?;
        return Ok(Err(expired(&approval)));
    }
    if approval.digest != digest {
        return Err(conflict(format!(
            "what is to start is not what approval `{}` is about",
            approval.id
        ))
        .hint("something of it changed since people were asked: ask them again")
        .of_exec(approval.exec_id));
    }
    ensure_as_said(chains.session(), &approval)?;
    approval.state = ApprovalState::Used;
    rewrite(chains.session(), &approval)?;
    let details = json!({ "digest": digest });
    append(chains, &approval, "approval.used", None, details)?;
    Ok(Ok(approval))
}

/// Why nothing more can be said to it; `None` when something can.
pub(crate) fn settled(approval: &Approval) -> Option<Error> {
    let by = match approval.replies.last() {
        Some(reply) => format!(" by `{}`", shown(&reply.by)),
        None => String::new(),
    };
    let id = &approval.id;
    let (message, hint) = match approval.state {
        ApprovalState::Pending => return None,
        ApprovalState::Expired => return Some(expired(approval)),
        ApprovalState::Approved => (
            format!("approval `{id}` was approved{by} already"),
            "cancel the exec if it must not start",
        ),
        ApprovalState::Denied => (
            format!("approval `{id}` was denied{by} already"),
            "run it anew to be asked again",
        ),
        ApprovalState::Used => (
            format!("approval `{id}` was approved{by} and used already"),
            "an approval lets one exec start, once: run it anew to be asked again",
        ),
        ApprovalState::Void => (
            format!("approval `{id}` is void: its request went away"),
            "run it anew to be asked again",
        ),
    };
    Some(
        conflict(message)
            .hint(hint)
            .of_exec(approval.exec_id.clone()),
    )
}

pub(crate) fn expired(approval: &Approval) -> Error {
    let (id, at) = (&approval.id, approval.expires_at);
    Error::new(
        Code::Expired,
        Stage::Obtain,
        format!("approval `{id}` expired at {at:.0}"),
    )
    .hint("run it anew to be asked again")
    .of_exec(approval.exec_id.clone())
}

pub(crate) fn conflict(message: String) -> Error {
    Error::new(Code::Conflict, Stage::Obtain, message)
}

/// A name that somebody gave, fit to be printed.
pub(crate) fn shown(name: &str) -> String {
    name.chars().take(80).flat_map(char::escape_debug).collect()
}

fn written(approval: &Approval) -> Result<String> {
    serde_json::to_string(approval)
        .map_err(|error| internal("the approval cannot be written").caused_by(error))
}

/// The entry that says what was done to an approval, and vouches for its row.
pub(crate) fn append(
    chains: &mut Chains<'_>,
    approval: &Approval,
    event: &str,
    by: Option<&str>,
    details: Json,
) -> Result<()> {
    let about = [(Guarded::Approvals, approval.id.as_str())];
    chains.append_about(entry(approval, event, by, details)?, &about)?;
    Ok(())
}

/// What an entry says about an approval. Never what was asked in words, nor why: arguments, code
/// and reasons are people's texts, and stay in the record.
pub(crate) fn entry(
    approval: &Approval,
    event: &str,
    by: Option<&str>,
    mut details: Json,
) -> Result<Draft> {
    details["approval_id"] = json!(approval.id);
    let by = by.map(|name| Actor {
        token_id: None,
        name: name.to_owned(),
    });
    let mut tags = vec![format!("approval:{}", approval.id)];
    if event == "approval.denied" {
        tags.push("severity:warning".to_owned());
    }
    let space = &approval.space_id;
    let mut draft = administered_about(space, event, by.as_ref(), None, tags, details)?;
    draft.exec_id = Some(approval.exec_id.clone());
    draft.ids = canonical(&summary::ids(&approval.ids));
    Ok(draft)
}

/// Up to so many that are still open after their time, the oldest first.
pub(crate) fn overdue(session: &Session, now: Timestamp, most: i64) -> Result<Vec<Approval>> {
    session
        .rows(OVERDUE, values![now.as_microsecond(), most], read_row)
        .doing("look for approvals")?
        .into_iter()
        .map(ApprovalRow::into_approval)
        .collect()
}

pub(crate) const OVERDUE: &str = "SELECT approval_id, record FROM approvals
     WHERE open_until <= ?1 ORDER BY open_until, approval_id LIMIT ?2";
