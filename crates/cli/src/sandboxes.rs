//! The sandboxes that outlive an exec: those of the state directory, or a server's.

use glovebox_engine::{
    Engine, Eyes, Pruned, Recreated, SandboxExplanation, SandboxRequest, Selection,
};
use glovebox_model::{
    Code, Correlation, Error, Lifetime, OnExceed, PartialProfile, Result, Sandbox, SandboxState,
    SpaceId, Stage,
};
use serde::{Deserialize, Serialize};

use crate::context::{self, Context};
use crate::interrupt;
use glovebox_api::client::Client;
use glovebox_api::{Id, KeptLifetime, RecreateRequest, Target};

#[derive(Debug)]
pub(crate) enum Sandboxes {
    Here(Box<Engine>),
    There(Box<Client>),
}

/// All that are asked for, the last used first.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Listed {
    pub(crate) items: Vec<Sandbox>,
}

/// Which are listed.
#[derive(Debug, Default)]
pub(crate) struct SandboxFilter {
    pub(crate) lifetime: Option<Lifetime>,
    pub(crate) agent: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) state: Option<SandboxState>,
}

const SANDBOXES: &str = "/v1/sandboxes";

/// Makes one and waits until it stands. Nothing may have started a thread before.
pub(crate) fn create(context: &Context<'_>, request: SandboxRequest) -> Result<Sandbox> {
    if let Some(remote) = context.server()? {
        return remote.post_slowly(Target::new(SANDBOXES), &body(request)?);
    }
    let keeper = context::fork_keeper()?;
    let (engine, seat) = context.engine_with_seat(keeper)?;
    let (cancel, _asker) = interrupt::listen()?;
    let made = engine.create_sandbox_here(request, seat, &cancel);
    context.report_recovered(engine.recovered());
    made
}

impl Sandboxes {
    pub(crate) fn open(context: &Context<'_>) -> Result<Self> {
        match context.server()? {
            Some(remote) => Ok(Self::There(Box::new(remote))),
            None => {
                let engine = context.engine()?;
                engine.store()?;
                context.report_recovered(engine.recovered());
                Ok(Self::Here(Box::new(engine)))
            }
        }
    }

    /// `None` where nothing was ever written: it is not made only to be read.
    pub(crate) fn open_if_there(context: &Context<'_>) -> Result<Option<Self>> {
        if context.server()?.is_none() && !context.place()?.is_there()? {
            return Ok(None);
        }
        Self::open(context).map(Some)
    }

    pub(crate) fn list(&self, filter: &SandboxFilter) -> Result<Listed> {
        match self {
            Self::Here(engine) => {
                let mut items = engine.sandboxes(&SpaceId::local())?;
                items.retain(|row| filter.takes(row));
                Ok(Listed { items })
            }
            Self::There(remote) => remote.get(
                Target::new(SANDBOXES)
                    .optional("lifetime", filter.lifetime)
                    .optional("agent_id", filter.agent.as_deref())
                    .optional("session_id", filter.session.as_deref())
                    .optional("state", filter.state),
            ),
        }
    }

    pub(crate) fn find(&self, name: &str) -> Result<Sandbox> {
        match self {
            Self::Here(engine) => engine.sandbox(&SpaceId::local(), name),
            Self::There(remote) => remote.get(Target::new(SANDBOXES).segment(name)),
        }
    }

    pub(crate) fn explain(&self, request: SandboxRequest) -> Result<SandboxExplanation> {
        match self {
            Self::Here(engine) => engine.explain_sandbox(&request),
            Self::There(remote) => {
                remote.post(Target::new(SANDBOXES).segment("explain"), &body(request)?)
            }
        }
    }

    /// As it is afterwards.
    pub(crate) fn recreate_one(&self, name: &str) -> Result<Sandbox> {
        match self {
            Self::There(remote) => {
                let target = Target::new(SANDBOXES).segment(name).segment("recreate");
                remote.post_nothing(target)
            }
            Self::Here(_) => {
                let done = self.recreate(&Selection::One(name.to_owned()))?;
                let Recreated { recreated, failed } = done;
                let failed = failed.into_iter().next().map(|it| it.error);
                recreated
                    .into_iter()
                    .next()
                    .ok_or_else(|| failed.unwrap_or_else(|| unknown(name)))
            }
        }
    }

    pub(crate) fn recreate(&self, which: &Selection) -> Result<Recreated> {
        let remote = match self {
            Self::Here(engine) => {
                let done = engine.recreate_sandboxes(&Eyes::of_space(SpaceId::local()), which);
                engine.leave_sandboxes();
                return done;
            }
            Self::There(remote) => remote,
        };
        let body = match which {
            Selection::One(name) => {
                let recreated = vec![self.recreate_one(name)?];
                let failed = Vec::new();
                return Ok(Recreated { recreated, failed });
            }
            Selection::All => RecreateRequest::all(),
            Selection::Mismatched => RecreateRequest::mismatched(),
            Selection::Agent(agent) => RecreateRequest::of_agent(agent),
            Selection::Session(session) => RecreateRequest::of_session(session),
        };
        remote.post_slowly(Target::new(SANDBOXES).segment("recreate"), &body)
    }

    pub(crate) fn prune(&self) -> Result<Pruned> {
        match self {
            Self::Here(engine) => {
                let done = engine.prune_sandboxes();
                engine.leave_sandboxes();
                done
            }
            Self::There(remote) => remote.post_nothing(Target::new(SANDBOXES).segment("prune")),
        }
    }

    /// As it was.
    pub(crate) fn remove(&self, name: &str) -> Result<Sandbox> {
        match self {
            Self::Here(engine) => {
                let removed = engine.remove_sandbox(&SpaceId::local(), name, "removed");
                engine.leave_sandboxes();
                removed
            }
            Self::There(remote) => remote.delete_slowly(Target::new(SANDBOXES).segment(name)),
        }
    }

    /// Whether one that was made now would be the same. `None`: that cannot be said.
    pub(crate) fn matches(&self, row: &Sandbox) -> Option<bool> {
        let explained = self.explain(as_asked(row)).ok()?;
        Some(explained.config_hash == row.config_hash)
    }
}

fn unknown(name: &str) -> Error {
    let message = format!("there is no sandbox `{name}`");
    Error::new(Code::NotFound, Stage::Parse, message)
        .hint("`glovebox sandbox ls` lists those that are there")
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

impl SandboxFilter {
    fn takes(&self, row: &Sandbox) -> bool {
        let of = |lifetime, key: &Option<String>| {
            key.is_none() || (row.lifetime == lifetime && row.scope == *key)
        };
        self.lifetime.is_none_or(|it| it == row.lifetime)
            && self.state.is_none_or(|it| it == row.state)
            && of(Lifetime::Agent, &self.agent)
            && of(Lifetime::Session, &self.session)
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
