//! The holder of a token, and the proof that it may do what a handler does.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use glovebox_engine::Viewer;
use glovebox_model::{
    Code, Party, ProjectId, Role, Scope, SpaceId, Token, TokenId, TokenName, Vouched,
};
use glovebox_store::Actor;

use super::lookup::unauthenticated;
use crate::app::App;
use crate::failure::{Answer, Failure};
use crate::order::is_reserved;

#[derive(Debug, Clone)]
pub(crate) struct Caller {
    token: Token,
    /// Only this caller's requests lead to it; new secrets are made from it.
    seed: [u8; 32],
    /// The token in the store that all of this stands on; none for whoever has the state directory.
    credential: Option<TokenId>,
    /// Whose questions it answers, for a person at an agent's host.
    asker: Option<TokenName>,
    /// The directory of the machine's user that is shared with it.
    shared: Option<ProjectId>,
    /// The person who has the state directory, at a command line.
    is_at_machine: bool,
}

impl Caller {
    pub(super) fn new(token: Token, seed: [u8; 32]) -> Self {
        Self {
            credential: Some(token.token_id.clone()),
            token,
            seed,
            asker: None,
            shared: None,
            is_at_machine: false,
        }
    }

    /// Somebody on this machine, who needs no token in the store: whoever starts them could make one.
    pub(super) fn of_machine(token: Token, seed: [u8; 32], shared: Option<ProjectId>) -> Self {
        Self {
            token,
            seed,
            credential: None,
            asker: None,
            shared,
            is_at_machine: false,
        }
    }

    pub(super) fn operator_of_machine(token: Token, shared: Option<ProjectId>) -> Self {
        Self {
            is_at_machine: true,
            ..Self::of_machine(token, [0; 32], shared)
        }
    }

    /// The person who sits where this caller's questions are shown. They stand on its token, and end
    /// with it.
    pub(super) fn person(&self, token: Token, seed: [u8; 32]) -> Self {
        Self {
            asker: Some(self.token.name.clone()),
            credential: self.credential.clone(),
            shared: None,
            is_at_machine: false,
            token,
            seed,
        }
    }

    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    /// What it is called in records. No token can have the name of a person at a host: it has
    /// spaces.
    pub(crate) fn name(&self) -> String {
        match &self.asker {
            Some(asker) => format!("a person at {asker}'s host"),
            None if self.is_at_machine => {
                let uid = rustix::process::geteuid().as_raw();
                format!("the operator at the machine (uid {uid})")
            }
            None => self.token.name.to_string(),
        }
    }

    pub(crate) fn is_at_machine(&self) -> bool {
        self.is_at_machine
    }

    /// Whoever is logged in, of a command of this machine.
    pub(crate) fn local_user(&self) -> Option<String> {
        let uid = || rustix::process::getuid().as_raw().to_string();
        self.is_at_machine.then(uid)
    }

    pub(crate) fn shared(&self) -> Option<&ProjectId> {
        self.shared.as_ref()
    }

    /// Whether a workspace of this name is out of its reach: names of Glovebox's own are, but for
    /// the one that was shared with it.
    pub(crate) fn may_not_name(&self, project: &ProjectId) -> bool {
        is_reserved(project) && self.shared.as_ref() != Some(project)
    }

    pub(crate) fn credential(&self) -> Option<&TokenId> {
        self.credential.as_ref()
    }

    pub(crate) fn asker(&self) -> Option<&TokenName> {
        self.asker.as_ref()
    }

    /// Which of the ids that its requests name it is bound to. Whoever started this process, and not a
    /// server, could make itself any token.
    pub(crate) fn vouched(&self) -> Vouched {
        let token = &self.token;
        if token.role != Role::Agent || token.agent().is_none() {
            return Vouched::People;
        }
        let is_own = self.credential.is_none();
        Vouched::Agent {
            user: is_own || token.user_id.is_some(),
            conversation: is_own || token.conversation_id.is_some(),
        }
    }

    /// What is there for it. A person at a host sees what the agent sees that they sit before.
    pub(crate) fn eyes(&self) -> Viewer {
        Viewer::of_token(&self.token)
    }

    /// The only space whose things this caller can name.
    pub(crate) fn space(&self) -> &SpaceId {
        &self.token.space_id
    }

    /// The admin of the space `local` is whoever runs the server; an admin of another space is a
    /// tenant's, and decides about that space alone.
    pub(crate) fn operator(&self) -> Answer<()> {
        match self.token.role == Role::Admin && self.token.space_id == SpaceId::local() {
            true => Ok(()),
            false => Err(Failure::new(
                Code::Forbidden,
                "only an admin of the space `local` may do that",
            )),
        }
    }

    /// Whoever may look at what is of the whole server: its admin, and its auditor.
    pub(crate) fn overseer(&self) -> Answer<()> {
        let role = matches!(self.token.role, Role::Admin | Role::Auditor);
        match role && self.token.space_id == SpaceId::local() {
            true => Ok(()),
            false => Err(Failure::new(
                Code::Forbidden,
                "only an admin or an auditor of the space `local` may see that",
            )),
        }
    }

    pub(crate) fn seed(&self) -> &[u8; 32] {
        &self.seed
    }

    pub(crate) fn actor(&self) -> Actor {
        Actor {
            token_id: self.credential.clone(),
            name: self.name(),
        }
    }

    pub(crate) fn party(&self) -> Party {
        Party {
            // As `glovebox run` names who asks: nobody answers their own request.
            name: self.local_user().unwrap_or_else(|| self.name()),
            user_id: self.token.user_id.clone(),
        }
    }

    /// Whether it may answer for people. An agent never does, whatever its token says.
    pub(crate) fn answers(&self) -> Answer<()> {
        if self.token.role == Role::Agent {
            return Err(Failure::new(
                Code::Forbidden,
                "an agent's token never answers a request for approval",
            )
            .hint("an approver answers it: show them the approval's id"));
        }
        self.clone().need(Scope::ApprovalsWrite).map(|_| ())
    }

    fn need(self, scope: Scope) -> Answer<Self> {
        if self.token.may(scope) {
            return Ok(self);
        }
        let message = format!("this token may not do that: it lacks `{scope}`");
        Err(Failure::new(Code::Forbidden, message).hint("use a token with another role"))
    }
}

/// What was found out about the caller before the request reached its handler.
#[derive(Debug, Clone)]
pub(crate) struct Identity(pub(crate) Answer<Caller>);

fn identity(parts: &Parts) -> Answer<Caller> {
    match parts.extensions.get::<Identity>() {
        Some(Identity(known)) => known.clone(),
        None => Err(unauthenticated()),
    }
}

/// A person who may answer.
#[derive(Debug)]
pub(crate) struct WritesApprovals(pub(crate) Caller);

impl FromRequestParts<App> for WritesApprovals {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, _: &App) -> Answer<Self> {
        let caller = identity(parts)?;
        caller.answers()?;
        Ok(Self(caller))
    }
}

/// Any valid token.
#[derive(Debug)]
pub(crate) struct Anybody(pub(crate) Caller);

impl FromRequestParts<App> for Anybody {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, _: &App) -> Answer<Self> {
        identity(parts).map(Self)
    }
}

/// A handler that takes one of these cannot be reached without the scope.
macro_rules! holders {
    ($($name:ident = $scope:ident;)+) => {
        $(#[derive(Debug)]
        pub(crate) struct $name(pub(crate) Caller);

        impl FromRequestParts<App> for $name {
            type Rejection = Failure;
            async fn from_request_parts(parts: &mut Parts, _: &App) -> Answer<Self> {
                identity(parts)?.need(Scope::$scope).map(Self)
            }
        })+
    };
}

holders! {
    ReadsExecs = ExecsRead;
    WritesExecs = ExecsWrite;
    ReadsFiles = FilesRead;
    WritesFiles = FilesWrite;
    ReadsPolicy = PolicyRead;
    ReadsApprovals = ApprovalsRead;
    ReadsAudit = AuditRead;
    ReadsMetrics = MetricsRead;
    ReadsSettings = SettingsRead;
    WritesSettings = SettingsWrite;
    ReadsSecrets = SecretsRead;
    WritesSecrets = SecretsWrite;
    ReadsTokens = TokensRead;
    WritesTokens = TokensWrite;
    Retrieves = Retrieve;
}
