//! What a call works on: its workspace, opened for whose exec it is.

use glovebox_model::{Call, Lifetime, Placement, Result, WorkspaceRef};
use glovebox_workspace::Project;

use crate::workspaces::Workspaces;

impl Workspaces {
    /// What a call works on, with the inputs that are there for it.
    pub(crate) fn project(&self, call: &Call) -> Result<Project> {
        let (space, layout) = (
            &call.ids.space_id,
            self.instance.layout(&call.ids.space_id)?,
        );
        let project = match &call.workspace {
            WorkspaceRef::Adopted(path) if self.instance.is_server() => {
                self.shared_only(space, path)
            }
            WorkspaceRef::Adopted(path) => self.adopt(space, path),
            WorkspaceRef::Project(id) => match self.shared_as(space, id) {
                Some(shared) => self.project_of(shared),
                None => self.kept_project(&layout, id),
            },
            WorkspaceRef::Scratch => layout.scratch(),
        }?;
        Ok(project.of_agent(self.whose_inputs(call)?.as_deref()))
    }

    /// The agent whose inputs a call reads and adds to. They are mounted when a sandbox is made: in one
    /// that all share they are everybody's, and in one that is named they are its own.
    fn whose_inputs(&self, call: &Call) -> Result<Option<String>> {
        Ok(match &call.placement {
            Placement::Fresh
            | Placement::Scope(Lifetime::Exec | Lifetime::Session | Lifetime::Agent) => {
                call.ids.agent_id.clone()
            }
            Placement::Scope(Lifetime::Shared) => None,
            Placement::Named(name) => self
                .registry
                .own(&call.ids.space_id, name)?
                .agent()
                .map(Into::into),
        })
    }
}
