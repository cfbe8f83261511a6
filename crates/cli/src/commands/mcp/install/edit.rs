//! A host's file with one entry put in. Everything else in it stays as it is, to the letter.

use glovebox_model::{Code, Error, Result, Stage};

use super::entry::Entry;
use super::host::Host;
use super::{jsonc, tables};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Edit {
    /// It says so already.
    Same,
    Changed {
        text: String,
        /// The entry of this name that was there.
        before: Option<String>,
    },
}

/// Why a file stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unfit(pub(super) String);

impl Unfit {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

pub(super) fn put(host: Host, text: &str, entry: &Entry) -> std::result::Result<Edit, Unfit> {
    match host {
        Host::Codex => tables::put(text, entry),
        Host::Claude | Host::Cursor | Host::Vscode => jsonc::put(host, text, entry),
    }
}

/// What a file with nothing else would hold: for those who write it themselves.
pub(super) fn snippet(host: Host, entry: &Entry) -> Result<String> {
    match put(host, "", entry) {
        Ok(Edit::Changed { text, .. }) => Ok(text),
        Ok(Edit::Same) => Err(internal("an empty file says so already")),
        Err(Unfit(why)) => Err(internal(&why)),
    }
}

fn internal(why: &str) -> Error {
    Error::new(Code::Internal, Stage::Parse, "cannot write an entry").caused_by(why)
}
