//! What a run stands on when its workspace must not change under it: the files that people approved,
//! or a copy of the whole workspace as they approved it. What it writes goes to a layer, and is
//! carried into the workspace at its end.

use glovebox_model::{Access, BackendName, BoundTo, Code, Error, Result, ScriptRef, Stage};
use glovebox_policy::DeniedPaths;
use glovebox_workspace::change::{Change, Changes, EntryChange, Ground};
use glovebox_workspace::{Dir, Project};

use super::denied::{INPUTS, Search, WORK};
use super::lease::Layered;
use crate::approvals::{Binding, bound_to, changed, check_scripts, inputs_state, state_of};
use crate::path::Plan;
use crate::workspaces::Workspaces;

/// Paths that a note names.
const NAMED: usize = 5;

#[derive(Debug)]
pub(crate) struct Basis {
    /// In place of the workspace.
    pub(crate) copy: Option<Dir>,
    /// Before the workspace's own entries.
    pub(crate) over: Option<Dir>,
    /// In place of the inputs that all execs of the workspace share.
    pub(crate) inputs: Option<Dir>,
    /// What people approved of it.
    bound: Vec<ScriptRef>,
    _ground: Ground,
}

impl Workspaces {
    /// Whether a run must not work on the workspace itself.
    pub(super) fn stands_apart(
        &self,
        plan: &Plan,
        project: &Project,
        denied: &DeniedPaths,
    ) -> Result<bool> {
        let sees_it = plan.assessed().profile().workspace != Access::None;
        let is_denied = !denied.below(WORK).is_empty() || !denied.below(INPUTS).is_empty();
        if is_denied && sees_it {
            return Ok(true);
        }
        let Some(bound) = plan.bound_scripts() else {
            return Ok(false);
        };
        if bound_to(bound) == BoundTo::Nothing || !sees_it {
            return Ok(false);
        }
        if plan.chosen().backend == BackendName::Native && plan.assignment().is_none() {
            return Ok(true);
        }
        // No layer there: compared now, and those who were asked were told so.
        check_scripts(bound, &self.binding_now(plan, project)?.refs)?;
        Ok(false)
    }

    /// What people approved is compared here with what the run will stand on, and nothing can come in
    /// between.
    pub(super) fn stand(
        &self,
        plan: &Plan,
        project: &Project,
        layer: Option<&Layered>,
        denied: &DeniedPaths,
    ) -> Result<Basis> {
        let bound = plan.bound_scripts().unwrap_or_default();
        let work = project.work().ok_or_else(|| {
            let message = "a workspace without files cannot be stood on";
            Error::new(Code::Internal, Stage::Admit, message)
        })?;
        let ground = project.ground(&plan.draft().exec_id)?;
        let hidden = Search::new(denied, INPUTS);
        let inputs = match bound.is_empty() && hidden.is_empty() {
            true => None,
            false => Some(ground.inputs(&project.inputs()?, &|path, _| hidden.denies(path))?),
        };
        let (mut copy, mut over) = match bound_to(bound) {
            BoundTo::Workspace => {
                // What others change from here on is not in the copy.
                layer.map_or(Ok(()), Layered::begin)?;
                let copy = ground.copy(work, &|_, _| false)?;
                same(bound, WORK, &state_of(&copy)?.digest)?;
                if let Some(inputs) = &inputs {
                    same(bound, INPUTS, &inputs_state(inputs)?.digest)?;
                }
                (Some(copy), None)
            }
            BoundTo::Nothing if bound.is_empty() => (None, None),
            BoundTo::Files | BoundTo::Nothing => {
                let binding = self.binding_now(plan, project)?;
                check_scripts(bound, &binding.refs)?;
                let over = ground.over(work)?;
                for (path, contents) in &binding.files {
                    ground.seal(&over, work, path, contents)?;
                }
                (None, Some(over))
            }
        };
        let search = Search::new(denied, WORK);
        if !search.is_empty() {
            // Where names can appear that are denied, it stands on what stays as it is.
            let seen = search.look(work)?;
            if copy.is_none() && (search.is_open() || seen.moves) {
                layer.map_or(Ok(()), Layered::begin)?;
                copy = Some(ground.copy(work, &|_, _| false)?);
            }
            let base = copy.as_ref().unwrap_or(work);
            let cover = match over.take() {
                Some(over) => over,
                None => ground.over(base)?,
            };
            ground.cover(&cover, base, &search.look(base)?)?;
            over = Some(cover);
        }
        Ok(Basis {
            copy,
            over,
            inputs,
            bound: bound.to_vec(),
            _ground: ground,
        })
    }

    fn binding_now(&self, plan: &Plan, project: &Project) -> Result<Binding> {
        let call = plan.assessed().call();
        let (_, scripts) = self
            .instance
            .policy
            .assess_call(call.clone(), None, project.work())?;
        Binding::of(call, &scripts, project)
    }
}

fn same(bound: &[ScriptRef], path: &str, digest: &str) -> Result<()> {
    let tree = bound.iter().find(|it| it.path == path);
    match tree {
        Some(tree) if tree.digest == digest => Ok(()),
        tree => Err(changed(tree.map_or(&[], std::slice::from_ref), &[])),
    }
}

impl Basis {
    /// What the run itself changed of that which was approved: from then on it may have run
    /// something else.
    pub(super) fn rewritten(&self, changes: &Changes) -> Option<String> {
        let was_there = |it: &&Change| {
            let is_file = it.before.is_some();
            is_file && !matches!(it.what, EntryChange::Created | EntryChange::Touched)
        };
        let is_all = bound_to(&self.bound) == BoundTo::Workspace;
        let is_bound = |it: &&Change| {
            let path = it.path.display();
            is_all || self.bound.iter().any(|bound| bound.path == path)
        };
        let paths: Vec<String> = changes
            .entries
            .iter()
            .filter(was_there)
            .filter(is_bound)
            .map(|it| format!("`{}`", it.path.one_line()))
            .collect();
        let more = paths.len().saturating_sub(NAMED);
        let named = paths.get(..NAMED).unwrap_or(&paths).join(", ");
        let more = match more {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!paths.is_empty()).then(|| {
            format!(
                "the run itself changed {named}{more}: what it ran of that afterwards was not what \
                 people approved"
            )
        })
    }
}
