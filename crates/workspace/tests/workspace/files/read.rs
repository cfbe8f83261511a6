//! What a workspace holds, read as its users read it.

use glovebox_workspace::FsResult;

use crate::files::place::{Place, rel};

impl Place {
    pub(crate) fn read(&self, path: &str) -> FsResult<Vec<u8>> {
        self.dir.read(&rel(path), 1 << 20)
    }
}
