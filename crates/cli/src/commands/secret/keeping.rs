//! Where secrets are kept: in the state directory, or at a server.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use glovebox_engine::{GrantSecret, Removal, Revocation, Secrets, SetSecret, Vault};
use glovebox_model::{
    Code, Delivery, Error, GrantId, HostPort, Result, Secret, SecretGrant, SecretName, SpaceId,
    Stage,
};
use glovebox_store::{Actor, Page, SecretGrantFilter, Store};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use zeroize::Zeroizing;

use crate::context::{self, Context};
use crate::remote::{Address, Remote, Target};

const SECRETS: &str = "/v1/secrets";
const GRANTS: &str = "/v1/secret-grants";

/// More grants of one secret than anybody makes; a page of the API.
const GRANTS_MOST: usize = 1000;

#[derive(Debug)]
pub(super) enum Keeping {
    Here(Box<Here>),
    There(Box<Remote>),
}

#[derive(Debug)]
pub(super) struct Here {
    store: Store,
    vault: Vault,
}

/// The body of a secret, as the API takes it.
#[derive(Serialize)]
struct SecretBody<'a> {
    value_base64: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: &'a Option<BTreeSet<HostPort>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deliveries: &'a Option<BTreeSet<Delivery>>,
}

#[derive(Serialize)]
struct GrantBody {
    secret: SecretName,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deliveries: Option<BTreeSet<Delivery>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
}

impl Here {
    /// Makes what is not there: something is about to be written.
    pub(super) fn open(context: &Context<'_>) -> Result<Self> {
        let (state, store) = context.place()?.open()?;
        let vault = Vault::new(&state, context.secrets_key()?);
        Ok(Self { store, vault })
    }

    pub(super) fn secrets(&self) -> Secrets<'_> {
        Secrets::new(&self.store, &self.vault)
    }
}

/// Whoever has the state directory.
pub(super) fn operator() -> Actor {
    Actor {
        token_id: None,
        name: context::user(),
    }
}

impl Keeping {
    pub(super) fn open(context: &Context<'_>) -> Result<Self> {
        Ok(match context.server()? {
            Some(remote) => Self::There(Box::new(remote)),
            None => Self::Here(Box::new(Here::open(context)?)),
        })
    }

    pub(super) fn set(&self, set: SetSecret) -> Result<Secret> {
        match self {
            Self::Here(here) => here.secrets().set(&SpaceId::local(), set, &operator()),
            Self::There(remote) => {
                ensure_private(remote)?;
                let text = Zeroizing::new(STANDARD.encode(&set.value));
                let body = SecretBody {
                    value_base64: &text,
                    hosts: &set.hosts,
                    deliveries: &set.deliveries,
                };
                remote.put_json(Target::new(SECRETS).segment(set.name.as_str()), &body)
            }
        }
    }

    pub(super) fn list(&self, limit: usize, cursor: Option<&SecretName>) -> Result<Page<Secret>> {
        match self {
            Self::Here(here) => {
                let cursor = cursor.map(|name| name.as_str());
                here.secrets().list(&SpaceId::local(), limit, cursor)
            }
            Self::There(remote) => remote.get(
                Target::new(SECRETS)
                    .query("limit", limit)
                    .optional("cursor", cursor),
            ),
        }
    }

    pub(super) fn remove(&self, name: &SecretName) -> Result<Removal> {
        match self {
            Self::Here(here) => here.secrets().remove(&SpaceId::local(), name, &operator()),
            Self::There(remote) => remote.delete(Target::new(SECRETS).segment(name.as_str())),
        }
    }

    pub(super) fn grant(&self, asked: GrantSecret) -> Result<SecretGrant> {
        match self {
            Self::Here(here) => here.secrets().grant(&SpaceId::local(), asked, &operator()),
            Self::There(remote) => {
                let lasts = asked.lasts.and_then(|it| SignedDuration::try_from(it).ok());
                let end = |lasts| {
                    Timestamp::now()
                        .saturating_add::<SignedDuration>(lasts)
                        .ok()
                };
                let body = GrantBody {
                    secret: asked.secret,
                    conversation_id: asked.conversation_id,
                    agent_id: asked.agent_id,
                    deliveries: asked.deliveries,
                    expires_at: lasts.and_then(end),
                };
                remote.post(Target::new(GRANTS), &body)
            }
        }
    }

    pub(super) fn grants(&self, filter: &SecretGrantFilter) -> Result<Page<SecretGrant>> {
        match self {
            Self::Here(here) => here.secrets().grants(&SpaceId::local(), filter),
            Self::There(remote) => remote.get(
                Target::new(GRANTS)
                    .optional("secret", filter.secret.as_ref())
                    .optional("all", filter.include_ended.then_some(true))
                    .optional("limit", Some(filter.limit).filter(|limit| *limit > 0))
                    .optional("cursor", filter.cursor.as_deref()),
            ),
        }
    }

    pub(super) fn revoke(&self, id: &GrantId) -> Result<Revocation> {
        match self {
            Self::Here(here) => here.secrets().revoke(&SpaceId::local(), id, &operator()),
            Self::There(remote) => remote.delete(Target::new(GRANTS).segment(id.as_str())),
        }
    }

    /// All grants of a secret that are in force.
    pub(super) fn revoke_all(&self, name: &SecretName) -> Result<Revocation> {
        match self {
            Self::Here(here) => here
                .secrets()
                .revoke_all(&SpaceId::local(), name, &operator()),
            Self::There(_) => {
                let mut all = Revocation {
                    revoked: Vec::new(),
                    still_held: Vec::new(),
                };
                let filter = SecretGrantFilter {
                    secret: Some(name.clone()),
                    limit: GRANTS_MOST,
                    ..SecretGrantFilter::default()
                };
                for grant in self.grants(&filter)?.items {
                    let one = self.revoke(&grant.grant_id)?;
                    all.revoked.extend(one.revoked);
                    all.still_held.extend(one.still_held);
                }
                Ok(all)
            }
        }
    }
}

/// A token in the clear can be revoked; a secret in the clear is everybody's.
fn ensure_private(remote: &Remote) -> Result<()> {
    let address = remote.address();
    let is_exposed = address
        .parse::<Address>()
        .map_or(true, |it| it.is_exposed());
    match is_exposed {
        false => Ok(()),
        true => Err(Error::new(
            Code::InvalidArgument,
            Stage::Parse,
            format!("the value would go to `{address}` in the clear"),
        )
        .hint("use `https://`, or set it at the machine itself")),
    }
}
