//! Workspaces, as a server's callers see them.

use glovebox_model::{Code, ProjectId, Result, SpaceId, WorkspaceRef};
use glovebox_snapshot::{Collected, Verified, Watch};
use glovebox_store::Actor;

use super::Dispatcher;
use crate::workspaces::Workspace;

/// What one workspace may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    pub bytes: Option<u64>,
    pub files: Option<u64>,
}

impl Dispatcher {
    /// One that is there.
    pub fn workspace(
        &self,
        space: &SpaceId,
        project: &ProjectId,
        by: Option<Actor>,
    ) -> Result<Workspace<'_>> {
        let which = WorkspaceRef::Project(project.clone());
        self.engine.workspace(space, &which, by)
    }

    /// One that is there, or a new one with the operator's template in it.
    pub fn make_workspace(
        &self,
        space: &SpaceId,
        project: &ProjectId,
        by: Option<Actor>,
    ) -> Result<Workspace<'_>> {
        match self.workspace(space, project, by.clone()) {
            Err(error) if error.code == Code::NotFound => {}
            found => return found,
        }
        self.layout(space)?.project(project)?;
        let workspace = self.workspace(space, project, by)?;
        if self.engine.template()?.is_some() {
            workspace.seed(None)?;
        }
        Ok(workspace)
    }

    pub fn quota(&self) -> Quota {
        let settings = self.engine.workspace_settings();
        Quota {
            bytes: settings.max_bytes.map(glovebox_model::Bytes::get),
            files: settings.max_files.map(glovebox_model::Count::get),
        }
    }

    /// Every space that has files, and with it what was done there.
    pub fn collect_snapshots(&self) -> Result<Vec<(SpaceId, Result<Collected>)>> {
        self.in_each_space(|space| self.engine.collect_snapshots(space))
    }

    /// Reads every snapshot of every space, and marks those that are sound.
    pub fn verify_snapshots(
        &self,
        by: Option<&Actor>,
        watch: &mut dyn Watch,
    ) -> Result<Vec<(SpaceId, Result<Verified>)>> {
        self.in_each_space(|space| self.engine.verify_snapshots(space, by, watch))
    }

    /// One that fails does not stop the rest.
    fn in_each_space<T>(
        &self,
        mut work: impl FnMut(&SpaceId) -> Result<T>,
    ) -> Result<Vec<(SpaceId, Result<T>)>> {
        let mut spaces = self.engine.spaces()?;
        spaces.retain(|space| *space != SpaceId::local());
        spaces.insert(0, SpaceId::local());
        let each = spaces.into_iter().map(|space| {
            let done = work(&space);
            (space, done)
        });
        Ok(each.collect())
    }
}
