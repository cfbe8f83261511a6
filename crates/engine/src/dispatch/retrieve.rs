//! Reading the web for a server's callers.

use glovebox_egress::retrieve::{RetrieveRequest, Retrieved};
use glovebox_model::{Correlation, Result};
use glovebox_store::Actor;

use super::Dispatcher;

impl Dispatcher {
    /// Blocks until it has the page.
    pub fn retrieve(
        &self,
        ids: &Correlation,
        by: &Actor,
        request: RetrieveRequest,
    ) -> Result<Retrieved> {
        self.engine.retrieve(ids, Some(by), request)
    }
}
