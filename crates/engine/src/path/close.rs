//! Close: the outcome is on disk, with a receipt.

use glovebox_backend::TeardownGuard;
use glovebox_model::{Error, Exec, Result};
use glovebox_store::{Opened, Store};
use glovebox_workspace::ExecFiles;

use super::judge::Judged;

/// The second value may be dropped once whoever waits has been told: the kernel still tidies up.
/// `again` says whether an outcome that could not be written is tried once more.
pub(crate) fn close(
    store: &Store,
    judged: Judged,
    files: &ExecFiles,
    again: Option<&dyn Fn(&Error) -> bool>,
) -> Result<(Exec, TeardownGuard)> {
    let Judged {
        entry,
        record,
        collected,
        remains,
    } = judged;
    let closed = end(store, entry, record, again)?;
    // After the ledger, so that the file can carry the receipt; the record is what counts.
    if let Some(collected) = collected {
        let _ = files.seal(&closed, collected);
    }
    Ok((closed, remains))
}

/// Writes the end of an exec, whatever it was.
pub(crate) fn end(
    store: &Store,
    mut entry: Opened,
    mut record: Exec,
    again: Option<&dyn Fn(&Error) -> bool>,
) -> Result<Exec> {
    loop {
        match store.close(entry, record) {
            Ok(closed) => return Ok(closed),
            Err(unclosed) if again.is_some_and(|again| again(&unclosed.error)) => {
                entry = unclosed.opened;
                record = *unclosed.record;
            }
            Err(unclosed) => return Err(unclosed.error),
        }
    }
}
