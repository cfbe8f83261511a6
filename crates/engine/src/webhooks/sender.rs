//! The thread that sends what is in the outbox. Each message is this server's for a while, is sent
//! on the runtime that leads outside, and what came of it is written down here.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use glovebox_model::{Approval, Result, WebhookEvent};
use glovebox_store::{Attempted, Claimed};
use jiff::Timestamp;

use super::{Parcel, Webhook};
use crate::dispatch::Dispatcher;

/// How often somebody looks for messages.
const ROUND: Duration = Duration::from_millis(500);
/// To one webhook at one time: a receiver that hangs holds up nobody else.
const AT_ONCE: usize = 4;
/// How often somebody looks for what dead servers had claimed.
const RELEASE: Duration = Duration::from_secs(5);
/// How long the end of a message is remembered, and how often the old ones are removed.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
const FORGET: Duration = Duration::from_secs(3600);

type Came = (Claimed, Attempted);

/// Until the dispatcher is gone.
pub(crate) fn rounds(weak: &Weak<Dispatcher>) {
    let (sender, results) = channel();
    let mut rounds = Rounds {
        sender,
        under_way: HashMap::new(),
        released: None,
        forgotten: None,
    };
    loop {
        let Some(dispatcher) = weak.upgrade() else {
            return;
        };
        if !dispatcher.sends() {
            return;
        }
        if let Err(error) = rounds.round(&dispatcher) {
            tracing::warn!(%error, "webhooks could not be told");
        }
        drop(dispatcher);
        if !rounds.settle(weak, &results) {
            return;
        }
    }
}

struct Rounds {
    sender: Sender<Came>,
    /// How many messages are on their way, by webhook.
    under_way: HashMap<String, usize>,
    released: Option<Instant>,
    forgotten: Option<Instant>,
}

impl Rounds {
    fn round(&mut self, dispatcher: &Arc<Dispatcher>) -> Result<()> {
        let store = dispatcher.store()?;
        let now = Timestamp::now();
        if is_due(&mut self.released, RELEASE) {
            store.release_claims(dispatcher.owner(), now)?;
        }
        if is_due(&mut self.forgotten, FORGET) {
            while store.forget_deliveries(KEPT)? > 0 {}
        }
        let webhooks = dispatcher.webhooks();
        let room: Vec<(String, usize)> = webhooks
            .iter()
            .map(|it| {
                let busy = self.under_way.get(it.name()).copied().unwrap_or(0);
                (it.name().to_owned(), AT_ONCE.saturating_sub(busy))
            })
            .filter(|(_, room)| *room > 0)
            .collect();
        for claimed in store.claim_deliveries(dispatcher.owner(), &room, now)? {
            self.send(dispatcher, claimed);
        }
        Ok(())
    }

    fn send(&mut self, dispatcher: &Arc<Dispatcher>, claimed: Claimed) {
        let name = claimed.delivery.webhook.clone();
        *self.under_way.entry(name.clone()).or_default() += 1;
        let results = self.sender.clone();
        let packed = packed(dispatcher, &claimed);
        let attempts = claimed.delivery.attempts;
        let ready = packed.and_then(|parcel| {
            let outside = dispatcher.engine().network.outside()?;
            Ok((parcel, outside.client()?.clone(), outside.runtime()))
        });
        match ready {
            Ok((parcel, client, runtime)) => {
                runtime.spawn(async move {
                    let came = parcel.deliver(&client, attempts).await;
                    let _ = results.send((claimed, came));
                });
            }
            // Such as a key that cannot be read now; it may be mended.
            Err(error) => {
                tracing::error!(webhook = name, %error, "a message cannot be made");
                let came = super::outcome::unmade(&error, attempts);
                let _ = results.send((claimed, came));
            }
        }
    }

    /// Waits for a round's time and writes down what comes meanwhile. `false`: nobody is left to
    /// write for.
    fn settle(&mut self, weak: &Weak<Dispatcher>, results: &Receiver<Came>) -> bool {
        let deadline = Instant::now() + ROUND;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok((claimed, came)) = results.recv_timeout(left) else {
                return true;
            };
            let name = &claimed.delivery.webhook;
            if let Some(busy) = self.under_way.get_mut(name) {
                *busy = busy.saturating_sub(1);
            }
            if let Attempted::Failed { problem, .. } = &came {
                tracing::warn!(webhook = name, message = %claimed.delivery.message_id, problem, "a message to a webhook was given up");
            }
            let Some(dispatcher) = weak.upgrade() else {
                return false;
            };
            // What cannot be written is sent again when the claim is over.
            let written = dispatcher
                .store()
                .and_then(|store| store.settle_delivery(&claimed, came));
            if let Err(error) = written {
                tracing::warn!(%error, "what came of a message could not be written");
            }
        }
    }
}

fn is_due(last: &mut Option<Instant>, every: Duration) -> bool {
    let due = last.is_none_or(|at| at.elapsed() >= every);
    if due {
        *last = Some(Instant::now());
    }
    due
}

fn packed(dispatcher: &Arc<Dispatcher>, claimed: &Claimed) -> Result<Parcel> {
    let delivery = &claimed.delivery;
    let webhook: &Webhook = super::find(dispatcher.webhooks(), &delivery.webhook)?;
    let approval: Option<Approval> = match (&delivery.approval_id, delivery.event) {
        (Some(id), WebhookEvent::ApprovalRequested) => Some(
            dispatcher
                .store()?
                .approval(delivery.space_id.as_ref(), id)?,
        ),
        _ => None,
    };
    let access = &dispatcher.engine().secrets;
    let masks = super::secrets::masks(access, delivery.space_id.as_ref())?;
    let body = super::message::body(delivery, &claimed.facts, approval.as_ref(), &|text| {
        masks.redact_str(text).into_owned()
    });
    webhook.pack(access, &delivery.message_id, &body)
}
