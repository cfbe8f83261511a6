//! Workspaces, as a server's callers see them.

use glovebox_api::{CollectAnswer, VerifyAnswer};
use glovebox_model::{Code, Error, Exec, ProjectId, Result, SpaceId, Stage, WorkspaceRef};
use glovebox_policy::FileAudit;
use glovebox_snapshot::Watch;
use glovebox_store::Actor;

use super::Dispatcher;
use crate::visibility::{Seen, Viewer};
use crate::workspaces::Workspace;
use crate::workspaces::answer::{collect_answer, verify_answer};

impl Dispatcher {
    /// One that is there. One that is named after another agent is not.
    pub fn workspace(
        &self,
        eyes: &Viewer,
        project: &ProjectId,
        by: Option<Actor>,
    ) -> Result<Workspace<'_>> {
        if !self.engine.policy().may_work_on(eyes, project) {
            let message = format!("there is no workspace `{project}`");
            return Err(Error::new(Code::NotFound, Stage::Open, message));
        }
        let which = WorkspaceRef::Project(project.clone());
        let workspace = self.engine.workspaces.open(eyes.space(), &which, by)?;
        Ok(workspace.looked_at_by(eyes))
    }

    /// The one that an exec worked on: who sees the exec decides about its changes.
    pub fn workspace_of(
        &self,
        eyes: &Viewer,
        exec: &Seen<Exec>,
        by: Actor,
    ) -> Result<Workspace<'_>> {
        let which = WorkspaceRef::Project(exec.project_id.clone());
        let space = &exec.ids.space_id;
        let workspace = self.engine.workspaces.open(space, &which, Some(by))?;
        Ok(workspace.looked_at_by(eyes))
    }

    /// One that is there, or a new one with the operator's template in it.
    pub fn make_workspace(
        &self,
        eyes: &Viewer,
        project: &ProjectId,
        by: Option<Actor>,
    ) -> Result<Workspace<'_>> {
        self.may_work_on(eyes, project)?;
        match self.workspace(eyes, project, by.clone()) {
            Err(error) if error.code == Code::NotFound => {}
            found => return found,
        }
        self.layout(eyes.space())?.project(project)?;
        let workspace = self.workspace(eyes, project, by)?;
        if self.engine.policy().template()?.is_some() {
            workspace.seed(None)?;
        }
        Ok(workspace)
    }

    /// Those of a space that are there for them, at most so many.
    pub fn projects(&self, eyes: &Viewer, most: usize) -> Result<Vec<ProjectId>> {
        let mut projects = self.layout(eyes.space())?.projects(most)?;
        projects.retain(|project| self.engine.policy().may_work_on(eyes, project));
        Ok(projects)
    }

    /// What of the file API is in the ledger.
    pub fn file_audit(&self) -> FileAudit {
        self.engine.policy().workspace_settings().audit
    }

    /// Every space that has files, and with it what was done there.
    pub fn collect_snapshots(&self) -> Result<CollectAnswer> {
        let all = self.in_each_space(|space| self.engine.workspaces.collect_snapshots(space))?;
        Ok(collect_answer(all))
    }

    /// Reads every snapshot of every space, and marks those that are sound.
    pub fn verify_snapshots(
        &self,
        by: Option<&Actor>,
        watch: &mut dyn Watch,
    ) -> Result<VerifyAnswer> {
        let all =
            self.in_each_space(|space| self.engine.workspaces.verify_snapshots(space, by, watch))?;
        Ok(verify_answer(all))
    }

    /// One that fails does not stop the rest.
    fn in_each_space<T>(
        &self,
        mut work: impl FnMut(&SpaceId) -> Result<T>,
    ) -> Result<Vec<(SpaceId, Result<T>)>> {
        let mut spaces = self.engine.instance.spaces()?;
        spaces.retain(|space| *space != SpaceId::local());
        spaces.insert(0, SpaceId::local());
        let each = spaces.into_iter().map(|space| {
            let done = work(&space);
            (space, done)
        });
        Ok(each.collect())
    }
}
