//! Keys of the state directory, each made when it is needed first.

use std::path::Path;

use glovebox_model::{Code, Error, Result, Stage};
use glovebox_store::{Key, KeyFault, KeyForm, PrivateFault, load_or_create_key};

/// The key in this file; made when it is not there.
pub(crate) fn private_key(path: &Path) -> Result<Key> {
    load_or_create_key(path, KeyForm::Bytes).map_err(|fault| {
        let doing = match &fault {
            KeyFault::Unmade(_) => "make",
            KeyFault::Unfit(_) | KeyFault::Damaged => "use",
        };
        let message = format!("cannot {doing} the key `{}`", path.display());
        let error = Error::new(Code::StoreUnavailable, Stage::Open, message);
        match fault {
            KeyFault::Unfit(why @ PrivateFault::Exposed) => {
                error.caused_by(format!("{why}: `chmod 600` it"))
            }
            fault => error.caused_by(fault),
        }
    })
}
