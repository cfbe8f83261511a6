//! The secrets of a space, through the API.

use glovebox_api::client::{Address, Client};
use glovebox_api::{SecretGrantRequest, SecretRequest, Target};
use glovebox_engine::{Removal, Revocation};
use glovebox_model::{Code, Error, GrantId, Page, Result, Secret, SecretGrant, SecretName, Stage};
use glovebox_store::SecretGrantFilter;

use crate::context::Context;

const SECRETS: &str = "/v1/secrets";
const GRANTS: &str = "/v1/secret-grants";

/// More grants of one secret than anybody makes; a page of the API.
const GRANTS_MOST: usize = 1000;

#[derive(Debug)]
pub(super) struct Keeping(Client);

impl Keeping {
    pub(super) fn open(context: &Context<'_>) -> Result<Self> {
        context.store_api().map(Self)
    }

    pub(super) fn set(&self, name: &SecretName, request: &SecretRequest) -> Result<Secret> {
        self.ensure_private()?;
        let target = Target::new(SECRETS).segment(name.as_str());
        // What the value is, the command line said.
        self.0
            .put(target, request)
            .map_err(|error| match error.code {
                Code::Conflict if !self.0.is_remote() => Error {
                    code: Code::InvalidArgument,
                    ..error
                },
                _ => error,
            })
    }

    pub(super) fn list(&self, limit: usize, cursor: Option<&SecretName>) -> Result<Page<Secret>> {
        let target = Target::new(SECRETS).query("limit", limit);
        self.0.get(target.optional("cursor", cursor))
    }

    pub(super) fn remove(&self, name: &SecretName) -> Result<Removal> {
        let removed = self.0.delete(Target::new(SECRETS).segment(name.as_str()));
        removed.map_err(|error: Error| match error.code {
            Code::NotFound => error.hint(format!("`glovebox secret set {name}` makes it")),
            _ => error,
        })
    }

    pub(super) fn grant(&self, request: &SecretGrantRequest) -> Result<SecretGrant> {
        self.0.post(Target::new(GRANTS), request)
    }

    pub(super) fn grants(&self, filter: &SecretGrantFilter) -> Result<Page<SecretGrant>> {
        self.0.get(
            Target::new(GRANTS)
                .optional("secret", filter.secret.as_ref())
                .optional("all", filter.include_ended.then_some(true))
                .optional("limit", Some(filter.limit).filter(|limit| *limit > 0))
                .optional("cursor", filter.cursor.as_deref()),
        )
    }

    pub(super) fn revoke(&self, id: &GrantId) -> Result<Revocation> {
        self.0.delete(Target::new(GRANTS).segment(id.as_str()))
    }

    /// All grants of a secret that are in force.
    pub(super) fn revoke_all(&self, name: &SecretName) -> Result<Revocation> {
        let mut all = Revocation {
            revoked: Vec::new(),
            still_held: Vec::new(),
        };
        let filter = SecretGrantFilter {
            secret: Some(name.clone()),
            limit: GRANTS_MOST,
            ..SecretGrantFilter::default()
        };
        self.ensure_there(name)?;
        loop {
            let grants = self.grants(&filter)?.items;
            if grants.is_empty() {
                return Ok(all);
            }
            for grant in grants {
                let one = self.revoke(&grant.grant_id)?;
                all.revoked.extend(one.revoked);
                all.still_held.extend(one.still_held);
            }
        }
    }

    fn ensure_there(&self, name: &SecretName) -> Result<()> {
        let mut cursor = None;
        loop {
            let page = self.list(GRANTS_MOST, cursor.as_ref())?;
            if page.items.iter().any(|it| it.name == *name) {
                return Ok(());
            }
            cursor = page.items.into_iter().last().map(|it| it.name);
            if page.next.is_none() || cursor.is_none() {
                let message = format!("there is no secret `{name}`");
                return Err(Error::new(Code::NotFound, Stage::Parse, message)
                    .hint("`glovebox secret ls` lists them"));
            }
        }
    }

    /// A token in the clear can be revoked; a secret in the clear is everybody's.
    fn ensure_private(&self) -> Result<()> {
        let address = self.0.address();
        let is_exposed = || match address.parse::<Address>() {
            Ok(address) => address.is_exposed(),
            Err(_) => true,
        };
        match self.0.is_remote() && is_exposed() {
            false => Ok(()),
            true => Err(Error::new(
                Code::InvalidArgument,
                Stage::Parse,
                format!("the value would go to `{address}` in the clear"),
            )
            .hint("use `https://`, or set it at the machine itself")),
        }
    }
}
