//! The sandboxes that outlive an exec, through the API: at a server, or in this process.

use glovebox_engine::{Pruned, Recreated, SandboxExplanation, SandboxRequest};
use glovebox_model::{
    Code, Correlation, Error, Lifetime, OnExceed, PartialProfile, Result, Sandbox, SandboxState,
    Stage,
};

use crate::context::{self, Context};
use crate::interrupt;
use glovebox_api::client::Client;
use glovebox_api::{Id, KeptLifetime, RecreateRequest, Target};

#[derive(Debug)]
pub(crate) struct Sandboxes(Client);

/// Which are listed.
#[derive(Debug, Default)]
pub(crate) struct SandboxFilter {
    pub(crate) lifetime: Option<Lifetime>,
    pub(crate) agent: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) state: Option<SandboxState>,
}

const SANDBOXES: &str = "/v1/sandboxes";

/// Makes one and waits until it stands. Without a server the engine is asked itself: the sandbox
/// needs a keeper of this process, which is made before the first thread, and an end by Ctrl-C.
pub(crate) fn create(context: &Context<'_>, request: SandboxRequest) -> Result<Sandbox> {
    if let Some(remote) = context.server()? {
        return remote.post_slowly(Target::new(SANDBOXES), &body(request)?);
    }
    let keeper = context::fork_keeper()?;
    let (engine, seat) = context.engine_with_seat(keeper)?;
    let (cancel, _asker) = interrupt::listen()?;
    let made = engine.sandboxes.create_here(request, seat, &cancel);
    context.report_recovered(engine.recovered());
    made
}

impl Sandboxes {
    pub(crate) fn open(context: &Context<'_>) -> Result<Self> {
        context.api().map(Self)
    }

    /// `None` where nothing was ever written: it is not made only to be read.
    pub(crate) fn open_if_there(context: &Context<'_>) -> Result<Option<Self>> {
        Ok(context.api_if_there()?.map(Self))
    }

    pub(crate) fn list(&self, filter: &SandboxFilter) -> Result<glovebox_api::Sandboxes> {
        self.0.get(
            Target::new(SANDBOXES)
                .optional("lifetime", filter.lifetime)
                .optional("agent_id", filter.agent.as_deref())
                .optional("session_id", filter.session.as_deref())
                .optional("state", filter.state),
        )
    }

    pub(crate) fn find(&self, name: &str) -> Result<Sandbox> {
        found(name, self.0.get(of(name)))
    }

    pub(crate) fn explain(&self, request: SandboxRequest) -> Result<SandboxExplanation> {
        let target = Target::new(SANDBOXES).segment("explain");
        self.0.post(target, &body(request)?)
    }

    /// As it is afterwards.
    pub(crate) fn recreate_one(&self, name: &str) -> Result<Sandbox> {
        let target = of(name).segment("recreate");
        found(name, self.0.post_nothing(target))
    }

    pub(crate) fn recreate(&self, which: &RecreateRequest) -> Result<Recreated> {
        let target = Target::new(SANDBOXES).segment("recreate");
        self.0.post_slowly(target, which)
    }

    pub(crate) fn prune(&self) -> Result<Pruned> {
        self.0.post_nothing(Target::new(SANDBOXES).segment("prune"))
    }

    /// As it was.
    pub(crate) fn remove(&self, name: &str) -> Result<Sandbox> {
        found(name, self.0.delete_slowly(of(name)))
    }

    /// Whether one that was made now would be the same. `None`: that cannot be said.
    pub(crate) fn matches(&self, row: &Sandbox) -> Option<bool> {
        let explained = self.explain(as_asked(row)).ok()?;
        Some(explained.config_hash == row.config_hash)
    }
}

fn of(name: &str) -> Target {
    Target::new(SANDBOXES).segment(name)
}

/// One that is not there is named, with the command that lists those that are.
fn found<T>(name: &str, answer: Result<T>) -> Result<T> {
    answer.map_err(|error| match error.code {
        Code::NotFound => {
            let message = format!("there is no sandbox `{name}`");
            Error::new(Code::NotFound, Stage::Parse, message)
                .hint("`glovebox sandbox ls` lists those that are there")
        }
        _ => error,
    })
}

/// What whoever it is kept for would ask for, without a wish of its own.
pub(crate) fn as_asked(row: &Sandbox) -> SandboxRequest {
    let of = |lifetime| row.scope.clone().filter(|_| row.lifetime == lifetime);
    SandboxRequest {
        ids: Correlation {
            agent_id: of(Lifetime::Agent),
            session_id: of(Lifetime::Session),
            ..context::local_ids(None)
        },
        lifetime: row.lifetime,
        project: row.project_id.clone(),
        on_exceed: OnExceed::Refuse,
        overrides: PartialProfile::default(),
    }
}

fn body(request: SandboxRequest) -> Result<glovebox_api::SandboxRequest> {
    Ok(glovebox_api::SandboxRequest {
        lifetime: match request.lifetime {
            Lifetime::Session => KeptLifetime::Session,
            Lifetime::Agent => KeptLifetime::Agent,
            Lifetime::Shared => KeptLifetime::Shared,
            Lifetime::Exec => {
                let message = "a sandbox that lives as long as one exec is not kept";
                return Err(Error::new(Code::InvalidArgument, Stage::Parse, message));
            }
        },
        project_id: Some(request.project),
        agent_id: request.ids.agent_id.map(Id),
        session_id: request.ids.session_id.map(Id),
        policy_overrides: Some(request.overrides.into()),
        on_exceed: request.on_exceed,
    })
}
