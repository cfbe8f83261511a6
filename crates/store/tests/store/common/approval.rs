//! Requests to people, and their answers.

use glovebox_model::{
    Answer, Approval, ApprovalId, Correlation, Exec, ExecId, GrantId, Reply, SpaceId, Via,
};
use glovebox_store::NewGrant;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

fn random() -> [u8; 16] {
    let mut random = [0; 16];
    getrandom::fill(&mut random).unwrap();
    random
}

/// About an exec that has no row. It waits for an hour.
pub(crate) fn approval() -> Approval {
    about(&super::exec_id(), &Correlation::of_space(SpaceId::local()))
}

pub(crate) fn about_exec(record: &Exec) -> Approval {
    about(&record.exec_id, &record.ids)
}

fn about(exec: &ExecId, ids: &Correlation) -> Approval {
    let now = Timestamp::now();
    let mut approval: Approval = serde_json::from_value(json!({
        "id": ApprovalId::from_random(random()),
        "space_id": ids.space_id,
        "exec_id": exec,
        "ids": ids,
        "requested_by": "agent-1",
        "created_at": now,
        "expires_at": now + SignedDuration::from_hours(1),
        "state": "pending",
        "digest": "d1",
        "quorum": 1,
        "replies": [],
        "ask": {
            "description": "send hunter2 away",
            "argv": ["curl", "-H", "Authorization: hunter2"],
            "code_preview": "curl -H 'Authorization: hunter2'",
            "cwd": "/workspace/work",
            "env_names": ["API_KEY"],
            "workspace": "proj",
            "backend": "native",
            "network": "none",
            "tier": "high",
            "signals": [{ "name": "network", "tier": "high", "at": "1:1 hunter2" }],
            "reasons": [{ "permit": "ask", "kind": "tier", "text": "curl hunter2 is high" }],
            "upgrades": [],
            "justification": "hunter2 must be known there",
            "scripts": [{ "path": "hunter2.sh", "digest": "00".repeat(32) }],
        },
    }))
    .unwrap();
    approval.ids.conversation_id = Some("talk".to_owned());
    approval
}

/// Its time was over a minute ago.
pub(crate) fn late(mut approval: Approval) -> Approval {
    approval.created_at = Timestamp::now() - SignedDuration::from_mins(31);
    approval.expires_at = Timestamp::now() - SignedDuration::from_mins(1);
    approval
}

/// Before the time of a late one was over.
pub(crate) fn earlier() -> Timestamp {
    Timestamp::now() - SignedDuration::from_mins(5)
}

pub(crate) fn upgrade() -> glovebox_model::Upgrade {
    glovebox_model::Upgrade {
        field: "network".to_owned(),
        asked: "unrestricted hunter2".to_owned(),
        given: "none".to_owned(),
        layer: "settings".to_owned(),
    }
}

pub(crate) fn reply(by: &str, answer: Answer) -> Reply {
    Reply {
        by: by.to_owned(),
        user_id: None,
        at: Timestamp::now(),
        via: Via::Rest,
        answer,
    }
}

pub(crate) fn yes(by: &str) -> Reply {
    reply(by, Answer::AllowOnce { reason: None })
}

pub(crate) fn kind(by: &str) -> Reply {
    reply(
        by,
        Answer::AllowKind {
            reason: None,
            expires_at: None,
        },
    )
}

pub(crate) fn no(by: &str) -> Reply {
    let reason = Some("hunter2 stays here".to_owned());
    reply(by, Answer::Deny { reason })
}

pub(crate) fn grant(kind: &str) -> NewGrant {
    NewGrant {
        id: GrantId::from_random(random()),
        kind: kind.to_owned(),
        shown: format!("`{kind}`"),
        expires_at: Timestamp::now() + SignedDuration::from_hours(1),
    }
}
