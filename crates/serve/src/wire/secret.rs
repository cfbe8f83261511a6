//! Secrets as they are sent. A value goes in and never comes out.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use glovebox_engine::{GrantSecret, SetSecret};
use glovebox_model::{Code, Delivery, SecretName};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use zeroize::Zeroizing;

use super::overrides::destinations;
use super::{Destination, Id};
use crate::body::{Limit, Sent};
use crate::failure::{Answer, Failure};

/// 64 KiB, written in base64.
const VALUE_MOST: usize = 87_384;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "value_base64": "Z2hwX3RoaXMtaXMtYW4tZXhhbXBsZQ==",
    "hosts": ["api.github.com:443"],
}))]
pub(crate) struct SecretRequest {
    value_base64: SecretValue,
    /// Where a brokered value may go: names with their ports, none with `*`. As it was if nothing
    /// is said.
    #[schema(max_items = 64)]
    hosts: Option<BTreeSet<Destination>>,
    /// The ways in which it may be given to a program. As it was if nothing is said; at first
    /// `file` and `descriptor`, and `broker` where there is a host. `env` is never by itself.
    #[schema(min_items = 1, max_items = 4)]
    deliveries: Option<BTreeSet<Delivery>>,
}

impl Sent for SecretRequest {
    const LIMIT: Limit = Limit::Plain;
}

impl SecretRequest {
    pub(crate) fn set(self, name: SecretName) -> Answer<SetSecret> {
        Ok(SetSecret {
            name,
            value: self.value_base64.0,
            hosts: self.hosts.map(destinations).transpose()?,
            deliveries: self.deliveries,
        })
    }
}

/// Decoded where it is read, and erased when it is done with. No message has any of it.
struct SecretValue(Zeroizing<Vec<u8>>);

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue")
    }
}

impl<'de> Deserialize<'de> for SecretValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Zeroizing::new(String::deserialize(deserializer)?);
        let value = STANDARD.decode(text.as_bytes()).map(Zeroizing::new);
        value
            .map(Self)
            .map_err(|_| serde::de::Error::custom("is not base64, with its padding"))
    }
}

impl PartialSchema for SecretValue {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(
                // No bits are left over at the end: a value is written in one way.
                "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$",
            ))
            .max_length(Some(VALUE_MOST))
            .description(Some(
                "The value in base64: 8 bytes to 64 KiB, and nothing that would be masked wherever \
                 it occurs by chance.",
            ))
            .examples(["Z2hwX3RoaXMtaXMtYW4tZXhhbXBsZQ=="])
            .into()
    }
}

impl ToSchema for SecretValue {}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"secret": "github", "conversation_id": "c-17"}))]
pub(crate) struct SecretGrantRequest {
    secret: SecretName,
    /// At least one of the two.
    conversation_id: Option<Id>,
    agent_id: Option<Id>,
    /// All that the secret allows, but `env`, if nothing is said.
    #[schema(min_items = 1, max_items = 4)]
    deliveries: Option<BTreeSet<Delivery>>,
    /// Within 90 days; a day if nothing is said.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
}

impl Sent for SecretGrantRequest {
    const LIMIT: Limit = Limit::Plain;
}

impl SecretGrantRequest {
    pub(crate) fn grant(self) -> Answer<GrantSecret> {
        let lasts = self.expires_at.map(|end| {
            let left = Duration::try_from(end.duration_since(Timestamp::now()));
            let left = left.ok().filter(|left| !left.is_zero());
            left.ok_or_else(|| Failure::new(Code::Conflict, "`expires_at` is in the past"))
        });
        Ok(GrantSecret {
            secret: self.secret,
            conversation_id: self.conversation_id.map(|id| id.0),
            agent_id: self.agent_id.map(|id| id.0),
            deliveries: self.deliveries,
            lasts: lasts.transpose()?,
        })
    }
}
