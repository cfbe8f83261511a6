//! Containers, through the docker or podman command: a fresh one for an exec, or one that is kept.
//! Isolation is the engine's and its runtime's; what they do not say that they give is not promised.

mod account;
mod attend;
pub(crate) mod binds;
mod cli;
mod controls;
mod create;
mod ending;
mod engine;
mod environment;
mod facts;
mod fresh;
mod guard;
mod inspect;
mod kept;
mod mount;
mod name;
mod pipes;
mod place;
mod settings;
mod trial;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use glovebox_model::{
    Code, DockerConfig, Error, Evidence, Grade, Guarantee, Isolation, LimitsDemand, NetworkMode,
    Profile, Result, Stage,
};

use crate::keepers::Keepers;
use crate::sandbox::{Kept, Sandbox, no_observation};
use crate::spec::Spec;
use engine::Engine;
use facts::{Asked, no_evidence};
use fresh::{Design, Fresh};
use guard::Guarded;
use place::Places;
use settings::{Settings, is_image, is_runtime};

pub use cli::Program;
pub use facts::{EngineFacts, Probe};
pub use name::{ContainerName, Found, Labels};

/// One engine and the operator's settings for it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Docker(Arc<Engine>);

impl Docker {
    /// Checks the settings; the engine itself is not needed yet.
    pub fn new(config: DockerConfig, state: &Path) -> Result<Self> {
        let state = state.canonicalize().map_err(|error| {
            Error::new(
                Code::StoreUnavailable,
                Stage::Open,
                "the state directory cannot be used",
            )
            .caused_by(error)
        })?;
        let settings = Settings::check(config, &state)?;
        Ok(Self(Arc::new(Engine::new(settings, &state))))
    }

    /// The engine's address, instead of what the environment says (`DOCKER_HOST`).
    pub fn reached_at(config: DockerConfig, state: &Path, host: &str) -> Result<Self> {
        Self::new(config, state)?.changed(|engine| engine.host = Some(host.to_owned()))
    }

    /// What runs in its containers is ended by one of these, whatever becomes of this process.
    pub fn guarded_by(self, keepers: &Keepers) -> Result<Self> {
        self.changed(|engine| engine.keepers = keepers.clone())
    }

    fn changed(self, change: impl FnOnce(&mut Engine)) -> Result<Self> {
        let mut engine = Arc::into_inner(self.0).ok_or_else(|| {
            Error::new(Code::Internal, Stage::Open, "the engine is in use already")
        })?;
        change(&mut engine);
        Ok(Self(Arc::new(engine)))
    }

    /// What the engine says about itself now. Nothing is run.
    pub fn probe(&self) -> Probe {
        let asked = self.usual();
        let usable = self.0.cli().and_then(|cli| {
            let mut facts = self.0.ask(&cli)?;
            let image = &self.0.settings.config.image;
            facts.image_present = Some(inspect::image_present(&cli, image)?);
            if let Some(runtime) = asked.runtime {
                known(&facts, runtime)?;
            }
            Ok(facts)
        });
        let evidence = match &usable {
            Ok(facts) => facts.evidence(&asked),
            Err(error) => no_evidence(error),
        };
        Probe { usable, evidence }
    }

    /// Really runs a trivial container, at most 5 s, and believes what it saw.
    pub fn probe_run(&self) -> Result<Vec<Evidence>> {
        let cli = self.0.cli()?;
        let facts = self.0.ask(&cli)?;
        self.0.remove_orphans(&cli);
        self.0.need_image(&cli, &self.0.settings.config.image)?;
        let asked = self.usual();
        let image = &self.0.settings.config.image;
        let seen = self.0.seen(&cli, image)?;
        let trial = trial::Trial {
            image,
            runtime: asked.runtime,
            patience: trial::PROBE,
        };
        let kernel = trial.run(&self.0, &cli, &seen)?;
        let mut evidence = facts.evidence(&asked);
        let own = evidence
            .iter_mut()
            .filter(|it| it.guarantee == Guarantee::OwnKernel && it.grade == Grade::Kernel);
        for line in own {
            if kernel == facts.kernel {
                line.grade = Grade::Unavailable;
                line.evidence = format!("the kernel inside is the host's, {kernel}");
            } else {
                line.evidence =
                    format!("the kernel inside is {kernel}, the host's {}", facts.kernel);
            }
        }
        Ok(evidence)
    }

    /// A container for one exec. It is made when it is run.
    pub fn open(
        &self,
        spec: &Spec<'_>,
        name: &ContainerName,
        labels: &Labels,
    ) -> Result<Box<dyn Sandbox>> {
        let (design, _) = self.design(spec, name, labels)?;
        Ok(Box::new(Fresh(design)))
    }

    /// A container that stays: made, started, found standing and set up.
    pub fn keep(
        &self,
        spec: &Spec<'_>,
        name: &ContainerName,
        labels: &Labels,
    ) -> Result<Box<dyn Kept>> {
        let (design, countable) = self.design(spec, name, labels)?;
        Ok(Box::new(kept::keep(design, spec, countable)?))
    }

    /// The same for one that belongs to no exec yet and goes with this process.
    pub fn keep_spare(
        &self,
        spec: &Spec<'_>,
        name: &ContainerName,
        labels: &Labels,
    ) -> Result<Box<dyn Kept>> {
        let (design, countable) = self.design(spec, name, labels)?;
        let guard = Guarded::once(&self.0, &design.cli, name.as_str())?;
        let container = kept::keep(design, spec, countable)?;
        Ok(Box::new(container.with_guard(guard)))
    }

    /// One that is there already, started if need be. The profile is what it was made with. One
    /// that was to be removed is on its way out, whoever wants it now.
    pub fn adopt(&self, name: &ContainerName, profile: &Profile) -> Result<Option<Box<dyn Kept>>> {
        if self.0.is_orphan(name.as_str()) {
            return Ok(None);
        }
        let cli = self.0.cli()?;
        let facts = self.0.facts(&cli)?;
        let asked = self.asked(profile);
        let isolation = facts.isolation(&asked);
        let countable = !facts.own_kernel(asked.runtime);
        let found = kept::adopt(&self.0, cli, name.as_str(), isolation, countable)?;
        Ok(found.map(|it| Box::new(it) as Box<dyn Kept>))
    }

    /// All containers with the label: `name` or `name=value`.
    pub fn list(&self, label: &str) -> Result<Vec<Found>> {
        inspect::labelled(&self.0.cli()?, label)
    }

    pub fn find(&self, name: &ContainerName) -> Result<Option<Found>> {
        let found = inspect::container(&self.0.cli()?, name.as_str())?;
        Ok(found.map(inspect::Container::found))
    }

    /// Whatever it does; absent is fine.
    pub fn remove(&self, name: &ContainerName) -> Result<()> {
        self.0.remove(&self.0.cli()?, name.as_str())
    }

    /// Tries again what could not be removed; asks nothing of the engine when there is nothing.
    pub fn remove_orphans(&self) {
        if self.0.has_orphans()
            && let Ok(cli) = self.0.cli()
        {
            self.0.remove_orphans(&cli);
        }
    }

    /// Ports inside, and where on the host's loopback they are published.
    pub fn ports(&self, name: &ContainerName) -> Result<Vec<(u16, SocketAddr)>> {
        match inspect::container(&self.0.cli()?, name.as_str())? {
            Some(found) => Ok(found.ports()),
            None => Err(Error::new(
                Code::NotFound,
                Stage::Open,
                format!("there is no container `{name}`"),
            )),
        }
    }

    pub fn image_present(&self, image: &str) -> Result<bool> {
        inspect::image_present(&self.0.cli()?, image)
    }

    fn usual(&self) -> Asked<'_> {
        let config = &self.0.settings.config;
        Asked {
            runtime: config.runtime.as_deref(),
            read_only_root: config.read_only_root,
            network: NetworkMode::None,
            own_filter: config.seccomp_profile.is_none(),
        }
    }

    fn asked<'a>(&'a self, profile: &'a Profile) -> Asked<'a> {
        let config = &self.0.settings.config;
        Asked {
            runtime: profile.runtime.as_deref().or(config.runtime.as_deref()),
            network: profile.network,
            ..self.usual()
        }
    }

    /// Everything that can be refused is refused here; and whether its processes can be counted.
    fn design(
        &self,
        spec: &Spec<'_>,
        name: &ContainerName,
        labels: &Labels,
    ) -> Result<(Design, bool)> {
        no_observation("docker", spec)?;
        let engine = &self.0;
        let profile = spec.profile;
        let config = &engine.settings.config;
        let image = profile.image.as_ref().unwrap_or(&config.image);
        if !is_image(image) {
            return Err(refuse(format!(
                "`{}` is not the name of an image",
                image.escape_debug()
            )));
        }
        if profile.network == NetworkMode::Allowlist {
            return Err(unavailable(
                "the network `allowlist`: it cannot tell destinations apart",
            ));
        }
        if spec.image.is_some() {
            return Err(unavailable(
                "an unpacked image; name one that the engine has",
            ));
        }
        if profile.limits.tpus.get() > 0 {
            return Err(unavailable("tensor processors"));
        }
        let cli = engine.cli()?;
        let facts = engine.facts(&cli)?;
        let asked = self.asked(profile);
        if let Some(runtime) = asked.runtime {
            known(&facts, runtime)?;
        }
        enough_pids(&facts, &asked, profile)?;
        let isolation = facts.isolation(&asked);
        demand(&isolation, profile)?;
        engine.need_image(&cli, image)?;
        let seen = engine.seen(&cli, image)?;
        let places = Places::new(spec, &engine.settings, &seen)?;
        let countable = !facts.own_kernel(asked.runtime);
        let filter = match facts.seccomp && countable {
            true => Some(engine.filter()?),
            false => None,
        };
        let design = Design {
            engine: Arc::clone(engine),
            name: name.clone(),
            labels: labels.clone(),
            profile: profile.clone(),
            largest_file: spec.largest_file,
            image: image.clone(),
            runtime: asked.runtime.map(str::to_owned),
            cpus: facts.cpus,
            places,
            filter,
            isolation,
            cli,
        };
        Ok((design, countable))
    }
}

fn known(facts: &EngineFacts, runtime: &str) -> Result<()> {
    if !is_runtime(runtime) {
        return Err(refuse(format!(
            "`{}` is not a runtime",
            runtime.escape_debug()
        )));
    }
    if facts.knows(runtime) {
        return Ok(());
    }
    let names: Vec<&str> = facts.runtimes.keys().map(String::as_str).collect();
    Err(Error::new(
        Code::BackendUnavailable,
        Stage::Open,
        format!("the container engine has no runtime `{runtime}`"),
    )
    .caused_by(format!("it has {}", names.join(", ")))
    .hint("install it and add it to the engine's `daemon.json`"))
}

/// Below that nothing starts, and what the engine says of it helps nobody.
fn enough_pids(facts: &EngineFacts, asked: &Asked<'_>, profile: &Profile) -> Result<()> {
    let (pids, least) = (profile.limits.pids.get(), facts.least_pids(asked.runtime));
    if pids >= least {
        return Ok(());
    }
    Err(Error::new(
        Code::BackendUnavailable,
        Stage::Open,
        format!("`pids` {pids} is less than gVisor needs for itself"),
    )
    .caused_by("its own threads count as processes, about 60 beside a small program")
    .hint(format!(
        "grant {least} or more (`--pids {least}`), or run it without gVisor"
    )))
}

fn refuse(message: String) -> Error {
    Error::new(Code::InvalidArgument, Stage::Open, message)
}

fn unavailable(what: &str) -> Error {
    Error::new(
        Code::BackendUnavailable,
        Stage::Open,
        format!("the `docker` backend cannot give {what}"),
    )
    .hint("change the settings that grant it; `glovebox policy explain` shows where they are")
}

fn demand(isolation: &Isolation, profile: &Profile) -> Result<()> {
    let mut needed = profile.require.clone();
    if profile.limits_demand == LimitsDemand::Kernel {
        needed.extend([
            Guarantee::MemoryLimit,
            Guarantee::PidsLimit,
            Guarantee::CpuLimit,
        ]);
    }
    // A limit that nobody enforces is none.
    let unlimited = [
        Guarantee::MemoryLimit,
        Guarantee::PidsLimit,
        Guarantee::CpuLimit,
    ];
    let grade = |it: &Guarantee| isolation.0.get(it).copied().unwrap_or(Grade::Unavailable);
    let short = needed
        .iter()
        .find(|it| grade(it) != Grade::Kernel)
        .or_else(|| unlimited.iter().find(|it| grade(it) == Grade::Unavailable));
    match short {
        None => Ok(()),
        Some(guarantee) => Err(Error::new(
            Code::BackendUnavailable,
            Stage::Open,
            format!("`{guarantee}` is demanded, and this container engine does not give it"),
        )
        .hint("`glovebox doctor` shows what it gives, and what is missing")),
    }
}
