//! What webhooks are told, on its way: who is told of what, what is to be sent, by whom, and how it
//! went. Every message is sent at least once; two servers are never at the same one, unless one of
//! them took longer than its claim holds.

use std::collections::BTreeSet;
use std::time::Duration;

use glovebox_model::{
    ApprovalId, DeliveryState, ExecId, MessageId, Page, Result, SpaceId, WebhookDelivery,
    WebhookEvent,
};
use jiff::Timestamp;
use serde_json::{Value as Json, json};

use crate::administration::administered_about;
use crate::approvals::after_cursor;
use crate::failure::{Doing, tampered};
use crate::leases;
use crate::ledger::chain::Chains;
use crate::outbox_rows::fresh_id;
use crate::page::{page_size, sql_limit};
use crate::sql::{Row, Session, SqlResult, Value, values};
use crate::store::Store;

/// How long a message is one server's. Longer than sending it may take.
const CLAIM: Duration = Duration::from_secs(60);

/// A problem is a sentence, whatever the receiver answered.
const PROBLEM_MOST: usize = 300;

const COLUMNS: &str =
    "message_id, webhook, event, space_id, exec_id, approval_id, created_at, state,
    attempts, due_at, status_code, problem, ended_at, facts, delivery_id";

/// A webhook and what it is told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    pub webhook: String,
    pub events: BTreeSet<WebhookEvent>,
    /// Only of that space.
    pub space: Option<SpaceId>,
}

/// Which deliveries to list.
#[derive(Debug, Clone, Default)]
pub struct DeliveryFilter {
    pub webhook: Option<String>,
    pub state: Option<DeliveryState>,
    /// At most so many; 0 means the default of 50, and nobody gets more than 1000.
    pub limit: usize,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

impl DeliveryFilter {
    pub(crate) fn query(&self) -> Result<(String, Vec<Value<'_>>)> {
        let mut values: Vec<Value<'_>> = vec![sql_limit(self.limit).into()];
        let mut conditions = Vec::new();
        if let Some(webhook) = &self.webhook {
            values.push(webhook.into());
            conditions.push(format!("webhook = ?{}", values.len()));
        }
        if let Some(state) = self.state {
            values.push(state.as_str().into());
            // What is done to the column keeps it out of the choice of index.
            conditions.push(match self.webhook {
                None => format!("state = ?{}", values.len()),
                Some(_) => format!("state || '' = ?{}", values.len()),
            });
        }
        after_cursor(
            "delivery_id",
            self.cursor.as_deref(),
            &mut values,
            &mut conditions,
        )?;
        let filter = match conditions.is_empty() {
            true => String::new(),
            false => format!("WHERE {}", conditions.join(" AND ")),
        };
        let sql = format!(
            "SELECT {COLUMNS} FROM outbox {filter}
             ORDER BY created_at DESC, delivery_id DESC LIMIT ?1"
        );
        Ok((sql, values))
    }
}

/// A message that is this server's to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// `attempts` counts this one already.
    pub delivery: WebhookDelivery,
    /// What there is to tell, beside what the delivery says itself.
    pub facts: Json,
    delivery_id: String,
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempted {
    Delivered {
        status: u16,
    },
    /// To be sent again.
    Again {
        status: Option<u16>,
        problem: String,
        after: Duration,
    },
    /// Given up.
    Failed {
        status: Option<u16>,
        problem: String,
    },
}

struct OutboxRow {
    message: String,
    webhook: String,
    event: String,
    space: Option<String>,
    exec: Option<String>,
    approval: Option<String>,
    created_at: i64,
    state: String,
    attempts: i64,
    due_at: Option<i64>,
    status_code: Option<i64>,
    problem: Option<String>,
    ended_at: Option<i64>,
    facts: String,
    delivery_id: String,
}

fn read_row(row: &Row<'_>) -> SqlResult<OutboxRow> {
    Ok(OutboxRow {
        message: row.get(0)?,
        webhook: row.get(1)?,
        event: row.get(2)?,
        space: row.get(3)?,
        exec: row.get(4)?,
        approval: row.get(5)?,
        created_at: row.get(6)?,
        state: row.get(7)?,
        attempts: row.get(8)?,
        due_at: row.get(9)?,
        status_code: row.get(10)?,
        problem: row.get(11)?,
        ended_at: row.get(12)?,
        facts: row.get(13)?,
        delivery_id: row.get(14)?,
    })
}

impl OutboxRow {
    fn parsed(&self) -> Option<WebhookDelivery> {
        let time = |us: i64| Timestamp::from_microsecond(us).ok();
        let message_id: MessageId = self.message.parse().ok()?;
        let space_id: Option<SpaceId> = parse_some(self.space.as_deref())?;
        let exec_id: Option<ExecId> = parse_some(self.exec.as_deref())?;
        let approval_id: Option<ApprovalId> = parse_some(self.approval.as_deref())?;
        Some(WebhookDelivery {
            message_id,
            webhook: self.webhook.clone(),
            event: WebhookEvent::parse(&self.event)?,
            space_id,
            exec_id,
            approval_id,
            created_at: time(self.created_at)?,
            state: DeliveryState::parse(&self.state)?,
            attempts: u32::try_from(self.attempts).ok()?,
            next_at: self.due_at.and_then(time),
            status_code: self.status_code.and_then(|it| u16::try_from(it).ok()),
            problem: self.problem.clone(),
            ended_at: self.ended_at.and_then(time),
        })
    }

    fn into_delivery(self) -> Result<WebhookDelivery> {
        self.parsed().ok_or_else(|| {
            tampered(format!(
                "the message `{}` to a webhook cannot be read",
                self.delivery_id
            ))
        })
    }
}

fn parse_some<T: std::str::FromStr>(text: Option<&str>) -> Option<Option<T>> {
    text.map_or(Some(None), |text| text.parse().ok().map(Some))
}

pub(crate) const DUE: &str = "SELECT delivery_id FROM outbox WHERE webhook = ?1 AND due_at <= ?2
     ORDER BY due_at, delivery_id LIMIT ?3";

const CLAIMERS: &str =
    "SELECT DISTINCT claimed_by FROM outbox WHERE claimed_by IS NOT NULL AND claimed_by <> ?1";

impl Store {
    /// From here on these webhooks are told, and no others. What waits for one that is gone is given
    /// up.
    pub fn subscribe(&self, subscriptions: &[Subscription]) -> Result<()> {
        let mut wanted: Vec<(String, String, Option<String>)> = Vec::new();
        for it in subscriptions {
            let space = it.space.as_ref().map(ToString::to_string);
            for event in &it.events {
                wanted.push((it.webhook.clone(), event.to_string(), space.clone()));
            }
        }
        wanted.sort();
        let there = self.read(subscribed)?;
        // Nobody is kept from writing when there is nothing to write.
        if there == wanted {
            return Ok(());
        }
        self.write(move |chains| {
            let what = "write down the webhooks";
            let session = chains.session();
            session.execute("DELETE FROM webhooks", &[]).doing(what)?;
            for (name, event, space) in &wanted {
                session
                    .execute(
                        "INSERT INTO webhooks (name, event, space_id) VALUES (?1, ?2, ?3)",
                        values![name, event, space.as_deref()],
                    )
                    .doing(what)?;
            }
            session
                .execute(
                    "UPDATE outbox SET state = 'failed', due_at = NULL, claimed_by = NULL,
                         ended_at = ?1, problem = 'the webhook is not configured any more'
                     WHERE due_at IS NOT NULL AND webhook NOT IN (SELECT name FROM webhooks)",
                    values![chains.now().as_microsecond()],
                )
                .doing(what)?;
            Ok(())
        })
    }

    /// A message that is about nothing, to see whether it arrives.
    pub fn try_webhook(&self, webhook: &str) -> Result<WebhookDelivery> {
        let webhook = webhook.to_owned();
        self.write(move |chains| {
            let message_id = fresh_id()?;
            let delivery = WebhookDelivery {
                webhook,
                event: WebhookEvent::WebhookTest,
                space_id: None,
                exec_id: None,
                approval_id: None,
                created_at: chains.now(),
                state: DeliveryState::Pending,
                attempts: 0,
                next_at: Some(chains.now()),
                status_code: None,
                problem: None,
                ended_at: None,
                message_id,
            };
            let now = chains.now().as_microsecond();
            chains
                .session()
                .execute(
                    "INSERT INTO outbox (delivery_id, message_id, webhook, event, created_at, state,
                         attempts, due_at, facts)
                     VALUES (?1, ?2, ?3, ?4, ?5, 'pending', 0, ?5, '{}')",
                    values![
                        format!("{}.{}", delivery.message_id, delivery.webhook),
                        delivery.message_id.as_str(),
                        &delivery.webhook,
                        delivery.event.as_str(),
                        now
                    ],
                )
                .doing("write what webhooks are told")?;
            Ok(delivery)
        })
    }

    pub fn delivery(&self, webhook: &str, message: &MessageId) -> Result<Option<WebhookDelivery>> {
        let id = format!("{message}.{webhook}");
        let row = self.ask("read the delivery", |session| {
            session.row(
                &format!("SELECT {COLUMNS} FROM outbox WHERE delivery_id = ?1"),
                values![&id],
                read_row,
            )
        })?;
        row.map(OutboxRow::into_delivery).transpose()
    }

    /// Newest first.
    pub fn deliveries(&self, filter: &DeliveryFilter) -> Result<Page<WebhookDelivery>> {
        self.read(|session| {
            let (sql, values) = filter.query()?;
            let rows = session
                .rows(&sql, &values, read_row)
                .doing("list the deliveries")?;
            let cursor = |row: &OutboxRow| format!("{}.{}", row.created_at, row.delivery_id);
            Page::cut(rows, page_size(filter.limit), cursor).try_map(OutboxRow::into_delivery)
        })
    }

    /// Takes messages that are due: of each of these webhooks at most so many. Nobody else sends
    /// them until the claim is over.
    pub fn claim_deliveries(
        &self,
        owner: &str,
        room: &[(String, usize)],
        now: Timestamp,
    ) -> Result<Vec<Claimed>> {
        let due = self.read(|session| due_ids(session, room, now))?;
        if due.is_empty() {
            return Ok(Vec::new());
        }
        let (owner, room) = (owner.to_owned(), room.to_vec());
        self.write(move |chains| {
            let session = chains.session();
            leases::ensure_held(session, &owner)?;
            let until = (now + CLAIM).as_microsecond();
            let mut claimed = Vec::new();
            // Looked up again: another server may have been quicker.
            for id in due_ids(session, &room, now)? {
                session
                    .execute(
                        "UPDATE outbox SET claimed_by = ?2, due_at = ?3, attempts = attempts + 1
                         WHERE delivery_id = ?1",
                        values![&id, &owner, until],
                    )
                    .doing("claim a message")?;
                let row = session
                    .row(
                        &format!("SELECT {COLUMNS} FROM outbox WHERE delivery_id = ?1"),
                        values![&id],
                        read_row,
                    )
                    .doing("read a message")?;
                if let Some(row) = row {
                    claimed.push(Claimed {
                        facts: serde_json::from_str(&row.facts).unwrap_or_default(),
                        delivery_id: id,
                        delivery: row.into_delivery()?,
                    });
                }
            }
            Ok(claimed)
        })
    }

    /// Gives back what servers had claimed that are not there any more. Returns how many there were.
    pub fn release_claims(&self, owner: &str, now: Timestamp) -> Result<u64> {
        let claimers: Vec<String> = self.ask("look for claimed messages", |session| {
            session.rows(CLAIMERS, values![owner], |row| row.get(0))
        })?;
        if claimers.is_empty() {
            return Ok(0);
        }
        let owners = self.owners().clone();
        self.write(move |chains| {
            let session = chains.session();
            let mut released = 0;
            for claimer in &claimers {
                if leases::is_alive(session, &owners, claimer)? {
                    continue;
                }
                released += session
                    .execute(
                        "UPDATE outbox SET claimed_by = NULL, due_at = ?2
                         WHERE claimed_by = ?1 AND due_at IS NOT NULL",
                        values![claimer, now.as_microsecond()],
                    )
                    .doing("give back a message")?;
            }
            Ok(released)
        })
    }

    /// Writes what came of an attempt. A message that has ended meanwhile stays as it is.
    pub fn settle_delivery(&self, claimed: &Claimed, attempted: Attempted) -> Result<()> {
        let claimed = claimed.clone();
        self.write(move |chains| settle(chains, &claimed, attempted))
    }

    /// Removes what ended so long ago: a bounded bite. Returns how many there were.
    pub fn forget_deliveries(&self, age: Duration) -> Result<u64> {
        const BITE: i64 = 1000;
        self.write(move |chains| {
            let before = (chains.now() - age).as_microsecond();
            chains
                .session()
                .execute(
                    "DELETE FROM outbox WHERE delivery_id IN (SELECT delivery_id FROM outbox
                         WHERE ended_at <= ?1 ORDER BY ended_at, delivery_id LIMIT ?2)",
                    values![before, BITE],
                )
                .doing("forget old messages")
        })
    }
}

fn subscribed(session: &Session) -> Result<Vec<(String, String, Option<String>)>> {
    session
        .rows(
            "SELECT name, event, space_id FROM webhooks ORDER BY name, event",
            &[],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .doing("read the webhooks")
}

fn due_ids(session: &Session, room: &[(String, usize)], now: Timestamp) -> Result<Vec<String>> {
    let mut due = Vec::new();
    for (webhook, most) in room {
        let most = i64::try_from(*most).unwrap_or(i64::MAX);
        due.extend(
            session
                .rows(DUE, values![webhook, now.as_microsecond(), most], |row| {
                    row.get::<String>(0)
                })
                .doing("look for messages")?,
        );
    }
    Ok(due)
}

fn settle(chains: &mut Chains<'_>, claimed: &Claimed, attempted: Attempted) -> Result<()> {
    let now = chains.now();
    let (state, status, problem, due_at) = match &attempted {
        Attempted::Delivered { status } => (DeliveryState::Delivered, Some(*status), None, None),
        Attempted::Again {
            status,
            problem,
            after,
        } => (
            DeliveryState::Pending,
            *status,
            Some(problem),
            Some((now + *after).as_microsecond()),
        ),
        Attempted::Failed { status, problem } => {
            (DeliveryState::Failed, *status, Some(problem), None)
        }
    };
    let ended = (state != DeliveryState::Pending).then_some(now.as_microsecond());
    let problem: Option<String> = problem.map(|it| it.chars().take(PROBLEM_MOST).collect());
    let changed = chains
        .session()
        .execute(
            "UPDATE outbox SET state = ?2, status_code = ?3, problem = ?4, due_at = ?5,
                 ended_at = ?6, claimed_by = NULL
             WHERE delivery_id = ?1 AND due_at IS NOT NULL",
            values![
                &claimed.delivery_id,
                state.as_str(),
                status.map(i64::from),
                problem.as_deref(),
                due_at,
                ended
            ],
        )
        .doing("write what came of a message")?;
    if changed == 0 || state != DeliveryState::Failed {
        return Ok(());
    }
    let it = &claimed.delivery;
    let space = it.space_id.clone().unwrap_or_else(SpaceId::local);
    let details = json!({
        "webhook": it.webhook,
        "message_id": it.message_id,
        "about": it.event,
        "attempts": it.attempts,
        "status_code": status,
    });
    let tags = vec!["severity:warning".to_owned()];
    let mut draft = administered_about(&space, "webhook.failed", None, None, tags, details)?;
    draft.exec_id.clone_from(&it.exec_id);
    chains.append(draft)?;
    Ok(())
}
