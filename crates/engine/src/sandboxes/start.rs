//! From a registered sandbox to one that stands: taken in turn, compared with what is wanted, built
//! when nothing stands.

use std::sync::Arc;
use std::time::{Duration, Instant};

use glovebox_backend::{
    Ended, ExecDirs, Kept, KeptNative, Place, Run, SecretFiles, Spec, TeardownGuard, Tree, WayOut,
};
use glovebox_model::{
    Access, BackendName, Code, Error, ExecId, Isolation, Profile, Result, Sandbox, SandboxConfig,
    Stage,
};
use glovebox_workspace::image::Held;
use glovebox_workspace::{Dir, Project, SandboxFiles};
use jiff::Timestamp;

use super::SandboxAssignment;
use super::drift::{Drift, drift, hash_of};
use super::slots::Turn;
use crate::network::{Opening, Trust, Way};
use crate::path::SandboxSource;
use crate::sandboxes::Sandboxes;

/// A file system that hangs must not hang the caller.
const PATIENCE: Duration = Duration::from_secs(30);

/// A kept sandbox that stands and is this caller's for now.
#[derive(Debug)]
pub(crate) struct Raised {
    pub(crate) turn: Turn,
    /// As it was made, whatever was wanted.
    pub(crate) row: Sandbox,
    /// What its user should know about it.
    pub(crate) notes: Vec<String>,
    /// Directories that its programs write, beside those of the exec.
    pub(crate) written: Vec<Dir>,
    /// Its way out, if it has one.
    pub(crate) way: Option<Arc<Way>>,
}

/// How often one that is removed while its turn is awaited is looked for again.
const TRIES: u32 = 3;

impl Sandboxes {
    /// Waits for its turn, then makes sure that what is wanted stands.
    pub(crate) fn raise(
        &self,
        assignment: &SandboxAssignment,
        by: Option<&ExecId>,
        profile: &Profile,
        project: &Project,
        supply: &mut dyn SandboxSource,
    ) -> Result<Raised> {
        let mut tries = 1;
        loop {
            let raised = self.raise_once(assignment, by, profile, project, supply);
            match raised {
                // Removed or pruned while we waited; by its scope it is made anew.
                Err(error)
                    if error.code == Code::NotFound
                        && assignment.scope.is_some()
                        && tries < TRIES =>
                {
                    tries += 1;
                }
                Err(error) => {
                    self.forget_unmade(assignment);
                    return Err(error);
                }
                other => return other,
            }
        }
    }

    fn raise_once(
        &self,
        assignment: &SandboxAssignment,
        by: Option<&ExecId>,
        profile: &Profile,
        project: &Project,
        supply: &mut dyn SandboxSource,
    ) -> Result<Raised> {
        let id = self.registry.register(assignment)?.sandbox_id;
        let is_wanted = || supply.is_wanted();
        let mut turn = self
            .registry
            .slots()
            .take(&id, by, assignment.patience, &is_wanted)?;
        let mut notes = Vec::new();
        if assignment.scope.is_some() {
            notes.extend(self.settle_drift(&mut turn, assignment)?);
        }
        let row = turn.row().ok_or_else(|| super::gone(&id))?;
        // What stands must give what this exec demands, whatever it was made for.
        self.instance.backends().choose_same(profile, &row.config)?;
        let files = self
            .instance
            .layout(&row.space_id)?
            .sandbox(&row.sandbox_id)?;
        if !turn.kept.as_mut().is_some_and(|kept| kept.is_alive()) {
            turn.kept = None;
            turn.way = None;
            let Built {
                kept,
                container,
                way,
            } = self.build(&row, &files, profile, project, supply)?;
            turn.kept = Some(kept);
            turn.way = way.map(Arc::new);
            turn.change(|row| {
                row.trouble = None;
                row.container_id.clone_from(&container);
            });
            let owner = self.instance.owner().id();
            self.instance
                .store()?
                .sandbox_update(&id, owner, |mut row| {
                    row.container_id = container;
                    row.trouble = None;
                    row
                })?;
        }
        let written = match row.config.backend {
            BackendName::Native if row.config.keep_root => vec![files.home],
            BackendName::Native => Vec::new(),
            BackendName::Docker => vec![files.artifacts],
            BackendName::Host => Vec::new(),
        };
        Ok(Raised {
            way: turn.way.clone(),
            turn,
            row,
            notes,
            written,
        })
    }

    /// Compares what stands with what is wanted, and replaces it or tells.
    fn settle_drift(
        &self,
        turn: &mut Turn,
        assignment: &SandboxAssignment,
    ) -> Result<Option<String>> {
        let mut row = turn.row().ok_or_else(|| super::gone(&turn.id))?;
        let mut stands = turn.kept.is_some();
        if !stands
            && row.config.backend == BackendName::Docker
            && let Some(hash) = self.instance.backends().hash_on_label(&row)?
        {
            stands = true;
            row.config_hash.clone_from(&hash);
            turn.change(|row| row.config_hash = hash);
        }
        match drift(
            &row,
            stands,
            &assignment.wanted,
            Timestamp::now(),
            assignment.hot,
        ) {
            Drift::None => Ok(None),
            Drift::Keep => Ok(Some(kept_note(&row))),
            Drift::Refuse { more } => Err(super::has_more(&row, more)),
            Drift::Replace => {
                self.replace(turn, &assignment.wanted, "configuration changed")?;
                Ok(None)
            }
        }
    }

    fn build(
        &self,
        row: &Sandbox,
        files: &SandboxFiles,
        profile: &Profile,
        project: &Project,
        supply: &mut dyn SandboxSource,
    ) -> Result<Built> {
        let profile = as_made(profile, &row.config);
        let trust = self.network.trust(&profile, Opening::Possible)?;
        let tree = |directory, access| Place::Tree(Tree { directory, access });
        let inputs = project.inputs()?;
        let work = project
            .work()
            .filter(|_| profile.workspace != Access::None)
            .map_or(Place::Empty, |work| tree(work, profile.workspace));
        let mut spec = Spec {
            work,
            inputs: tree(&inputs, Access::Ro),
            artifacts: Place::Later(Access::Rw),
            home: row.config.keep_root.then_some(&files.home),
            trust: trust.as_ref().map(Trust::bundle),
            secrets: SecretFiles::PerRun,
            ..Spec::new(&profile)
        };
        match row.config.backend {
            BackendName::Native => {
                let image = row.config.image.as_deref();
                let image = image
                    .map(|name| self.instance.backends().hold(name))
                    .transpose()?;
                spec.image = image.as_ref().map(Held::rootfs);
                let native = supply.seat()?.native;
                let mut kept = native.keep(&spec, self.instance.state().path())?;
                kept.settle(Instant::now() + PATIENCE)?;
                let doors = match trust {
                    Some(_) => kept.way_out()?,
                    None => None,
                };
                let way = match (doors, &trust) {
                    (Some(doors), Some(trust)) => Some(self.network.open_way(doors, trust)?),
                    _ => None,
                };
                let kept: Box<dyn Kept> = match image {
                    Some(image) => Box::new(KeptOnImage { kept, image }),
                    None => Box::new(kept),
                };
                Ok(Built {
                    kept,
                    container: None,
                    way,
                })
            }
            BackendName::Host => Err(Error::new(
                Code::BackendUnavailable,
                Stage::Admit,
                "there is no sandbox on the host itself that could be kept",
            )
            .hint("leave out `--backend host`, or run each exec by itself")),
            BackendName::Docker => {
                spec.artifacts = tree(&files.artifacts, Access::Rw);
                spec.trust = None;
                spec.secrets = SecretFiles::Never;
                let owner = self.instance.owner().id();
                let (kept, container) =
                    self.instance.backends().keep_container(row, &spec, owner)?;
                Ok(Built {
                    kept,
                    container,
                    way: None,
                })
            }
        }
    }

    /// Takes down what stands and makes the row that of a new sandbox. Nothing of the old one is
    /// left for it.
    pub(crate) fn replace(
        &self,
        turn: &mut Turn,
        wanted: &SandboxConfig,
        reason: &str,
    ) -> Result<()> {
        let row = turn.row().ok_or_else(|| {
            Error::new(
                Code::NotFound,
                Stage::Admit,
                "the sandbox was removed meanwhile",
            )
        })?;
        self.take_down(turn.kept.take(), &row)?;
        let change = |row: &mut Sandbox| {
            row.config_hash = hash_of(wanted);
            row.config = wanted.clone();
            row.container_id = None;
            row.created_at = Timestamp::now();
            row.trouble = None;
            row.uses = 0;
        };
        let owner = self.instance.owner().id();
        let changed = {
            let mut new = row.clone();
            change(&mut new);
            new
        };
        self.instance
            .store()?
            .sandbox_replace(&row.sandbox_id, owner, changed, reason)?;
        turn.change(change);
        Ok(())
    }

    /// Ends what stands, its container and its files.
    pub(crate) fn take_down(&self, kept: Option<Box<dyn Kept>>, row: &Sandbox) -> Result<()> {
        drop(kept.map(Kept::close));
        if row.config.backend == BackendName::Docker {
            self.instance.backends().remove_container(row)?;
        }
        self.instance
            .layout(&row.space_id)?
            .remove_sandbox(&row.sandbox_id)
    }
}

/// What was built of a registered sandbox.
struct Built {
    kept: Box<dyn Kept>,
    /// What the container engine calls it.
    container: Option<String>,
    way: Option<Way>,
}

/// The image stays for as long as the sandbox stands on it.
#[derive(Debug)]
struct KeptOnImage {
    kept: KeptNative,
    image: Held,
}

impl Kept for KeptOnImage {
    fn isolation(&self) -> &Isolation {
        self.kept.isolation()
    }

    fn way_out(&mut self) -> Result<Option<WayOut>> {
        self.kept.way_out()
    }

    fn is_alive(&mut self) -> bool {
        self.kept.is_alive()
    }

    fn run(&mut self, room: ExecDirs<'_>, run: Run<'_>) -> Result<Ended> {
        self.kept.run(room, run)
    }

    fn close(self: Box<Self>) -> TeardownGuard {
        let Self { kept, image } = *self;
        TeardownGuard::of((Box::new(kept).close(), image))
    }
}

/// The profile of whoever asks, with what the sandbox is made with.
fn as_made(profile: &Profile, config: &SandboxConfig) -> Profile {
    Profile {
        limits: config.limits,
        network: config.network,
        workspace: config.workspace,
        backend: Some(config.backend),
        runtime: config.docker.as_ref().and_then(|it| it.runtime.clone()),
        image: config.image.clone(),
        ..profile.clone()
    }
}

fn kept_note(row: &Sandbox) -> String {
    let name = &row.name;
    format!(
        "the sandbox `{name}` was made with another configuration and was used a moment ago, so it \
         stays; make it anew with `glovebox sandbox recreate {name}`"
    )
}
