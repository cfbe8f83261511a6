//! Secrets that a call wants: whether it may have them, and their values.

use std::collections::BTreeSet;
use std::fmt;

use glovebox_model::{
    Code, Correlation, Delivery, EnvKey, Error, GrantId, HostPort, Result, Secret, SecretGiven,
    SecretGrant, SecretUse, Stage, Vouched,
};
use glovebox_policy::secret_variable;
use glovebox_store::ValuePlace;
use zeroize::Zeroizing;

use super::vault::Secrets;

/// A secret that a call wants and the space has, without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownSecret {
    pub wanted: SecretUse,
    pub secret: Secret,
    /// The variable that the program finds it by.
    pub variable: EnvKey,
    /// The standing grant that gives it; without one a person has to agree.
    pub grant: Option<GrantId>,
}

/// A secret with its value.
pub struct OpenedSecret {
    pub wanted: SecretUse,
    pub version: u64,
    pub value: Zeroizing<Vec<u8>>,
    /// Where a brokered value may go.
    pub hosts: BTreeSet<HostPort>,
    pub variable: EnvKey,
    pub grant: Option<GrantId>,
}

impl fmt::Debug for OpenedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedSecret")
            .field("wanted", &self.wanted)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl OpenedSecret {
    /// As the exec's record has it.
    pub fn given(&self) -> SecretGiven {
        SecretGiven {
            name: self.wanted.name.clone(),
            version: self.version,
            delivery: self.wanted.delivery,
            grant_id: self.grant.clone(),
        }
    }
}

fn not_so(secret: &Secret, asked: Delivery) -> Error {
    let allowed: Vec<&str> = secret.deliveries.iter().map(|it| it.as_str()).collect();
    let name = &secret.name;
    let error = Error::new(
        Code::PolicyDenied,
        Stage::Resolve,
        format!("the secret `{name}` may not be given as `{asked}`"),
    );
    let error = match allowed.as_slice() {
        [] => error,
        some => error.hint(format!(
            "it may be given as `{}`: `--secret {name}={}`",
            some.join("`, `"),
            some[0]
        )),
    };
    error.hint(format!(
        "whoever may set it can allow it: `glovebox secret set {name} --deliver {asked}`"
    ))
}

impl Secrets<'_> {
    /// What the space knows of the secrets that are wanted. One that is not there, or may not be
    /// given in that way, is refused.
    pub fn look_up(
        &self,
        (ids, vouched): (&Correlation, Vouched),
        wanted: &[SecretUse],
    ) -> Result<Vec<KnownSecret>> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let grants = self.granted(ids, vouched)?;
        let mut known = Vec::with_capacity(wanted.len());
        for wanted in wanted {
            let secret = self.get(&ids.space_id, &wanted.name)?;
            if !secret.deliveries.contains(&wanted.delivery) {
                return Err(not_so(&secret, wanted.delivery));
            }
            let gives = |grant: &&SecretGrant| {
                grant.secret == wanted.name && grant.deliveries.contains(&wanted.delivery)
            };
            known.push(KnownSecret {
                variable: secret_variable(wanted)?,
                grant: grants
                    .iter()
                    .find(gives)
                    .map(|grant| grant.grant_id.clone()),
                wanted: wanted.clone(),
                secret,
            });
        }
        Ok(known)
    }

    /// The same with their values. Whether a person had to agree is for the caller to have asked.
    pub fn open(
        &self,
        (ids, vouched): (&Correlation, Vouched),
        wanted: &[SecretUse],
    ) -> Result<Vec<OpenedSecret>> {
        let known = self.look_up((ids, vouched), wanted)?;
        known
            .into_iter()
            .map(|known| {
                let place = ValuePlace {
                    space: ids.space_id.clone(),
                    name: known.wanted.name.clone(),
                    version: known.secret.version,
                };
                let value = self.value(&place)?.ok_or_else(|| {
                    Error::new(
                        Code::Conflict,
                        Stage::Obtain,
                        format!("the secret `{}` was changed just now", place.name),
                    )
                    .hint("try again")
                })?;
                Ok(OpenedSecret {
                    wanted: known.wanted,
                    version: place.version,
                    value,
                    hosts: known.secret.hosts,
                    variable: known.variable,
                    grant: known.grant,
                })
            })
            .collect()
    }
}
