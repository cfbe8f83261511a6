//! What an approval is bound to: nothing of the workspace, the very files that the call runs, or,
//! where those cannot be told for certain, the state of the whole workspace.

use glovebox_model::{BoundTo, Call, Code, Error, Placement, Result, ScriptRef, Stage, visible};
use glovebox_risk::{Runs, may_change_what_runs, runs, runs_script};
use glovebox_workspace::change::TreeState;
use glovebox_workspace::{Dir, Kind, Project, RelPath, is_skill_input};

use super::script::{Found, INPUTS, Script, Shelves, WORK, below, clean};
use crate::path::working_directory;

/// More than a workspace should hold that is looked at before each answer counts.
const ENTRIES: u64 = 1_000_000;
/// Scripts that run scripts, in all.
const MOST: usize = 16;

/// What a call may run, as it is now.
#[derive(Debug, Clone)]
pub(crate) struct Binding {
    pub(crate) to: BoundTo,
    pub(crate) because: String,
    /// The files, or the trees by their own paths.
    pub(crate) refs: Vec<ScriptRef>,
    /// Of the files, what they hold: what is run are these bytes.
    pub(crate) files: Vec<(RelPath, Vec<u8>)>,
    /// Of the workspace, for telling what changed.
    pub(crate) state: Option<TreeState>,
}

/// Of a larger workspace it is only told that it changed.
const COMPARED: u64 = 20_000;
/// Paths that are told to have changed.
const TOLD: usize = 20;

impl Binding {
    pub(crate) fn state_to_compare(&self) -> Option<TreeState> {
        self.state.clone().filter(|it| it.entries <= COMPARED)
    }

    /// What differs from what people were asked about: files, or paths of the workspace.
    pub(crate) fn changes_since(
        &self,
        bound: &[ScriptRef],
        state: Option<&TreeState>,
    ) -> Vec<String> {
        let refs = self.refs.iter().filter(|it| !bound.contains(it));
        let gone = bound.iter().filter(|it| !self.refs.contains(it));
        let mut told: Vec<String> = Vec::new();
        let paths = gone.chain(refs).map(|it| it.path.clone());
        let differing = match (state, &self.state) {
            (Some(before), Some(now)) => before.changed(now).take(TOLD + 1).collect(),
            _ => Vec::new(),
        };
        let more = differing.len() > TOLD;
        let is_told = |path: &String| path == WORK && !differing.is_empty();
        let paths = paths.filter(|path| !is_told(path));
        for path in paths.chain(differing.iter().take(TOLD).map(|it| it.one_line())) {
            let path = visible(&path);
            if !told.contains(&path) {
                told.push(path);
            }
        }
        told.extend(more.then(|| "and more".to_owned()));
        told
    }

    /// `scripts` are the files that the call names, which people are shown in any case.
    pub(crate) fn of(call: &Call, scripts: &[Script], project: &Project) -> Result<Self> {
        let Some(work) = project.work() else {
            return Ok(Self::nothing("it has no workspace"));
        };
        match listed(call, work) {
            Ok(files) if files.is_empty() => Ok(Self::nothing("it runs no file of the workspace")),
            Ok(files) => Ok(Self::files(files)),
            Err(why) => Self::workspace(why, scripts, project, work),
        }
    }

    fn nothing(because: &str) -> Self {
        Self {
            to: BoundTo::Nothing,
            because: because.to_owned(),
            refs: Vec::new(),
            files: Vec::new(),
            state: None,
        }
    }

    fn files(found: Vec<Found>) -> Self {
        Self {
            to: BoundTo::Files,
            because: "it runs these files and no others".to_owned(),
            refs: found.iter().map(|it| it.script.bound()).collect(),
            files: found
                .into_iter()
                .filter_map(|it| Some((it.at?, it.script.into_source())))
                .collect(),
            state: None,
        }
    }

    fn workspace(
        because: String,
        scripts: &[Script],
        project: &Project,
        work: &Dir,
    ) -> Result<Self> {
        let state = state_of(work)?;
        let inputs = inputs_state(&project.inputs()?)?;
        let trees = [(WORK, &state), (INPUTS, &inputs)].map(|(path, state)| ScriptRef {
            path: path.to_owned(),
            digest: state.digest.clone(),
        });
        let named = scripts.iter().map(Script::bound);
        Ok(Self {
            to: BoundTo::Workspace,
            because,
            refs: named.chain(trees).collect(),
            files: Vec::new(),
            state: Some(state),
        })
    }
}

/// What a list that was bound is bound to.
pub(crate) fn bound_to(refs: &[ScriptRef]) -> BoundTo {
    if refs.is_empty() {
        BoundTo::Nothing
    } else if refs.iter().any(|it| it.path == WORK) {
        BoundTo::Workspace
    } else {
        BoundTo::Files
    }
}

pub(crate) fn state_of(work: &Dir) -> Result<TreeState> {
    TreeState::of(work, ENTRIES, &|_, _| false).map_err(unseen)
}

/// What skills bring is placed anew for each exec, and bound with its call.
pub(crate) fn inputs_state(inputs: &Dir) -> Result<TreeState> {
    TreeState::of(inputs, ENTRIES, &|path, _| is_skill_input(path)).map_err(unseen)
}

fn unseen(error: glovebox_workspace::FsError) -> Error {
    error
        .at(Stage::Obtain)
        .hint("an approval is bound to all that the exec may run, and that must be seen")
        .hint("make it readable, or run it in another workspace: `--project NAME`, `--scratch`")
}

/// Every file that the call runs, or why that cannot be told.
fn listed(call: &Call, work: &Dir) -> Result<Vec<Found>, String> {
    if call.placement != Placement::Fresh && call.program.starts_shell() {
        let why = "a shell may run what earlier execs left in the home of this sandbox";
        return Err(why.to_owned());
    }
    if let Some(variable) = call
        .env
        .iter()
        .find(|it| may_change_what_runs(it.key.as_str()))
    {
        return Err(format!(
            "variable `{}` may change what is run",
            variable.key
        ));
    }
    let cwd = working_directory(call.cwd.as_ref()).map_err(|error| error.message)?;
    let cwd = cwd.display();
    let shelves = Shelves {
        work: Some(work),
        inputs: &call.inputs,
    };
    let mut wanted = only(runs(&call.program))?;
    let mut found: Vec<Found> = Vec::new();
    while let Some(word) = wanted.pop() {
        let path =
            clean(&cwd, &word).ok_or_else(|| format!("`{word}` leads out of the sandbox"))?;
        if found.iter().any(|it| it.path == path) {
            continue;
        }
        if found.len() >= MOST {
            return Err("it runs too many scripts".to_owned());
        }
        if let Some(relative) = below(WORK, &path) {
            is_plain(work, relative)?;
        }
        let script = shelves
            .whole(&path)
            .ok_or_else(|| format!("`{word}` is no file whose contents could be bound"))?;
        wanted.extend(only(runs_script(script.script.source()))?);
        found.push(script);
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// Whether it is certain which files of the workspace a call runs.
pub(super) fn is_certain(call: &Call, project: &Project) -> bool {
    project.work().is_none_or(|work| listed(call, work).is_ok())
}

fn only(runs: Runs) -> Result<Vec<String>, String> {
    match runs {
        Runs::Only(files) => Ok(files),
        Runs::Anything { why } => Err(why),
    }
}

/// A file below directories, with no link on the way: what stands before it in the sandbox stands at
/// the same place.
fn is_plain(work: &Dir, path: &str) -> Result<(), String> {
    let ends = (0..path.len()).filter(|at| path.as_bytes()[*at] == b'/');
    for end in ends.chain([path.len()]) {
        let part = path.get(..end).unwrap_or(path);
        let kind = RelPath::new(part.as_bytes())
            .ok()
            .and_then(|it| work.lstat(&it).ok())
            .map(|it| it.kind);
        let expected = match end == path.len() {
            true => Kind::File,
            false => Kind::Directory,
        };
        if kind != Some(expected) {
            return Err(format!("`{part}` is not {expected}"));
        }
    }
    Ok(())
}

/// What changed since people were asked.
pub(crate) fn changed(bound: &[ScriptRef], now: &[ScriptRef]) -> Error {
    let is_changed = |it: &&ScriptRef| !now.contains(it);
    let what = bound.iter().find(is_changed).or_else(|| now.first());
    let what = match what {
        Some(it) if it.path == WORK => "the workspace".to_owned(),
        Some(it) => format!("`{}`", it.path),
        None => "the request or the policy".to_owned(),
    };
    Error::new(
        Code::Denied,
        Stage::Obtain,
        format!("{what} has changed since people were asked; nothing was run, and there is no output of it"),
    )
    .hint("send it again: what is there now needs an answer of its own")
}
