//! What servers tell others by themselves, and how that went.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{ApprovalId, ExecId, MessageId, SpaceId};

macro_rules! words {
    ($(#[$doc:meta])* $type:ident { $($(#[$note:meta])* $name:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $type { $($(#[$note])* #[serde(rename = $text)] $name,)+ }

        impl $type {
            pub const ALL: [Self; [$(Self::$name),+].len()] = [$(Self::$name),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.as_str() == text)
            }
        }

        // The derived one would not know the words.
        #[cfg(feature = "openapi")]
        impl utoipa::PartialSchema for $type {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                utoipa::openapi::schema::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .enum_values(Some(Self::ALL.map(Self::as_str)))
                    .into()
            }
        }
        #[cfg(feature = "openapi")]
        impl utoipa::ToSchema for $type {}

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

words! {
    /// What a webhook is told of.
    WebhookEvent {
        /// People have to agree to something.
        ApprovalRequested = "approval.requested",
        /// They did or did not, or the request went away.
        ApprovalSettled = "approval.settled",
        ExecEnded = "exec.ended",
        /// Somebody tries whether messages arrive.
        WebhookTest = "webhook.test",
    }
}

words! {
    /// Where a message to a webhook stands.
    DeliveryState {
        /// Not sent yet, or to be sent again.
        Pending = "pending",
        Delivered = "delivered",
        /// Given up.
        Failed = "failed",
    }
}

/// A webhook as it may be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WebhookInfo {
    pub name: String,
    /// Where it is, without path and query: those are often what makes it secret.
    pub origin: String,
    pub events: Vec<WebhookEvent>,
    /// It is told of this space alone; of all when null.
    pub space_id: Option<SpaceId>,
}

/// One message to one webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WebhookDelivery {
    /// The `webhook-id` of every attempt: whoever has seen it once may forget the others.
    pub message_id: MessageId,
    /// The webhook's name in the configuration.
    pub webhook: String,
    pub event: WebhookEvent,
    /// None for what is about the server itself.
    pub space_id: Option<SpaceId>,
    pub exec_id: Option<ExecId>,
    pub approval_id: Option<ApprovalId>,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    pub state: DeliveryState,
    /// How often it was sent so far.
    pub attempts: u32,
    /// When it is sent again.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub next_at: Option<Timestamp>,
    /// What the receiver last answered.
    pub status_code: Option<u16>,
    /// Why the last attempt failed.
    pub problem: Option<String>,
    /// When it was delivered or given up.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub ended_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_wire_form() {
        for event in WebhookEvent::ALL {
            let text = serde_json::to_string(&event).unwrap();
            assert_eq!(text, format!("\"{event}\""));
            assert_eq!(WebhookEvent::parse(event.as_str()), Some(event));
        }
        for state in DeliveryState::ALL {
            let text = serde_json::to_string(&state).unwrap();
            assert_eq!(text, format!("\"{state}\""));
            assert_eq!(DeliveryState::parse(state.as_str()), Some(state));
        }
    }
}
