//! That something is about to be read from outside for somebody, and what came of it: what is known
//! of it, and never what it was.

use glovebox_model::{Correlation, ReceiptRef, Result};
use serde_json::Value;

use crate::administration::{Actor, administered_about};
use crate::ledger::encoding::canonical;
use crate::store::Store;
use crate::summary;

impl Store {
    /// On disk before anything is asked of anybody outside.
    pub fn plan_retrieval(
        &self,
        ids: &Correlation,
        by: Option<&Actor>,
        details: Value,
    ) -> Result<ReceiptRef> {
        self.append_retrieval(ids, by, "retrieval.planned", Vec::new(), details)
    }

    /// `outcome`: `ok`, or the code of what stood against it. Nothing in the details may be a text
    /// that was read, or the URL that was asked for.
    pub fn note_retrieval(
        &self,
        ids: &Correlation,
        by: Option<&Actor>,
        outcome: &str,
        details: Value,
    ) -> Result<ReceiptRef> {
        let tags = vec![format!("retrieval:{outcome}")];
        self.append_retrieval(ids, by, "retrieval", tags, details)
    }

    fn append_retrieval(
        &self,
        ids: &Correlation,
        by: Option<&Actor>,
        event: &str,
        tags: Vec<String>,
        details: Value,
    ) -> Result<ReceiptRef> {
        let mut draft = administered_about(&ids.space_id, event, by, None, tags, details)?;
        draft.ids = canonical(&summary::ids(ids));
        self.write(move |chains| Ok(chains.append(draft)?.receipt()))
    }
}
