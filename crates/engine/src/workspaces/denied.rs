//! Paths that rules deny, held against whatever program runs: covered in the layer that it stands
//! on, left alone when its changes are carried over, and a reason to refuse where neither is possible.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use glovebox_model::{Access, BackendName, Code, Correlation, Error, ExecId, Result, Stage};
use glovebox_policy::{DeniedPath, DeniedPaths, denied_paths};
use glovebox_workspace::Dir;
use glovebox_workspace::change::{Changes, Covers, Sought};

use super::Workspace;
use crate::approvals::tool_of;
use crate::path::Plan;
use crate::policy::ActivePolicy;
use crate::skill;

pub(super) const WORK: &str = "/workspace/work";
pub(super) const INPUTS: &str = "/workspace/inputs";
const ARTIFACTS: &str = "/workspace/artifacts";
const HOME: &str = "/home/sandbox";
/// What a native sandbox shows of the host's system, and what the kernel shows in it.
const SYSTEM: [&str; 12] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/dev", "/proc",
    "/run", "/sys",
];

impl ActivePolicy {
    pub(crate) fn denied(&self, plan: &Plan) -> DeniedPaths {
        let (assessed, backend) = (plan.assessed(), plan.chosen().backend);
        let call = assessed.call();
        let rules = self.config().rules_for(&call.ids);
        let first = tool_of(call);
        let other = call.skill.as_ref().and_then(|it| it.stands_for.as_deref());
        let tools: Vec<&str> = std::iter::once(first.as_ref()).chain(other).collect();
        denied_paths(assessed, &rules, &tools, Some(backend))
    }

    /// Whether everything that rules deny can be held where this would run, before anything is made.
    pub(crate) fn check_denied(&self, plan: &Plan) -> Result<()> {
        let denied = self.denied(plan);
        let call = plan.assessed().call();
        for path in denied.iter() {
            check_place(path, plan)?;
        }
        let inputs = skill::inputs(call, &plan.draft().exec_id);
        for place in inputs.iter().map(|it| inside(INPUTS, it.path.as_bytes())) {
            if let Some(path) = denied.of(&place) {
                let message = format!("the call brings `{place}`, which {path} denies");
                return Err(refused(path, message).hint("leave it out of `inputs`"));
            }
        }
        for mount in &call.mounts {
            if let Some(path) = denied.below(mount).iter().next() {
                let message = format!(
                    "{path} may deny something in `{mount}`, and a directory of the host cannot be covered"
                );
                return Err(refused(path, message).hint("leave out `--mount`"));
            }
        }
        Ok(())
    }
}

fn check_place(path: &DeniedPath, plan: &Plan) -> Result<()> {
    let chosen = plan.chosen();
    // Of an image it is not known what is in it, of the host itself there is everything.
    let is_shown = chosen.backend != BackendName::Native
        || chosen.image.is_some()
        || path.is_anywhere()
        || SYSTEM.iter().any(|it| path.reaches(it));
    let is_of_workspace = path.is_anywhere() || path.reaches("/workspace");
    let is_kept = plan.assignment().is_some();
    if (chosen.backend != BackendName::Native || is_kept)
        && (is_shown || is_of_workspace || path.reaches(HOME))
    {
        return Err(elsewhere(path, plan));
    }
    if is_shown && !is_of_workspace && path.literal().is_none() {
        return Err(wild(path));
    }
    let whole = ["/", "/workspace", WORK, INPUTS, ARTIFACTS];
    if let Some(place) = whole.iter().find(|it| path.holds(it))
        && (*place == "/" || plan.assessed().profile().workspace != Access::None)
    {
        let message = format!("{path} denies all of `{place}`");
        return Err(refused(path, message)
            .hint("name in the rule what is not to be read, or run it with `--workspace none`"));
    }
    if !path.is_anywhere() && path.reaches(ARTIFACTS) {
        let message = format!("{path} denies what a program writes for others");
        return Err(refused(path, message).hint("leave `/workspace/artifacts` out of the rule"));
    }
    Ok(())
}

/// What is covered in the sandbox's own root, where these directories of the caller's are shown.
pub(crate) fn masked<'a>(
    denied: &DeniedPaths,
    shown: impl Iterator<Item = &'a Path>,
) -> Result<Vec<PathBuf>> {
    for place in shown {
        let place = place.to_string_lossy();
        let is_wild =
            |it: &&DeniedPath| it.literal().is_none() && !it.is_anywhere() && it.reaches(&place);
        if let Some(path) = denied.iter().find(is_wild) {
            return Err(wild(path));
        }
    }
    let literal = denied.iter().filter_map(DeniedPath::literal);
    let outside = literal.filter(|it| !it.starts_with("/workspace/"));
    Ok(outside.map(PathBuf::from).collect())
}

/// The patterns that can match in a workspace, and what it must be looked through for.
pub(super) struct Search {
    denied: DeniedPaths,
    place: &'static str,
    literals: Vec<Vec<u8>>,
    is_open: bool,
}

impl Search {
    pub(super) fn new(denied: &DeniedPaths, place: &'static str) -> Self {
        let denied = denied.below(place);
        let literals = denied.iter().filter_map(DeniedPath::literal);
        let inside = literals.filter_map(|it| it.strip_prefix(place)?.strip_prefix('/'));
        let literals = inside.map(|it| it.as_bytes().to_vec()).collect();
        let is_open = denied.iter().any(|it| it.literal().is_none());
        Self {
            denied,
            place,
            literals,
            is_open,
        }
    }

    /// Names that match can appear anywhere later.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    pub(super) fn is_empty(&self) -> bool {
        self.denied.is_empty()
    }

    pub(super) fn denies(&self, path: &[u8]) -> bool {
        self.denied.of(&inside(self.place, path)).is_some()
    }

    /// What cannot be looked at may be what a rule denies.
    pub(super) fn look(&self, work: &Dir) -> Result<Covers> {
        let named = |path: &[u8]| self.denied.named(&inside(self.place, path)).is_some();
        let sought = Sought {
            literals: &self.literals,
            pattern: self.is_open.then_some(&named),
        };
        Covers::look(work, &sought).map_err(|error| {
            let first = self.denied.iter().next();
            let hint = "make it readable, or take it out of the workspace";
            match first {
                Some(path) => refused(path, format!("{error}; {path} may deny what is there")),
                None => Error::new(Code::PolicyDenied, Stage::Admit, error.to_string()),
            }
            .hint(hint)
        })
    }

    /// Which of the changes are of what is denied, under any of its names.
    pub(super) fn among(&self, work: &Dir, changes: &Changes) -> Result<HashSet<usize>> {
        if self.is_empty() || changes.is_empty() {
            return Ok(HashSet::new());
        }
        let covers = self.look(work)?;
        let entries = changes.entries.iter().enumerate();
        let denied = entries.filter(|(_, change)| {
            self.denies(change.path.as_bytes()) || covers.changed_by(change).is_some()
        });
        Ok(denied.map(|(at, _)| at).collect())
    }

    /// All or nothing: nothing that is denied changes.
    pub(super) fn refuse(&self, work: &Dir, changes: &Changes) -> Result<()> {
        if self.is_empty() || changes.is_empty() {
            return Ok(());
        }
        let covers = self.look(work)?;
        for change in &changes.entries {
            let own = inside(self.place, change.path.as_bytes());
            let at = match (self.denied.of(&own), covers.changed_by(change)) {
                (Some(_), _) => own,
                (None, Some(found)) => inside(self.place, found),
                (None, None) => continue,
            };
            // Another name of it has no rule of its own.
            let rule = self.denied.of(&at).or_else(|| self.denied.iter().next());
            if let Some(rule) = rule {
                let message = format!("`{at}` would change, which {rule} denies");
                return Err(refused(rule, message)
                    .hint("run it again so that it leaves that alone, or drop its changes"));
            }
        }
        Ok(())
    }
}

impl Workspace<'_> {
    /// By every rule in force for the one who ran it, since of the call no more is known.
    pub(super) fn refuse_denied(&self, exec: &ExecId, changes: &Changes) -> Result<()> {
        self.denied_to(exec)?.refuse(self.work()?, changes)
    }

    pub(super) fn denied_to(&self, exec: &ExecId) -> Result<Search> {
        let ids = match self.workspaces.instance.store()?.get(&self.space, exec) {
            Ok(record) => record.ids,
            // Files outlive the records of a state directory that was set aside.
            Err(error) if error.code == Code::NotFound => Correlation::of_space(self.space.clone()),
            Err(error) => return Err(error),
        };
        let denied = DeniedPaths::of_rules(&self.workspaces.instance.config().rules_for(&ids));
        Ok(Search::new(&denied, WORK))
    }
}

fn inside(place: &str, path: &[u8]) -> String {
    format!("{place}/{}", String::from_utf8_lossy(path))
}

fn wild(path: &DeniedPath) -> Error {
    let message =
        format!("{path} has wildcards where the sandbox shows what is not the workspace's");
    refused(path, message)
        .hint("write the names out: a path without wildcards, or `DIRECTORY/**`, is covered")
}

fn refused(path: &DeniedPath, message: String) -> Error {
    Error::new(Code::PolicyDenied, Stage::Admit, message)
        .at_rule(path.rule().file.clone(), path.rule().line)
}

fn elsewhere(path: &DeniedPath, plan: &Plan) -> Error {
    let place = match plan.assignment() {
        Some(_) => "a kept sandbox".to_owned(),
        None => format!("the {} backend", plan.chosen().backend),
    };
    let message = format!("{place} cannot hold what {path} denies");
    refused(path, message).hint(
        "run it with `--backend native` in a sandbox of its own: leave out `--sandbox` and `--lifetime`",
    )
}
