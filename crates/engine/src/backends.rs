//! Which backend runs what, and the container engines that this process speaks to.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use glovebox_backend::{
    Docker, Ended, EngineFacts, Host, Keepers, Probe, Run, Sandbox, TeardownGuard, WayOut,
};
use glovebox_model::{
    BackendName, Code, DockerConfig, Error, Evidence, Grade, Guarantee, Isolation, NetworkMode,
    Profile, Result, SandboxConfig, Stage, Writes,
};
use glovebox_policy::{Offer, choose};
use glovebox_store::StateDir;
use glovebox_workspace::Dir;
use glovebox_workspace::image::{Held, ImageName, Images};
use serde::{Deserialize, Serialize};

use crate::digest::config_hash;

/// Where an exec runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Chosen {
    pub(crate) backend: BackendName,
    pub(crate) runtime: Option<String>,
    pub(crate) image: Option<String>,
    pub(crate) docker: Option<DockerConfig>,
}

/// One way to run something, as `backend ls` shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BackendView {
    pub name: BackendName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    pub usable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
    pub guarantees: Vec<Evidence>,
}

/// Less is taken first.
const NATIVE_COST: u32 = 1;
const DOCKER_COST: u32 = 100;
const OTHER_RUNTIME_COST: u32 = 200;
const HOST_COST: u32 = u32::MAX;

/// An engine that answered is asked again after so long, one that did not a little sooner.
const FRESH: Duration = Duration::from_secs(10);
const FRESH_FAILURE: Duration = Duration::from_secs(1);

/// Engines that are known at once, each with its settings.
const ENGINES: usize = 64;

#[derive(Debug)]
pub(crate) struct Backends {
    pub(super) state: PathBuf,
    /// Tells the containers of this state directory from those of any other.
    pub(super) installation: String,
    native: OnceLock<Offer>,
    engines: Mutex<HashMap<String, Known>>,
    keepers: Keepers,
}

/// One container engine with its settings.
#[derive(Debug, Clone)]
struct Known {
    docker: Arc<Docker>,
    seen: Option<(Instant, Arc<Probe>)>,
}

/// What the container engine of this configuration says, asked anew. Nothing is started in it.
pub fn probe_docker(config: DockerConfig, state: &Path) -> Result<EngineFacts> {
    Docker::new(config, state)?.probe().usable
}

impl Backends {
    pub(crate) fn new(state: &StateDir) -> Self {
        Self {
            state: state.path().to_owned(),
            installation: state.tag(),
            native: OnceLock::new(),
            engines: Mutex::default(),
            keepers: Keepers::default(),
        }
    }

    pub(crate) fn keepers(&self) -> &Keepers {
        &self.keepers
    }

    pub(crate) fn installation(&self) -> &str {
        &self.installation
    }

    /// The cheapest backend that gives all that policy demands. Containers are looked at only when
    /// they are named or the native backend will not do: asking their engine takes a while.
    pub(crate) fn choose(
        &self,
        profile: &Profile,
        writes: Writes,
        docker: &dyn Fn() -> DockerConfig,
    ) -> Result<Chosen> {
        if profile.backend == Some(BackendName::Host) {
            choose(profile, &[host_offer()])?;
            return Ok(host_choice());
        }
        let own_image = match &profile.image {
            Some(image) if profile.backend != Some(BackendName::Docker) => self.has_image(image)?,
            _ => false,
        };
        let is_native = match (profile.backend, &profile.image) {
            (Some(BackendName::Docker | BackendName::Host), _) => false,
            (Some(BackendName::Native), Some(image)) if !own_image => return Err(no_image(image)),
            (None, Some(_)) => own_image,
            (Some(BackendName::Native) | None, _) => true,
        };
        let mut offers = Vec::new();
        if is_native {
            let native = self.native_for(writes);
            match choose(profile, std::slice::from_ref(&*native)) {
                Ok(_) => return Ok(native_choice(profile)),
                Err(error) if profile.backend.is_some() => return Err(error),
                Err(_) => offers.push(native.into_owned()),
            }
        }
        let mut config = docker();
        if let Some(image) = &profile.image {
            config.image.clone_from(image);
        }
        if let Some(runtime) = &profile.runtime {
            config.runtime = Some(runtime.clone());
        }
        offers.extend(self.docker_offers(&config, profile)?);
        let choice = choose(profile, &offers).map_err(|error| match &profile.image {
            // Without an engine the native backend would have been the way.
            Some(image) if !is_native && offers.iter().all(|it| it.evidence.is_err()) => error
                .hint(format!(
                    "no image `{image}` was imported: `glovebox image ls` lists those that were"
                )),
            _ => error,
        })?;
        Ok(match choice.backend {
            BackendName::Native => native_choice(profile),
            BackendName::Host => host_choice(),
            BackendName::Docker => {
                config.runtime = choice.runtime.clone().or(config.runtime);
                Chosen {
                    backend: BackendName::Docker,
                    runtime: config.runtime.clone(),
                    image: Some(config.image.clone()),
                    docker: Some(config),
                }
            }
        })
    }

    /// For a sandbox that stands: its backend must give what policy demands now.
    pub(crate) fn choose_same(&self, profile: &Profile, made: &SandboxConfig) -> Result<Chosen> {
        let runtime = made.docker.as_ref().and_then(|it| it.runtime.clone());
        let mut asked = profile.clone();
        asked.backend = Some(made.backend);
        asked.runtime.clone_from(&runtime);
        match &made.docker {
            None => choose(&asked, std::slice::from_ref(self.native()))?,
            Some(config) => {
                let probe = self.probe(config)?;
                let offer = Offer {
                    backend: made.backend,
                    runtime: runtime.clone(),
                    evidence: Ok(in_containers(&probe, profile)),
                    cost: DOCKER_COST,
                };
                choose(&asked, &[offer])?
            }
        };
        Ok(Chosen {
            backend: made.backend,
            runtime,
            image: made.image.clone(),
            docker: made.docker.clone(),
        })
    }

    /// Everything there is on this host, with what each gives.
    pub(crate) fn all(&self, config: &DockerConfig) -> Vec<BackendView> {
        let native = self.native().evidence.clone().unwrap_or_default();
        let mut all = vec![BackendView {
            name: BackendName::Native,
            runtime: None,
            usable: native
                .iter()
                .all(|it| it.guarantee.is_limit() || !is_demanded(it) || is_there(it)),
            error: None,
            guarantees: native,
        }];
        let runtimes = self.runtimes(config);
        for runtime in runtimes {
            let config = DockerConfig {
                runtime: runtime.clone(),
                ..config.clone()
            };
            let (usable, error, guarantees) = match self.probe(&config) {
                Ok(probe) => match &probe.usable {
                    Ok(_) => (true, None, probe.evidence.clone()),
                    Err(error) => (false, Some(error.clone()), probe.evidence.clone()),
                },
                Err(error) => (false, Some(error), Vec::new()),
            };
            all.push(BackendView {
                name: BackendName::Docker,
                runtime,
                usable,
                error,
                guarantees,
            });
        }
        all
    }

    /// Looked at once: what this kernel can do does not change while we run.
    fn native(&self) -> &Offer {
        self.native.get_or_init(|| Offer {
            backend: BackendName::Native,
            runtime: None,
            evidence: Ok(glovebox_backend::probe()),
            cost: NATIVE_COST,
        })
    }

    /// What is held back can lie in memory, which the kernel limits. Whoever opens the sandbox checks
    /// that it does.
    fn native_for(&self, writes: Writes) -> Cow<'_, Offer> {
        let native = self.native();
        if writes.is_direct() {
            return Cow::Borrowed(native);
        }
        let mut offer = native.clone();
        for evidence in offer.evidence.iter_mut().flatten() {
            if evidence.guarantee == Guarantee::DiskLimit {
                evidence.grade = Grade::Kernel;
                "what is held back lies in memory".clone_into(&mut evidence.evidence);
            }
        }
        Cow::Owned(offer)
    }

    /// The engine's own runtime, and beside it every other that it knows.
    fn runtimes(&self, config: &DockerConfig) -> Vec<Option<String>> {
        let mut all = vec![config.runtime.clone()];
        if let Ok(probe) = self.probe(config)
            && let Ok(facts) = &probe.usable
        {
            let own = config.runtime.as_ref().unwrap_or(&facts.default_runtime);
            let same = facts.runtimes.get(own);
            // Names of one and the same program are one runtime.
            let others = facts.runtimes.iter().filter(|it| Some(it.1) != same);
            all.extend(others.map(|(name, _)| Some(name.clone())));
        }
        all
    }

    fn docker_offers(&self, config: &DockerConfig, profile: &Profile) -> Result<Vec<Offer>> {
        let runtimes = match &profile.runtime {
            Some(runtime) => vec![Some(runtime.clone())],
            None => self.runtimes(config),
        };
        let mut offers = Vec::new();
        for (index, runtime) in runtimes.into_iter().enumerate() {
            let config = DockerConfig {
                runtime: runtime.clone(),
                ..config.clone()
            };
            let probe = self.probe(&config)?;
            let evidence = match &probe.usable {
                Ok(_) => Ok(in_containers(&probe, profile)),
                Err(error) => Err(error.to_string()),
            };
            if let (Err(error), true) = (&probe.usable, profile.backend.is_some()) {
                // Named and not there: its own words and hints say it best.
                return Err(error.clone());
            }
            offers.push(Offer {
                backend: BackendName::Docker,
                runtime,
                evidence,
                cost: match index {
                    0 => DOCKER_COST,
                    _ => OTHER_RUNTIME_COST,
                },
            });
        }
        Ok(offers)
    }

    /// The engine of these settings, which are checked the first time.
    pub(crate) fn engine(&self, config: &DockerConfig) -> Result<Arc<Docker>> {
        let key = key(config);
        if let Some(known) = self.locked().get(&key) {
            return Ok(Arc::clone(&known.docker));
        }
        let known = Known {
            docker: Arc::new(Docker::new(config.clone(), &self.state)?.guarded_by(&self.keepers)?),
            seen: None,
        };
        let mut engines = self.locked();
        make_room(&mut engines);
        Ok(Arc::clone(&engines.entry(key).or_insert(known).docker))
    }

    pub(crate) fn probe(&self, config: &DockerConfig) -> Result<Arc<Probe>> {
        let docker = self.engine(config)?;
        let key = key(config);
        if let Some((at, probe)) = self.locked().get(&key).and_then(|it| it.seen.clone()) {
            let fresh = match probe.usable {
                Ok(_) => FRESH,
                Err(_) => FRESH_FAILURE,
            };
            if at.elapsed() < fresh {
                return Ok(probe);
            }
        }
        // Outside the lock: an engine that hangs holds up only who asks for it.
        let probe = Arc::new(docker.probe());
        if let Some(known) = self.locked().get_mut(&key) {
            known.seen = Some((Instant::now(), Arc::clone(&probe)));
        }
        Ok(probe)
    }

    /// Containers that could not be removed while their engine was away.
    pub(crate) fn remove_orphans(&self) {
        let known = self.locked();
        let engines: Vec<_> = known.values().map(|it| Arc::clone(&it.docker)).collect();
        drop(known);
        for engine in engines {
            engine.remove_orphans();
        }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, HashMap<String, Known>> {
        self.engines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The image that a native sandbox stands on, held for as long as it does.
    pub(crate) fn image_of(&self, chosen: &Chosen) -> Result<Option<Held>> {
        match (chosen.backend, &chosen.image) {
            (BackendName::Native, Some(image)) => self.hold(image).map(Some),
            (BackendName::Native, None) | (BackendName::Docker | BackendName::Host, _) => Ok(None),
        }
    }

    pub(crate) fn hold(&self, image: &str) -> Result<Held> {
        let name: ImageName = image.parse()?;
        self.images()?
            .hold(&name)
            .map_err(|error| match error.code {
                Code::NotFound => no_image(image),
                _ => error,
            })
    }

    fn has_image(&self, image: &str) -> Result<bool> {
        let Ok(name) = image.parse::<ImageName>() else {
            return Ok(false);
        };
        if !self.state.join("images").exists() {
            return Ok(false);
        }
        let known = self.images()?.ls()?;
        Ok(known.iter().any(|record| record.name == name))
    }

    fn images(&self) -> Result<Images> {
        let state = Dir::open_trusted(&self.state).map_err(|error| {
            let message = "cannot open the state directory";
            Error::new(Code::StoreUnavailable, Stage::Open, message).caused_by(error)
        })?;
        Images::open(&state)
    }
}

/// What a probe saw is true of a container without a network. With one it is the engine's own, and
/// what leaves there does not leave through us.
fn in_containers(probe: &Probe, profile: &Profile) -> Vec<Evidence> {
    let mut all = probe.evidence.clone();
    if profile.network >= NetworkMode::Allowlist {
        let ours = all
            .iter_mut()
            .filter(|it| it.guarantee == Guarantee::EgressOnly);
        for evidence in ours {
            evidence.grade = Grade::Unavailable;
            "a container has no way out that Glovebox serves".clone_into(&mut evidence.evidence);
            evidence.fix = Some("use the `native` backend".to_owned());
        }
    }
    all
}

fn native_choice(profile: &Profile) -> Chosen {
    Chosen {
        backend: BackendName::Native,
        runtime: None,
        image: profile.image.clone(),
        docker: None,
    }
}

/// Asked only when it is named.
fn host_offer() -> Offer {
    Offer {
        backend: BackendName::Host,
        runtime: None,
        evidence: Ok(Host::evidence()),
        cost: HOST_COST,
    }
}

fn host_choice() -> Chosen {
    Chosen {
        backend: BackendName::Host,
        runtime: None,
        image: None,
        docker: None,
    }
}

/// Without the image, which anybody may name: every container says its own when it is made.
fn key(config: &DockerConfig) -> String {
    let config = DockerConfig {
        image: String::new(),
        ..config.clone()
    };
    config_hash(serde_json::to_value(config).unwrap_or_default())
}

/// Callers name runtimes too. The first to go is one that is of no use, then the one that was asked
/// longest ago; a container that it could not remove is found at the next start.
fn make_room(engines: &mut HashMap<String, Known>) {
    while engines.len() >= ENGINES {
        let rank = |known: &Known| match &known.seen {
            None => (0, None),
            Some((at, probe)) => (u8::from(probe.usable.is_ok()), Some(*at)),
        };
        let least = engines.iter().min_by_key(|(_, known)| rank(known));
        let Some(least) = least.map(|(key, _)| key.clone()) else {
            return;
        };
        engines.remove(&least);
    }
}

fn is_there(evidence: &Evidence) -> bool {
    evidence.grade != Grade::Unavailable
}

fn is_demanded(evidence: &Evidence) -> bool {
    !matches!(
        evidence.guarantee,
        Guarantee::OwnKernel | Guarantee::FileRules
    )
}

fn no_image(image: &str) -> Error {
    Error::new(
        Code::BackendUnavailable,
        Stage::Admit,
        format!("the `native` backend has no image `{image}`"),
    )
    .hint(format!(
        "bring it in: `docker save {image} | glovebox image import - --name {image}`"
    ))
    .hint("or run it in a container: `--backend docker`")
}

/// A native sandbox on an image, which stays for as long as the sandbox does.
#[derive(Debug)]
pub(crate) struct SandboxOnImage {
    sandbox: Box<dyn Sandbox>,
    image: Held,
}

impl SandboxOnImage {
    pub(crate) fn new(sandbox: Box<dyn Sandbox>, image: Held) -> Self {
        Self { sandbox, image }
    }
}

impl Sandbox for SandboxOnImage {
    fn isolation(&self) -> &Isolation {
        self.sandbox.isolation()
    }

    fn way_out(&mut self) -> Result<Option<WayOut>> {
        self.sandbox.way_out()
    }

    fn run(self: Box<Self>, run: Run<'_>) -> (Result<Ended>, TeardownGuard) {
        let (ended, remains) = self.sandbox.run(run);
        (ended, TeardownGuard::of((remains, self.image)))
    }

    fn dismiss(self: Box<Self>) -> TeardownGuard {
        TeardownGuard::of((self.sandbox.dismiss(), self.image))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandboxes::sample::profile;

    fn backends() -> (tempfile::TempDir, Backends) {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path().join("state")).unwrap();
        let backends = Backends::new(&state);
        (dir, backends)
    }

    fn no_engine() -> DockerConfig {
        DockerConfig {
            cli: "glovebox-no-such-engine".to_owned(),
            ..DockerConfig::default()
        }
    }

    #[test]
    fn an_image_that_nobody_has_is_told_with_both_ways_out() {
        let (_dir, backends) = backends();
        let asked = Profile {
            image: Some("tools:1".to_owned()),
            ..profile()
        };
        let error = backends
            .choose(&asked, Writes::Direct, &no_engine)
            .unwrap_err();
        let hints = error.hints.join("\n");
        assert!(
            hints.contains("no image `tools:1` was imported"),
            "{error:?}"
        );
        assert!(hints.contains("glovebox image ls"), "{error:?}");
        let without = backends.choose(&profile(), Writes::Direct, &no_engine);
        let told = without.err().map(|error| error.hints.join("\n"));
        assert!(!told.unwrap_or_default().contains("imported"));
    }

    #[test]
    fn whoever_names_images_and_runtimes_gets_no_engine_for_each() {
        let (_dir, backends) = backends();
        let with = |image: String, runtime: Option<String>| {
            let config = DockerConfig {
                image,
                runtime,
                ..no_engine()
            };
            backends.engine(&config).unwrap()
        };
        let first = with("one:1".to_owned(), None);
        assert!(Arc::ptr_eq(&first, &with("two:2".to_owned(), None)));
        for number in 0..2 * ENGINES {
            with("one:1".to_owned(), Some(format!("r{number}")));
        }
        assert_eq!(backends.locked().len(), ENGINES);
    }
}
