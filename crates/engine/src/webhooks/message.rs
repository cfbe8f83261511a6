//! What a webhook is sent: ids, states and where to look. No output, no values of the environment;
//! what an approver has to see to decide is there, with the space's secrets masked.

use glovebox_model::{Approval, Ask, WebhookDelivery};
use serde_json::{Value, json};

/// The body of every attempt; the same each time.
pub(crate) fn body(
    delivery: &WebhookDelivery,
    facts: &Value,
    approval: Option<&Approval>,
    masked: &dyn Fn(&str) -> String,
) -> Value {
    let mut data = match facts {
        Value::Object(fields) => fields.clone(),
        _ => serde_json::Map::new(),
    };
    let mut links = serde_json::Map::new();
    if let Some(space) = &delivery.space_id {
        data.insert("space_id".to_owned(), json!(space));
    }
    if let Some(exec) = &delivery.exec_id {
        data.insert("exec_id".to_owned(), json!(exec));
        links.insert("exec".to_owned(), json!(format!("/v1/execs/{exec}")));
    }
    if let Some(approval) = &delivery.approval_id {
        data.insert("approval_id".to_owned(), json!(approval));
        let link = format!("/v1/approvals/{approval}");
        links.insert("approval".to_owned(), json!(link));
    }
    if let Some(approval) = approval {
        data.insert("ask".to_owned(), ask(&approval.ask, masked));
    }
    data.insert("links".to_owned(), Value::Object(links));
    json!({
        "id": delivery.message_id,
        "type": delivery.event,
        "timestamp": delivery.created_at,
        "data": data,
    })
}

/// Only the names of variables are in an `Ask`; the texts in it are masked.
fn ask(ask: &Ask, masked: &dyn Fn(&str) -> String) -> Value {
    let all = |texts: &[String]| -> Vec<String> { texts.iter().map(|it| masked(it)).collect() };
    json!({
        "description": masked(&ask.description),
        "argv": all(&ask.argv),
        "code_preview": masked(&ask.code_preview),
        "cwd": ask.cwd,
        "env_names": ask.env_names,
        "workspace": ask.workspace,
        "backend": ask.backend,
        "network": ask.network,
        "tier": ask.tier,
        "signals": ask.signals,
        "reasons": ask.reasons,
        "upgrades": ask.upgrades,
        "justification": ask.justification.as_deref().map(masked),
        "scripts": ask.scripts,
        "bound": ask.bound,
        "changed": ask.changed,
        "inputs": ask.inputs,
        "stdin": ask.stdin.as_ref().map(|it| json!({
            "bytes": it.bytes,
            "digest": it.digest,
            "preview": masked(&it.preview),
        })),
    })
}
