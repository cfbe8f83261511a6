//! Reading the web for a server's callers.

use glovebox_egress::retrieve::{RetrieveRequest, Retrieved};
use glovebox_model::{Correlation, Result, Vouched};
use glovebox_store::Actor;

use super::Dispatcher;

impl Dispatcher {
    /// Blocks until it has the page.
    pub fn retrieve(
        &self,
        who: (&Correlation, Vouched),
        by: &Actor,
        request: RetrieveRequest,
    ) -> Result<Retrieved> {
        self.engine.network.retrieve(who, Some(by), request)
    }
}
