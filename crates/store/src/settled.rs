//! Entries about what was decided of an exec after its end: whether its changes were kept.

use glovebox_model::{Exec, ReceiptRef, Result};
use serde_json::{Value, json};

use crate::administration::{Actor, administered_about};
use crate::ledger::encoding::canonical;
use crate::store::Store;
use crate::{audit_summary, summary};

impl Store {
    /// Writes down what was done about an exec that has ended, such as `changes.kept`. It is found
    /// by the exec, its ids and what it was; the record stays as it is. Nothing in the details may
    /// be a secret.
    pub fn note_settled(
        &self,
        record: &Exec,
        event: &str,
        by: Option<&Actor>,
        mut details: Value,
    ) -> Result<ReceiptRef> {
        if let Value::Object(details) = &mut details {
            details.insert("exec_id".to_owned(), json!(record.exec_id));
            details.insert("project_id".to_owned(), json!(record.project_id));
            details.extend(audit_summary::recollection(record));
        }
        let mut tags = vec![format!("project:{}", record.project_id)];
        tags.extend(
            audit_summary::settled_tags(record)
                .into_iter()
                .map(str::to_owned),
        );
        let space = &record.ids.space_id;
        let mut draft = administered_about(space, event, by, None, tags, details)?;
        draft.exec_id = Some(record.exec_id.clone());
        draft.ids = canonical(&summary::ids(&record.ids));
        self.write(move |chains| Ok(chains.append(draft)?.receipt()))
    }
}
