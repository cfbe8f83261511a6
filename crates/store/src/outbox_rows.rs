//! What webhooks are told, written in the transaction of what it is about. A row is made for each
//! webhook that wants to know; where there is none, nothing is written.

use glovebox_model::{
    Approval, ApprovalId, Correlation, Exec, ExecId, MessageId, Result, SpaceId, WebhookEvent,
};
use serde_json::{Value as Json, json};

use crate::failure::{Doing, internal};
use crate::ledger::chain::Chains;
use crate::sql::values;
use crate::summary;

/// Something that happened. `facts` holds ids, states and times: never output, arguments, or a value
/// of the environment.
#[derive(Debug)]
pub(crate) struct Happening {
    event: WebhookEvent,
    space: SpaceId,
    exec: ExecId,
    approval: Option<ApprovalId>,
    facts: Json,
}

impl Happening {
    pub(crate) fn exec_ended(record: &Exec) -> Self {
        let facts = json!({
            "status": record.status,
            "project_id": record.project_id,
            "exit_code": record.exit_code,
            "signal": record.signal,
            "limit_hit": record.limit_hit,
            "started_at": record.started_at,
            "ended_at": record.ended_at,
            "duration_ms": record.duration_ms,
            "error_code": record.error.as_ref().map(|error| error.code),
            "approval_id": record.consent.as_ref().and_then(|it| it.approval_id.as_ref()),
        });
        Self {
            event: WebhookEvent::ExecEnded,
            space: record.ids.space_id.clone(),
            exec: record.exec_id.clone(),
            approval: None,
            facts: with_ids(facts, &record.ids),
        }
    }

    pub(crate) fn approval_requested(approval: &Approval) -> Self {
        let facts = json!({
            "state": approval.state,
            "requested_by": approval.requested_by,
            "expires_at": approval.expires_at,
            "quorum": approval.quorum,
        });
        Self::of_approval(WebhookEvent::ApprovalRequested, approval, facts)
    }

    pub(crate) fn approval_settled(approval: &Approval) -> Self {
        let replies: Vec<Json> = approval
            .replies
            .iter()
            .map(|it| json!({ "by": it.by, "decision": it.answer.as_str(), "via": it.via, "at": it.at }))
            .collect();
        let facts = json!({
            "state": approval.state,
            "requested_by": approval.requested_by,
            "replies": replies,
        });
        Self::of_approval(WebhookEvent::ApprovalSettled, approval, facts)
    }

    fn of_approval(event: WebhookEvent, approval: &Approval, facts: Json) -> Self {
        Self {
            event,
            space: approval.space_id.clone(),
            exec: approval.exec_id.clone(),
            approval: Some(approval.id.clone()),
            facts: with_ids(facts, &approval.ids),
        }
    }

    /// One message for all who want to know, due at once.
    pub(crate) fn tell(&self, chains: &Chains<'_>) -> Result<()> {
        let now = chains.now().as_microsecond();
        chains
            .session()
            .execute(
                "INSERT INTO outbox (delivery_id, message_id, webhook, event, space_id, exec_id,
                     approval_id, created_at, state, attempts, due_at, facts)
                 SELECT CAST(?1 AS TEXT) || '.' || name, CAST(?1 AS TEXT), name, event,
                     CAST(?3 AS TEXT), CAST(?4 AS TEXT), CAST(?5 AS TEXT), CAST(?6 AS BIGINT),
                     'pending', 0, CAST(?6 AS BIGINT), CAST(?7 AS TEXT)
                 FROM webhooks WHERE event = ?2 AND (space_id IS NULL OR space_id = CAST(?3 AS TEXT))",
                values![
                    fresh_id()?.as_str(),
                    self.event.as_str(),
                    self.space.as_str(),
                    self.exec.as_str(),
                    self.approval.as_ref().map(|id| id.as_str()),
                    now,
                    self.facts.to_string()
                ],
            )
            .doing("write what webhooks are told")?;
        Ok(())
    }
}

fn with_ids(mut facts: Json, ids: &Correlation) -> Json {
    facts["ids"] = summary::ids(ids);
    facts
}

pub(crate) fn fresh_id() -> Result<MessageId> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| internal("no random numbers").caused_by(error))?;
    Ok(MessageId::from_random(random))
}
