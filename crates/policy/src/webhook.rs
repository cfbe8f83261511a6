//! Who is told what by itself: `[[webhook]]`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use glovebox_model::{SecretName, SpaceId, WebhookEvent};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSettings {
    /// A slug, and no other webhook's.
    pub name: String,
    /// Only looked at as a text so far: where it leads is vetted before anything is sent.
    pub url: String,
    /// Never empty.
    pub events: BTreeSet<WebhookEvent>,
    pub key: WebhookKey,
    /// Told of this space alone; of all when unset.
    pub space: Option<SpaceId>,
}

/// Where the key is with which messages are signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookKey {
    File(PathBuf),
    /// A stored secret.
    Secret(SecretName),
}
