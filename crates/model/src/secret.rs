//! Secrets by name. No value is ever in a type of this crate.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::host::HostPort;
use crate::id::{EnvKey, GrantId, SecretName};

/// How a program gets the value.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// `/run/secrets/NAME`, in memory, gone with the exec.
    #[default]
    File,
    /// An open descriptor; a variable says which.
    Descriptor,
    /// The program holds a placeholder; the value is put in on the way to the host it is bound to.
    Broker,
    /// A variable. Whatever reads the environment reads it.
    Env,
}

impl Delivery {
    /// Whether the program gets the value itself.
    pub const fn is_handed(self) -> bool {
        match self {
            Self::File | Self::Descriptor | Self::Env => true,
            Self::Broker => false,
        }
    }

    pub const ALL: [Self; 4] = [Self::File, Self::Descriptor, Self::Broker, Self::Env];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Descriptor => "descriptor",
            Self::Broker => "broker",
            Self::Env => "env",
        }
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One secret that a call wants.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SecretUse {
    pub name: SecretName,
    #[serde(default)]
    pub delivery: Delivery,
    /// The variable that holds the placeholder or the value, or says where the file or descriptor
    /// is. Without it the secret's name, in capitals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<EnvKey>,
}

/// What is known of a secret without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Secret {
    pub name: SecretName,
    /// Counts the values that it had.
    pub version: u64,
    /// Where a brokered value may go; no other delivery looks at it.
    #[serde(default)]
    pub hosts: BTreeSet<HostPort>,
    /// The ways in which it may be given to a program.
    pub deliveries: BTreeSet<Delivery>,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub updated_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub last_used_at: Option<Timestamp>,
}

/// That the execs of a conversation, or of an agent, may have a secret without asking each time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SecretGrant {
    pub grant_id: GrantId,
    pub secret: SecretName,
    /// At least one of the two is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    pub deliveries: BTreeSet<Delivery>,
    pub granted_by: String,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub granted_at: Timestamp,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub revoked_at: Option<Timestamp>,
}

/// What an exec was given, in its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SecretGiven {
    pub name: SecretName,
    pub version: u64,
    pub delivery: Delivery,
    /// The standing grant that gave it; without one somebody agreed to this exec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_id: Option<GrantId>,
}
