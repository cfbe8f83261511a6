//! A server's webhooks: who is told, and a try.

use glovebox_model::{Result, WebhookDelivery};

use super::Dispatcher;
use crate::engine::Engine;
use crate::webhooks::{Webhook, unknown};

impl Dispatcher {
    pub fn webhooks(&self) -> &[Webhook] {
        &self.webhooks
    }

    /// Whether it may still send anything.
    pub(crate) fn sends(&self) -> bool {
        !self.maintenance.is_gone() && !self.is_fenced()
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Puts a message that is about nothing in line behind the others; how it went is told with the
    /// deliveries.
    pub fn try_webhook(&self, name: &str) -> Result<WebhookDelivery> {
        if !self.webhooks.iter().any(|it| it.name() == name) {
            return Err(unknown(name));
        }
        self.store()?.try_webhook(name)
    }
}
