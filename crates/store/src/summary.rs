//! What the ledger says about an exec: metadata, counts and digests. Arguments, output, paths of
//! artifacts and error texts may hold secrets or contents; they stay in the record, which is bound
//! by its digest.

use glovebox_model::{Code, Correlation, Exec, Mode, Status, Tier};
use serde_json::{Map, Value, json};

use crate::hex;
use crate::ledger::Kind;
use crate::ledger::chain::Draft;
use crate::ledger::encoding::{canonical, sha256};
use crate::rows::StoredRecord;

/// The body's key for the digest of the exec's record at that time.
pub(crate) const RECORD_DIGEST: &str = "record_sha256";
/// The body's key for the process that opened the exec.
pub(crate) const OWNER: &str = "owner";

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

fn ids(ids: &Correlation) -> Value {
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
    object(json!({
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
    }))
}

fn ending(record: &Exec) -> Map<String, Value> {
    let artifact_bytes: u64 = record.artifacts.iter().map(|artifact| artifact.size).sum();
    object(json!({
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
    }))
}

/// What is true of nearly everything is no tag: it would find nothing, and cost a write each time.
fn tags(record: &Exec) -> Vec<String> {
    let mut tags = vec![format!("project:{}", record.project_id)];
    match record.mode {
        Mode::Run => {}
    }
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
