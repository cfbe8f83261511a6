//! Webhooks: others are told when people have to agree to something, when that is settled, and when
//! an exec has ended. What there is to tell is written with what happened (`store::outbox`); only a
//! server sends it.

mod message;
mod outcome;
mod secrets;
mod sender;
mod signature;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use glovebox_egress::client::{Client, DeliveryRequest};
use glovebox_egress::{Target, vet_url};
use glovebox_model::{
    Code, DeliveryState, Error, MessageId, Result, SecretName, SpaceId, Stage, WebhookDelivery,
    WebhookEvent, WebhookInfo,
};
use glovebox_policy::Config;
use glovebox_store::{Attempted, Subscription};
use jiff::Timestamp;
use serde_json::Value;

use crate::instance::Instance;
use crate::network::Network;
use crate::network::{EgressRuntime, private_targets};
use crate::secrets::SecretAccess;

pub(crate) use sender::rounds;
use signature::SigningKey;

/// For everything: the lookup, the connection and the answer. Shorter than a claim holds.
const WITHIN: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, PartialEq, Eq)]
enum KeySource {
    File(PathBuf),
    /// Of the webhook's space, or of `local`.
    Secret(SecretName),
}

/// A place that is told, as the operator configured it.
#[derive(Debug, Clone)]
pub struct Webhook {
    name: String,
    target: Target,
    events: BTreeSet<WebhookEvent>,
    space: Option<SpaceId>,
    key: KeySource,
}

impl Webhook {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn info(&self) -> WebhookInfo {
        let scheme = self.target.scheme().as_str();
        WebhookInfo {
            name: self.name.clone(),
            origin: format!("{scheme}://{}", self.target.authority()),
            events: self.events.iter().copied().collect(),
            space_id: self.space.clone(),
        }
    }

    fn subscription(&self) -> Subscription {
        Subscription {
            webhook: self.name.clone(),
            events: self.events.clone(),
            space: self.space.clone(),
        }
    }

    fn signing_key(&self, access: &SecretAccess) -> Result<SigningKey> {
        match &self.key {
            KeySource::File(path) => SigningKey::read(path),
            KeySource::Secret(name) => {
                let space = self.space.clone().unwrap_or_else(SpaceId::local);
                let value = secrets::value(access, &space, name)?;
                SigningKey::parse(&value).map_err(|why| {
                    Error::new(
                        Code::InvalidConfig,
                        Stage::Open,
                        format!("the secret `{name}` is no signing key: {why}"),
                    )
                })
            }
        }
    }

    /// Makes a message ready to be sent. The key is read anew each time, so that it can be exchanged.
    fn pack(&self, access: &SecretAccess, id: &MessageId, body: &Value) -> Result<Parcel> {
        let bytes = serde_json::to_vec(body).map_err(|error| unsendable().caused_by(error))?;
        let at = Timestamp::now();
        let signature = self.signing_key(access)?.sign(id, at, &bytes)?;
        let header = |name: &'static str, value: String| {
            let value = value.parse().map_err(|_| unsendable())?;
            Ok::<_, Error>((name.parse().map_err(|_| unsendable())?, value))
        };
        Ok(Parcel(DeliveryRequest {
            target: self.target.clone(),
            content_type: "application/json".parse().map_err(|_| unsendable())?,
            headers: vec![
                header("webhook-id", id.to_string())?,
                header("webhook-timestamp", at.as_second().to_string())?,
                header("webhook-signature", signature)?,
            ],
            body: bytes.into(),
        }))
    }
}

fn unsendable() -> Error {
    Error::new(Code::Internal, Stage::Open, "a message cannot be written")
}

/// A signed message.
#[derive(Debug)]
struct Parcel(DeliveryRequest);

impl Parcel {
    async fn deliver(&self, client: &Client, attempts: u32) -> Attempted {
        let deadline = tokio::time::Instant::now() + WITHIN;
        outcome::judge(&client.deliver(&self.0, deadline).await, attempts)
    }
}

/// Those of the configuration. One that can never be told is an error now, and not when something
/// happens.
pub fn webhooks_of(config: &Config) -> Result<Vec<Webhook>> {
    let ports = private_targets(config)?;
    config
        .webhooks()
        .iter()
        .map(|it| {
            let target = vet_url(&it.url, &ports).map_err(|refusal| {
                let error = Error::new(
                    Code::InvalidConfig,
                    Stage::Open,
                    format!("the webhook `{}`: {}", it.name, refusal.message),
                );
                match refusal.hint {
                    Some(hint) => error.hint(hint),
                    None => error,
                }
            })?;
            Ok(Webhook {
                name: it.name.clone(),
                target,
                events: it.events.clone(),
                space: it.space.clone(),
                key: match &it.key {
                    glovebox_policy::WebhookKey::File(path) => KeySource::File(path.clone()),
                    glovebox_policy::WebhookKey::Secret(name) => KeySource::Secret(name.clone()),
                },
            })
        })
        .collect()
}

fn find<'w>(webhooks: &'w [Webhook], name: &str) -> Result<&'w Webhook> {
    webhooks
        .iter()
        .find(|it| it.name == name)
        .ok_or_else(|| unknown(name))
}

pub(crate) fn unknown(name: &str) -> Error {
    let shown: String = name.chars().take(80).flat_map(char::escape_debug).collect();
    Error::new(
        Code::NotFound,
        Stage::Parse,
        format!("there is no webhook `{shown}`"),
    )
    .hint("`[[webhook]]` of the configuration names them; `glovebox webhook ls` lists them")
}

/// Who is told of what happens, over HTTP.
#[derive(Debug)]
pub struct Webhooks {
    instance: Arc<Instance>,
    network: Arc<Network>,
    secrets: Arc<SecretAccess>,
}

impl Webhooks {
    pub(crate) fn new(
        instance: &Arc<Instance>,
        network: &Arc<Network>,
        secrets: &Arc<SecretAccess>,
    ) -> Self {
        Self {
            instance: Arc::clone(instance),
            network: Arc::clone(network),
            secrets: Arc::clone(secrets),
        }
    }

    pub fn configured(&self) -> Result<Vec<Webhook>> {
        webhooks_of(self.instance.config())
    }

    /// For a server: whoever is told of things is written down, and can be told.
    pub(crate) fn open(&self) -> Result<Vec<Webhook>> {
        let webhooks = self.configured()?;
        for webhook in &webhooks {
            webhook.signing_key(&self.secrets)?;
        }
        let subscriptions: Vec<_> = webhooks.iter().map(Webhook::subscription).collect();
        self.instance.store()?.subscribe(&subscriptions)?;
        Ok(webhooks)
    }

    /// Sends a message that is about nothing, at once and once, from this very process.
    pub fn try_one(&self, name: &str) -> Result<WebhookDelivery> {
        let webhooks = self.configured()?;
        let webhook = find(&webhooks, name)?;
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| unsendable().caused_by(error))?;
        let mut delivery = WebhookDelivery {
            message_id: MessageId::from_random(random),
            webhook: webhook.name.clone(),
            event: WebhookEvent::WebhookTest,
            space_id: None,
            exec_id: None,
            approval_id: None,
            created_at: Timestamp::now(),
            state: DeliveryState::Failed,
            attempts: 1,
            next_at: None,
            status_code: None,
            problem: None,
            ended_at: None,
        };
        let body = message::body(&delivery, &Value::Null, None, &str::to_owned);
        let parcel = webhook.pack(&self.secrets, &delivery.message_id, &body)?;
        let outside: &EgressRuntime = self.network.outside()?;
        let client = outside.client()?;
        let came = outside
            .runtime()
            .block_on(parcel.deliver(client, outcome::ATTEMPTS_MOST));
        delivery.ended_at = Some(Timestamp::now());
        match came {
            Attempted::Delivered { status } => {
                delivery.state = DeliveryState::Delivered;
                delivery.status_code = Some(status);
            }
            Attempted::Again {
                status, problem, ..
            }
            | Attempted::Failed { status, problem } => {
                delivery.status_code = status;
                delivery.problem = Some(problem);
            }
        }
        Ok(delivery)
    }
}
