//! Close: the outcome is on disk, with a receipt.

use glovebox_model::{Exec, Result};
use glovebox_store::Store;
use glovebox_workspace::ExecFiles;

use super::judge::Judged;

pub(crate) fn close(store: &Store, judged: Judged, files: &ExecFiles) -> Result<Exec> {
    let Judged {
        entry,
        record,
        collected,
        remains,
    } = judged;
    let closed = store.close(entry, record)?;
    // After the ledger, so that the file can carry the receipt; the record is what counts.
    if let Some(collected) = collected {
        let _ = files.seal(&closed, collected);
    }
    drop(remains);
    Ok(closed)
}
