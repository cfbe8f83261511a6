//! The way out of a sandbox, from before it is made until its last exec is over: whom its programs
//! trust, who serves its sockets, and what they may reach right now.

mod egress_runtime;
mod log;
mod recall;
mod retrieve;
mod trust;
mod variables;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use glovebox_backend::{Sandbox, WayOut};
use glovebox_capture::Secrets;
use glovebox_gateway::{
    Authority, Brokered, Gateway, GatewaySockets, Inspect, PathPattern, Policy, Previewed,
    Simulated,
};
use glovebox_model::{
    Attempt, Code, Error, Exec, ExecId, NetworkMode, Profile, Result, Simulation, Stage, Traffic,
};
use glovebox_policy::NetworkSettings;
use glovebox_workspace::{NetworkLog, Project};

use crate::effects::Gathering;
use crate::instance::Instance;
use crate::secrets::ExecSecrets;
use crate::secrets::SecretAccess;
use log::{Told, Watched};

pub use egress_runtime::EgressRuntime;
pub(crate) use egress_runtime::private_targets;
pub(crate) use recall::InUse;
pub(crate) use trust::Trust;
pub(crate) use variables::variables;

/// What a sandbox has of a network before it is run.
#[derive(Debug)]
pub(crate) enum Route {
    /// None, or one that is not ours to serve.
    None,
    /// Its sockets are taken when it stands.
    Fresh(Trust),
    /// It stands, and has been served since.
    Standing(Arc<Way>),
}

/// For connections that were cut to be told of.
const SETTLE: Duration = Duration::from_millis(200);

/// Whether the TLS of a sandbox may have to be opened for something of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    Possible,
    ByPolicyAlone,
    /// All of it, and nothing goes on from there.
    Simulated,
}

/// One sandbox's way out, while it stands. Nothing gets through but between `enter` and `close`.
#[derive(Debug)]
pub(crate) struct Way {
    gateway: Gateway,
    told: Arc<Told>,
}

/// What this process has of the network, for its sandboxes and for itself.
#[derive(Debug)]
pub struct Network {
    pub(crate) instance: Arc<Instance>,
    pub(crate) secrets: Arc<SecretAccess>,
    /// Ways out with secrets in use.
    in_use: InUse,
    pub(crate) outside: OnceLock<EgressRuntime>,
}

impl Network {
    pub(crate) fn new(instance: &Arc<Instance>, secrets: &Arc<SecretAccess>) -> Self {
        Self {
            instance: Arc::clone(instance),
            secrets: Arc::clone(secrets),
            in_use: InUse::default(),
            outside: OnceLock::new(),
        }
    }

    /// Whom the programs of a sandbox are to trust; none when it gets no network of ours. Its TLS
    /// can be opened on the way only where somebody may want that.
    pub(crate) fn trust(&self, profile: &Profile, opened: Opening) -> Result<Option<Trust>> {
        // A simulation has one whatever its profile says: nothing leaves by it.
        if profile.network < NetworkMode::Allowlist && opened != Opening::Simulated {
            return Ok(None);
        }
        let settings = self.instance.config().network();
        let opens = opened != Opening::ByPolicyAlone || !settings.inspect.is_empty();
        let authority = match opens {
            true => Some(Authority::new(self.outside()?.trust()?.config())?),
            false => None,
        };
        Trust::new(authority, settings.extra_ca.as_deref()).map(Some)
    }

    pub(crate) fn open_way(&self, way: WayOut, trust: &Trust) -> Result<Way> {
        let outside = self.outside()?;
        let told = Arc::new(Told::default());
        let doors = GatewaySockets {
            transparent: way.transparent,
            proxy: way.proxy,
            dns: way.dns,
        };
        let gateway = Gateway::open(
            doors,
            Arc::clone(outside.vetter()),
            trust.authority(),
            Arc::clone(&told) as Arc<_>,
            outside.runtime(),
        );
        Ok(Way {
            gateway: gateway?,
            told,
        })
    }

    /// As the dispatcher's, without one. Nothing of an exec that had no network.
    pub fn network_log(&self, exec: &Exec, from: u64, most: usize) -> Result<(Vec<Attempt>, u64)> {
        let layout = self.instance.layout(&exec.ids.space_id)?;
        let log = layout.network_log(&exec.project_id, &exec.exec_id, from, most)?;
        Ok(log.unwrap_or((Vec::new(), from)))
    }

    /// What an exec may do with the network that its sandbox has. Fails when it was promised one
    /// that is not there.
    pub(crate) fn passage(
        &self,
        route: Route,
        sandbox: &mut dyn Sandbox,
        profile: &Profile,
        given: &ExecSecrets,
        files: (&Project, &ExecId),
        watch: Watch<'_>,
    ) -> Result<Option<Passage>> {
        let (project, exec) = files;
        let way = match route {
            Route::None => return Ok(None),
            Route::Standing(way) => way,
            Route::Fresh(trust) => match sandbox.way_out()? {
                Some(doors) => Arc::new(self.open_way(doors, &trust)?),
                None => return Err(no_way_out()),
            },
        };
        let log = project.network_log(exec)?;
        let mut policy = self.grants(profile, given.brokered())?;
        if let Some(simulation) = watch.simulation {
            policy.simulate = Some(Simulated::new(simulation)?);
        }
        policy.previewed = watch.previewed;
        Ok(Some(Passage {
            way,
            log,
            policy,
            masks: watch.masks,
            gathering: watch.gathering,
        }))
    }

    /// What the profile grants, with the operator's settings.
    fn grants(&self, profile: &Profile, secrets: Vec<Brokered>) -> Result<Policy> {
        let limits = &profile.limits;
        Ok(Policy {
            mode: profile.network,
            allow: profile.allow_net.clone(),
            bytes: limits.egress_bytes.get(),
            connections: limits.egress_connections.get(),
            closes: Instant::now() + limits.network_ms.duration(),
            inspect: inspected(self.instance.config().network())?,
            secrets,
            simulate: None,
            previewed: None,
        })
    }
}

fn no_way_out() -> Error {
    Error::new(
        Code::BackendUnavailable,
        Stage::Admit,
        "the sandbox has no network that could be served",
    )
    .hint("`glovebox doctor` says what this host lacks; `--net none` runs without one")
}

fn inspected(settings: &NetworkSettings) -> Result<Vec<Inspect>> {
    let rule = |glob: &String| glob.parse::<PathPattern>();
    let all = settings.inspect.iter().map(|it| {
        let paths = it.paths.as_ref();
        let paths = paths.map(|globs| globs.iter().map(rule).collect::<Result<_>>());
        Ok(Inspect {
            host: it.host.clone(),
            methods: it.methods.clone(),
            paths: paths.transpose()?,
        })
    });
    all.collect()
}

/// What one exec may do with a way out.
#[derive(Debug)]
pub(crate) struct Passage {
    way: Arc<Way>,
    log: NetworkLog,
    policy: Policy,
    masks: Arc<Secrets>,
    gathering: Option<Arc<Gathering>>,
}

/// What an exec's way out is watched for.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    /// What is secret is not told.
    pub(crate) masks: Arc<Secrets>,
    pub(crate) gathering: Option<Arc<Gathering>>,
    /// Nothing leaves; this is what is answered instead.
    pub(crate) simulation: Option<&'a Simulation>,
    /// Nothing but this leaves.
    pub(crate) previewed: Option<Previewed>,
}

impl Passage {
    pub(crate) fn way(&self) -> &Arc<Way> {
        &self.way
    }

    /// From now on this exec's attempts are decided by its policy, and told to its log.
    pub(crate) fn enter(self) -> Arc<Way> {
        let watched = self.gathering.map(|to| match self.policy.simulate {
            Some(_) => Watched::Simulated(to),
            None => Watched::Real(to),
        });
        self.way.told.begin(self.log, self.masks, watched);
        self.way.gateway.admit(self.policy);
        self.way
    }
}

impl Way {
    /// Nothing gets through any more, and what is open is cut.
    pub(crate) fn close(&self) -> Traffic {
        self.gateway.close();
        self.gateway.settle(SETTLE);
        let traffic = Traffic {
            strayed: self.gateway.strayed().map(|it| it.to_string()),
            ..self.gateway.traffic()
        };
        self.told.end();
        traffic
    }

    /// A brokered secret is not put in any more.
    pub(crate) fn revoke(&self, secret: &glovebox_model::SecretName) {
        self.gateway.revoke_secret(secret);
    }
}
