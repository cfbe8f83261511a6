//! The gates over an exec, known before it starts: what they have to see is watched, and what cannot be
//! judged where it would run is refused.

use glovebox_gate::{Gate, Kinds};
use glovebox_model::{
    Access, BackendName, Call, Code, Error, Mode, NetworkMode, Placement, Profile, Result, Stage,
    WorkspaceRef,
};
use glovebox_policy::{Assessed, MountMode};

use crate::approvals::tools_of;
use crate::backends::Chosen;
use crate::policy::ActivePolicy;

#[derive(Debug, Clone, Default)]
pub(crate) struct Gated {
    pub(crate) gates: Vec<Gate>,
    /// What is watched for in its run.
    pub(crate) watched: Kinds,
    /// What it writes waits beside the workspace until it has been judged.
    pub(crate) holds: bool,
}

/// Where an exec would run, as far as gates ask.
#[derive(Debug, Clone, Copy)]
struct Site<'call> {
    backend: BackendName,
    is_kept: bool,
    /// A directory of the host is shown to it that it may write.
    writes_host: bool,
    call: &'call Call,
    profile: &'call Profile,
}

impl ActivePolicy {
    /// Before people are asked: what cannot be judged is not theirs to allow.
    pub(crate) fn gated(&self, assessed: &Assessed, chosen: &Chosen) -> Result<Gated> {
        let (call, profile) = (assessed.call(), assessed.profile());
        let tier = assessed.risk().tier;
        let tools = tools_of(call);
        let tools: Vec<&str> = tools.iter().map(AsRef::as_ref).collect();
        let gates = self.config().gates_for(&call.ids, &tools, tier, call.mode);
        if gates.is_empty() {
            return Ok(Gated::default());
        }
        let granted = &self.config().approvals().host_mounts;
        let mut mounts = granted.iter().filter(|it| call.mounts.contains(&it.target));
        let binds = chosen.docker.as_ref().map(|it| &it.binds);
        let site = Site {
            backend: chosen.backend,
            is_kept: call.placement != Placement::Fresh,
            writes_host: mounts.any(|it| it.mode == MountMode::Rw)
                || binds.is_some_and(|it| !it.iter().all(|bind| bind.ends_with(":ro"))),
            call,
            profile,
        };
        for gate in gates.iter().filter(|it| it.blocks()) {
            site.refuse(gate)?;
        }
        let asked = gates.iter().map(Gate::asks).fold(Kinds::NONE, Kinds::with);
        let blocks = gates.iter().any(Gate::blocks);
        Ok(Gated {
            watched: site.watched(asked),
            holds: site.holds() && (blocks || asked.contains(Kinds::WRITES)),
            gates,
        })
    }
}

impl Site<'_> {
    /// It can write beside its workspace.
    fn holds(&self) -> bool {
        self.backend == BackendName::Native && !self.is_kept && !self.writes_host
    }

    /// Nothing that it writes outlives it, whatever is judged.
    fn writes_nothing(&self) -> bool {
        let has_none = self.call.workspace == WorkspaceRef::Scratch;
        let may_not = self.profile.workspace != Access::Rw || has_none;
        // The home and the temporary files of a kept sandbox are there for its next exec.
        may_not && !self.is_kept && self.backend != BackendName::Host && !self.writes_host
    }

    /// What can be seen of it at all.
    fn visible(&self) -> Kinds {
        let own = self.backend == BackendName::Native && !self.is_kept;
        let writes = match self.holds() || self.writes_nothing() {
            true => Kinds::WRITES,
            false => Kinds::NONE,
        };
        let requests = match self.backend {
            BackendName::Native => Kinds::REQUESTS,
            // A container either has no network, or one that is not ours.
            BackendName::Docker if self.profile.network != NetworkMode::Unrestricted => {
                Kinds::REQUESTS
            }
            BackendName::Docker | BackendName::Host => Kinds::NONE,
        };
        let inside = match own {
            true => Kinds::INSIDE,
            false => Kinds::NONE,
        };
        writes.with(requests).with(inside)
    }

    /// What is watched: what only the supervisor sees is for those who ask, since it costs something.
    fn watched(&self, asked: Kinds) -> Kinds {
        let simulation = self.call.simulation.as_ref();
        let simulated = match self.call.mode {
            Mode::Simulate => Kinds::PROCESSES.with(Kinds::ATTEMPTS),
            Mode::Run | Mode::Transactional | Mode::Mock => Kinds::NONE,
        };
        let reads = match simulation.is_some_and(|it| it.reads) {
            true => Kinds::READS,
            false => Kinds::NONE,
        };
        let wanted = asked.with(simulated).with(reads);
        let unasked = Kinds::INSIDE.without(wanted);
        self.visible().without(unasked)
    }

    /// A gate that blocks must see all that it asks about, before anything is kept.
    fn refuse(&self, gate: &Gate) -> Result<()> {
        let missing = gate.asks().without(self.visible());
        let keeps = !self.holds() && !self.writes_nothing();
        if missing.is_empty() && !keeps {
            return Ok(());
        }
        let place = match self.backend {
            BackendName::Host => "the host itself",
            _ if self.is_kept => "a kept sandbox",
            _ if self.writes_host => "an exec with a directory of the host that it may write",
            BackendName::Docker => "the docker backend",
            BackendName::Native => "this sandbox",
        };
        let name = gate.name();
        let message = match missing.is_empty() {
            false => format!("gate `{name}` judges {missing}, which {place} cannot show"),
            true => format!(
                "gate `{name}` judges before anything is kept, and what {place} writes stays at once"
            ),
        };
        let error = Error::new(Code::BackendUnavailable, Stage::Admit, message);
        let error = match self.backend {
            _ if self.is_kept => error.hint(
                "run it in a native sandbox of its own: `glovebox run` without `--sandbox`, \
                 `--lifetime` and `--backend`",
            ),
            BackendName::Native => error.hint("leave out `--mount`"),
            BackendName::Docker | BackendName::Host => error
                .hint("add `--backend native`: it holds back what is written until it is judged"),
        };
        let may_close =
            keeps && self.backend == BackendName::Docker && !self.is_kept && !self.writes_host;
        let error = match may_close && missing.without(Kinds::WRITES).is_empty() {
            true => error.hint("with `--workspace ro` its output is judged, and it writes nothing"),
            false => error,
        };
        Err(error.hint(
            "a gate with `block = false` warns, and refuses nothing; `tools`, `agents` and `modes` \
             say whom one judges",
        ))
    }
}
