//! Which backend a call gets, and what a process has ready before a call comes.

use std::sync::atomic::Ordering;

use glovebox_backend::{Language, Native, Preload};
use glovebox_model::{
    ByteString, Call, Code, Correlation, Error, IdError, Lifetime, OnExceed, PartialProfile,
    Placement, Profile, Result, SpaceId, Stage,
};

use super::{SandboxRequest, Sandboxes, nothing_yet};
use crate::Keeper;
use crate::backends::Chosen;
use crate::engine::KeeperSlot;
use crate::workspaces::aside;
use crate::{cgroup_cleanup, environment, stage};

impl Sandboxes {
    /// Takes a keeper for one exec; it enters its control groups while the caller goes on.
    pub fn seat(&self, keeper: Keeper) -> Result<KeeperSlot> {
        let mut native = Native::new(&self.instance.ground, keeper);
        let number = self.seats.fetch_add(1, Ordering::Relaxed);
        native.reserve(&cgroup_cleanup::group_name(
            self.instance.state(),
            self.instance.owner().id(),
            number,
        ))?;
        stage::reached("reserve");
        Ok(KeeperSlot { native })
    }

    /// What a call would get, for those who only ask. Nothing is made.
    pub(crate) fn look_ahead(&self, mut call: Call) -> Result<(Profile, Chosen)> {
        self.place(&mut call)?;
        let assessed = self.instance.policy.assess(call)?;
        let chosen = self.choose(assessed.call(), assessed.profile())?;
        Ok((assessed.profile().clone(), chosen))
    }

    /// What a call that wishes for nothing gets.
    pub(crate) fn usual(&self) -> Result<(Profile, Chosen)> {
        let mut call = nothing_yet(&SandboxRequest {
            ids: Correlation::of_space(SpaceId::local()),
            lifetime: Lifetime::Exec,
            project: "usual".parse().map_err(|why: IdError| {
                Error::new(Code::Internal, Stage::Parse, why.to_string())
            })?,
            on_exceed: OnExceed::Refuse,
            overrides: PartialProfile::default(),
        });
        call.placement = Placement::Fresh;
        let assessed = self.instance.policy.assess(call)?;
        let chosen = self.choose(assessed.call(), assessed.profile())?;
        Ok((assessed.profile().clone(), chosen))
    }

    pub(crate) fn choose(&self, call: &Call, profile: &Profile) -> Result<Chosen> {
        // A sandbox that is named stands on a backend already, and that one must satisfy the demand.
        if let Placement::Named(name) = &call.placement {
            let row = self.registry.own(&call.ids.space_id, name)?;
            return self.instance.backends().choose_same(profile, &row.config);
        }
        let lifetime = match call.placement {
            Placement::Scope(lifetime) => lifetime,
            Placement::Fresh | Placement::Named(_) => Lifetime::Exec,
        };
        let docker = || self.instance.policy.docker_for(call, profile, lifetime);
        self.instance
            .backends()
            .choose(profile, aside(call), &docker)
    }

    /// Interpreters that can be started before their code is known.
    pub(crate) fn preloads(&self) -> &[Preload] {
        self.preloads.get_or_init(|| {
            let environment = environment::of_any();
            let command = |language| match language {
                Language::Python => "python3",
                Language::Node => "node",
            };
            Language::ALL
                .into_iter()
                .filter(|it| environment.finds(command(*it)))
                .map(|language| Preload {
                    language,
                    command: ByteString::try_from(command(language)).unwrap_or_default(),
                    env: environment.variables.clone(),
                    path: environment.path.clone(),
                })
                .collect()
        })
    }
}
