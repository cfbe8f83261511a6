//! Secrets as they are sent. A value goes in and never comes out.

use std::collections::BTreeSet;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use glovebox_model::{Delivery, SecretName};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use zeroize::Zeroizing;

use crate::{Destination, Id};

/// 64 KiB, written in base64.
const VALUE_MOST: usize = 87_384;

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "value_base64": "Z2hwX3RoaXMtaXMtYW4tZXhhbXBsZQ==",
    "hosts": ["api.github.com:443"],
}))]
pub struct SecretRequest {
    pub value_base64: SecretValue,
    /// Where a brokered value may go: names with their ports, none with `*`. As it was if nothing
    /// is said.
    #[schema(max_items = 64)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<BTreeSet<Destination>>,
    /// The ways in which it may be given to a program. As it was if nothing is said; at first
    /// `file` and `descriptor`, and `broker` where there is a host. `env` is never by itself.
    #[schema(min_items = 1, max_items = 4)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<BTreeSet<Delivery>>,
}

/// Decoded where it is read, and erased when it is done with. No message has any of it.
pub struct SecretValue(pub Zeroizing<Vec<u8>>);

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue")
    }
}

impl Serialize for SecretValue {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.serialize_str(&Zeroizing::new(STANDARD.encode(&self.0)))
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

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"secret": "github", "conversation_id": "c-17"}))]
pub struct SecretGrantRequest {
    pub secret: SecretName,
    /// At least one of the two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<Id>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Id>,
    /// All that the secret allows, but `env`, if nothing is said.
    #[schema(min_items = 1, max_items = 4)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<BTreeSet<Delivery>>,
    /// Within 90 days; a day if nothing is said.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}
