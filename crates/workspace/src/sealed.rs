//! The call of an exec that may be carried out later, beside its other files. It is sealed by
//! whoever keeps it here; nothing in it can be read from this crate.

use std::io::{Read, Write};

use glovebox_model::{ExecId, ProjectId, Result, Stage};

use crate::dir::from_io;
use crate::fault::{FsError, FsErrorKind};
use crate::layout::{Layout, Project};

const MODE: u32 = 0o600;
/// A call with its inputs, sealed.
const MOST_BYTES: u64 = 256 << 20;

pub(crate) fn name(exec: &ExecId) -> String {
    format!(".{exec}.call")
}

impl Project {
    pub fn keep_sealed(&self, exec: &ExecId, sealed: &[u8]) -> Result<()> {
        let file = self.shelf()?.create_name(&name(exec), MODE);
        let mut file = file.map_err(|error| error.at(Stage::Open))?;
        file.write_all(sealed)
            .map_err(|error| FsError::new("keep", b"the call", from_io(&error)).at(Stage::Open))
    }

    /// What was decided is not done once more.
    pub fn forget_sealed(&self, exec: &ExecId) -> Result<()> {
        match self.shelf()?.remove_entry(&name(exec)) {
            Err(error) if error.kind() != FsErrorKind::NotFound => Err(error.at(Stage::Judge)),
            _ => Ok(()),
        }
    }
}

impl Layout {
    /// `None` when it was not kept, or is gone.
    pub fn sealed(&self, project: &ProjectId, exec: &ExecId) -> Result<Option<Vec<u8>>> {
        let opened = self
            .shelf(project)
            .and_then(|shelf| shelf.open_file_name(&name(exec)));
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == FsErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.at(Stage::Open)),
        };
        let mut sealed = Vec::new();
        file.take(MOST_BYTES)
            .read_to_end(&mut sealed)
            .map_err(|error| FsError::new("read", b"the call", from_io(&error)).at(Stage::Open))?;
        Ok(Some(sealed))
    }
}
