//! What a program did, or would have done. In a simulation everything that leaves a trace is
//! gathered while it runs: processes and attempts by the sandbox's supervisor, requests at its way
//! out, files from the layer it wrote to, and what tools say of themselves. Gates and people judge
//! that, before any of it happens.

mod bound;
mod contents;
mod files;
mod gated;
mod gathering;
mod judging;
mod network_effects;
mod observer;
mod permissions;
mod preview;
mod query;
mod reports;

use std::sync::Arc;

use glovebox_backend::Sandbox;
use glovebox_capture::Secrets;
use glovebox_gate::Kinds;
use glovebox_model::{
    Access, Call, Effect, Exec, ExecId, Mode, NetworkMode, Profile, Result, Simulation,
};
use glovebox_workspace::Project;

pub(crate) use bound::is_for_review;
pub(crate) use gated::Gated;
pub(crate) use gathering::Gathering;
pub use gathering::Listener;
pub(crate) use judging::{InLayer, Judging, Written, first};
pub(crate) use network_effects::{outward, previewed, request};
pub(crate) use observer::Observer;
pub(crate) use permissions::Permissions;
pub(crate) use preview::not_blocked;
pub use preview::{Rehearsed, Simulations};
pub(crate) use reports::{DIRECTORY, Reports, SOCKET};

use crate::instance::Instance;
use crate::network::Network;

/// The effects of one exec, while it runs and until it is judged.
#[derive(Debug)]
pub(crate) struct Capture<'engine> {
    pub(crate) gathering: Arc<Gathering>,
    pub(crate) observer: Observer<'engine>,
    /// Served while the program runs.
    pub(crate) reports: Option<Reports>,
}

/// What execs do, while they do it and afterwards.
#[derive(Debug)]
pub(crate) struct Effects {
    instance: Arc<Instance>,
    network: Arc<Network>,
}

impl Effects {
    pub(crate) fn new(instance: &Arc<Instance>, network: &Arc<Network>) -> Self {
        Self {
            instance: Arc::clone(instance),
            network: Arc::clone(network),
        }
    }

    /// Serves the socket by which tools tell of themselves.
    pub(crate) fn reports(
        &self,
        sandbox: &mut dyn Sandbox,
        exec: &ExecId,
        simulation: &Simulation,
        capture: &Capture<'_>,
    ) -> Result<Option<Reports>> {
        let Some(observation) = sandbox.observation()? else {
            return Ok(None);
        };
        let gathering = Arc::clone(&capture.gathering);
        let runtime = self.network.outside()?.runtime();
        Reports::serve(observation.effects, exec, simulation, gathering, runtime).map(Some)
    }

    /// What an exec did, from a place in its log on: the place after it, and whether that is all.
    pub(crate) fn read(
        &self,
        exec: &Exec,
        from: u64,
        most: usize,
    ) -> Result<(Vec<Effect>, u64, bool)> {
        let layout = self.instance.layout(&exec.ids.space_id)?;
        let log = layout.effect_log(&exec.project_id, &exec.exec_id, from, most)?;
        let (effects, next) = log.unwrap_or((Vec::new(), from));
        let whole = effects.len() < most;
        let lasting = effects.into_iter().filter(|it| !it.provisional);
        Ok((lasting.collect(), next, whole))
    }

    /// None for an exec that nothing judges.
    pub(crate) fn capture(
        &self,
        (call, gated): (&Call, &Gated),
        profile: &Profile,
        (project, exec): (&Project, &ExecId),
        masks: &Arc<Secrets>,
        listener: Option<Arc<dyn Listener>>,
    ) -> Result<Option<Capture<'_>>> {
        match call.mode {
            Mode::Run if gated.gates.is_empty() => return Ok(None),
            Mode::Mock => return Ok(None),
            Mode::Run | Mode::Simulate | Mode::Transactional => {}
        }
        let log = project.effect_log(exec)?;
        let gathering = Arc::new(Gathering::new(log, Arc::clone(masks), listener));
        let offline = call.mode != Mode::Simulate && profile.network < NetworkMode::Allowlist;
        let reads = gated.watched.contains(Kinds::READS);
        let permissions =
            Permissions::new(&self.instance.policy, call, profile.workspace == Access::Rw);
        Ok(Some(Capture {
            observer: Observer::new(Arc::clone(&gathering), permissions, (offline, reads)),
            gathering,
            reports: None,
        }))
    }
}
