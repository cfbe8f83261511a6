//! Where tokens are given out and settings changed: the state directory itself, which belongs to
//! whoever is at the machine, or its server.

use std::collections::BTreeSet;

use glovebox_engine::check_settings;
use glovebox_model::{
    Code, Error, Result, Role, Scope, Settings, SpaceId, Stage, Token, TokenId, TokenName,
};
use glovebox_serve::{Issued, TokenKey};
use glovebox_store::{Actor, Page, TokenFilter};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::context::{Context, Place};
use crate::remote::{Remote, Target};

#[derive(Debug)]
pub(crate) enum Desk {
    Here(Place),
    There(Box<Remote>),
}

/// The body of a new token, as the API takes it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct TokenRequest {
    pub(crate) name: TokenName,
    pub(crate) role: Role,
    pub(crate) space_id: SpaceId,
    pub(crate) scopes: BTreeSet<Scope>,
    pub(crate) user_id: Option<String>,
    pub(crate) agent_id: Option<String>,
    pub(crate) conversation_id: Option<String>,
    pub(crate) expires_at: Option<Timestamp>,
}

/// A token and the one sight of its secret.
#[derive(Serialize, Deserialize)]
pub(crate) struct NewToken {
    pub(crate) token: Token,
    pub(crate) secret: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct InForce {
    pub(crate) version: u64,
    pub(crate) settings: Settings,
    /// What a server was started with; a state directory has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ceiling: Option<u32>,
}

impl Desk {
    pub(crate) fn open(context: &Context<'_>) -> Result<Self> {
        match context.server()? {
            Some(remote) => Ok(Self::There(Box::new(remote))),
            None => context.place().map(Self::Here),
        }
    }

    pub(crate) fn create_token(&self, request: &TokenRequest) -> Result<NewToken> {
        match self {
            Self::There(remote) => remote.post(Target::new("/v1/tokens"), request),
            Self::Here(place) => {
                let (state, store) = place.open()?;
                let Issued { id, secret, hash } =
                    TokenKey::load_or_create(state.keys())?.issue()?;
                let request = request.clone();
                let token = Token {
                    token_id: id,
                    name: request.name,
                    role: request.role,
                    space_id: request.space_id,
                    scopes: request.scopes,
                    user_id: request.user_id,
                    agent_id: request.agent_id,
                    conversation_id: request.conversation_id,
                    created_at: Timestamp::now(),
                    expires_at: request.expires_at,
                    revoked_at: None,
                };
                store.create_token(&token, &hash, &operator())?;
                Ok(NewToken { token, secret })
            }
        }
    }

    pub(crate) fn tokens(&self, filter: &TokenFilter) -> Result<Page<Token>> {
        match self {
            Self::Here(place) => match place.open_if_there()? {
                Some((_, store)) => store.tokens(filter),
                None => Ok(Page {
                    items: Vec::new(),
                    next: None,
                }),
            },
            Self::There(remote) => remote.get(
                Target::new("/v1/tokens")
                    .optional("space_id", filter.space.as_ref())
                    .query("all", filter.include_unusable)
                    .optional("limit", Some(filter.limit).filter(|limit| *limit > 0))
                    .optional("cursor", filter.cursor.as_deref()),
            ),
        }
    }

    pub(crate) fn token(&self, id: &TokenId) -> Result<Token> {
        match self {
            Self::Here(place) => {
                let (_, store) = place.open_if_there()?.ok_or_else(unknown)?;
                store.token(id)?.map(|(token, _)| token).ok_or_else(unknown)
            }
            Self::There(remote) => remote.get(Target::new("/v1/tokens").segment(id.as_str())),
        }
    }

    /// As it is afterwards.
    pub(crate) fn revoke_token(&self, id: &TokenId) -> Result<Token> {
        match self {
            Self::Here(place) => {
                let (_, store) = place.open_if_there()?.ok_or_else(unknown)?;
                store.revoke_token(id, &operator())?.ok_or_else(unknown)
            }
            Self::There(remote) => remote.delete(Target::new("/v1/tokens").segment(id.as_str())),
        }
    }

    pub(crate) fn settings(&self) -> Result<InForce> {
        match self {
            Self::Here(place) => match place.open_if_there()? {
                Some((_, store)) => store.settings().map(InForce::of_store),
                None => Ok(InForce::of_store((Settings::default(), 0))),
            },
            Self::There(remote) => remote.get(Target::new("/v1/settings")),
        }
    }

    pub(crate) fn change_settings(&self, change: Change) -> Result<InForce> {
        match self {
            Self::There(remote) => remote.patch(Target::new("/v1/settings"), &change.patch()),
            Self::Here(place) => {
                let (_, store) = place.open()?;
                let changed = store.change_settings(&operator(), move |settings, _| {
                    let settings = change.apply(&settings)?;
                    // Each server holds it against its own ceiling.
                    check_settings(&settings, u32::MAX)?;
                    Ok(settings)
                });
                changed.map(InForce::of_store)
            }
        }
    }
}

impl InForce {
    fn of_store((settings, version): (Settings, u64)) -> Self {
        Self {
            version,
            settings,
            ceiling: None,
        }
    }
}

/// In the ledger: nobody's token, but whoever owns the state directory.
fn operator() -> Actor {
    let uid = rustix::process::geteuid().as_raw();
    Actor {
        token_id: None,
        name: format!("the operator at the machine (uid {uid})"),
    }
}

fn unknown() -> Error {
    Error::new(Code::NotFound, Stage::Parse, "there is no such token")
        .hint("`glovebox token ls --all` lists them")
}
