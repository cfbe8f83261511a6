//! What the ledger says about an exec: metadata, counts and digests. Arguments, output, paths of
//! artifacts and error texts may hold secrets or contents; they stay in the record, which is bound
//! by its digest.

use glovebox_model::{Code, Correlation, Exec, Status, Tier};
use serde_json::{Map, Value, json};

use crate::audit_summary;
use crate::hex;
use crate::ledger::Kind;
use crate::ledger::chain::Draft;
use crate::ledger::encoding::{canonical, sha256};
use crate::rows::StoredRecord;

/// The body's key for the digest of the exec's record at that time.
pub(crate) const RECORD_DIGEST: &str = "record_sha256";
/// The body's key for the process that opened the exec.
pub(crate) const OWNER: &str = "owner";
/// The body's key that says that the exec's row was not as the entry before said.
pub(crate) const FORGED: &str = "forged";

pub(crate) fn planned(owner: &str, record: &Exec, stored: &StoredRecord) -> Draft {
    let mut body = intent(record);
    body.insert(OWNER.to_owned(), json!(owner));
    draft(Kind::Planned, record, stored, body, tags(record))
}

/// A queued exec that is about to start.
pub(crate) fn started(owner: &str, record: &Exec, stored: &StoredRecord) -> Draft {
    let body = object(json!({
        OWNER: owner,
        "cmd": record.cmd.display(),
        "started_at": record.started_at,
        "backend": record.backend,
        "sandbox_id": record.sandbox_id,
    }));
    draft(Kind::Started, record, stored, body, tags(record))
}

/// A queued exec that another server will run.
pub(crate) fn adopted(owner: &str, from: &str, record: &Exec, stored: &StoredRecord) -> Draft {
    let event = "exec.adopted";
    let body = object(json!({
        "event": event,
        OWNER: owner,
        "details": { "from": from },
    }));
    let tags = vec![format!("event:{event}")];
    draft(Kind::Administered, record, stored, body, tags)
}

/// A queued exec that people are asked about.
pub(crate) fn waits_for_people(owner: &str, record: &Exec, stored: &StoredRecord) -> Draft {
    changed("exec.awaiting", owner, record, stored)
}

/// An exec that people allowed and that waits for its turn.
pub(crate) fn queued_again(owner: &str, record: &Exec, stored: &StoredRecord) -> Draft {
    changed("exec.approved", owner, record, stored)
}

fn changed(event: &str, owner: &str, record: &Exec, stored: &StoredRecord) -> Draft {
    let mut body = intent(record);
    body.insert("event".to_owned(), json!(event));
    body.insert(OWNER.to_owned(), json!(owner));
    let tags = vec![format!("event:{event}")];
    draft(Kind::Administered, record, stored, body, tags)
}

pub(crate) fn outcome(record: &Exec, stored: &StoredRecord) -> Draft {
    draft(
        Kind::Outcome,
        record,
        stored,
        ending(record),
        closing_tags(record),
    )
}

pub(crate) fn recovered(record: &Exec, stored: &StoredRecord) -> Draft {
    draft(
        Kind::Recovered,
        record,
        stored,
        ending(record),
        closing_tags(record),
    )
}

/// As [`recovered`], of an exec whose row was edited. Verification tells it for ever.
pub(crate) fn forged(record: &Exec, stored: &StoredRecord) -> Draft {
    let mut body = ending(record);
    body.insert(FORGED.to_owned(), json!(true));
    draft(Kind::Recovered, record, stored, body, closing_tags(record))
}

pub(crate) fn refused(record: &Exec, stored: &StoredRecord) -> Draft {
    let mut body = intent(record);
    body.insert(OWNER.to_owned(), json!(""));
    body.extend(ending(record));
    draft(Kind::Refused, record, stored, body, closing_tags(record))
}

fn draft(
    kind: Kind,
    record: &Exec,
    stored: &StoredRecord,
    mut body: Map<String, Value>,
    mut tags: Vec<String>,
) -> Draft {
    body.insert(RECORD_DIGEST.to_owned(), json!(hex::encode(&stored.digest)));
    tags.sort();
    tags.dedup();
    Draft {
        space: record.ids.space_id.clone(),
        kind,
        exec_id: Some(record.exec_id.clone()),
        ids: canonical(&ids(&record.ids)),
        tags: canonical(&json!(tags)),
        body: canonical(&Value::Object(body)),
    }
}

pub(crate) fn ids(ids: &Correlation) -> Value {
    let Correlation {
        space_id: _,
        user_id,
        conversation_id,
        turn_id,
        task_id,
        workflow_id,
        agent_id,
        session_id,
    } = ids;
    let named = [
        ("user_id", user_id),
        ("conversation_id", conversation_id),
        ("turn_id", turn_id),
        ("task_id", task_id),
        ("workflow_id", workflow_id),
        ("agent_id", agent_id),
        ("session_id", session_id),
    ];
    let given = named
        .into_iter()
        .filter_map(|(name, id)| Some((name.to_owned(), json!(id.as_ref()?))));
    Value::Object(given.collect())
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}

fn intent(record: &Exec) -> Map<String, Value> {
    let policy = record.policy_snapshot.as_ref().map(|profile| {
        let value = serde_json::to_value(profile).unwrap_or_default();
        hex::encode(&sha256(canonical(&value).as_bytes()))
    });
    let mut body = object(json!({
        "project_id": record.project_id,
        "mode": record.mode,
        "skill_id": record.skill_id,
        "cmd": record.cmd.display(),
        "args": record.args.len(),
        "env_keys": record.env_keys.len(),
        "image": record.image,
        "backend": record.backend,
        "tier": record.risk.tier,
        "policy_sha256": policy,
        "capped": record.capped.iter().map(|capped| &capped.field).collect::<Vec<_>>(),
    }));
    // Which one it was is part of what was meant.
    let skill = [
        ("skill_version", &record.skill_version),
        ("skill_digest", &record.skill_digest),
    ];
    for (key, value) in skill {
        if let Some(value) = value {
            body.insert(key.to_owned(), json!(value));
        }
    }
    body
}

fn ending(record: &Exec) -> Map<String, Value> {
    let artifact_bytes: u64 = record.artifacts.iter().map(|artifact| artifact.size).sum();
    let mut body = object(json!({
        "status": record.status,
        "exit_code": record.exit_code,
        "signal": record.signal,
        "limit_hit": record.limit_hit,
        "started_at": record.started_at,
        "ended_at": record.ended_at,
        "duration_ms": record.duration_ms,
        "sandbox_id": record.sandbox_id,
        "backend": record.backend,
        "isolation": record.isolation,
        "usage": record.usage,
        "verdict": record.verdict,
        "stdout_bytes": record.stdout_bytes,
        "stderr_bytes": record.stderr_bytes,
        "artifacts": record.artifacts.len(),
        "artifact_bytes": artifact_bytes,
        "error": record.error.as_ref().map(|error| json!({
            "code": error.code,
            "stage": error.stage,
            "blame": error.blame,
            "rule": error.rule,
        })),
    }));
    body.extend(audit_summary::recollection(record));
    body
}

/// What is true of nearly everything is said once, at the end: each tag costs a write.
fn tags(record: &Exec) -> Vec<String> {
    let mut tags = vec![format!("project:{}", record.project_id)];
    tags.extend(audit_summary::intent_tags(record).map(str::to_owned));
    if let Some(skill) = &record.skill_id {
        tags.push(format!("skill:{skill}"));
    }
    if record.risk.tier > Tier::Safe {
        tags.push(format!("tier:{}", record.risk.tier));
    }
    tags
}

fn closing_tags(record: &Exec) -> Vec<String> {
    let mut tags = tags(record);
    tags.extend(
        audit_summary::outcome_tags(record)
            .into_iter()
            .map(str::to_owned),
    );
    tags.push(format!("status:{}", record.status));
    if let Some(severity) = severity(record) {
        tags.push(format!("severity:{severity}"));
    }
    if let Some(sandbox) = &record.sandbox_id {
        tags.push(format!("sandbox:{sandbox}"));
    }
    if let Some(limit) = record.limit_hit {
        tags.push(format!("limit:{limit}"));
    }
    if let Some(error) = &record.error {
        tags.push(format!("error:{}", error.code));
    }
    tags
}

/// `None` for what is only information.
fn severity(record: &Exec) -> Option<&'static str> {
    if let Some(error) = &record.error
        && matches!(error.code, Code::LedgerTampered | Code::SetupFailed)
    {
        return Some("critical");
    }
    match record.status {
        Status::Queued
        | Status::AwaitingApproval
        | Status::Running
        | Status::Succeeded
        | Status::Canceled => None,
        Status::Failed
        | Status::TimedOut
        | Status::Killed
        | Status::PolicyDenied
        | Status::Held => Some("warning"),
        Status::Lost | Status::Error => Some("error"),
    }
}
