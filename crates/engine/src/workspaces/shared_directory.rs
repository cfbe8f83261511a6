//! A directory of the machine's user, shared with whoever this process serves: one more workspace, under
//! the id that `glovebox run` gives it. It is held from the start, so that whatever becomes of its
//! path leads nowhere else.

use std::path::{Path, PathBuf};

use glovebox_model::{Call, Code, Error, Exec, ProjectId, Result, SpaceId, Stage, WorkspaceRef};
use glovebox_workspace::{Project, is_adopted};

use crate::settings::ToolchainSettings;
use crate::workspaces::Workspaces;

/// What is shared, and how `glovebox run` would show it.
#[derive(Debug)]
pub struct DirectoryToShare {
    /// Resolved once, from where the process stands.
    pub directory: PathBuf,
    /// Home directories, which may not be shared themselves.
    pub homes: Vec<PathBuf>,
    /// Which of the user's own interpreters are seen by what works in it.
    pub toolchains: ToolchainSettings,
}

#[derive(Debug)]
pub(crate) struct SharedDirectory {
    project: Project,
    /// Where it was when it was shared.
    path: PathBuf,
}

impl SharedDirectory {
    pub(crate) fn id(&self) -> &ProjectId {
        self.project.id()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Workspaces {
    /// With a directory of the machine's user that callers may work in.
    pub(crate) fn sharing(mut self, directory: Option<&Path>) -> Result<Self> {
        self.shared = directory.map(|it| self.share(it)).transpose()?;
        Ok(self)
    }

    pub(crate) fn shared(&self) -> Option<&SharedDirectory> {
        self.shared.as_ref()
    }

    pub(crate) fn adopt(&self, space: &SpaceId, path: &Path) -> Result<Project> {
        let homes: Vec<&Path> = self.homes.iter().map(PathBuf::as_path).collect();
        self.instance.layout(space)?.adopt(path, &homes)
    }

    /// Refused where `glovebox run` refuses to work.
    fn share(&self, directory: &Path) -> Result<SharedDirectory> {
        let project = self.adopt(&SpaceId::local(), directory)?;
        let path = project.path()?;
        Ok(SharedDirectory { project, path })
    }

    /// What is shared under this id.
    pub(crate) fn shared_as(&self, space: &SpaceId, id: &ProjectId) -> Option<&SharedDirectory> {
        let local = *space == SpaceId::local();
        self.shared().filter(|shared| local && shared.id() == id)
    }

    /// What is shared from this place.
    pub(crate) fn shared_at(&self, space: &SpaceId, path: &Path) -> Option<&SharedDirectory> {
        let local = *space == SpaceId::local();
        self.shared().filter(|shared| local && shared.path == path)
    }

    pub(crate) fn project_of(&self, shared: &SharedDirectory) -> Result<Project> {
        self.instance
            .layout(&SpaceId::local())?
            .adopt_again(&shared.project)
    }

    /// A directory that is named, and not shared, is nobody's here.
    pub(crate) fn shared_only(&self, space: &SpaceId, path: &Path) -> Result<Project> {
        match self.shared_at(space, path) {
            Some(shared) => self.project_of(shared),
            None => Err(Error::new(
                Code::Conflict,
                Stage::Resolve,
                "a directory of the machine's user is not shared with this server",
            )
            .hint("name a workspace that it keeps")
            .hint("or run it where the directory is: `glovebox run`")),
        }
    }

    /// A call for what is shared says where that is, as one of `glovebox run` does: whoever goes on
    /// with it later, here or there, finds it.
    pub(crate) fn lead(&self, call: &mut Call) {
        if let WorkspaceRef::Project(id) = &call.workspace
            && let Some(shared) = self.shared_as(&call.ids.space_id, id)
        {
            call.workspace = WorkspaceRef::Adopted(shared.path().to_owned());
        }
    }

    /// Whether what waits can be carried out here: an exec in somebody's directory only by whoever
    /// has it.
    pub(crate) fn can_take(&self, exec: &Exec) -> bool {
        if self.instance.only_own() {
            return false;
        }
        let (space, project) = (&exec.ids.space_id, &exec.project_id);
        !is_adopted(project) || self.shared_as(space, project).is_some()
    }
}
