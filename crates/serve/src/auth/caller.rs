//! The holder of a token, and the proof that it may do what a handler does.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use glovebox_model::{Code, Role, Scope, SpaceId, Token};
use glovebox_store::Actor;

use super::lookup::unauthenticated;
use crate::app::App;
use crate::failure::{Answer, Failure};

#[derive(Debug, Clone)]
pub(crate) struct Caller {
    token: Token,
    /// Only this caller's requests lead to it; new secrets are made from it.
    seed: [u8; 32],
}

impl Caller {
    pub(super) fn new(token: Token, seed: [u8; 32]) -> Self {
        Self { token, seed }
    }

    pub(crate) fn token(&self) -> &Token {
        &self.token
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

    pub(crate) fn seed(&self) -> &[u8; 32] {
        &self.seed
    }

    pub(crate) fn actor(&self) -> Actor {
        Actor {
            token_id: Some(self.token.token_id.clone()),
            name: self.token.name.to_string(),
        }
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
    ReadsAudit = AuditRead;
    ReadsMetrics = MetricsRead;
    ReadsSettings = SettingsRead;
    WritesSettings = SettingsWrite;
    ReadsTokens = TokensRead;
    WritesTokens = TokensWrite;
}
