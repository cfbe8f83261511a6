//! Entries as OCSF 1.4 events. About execs they are of the class Process Activity (1007): what is
//! planned, started or refused is a launch, what ended is a termination. About the server they are
//! of the class API Activity (6003). What OCSF has no name for is in `unmapped`.

use serde_json::{Map, Value, json};

use super::entry::{Entry, Kind};

const OCSF_VERSION: &str = "1.4.0";

struct Class {
    category: u64,
    category_name: &'static str,
    uid: u64,
    name: &'static str,
    activity: u64,
    activity_name: &'static str,
}

fn class(kind: Kind) -> Class {
    let (activity, activity_name) = match kind {
        Kind::Planned | Kind::Started | Kind::Refused => (1, "Launch"),
        Kind::Outcome | Kind::Recovered => (2, "Terminate"),
        Kind::Administered => {
            return Class {
                category: 6,
                category_name: "Application Activity",
                uid: 6003,
                name: "API Activity",
                activity: 99,
                activity_name: "Other",
            };
        }
    };
    Class {
        category: 1,
        category_name: "System Activity",
        uid: 1007,
        name: "Process Activity",
        activity,
        activity_name,
    }
}

pub(crate) fn event(entry: &Entry) -> Value {
    let class = class(entry.kind);
    let (disposition, disposition_name) = match entry.kind {
        Kind::Refused => (2, "Blocked"),
        Kind::Planned | Kind::Started | Kind::Outcome | Kind::Recovered | Kind::Administered => {
            (1, "Allowed")
        }
    };
    let (status, status_name) = status(entry);
    let (severity, severity_name) = severity(entry);
    let mut event = json!({
        "category_uid": class.category,
        "category_name": class.category_name,
        "class_uid": class.uid,
        "class_name": class.name,
        "activity_id": class.activity,
        "activity_name": class.activity_name,
        "type_uid": class.uid * 100 + class.activity,
        "time": entry.at.as_millisecond(),
        "severity_id": severity,
        "severity": severity_name,
        "status_id": status,
        "status": status_name,
        "disposition_id": disposition,
        "disposition": disposition_name,
        "metadata": {
            "version": OCSF_VERSION,
            "profiles": ["security_control"],
            "product": {
                "name": "Glovebox",
                "vendor_name": "Glovebox",
                "version": env!("CARGO_PKG_VERSION"),
            },
            "uid": entry.hash,
            "sequence": entry.seq,
            "event_code": entry.kind,
            "tenant_uid": entry.space_id,
            "correlation_uid": entry.exec_id,
            "labels": entry.tags,
        },
        "device": { "type_id": 6, "type": "Virtual", "uid": entry.body["sandbox_id"] },
        "actor": {
            "user": { "uid": entry.ids.get("user_id") },
            "session": { "uid": entry.ids.get("session_id") },
            "app_uid": entry.ids.get("agent_id"),
            "invoked_by": entry.body["by"]["name"],
        },
        "api": { "operation": entry.body["event"] },
        "process": { "uid": entry.exec_id, "name": entry.body["cmd"] },
        "exit_code": entry.body["exit_code"],
        "duration": entry.body["duration_ms"],
        "status_code": entry.body["error"]["code"],
        "status_detail": entry.body["status"],
        "unmapped": { "ids": entry.ids, "body": entry.body, "prev_hash": entry.prev_hash },
    });
    if let Value::Object(fields) = &mut event {
        let unmapped = fields.remove("unmapped");
        drop_absent(fields);
        fields.extend(unmapped.map(|value| ("unmapped".to_owned(), value)));
    }
    event
}

fn status(entry: &Entry) -> (u8, &'static str) {
    match (entry.kind, entry.body["status"].as_str()) {
        (Kind::Planned | Kind::Started | Kind::Administered, _)
        | (Kind::Outcome, Some("succeeded")) => (1, "Success"),
        (Kind::Recovered, _) => (0, "Unknown"),
        (Kind::Outcome | Kind::Refused, _) => (2, "Failure"),
    }
}

fn severity(entry: &Entry) -> (u8, &'static str) {
    let tagged = entry
        .tags
        .iter()
        .find_map(|tag| tag.strip_prefix("severity:"));
    match tagged {
        Some("critical") => (5, "Critical"),
        Some("error") => (4, "High"),
        Some("warning") => (3, "Medium"),
        _ => (1, "Informational"),
    }
}

/// OCSF leaves out what is not known.
fn drop_absent(fields: &mut Map<String, Value>) {
    for value in fields.values_mut() {
        if let Value::Object(inner) = value {
            drop_absent(inner);
        }
    }
    fields.retain(|_, value| match value {
        Value::Null => false,
        Value::Object(inner) => !inner.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => true,
    });
}
