//! The changes of a project that wait, each under the name of its exec.

use glovebox_model::{Error, ExecId, ProjectId, Result, Stage};

use super::held::Held;
use crate::dir::{Dir, DiskUsage, UsageLimits};
use crate::fault::{FsError, FsErrorKind};
use crate::layout::{Layout, Project};

const HELD: &str = "held";
const PRIVATE: u32 = 0o700;
const MOST: usize = 100_000;

impl Project {
    /// A place beside the workspace for what an exec writes. None for scratch, which has nothing to
    /// be spared.
    pub fn hold(&self, exec: &ExecId) -> Result<Option<Held>> {
        let Some(work) = self.work() else {
            return Ok(None);
        };
        let shelf = self.home().ensure_dir(HELD, PRIVATE).map_err(opening)?;
        Held::create(&shelf, exec.as_str(), work)
            .map(Some)
            .map_err(opening)
    }

    /// What waits of an exec; none when it has been decided, or never was.
    pub fn held(&self, exec: &ExecId) -> Result<Option<Held>> {
        let Some(shelf) = self.held_shelf()? else {
            return Ok(None);
        };
        match Held::open(&shelf, exec.as_str()) {
            Ok(held) => Ok(Some(held)),
            Err(error) if error.kind() == FsErrorKind::NotFound => Ok(None),
            Err(error) => Err(opening(error)),
        }
    }

    /// The execs whose changes wait.
    pub fn holding(&self) -> Result<Vec<ExecId>> {
        let Some(shelf) = self.held_shelf()? else {
            return Ok(Vec::new());
        };
        let listing = shelf.list(MOST).map_err(opening)?;
        let names = listing.entries.iter().map(|entry| entry.name.display());
        Ok(names.filter_map(|name| name.parse().ok()).collect())
    }

    /// What all of it takes on disk.
    pub fn held_usage(&self, limits: UsageLimits) -> Result<DiskUsage> {
        match self.held_shelf()? {
            Some(shelf) => shelf.usage(limits).map_err(opening),
            None => Ok(DiskUsage {
                complete: true,
                ..DiskUsage::default()
            }),
        }
    }

    /// Drops what waits of an exec. False when there was nothing.
    pub fn let_go(&self, exec: &ExecId) -> Result<bool> {
        match self.held_shelf()? {
            Some(shelf) => Held::remove(&shelf, exec.as_str()).map_err(opening),
            None => Ok(false),
        }
    }

    fn held_shelf(&self) -> Result<Option<Dir>> {
        match self.home().open_name(HELD) {
            Ok(shelf) => Ok(Some(shelf)),
            Err(error) if error.kind() == FsErrorKind::NotFound => Ok(None),
            Err(error) => Err(opening(error)),
        }
    }
}

impl Layout {
    /// As [`Project::let_go`], wherever the work of it is.
    pub fn let_go(&self, project: &ProjectId, exec: &ExecId) -> Result<bool> {
        let shelf = self
            .home_of(project)
            .and_then(|home| home.open_name(HELD))
            .and_then(|shelf| Held::remove(&shelf, exec.as_str()));
        match shelf {
            Err(error) if error.kind() == FsErrorKind::NotFound => Ok(false),
            removed => removed.map_err(opening),
        }
    }
}

fn opening(error: FsError) -> Error {
    error.at(Stage::Open)
}
