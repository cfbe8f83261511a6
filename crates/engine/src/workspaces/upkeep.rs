//! Seeding, reset, and what is removed by age.

use std::collections::HashSet;

use glovebox_api::{ResetAnswer, ResetRequest, SeedAnswer};
use glovebox_model::{
    Code, Count, Error, ExecId, Millis, ProjectId, Result, Sandbox, SandboxState, SpaceId, Stage,
};
use glovebox_workspace::{
    Dir, FileTime, Layout, Project, Reset, Retention, SeedLimits, SeedRoom, Swept, WorkKind,
};
use serde_json::json;

use super::Workspace;
use super::answer::seed_answer;
use crate::policy::ActivePolicy;
use crate::stage;
use crate::workspaces::Workspaces;

impl Workspace<'_> {
    /// Copies a template into it; nothing that is there is touched. Without one, the operator's.
    pub fn seed(&self, template: Option<&Dir>) -> Result<SeedAnswer> {
        let operators = self.workspaces.instance.policy.template()?;
        let template = template.or(operators.as_ref()).ok_or_else(|| {
            Error::new(
                Code::Conflict,
                Stage::Resolve,
                "there is no template to seed from",
            )
            .hint("name a directory: `glovebox workspace seed --from DIR`")
            .hint("or set `template` in `[workspace]` of the configuration")
        })?;
        let writing = self.writing()?;
        let room = |bytes, files| writing.room().take(bytes, files);
        let seeded = self.project.seed(template, SeedLimits::default(), &room)?;
        self.note("workspace.seeded", json!({ "made": seeded.made.len() }))?;
        Ok(seed_answer(seeded))
    }

    /// Removes it with its inputs, artifacts and snapshots, and with changes that wait.
    pub fn remove(&self) -> Result<()> {
        if self.project.kind() == WorkKind::Adopted {
            let message =
                "the workspace is a directory of your own, which Glovebox does not remove";
            return Err(Error::new(Code::WorkspaceRefused, Stage::Open, message));
        }
        let _alone = self.take_over()?;
        self.holds_nothing_of_others()?;
        self.remove_alone()
    }

    /// The same where Glovebox keeps it and nothing is in it, nothing of an exec's either.
    pub(crate) fn remove_unused(&self) -> Result<()> {
        if self.project.kind() != WorkKind::Managed {
            return Ok(());
        }
        let _alone = self.take_over()?;
        let snapshots = self.workspaces.snapshots(&self.space)?;
        let snapshots = snapshots.list(Some(self.project.id()))?.snapshots;
        match snapshots.is_empty() && self.project.is_unused()? {
            true => self.remove_alone(),
            false => Ok(()),
        }
    }

    fn remove_alone(&self) -> Result<()> {
        let id = self.project.id();
        let stands = |row: &Sandbox| row.project_id == *id && row.state != SandboxState::Down;
        let mut sandboxes = self.workspaces.registry.list(&self.space)?.into_iter();
        if let Some(row) = sandboxes.find(stands) {
            let message = format!("the sandbox `{}` works on this workspace", row.name);
            let hint = format!("remove it first: `glovebox sandbox rm {}`", row.name);
            return Err(Error::new(Code::Conflict, Stage::Open, message).hint(hint));
        }
        self.note("workspace.removed", json!({}))?;
        let store = self.workspaces.snapshots(&self.space)?;
        for snapshot in store.list(Some(id))?.snapshots {
            store.remove(&snapshot.id)?;
        }
        self.workspaces.instance.layout(&self.space)?.remove(id)?;
        self.forget_unfinished()
    }

    /// Empties it and seeds it again. What execs left goes as far as it is there for who asks.
    pub fn reset(&self, asked: &ResetRequest) -> Result<ResetAnswer> {
        let reset = Reset {
            inputs: asked.inputs,
            artifacts: asked.artifacts,
        };
        let _alone = self.take_over()?;
        let template = self.workspaces.instance.policy.template()?;
        let room = self.workspaces.room_anew();
        let takes = |bytes, files| room.take(bytes, files);
        let template = template
            .as_ref()
            .map(|it| (it, SeedLimits::default(), &takes as SeedRoom<'_>));
        let mut others = HashSet::new();
        for exec in self
            .project
            .execs()?
            .into_iter()
            .filter(|_| reset.artifacts)
        {
            if !self.sees_exec(&exec)? {
                others.insert(exec);
            }
        }
        // It is occupied, so nobody runs in it.
        let spared = |exec: &ExecId| others.contains(exec);
        let done = self
            .project
            .reset_sparing(reset, template, &|_| false, &spared)?;
        self.forget_unfinished()?;
        self.note(
            "workspace.reset",
            json!({ "inputs": reset.inputs, "artifacts": reset.artifacts }),
        )?;
        Ok(ResetAnswer {
            artifacts_removed: done.artifacts.removed.len() as u64,
            seeded: seed_answer(done.seeded),
        })
    }
}

impl Workspaces {
    /// Made, with the operator's template in it, when it is not there.
    pub(crate) fn kept_project(&self, layout: &Layout, id: &ProjectId) -> Result<Project> {
        let Some(template) = self.instance.policy.template()? else {
            return layout.project(id);
        };
        match layout.existing(id) {
            Err(error) if error.code == Code::NotFound => {}
            found => return found,
        }
        let built = layout.build(id, |project| {
            let room = |bytes, files| self.room_anew().take(bytes, files);
            project.seed(&template, SeedLimits::default(), &room)?;
            stage::reached("seed");
            Ok(())
        });
        match built {
            // Somebody else was faster, if it is not half of one that was being removed.
            Err(error) if error.code == Code::Conflict => {}
            built => return built.and_then(|()| layout.existing(id)),
        }
        match layout.existing(id) {
            Err(error) if error.code == Code::NotFound => layout.project(id),
            found => found,
        }
    }

    /// What was being built by somebody who was killed.
    pub(crate) fn clear_aside(&self) -> Result<()> {
        let local = [SpaceId::local()];
        for space in self.instance.spaces()?.iter().chain(&local) {
            self.instance.layout(space)?.clear_aside()?;
        }
        Ok(())
    }

    pub(crate) fn limits_artifacts(&self) -> bool {
        let settings = self.instance.policy.workspace_settings();
        settings.artifacts_keep_within.is_some()
            || settings.artifacts_keep_last.is_some()
            || settings.artifacts_max_bytes.is_some()
    }

    /// Removes the artifacts that the settings keep no longer. `is_running` spares those of execs.
    pub fn retain_artifacts(
        &self,
        space: &SpaceId,
        project: &ProjectId,
        is_running: &dyn Fn(&ExecId) -> bool,
    ) -> Result<Swept> {
        let settings = self.instance.policy.workspace_settings();
        let retention = Retention {
            within: settings.artifacts_keep_within.map(Millis::duration),
            last: settings.artifacts_keep_last.map(Count::get),
            bytes: settings.artifacts_max_bytes.map(glovebox_model::Bytes::get),
        };
        let now = FileTime::now();
        let swept = self
            .instance
            .layout(space)?
            .retain(project, retention, now, is_running)?;
        if !swept.removed.is_empty() {
            let details =
                json!({ "project_id": project, "execs": swept.removed, "bytes": swept.bytes });
            self.instance
                .store()?
                .note(space, "artifacts.removed", None, details)?;
        }
        Ok(swept)
    }
}

impl ActivePolicy {
    /// What new workspaces are seeded from.
    pub(crate) fn template(&self) -> Result<Option<Dir>> {
        let Some(path) = &self.workspace_settings().template else {
            return Ok(None);
        };
        let opened = Dir::open_trusted(path).map_err(|error| {
            error
                .at(Stage::Resolve)
                .hint("`template` in `[workspace]` of the configuration names this directory")
        });
        opened.map(Some)
    }
}
