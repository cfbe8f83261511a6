//! The secrets of a store, for whoever has its key; and what a process remembers of them.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use glovebox_model::{
    Code, Correlation, Delivery, Error, ExecId, GrantId, HostPort, Page, Result, Secret,
    SecretGiven, SecretGrant, SecretName, SpaceId, Stage, Vouched,
};
use glovebox_store::{
    Actor, SealedValue, SecretGrantFilter, SecretWrite, StateDir, Store, ValuePlace,
};
use jiff::{SignedDuration, Timestamp};
use zeroize::Zeroizing;

use super::hold::{Meant, holds};
use super::key::{Key, KeySource};
use super::masks::{Masks, Remembered};
use super::revoked::{Listeners, Removal, Revocation, Revoked, RevokedWatch};
use crate::path::random;

/// Others may change the same secret at the same time, or exchange the key.
const ATTEMPTS: usize = 5;

/// Hosts of one secret.
const HOSTS_MOST: usize = 64;

/// How long a grant may last: who still needs it then is asked again.
pub const GRANT_MOST: Duration = Duration::from_secs(90 * 24 * 3600);

const GRANT_USUAL: Duration = Duration::from_secs(24 * 3600);

/// What a process remembers of secrets: where the key is, and what it has opened.
#[derive(Debug)]
pub struct Vault {
    keys: PathBuf,
    source: KeySource,
    key: Mutex<Option<Arc<Key>>>,
    masks: Remembered,
    listeners: Listeners,
}

impl Vault {
    /// Nothing is read yet.
    pub fn new(state: &StateDir, source: KeySource) -> Self {
        Self {
            keys: state.keys().to_owned(),
            source,
            key: Mutex::default(),
            masks: Remembered::default(),
            listeners: Listeners::default(),
        }
    }

    pub(super) fn source(&self) -> &KeySource {
        &self.source
    }

    pub(super) fn keys(&self) -> &Path {
        &self.keys
    }

    pub(super) fn key(&self, wanted: Option<&str>) -> Result<Arc<Key>> {
        let known = self
            .key
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(key) = known
            && wanted == Some(key.id())
        {
            return Ok(key);
        }
        let key = Arc::new(self.source.load(&self.keys, wanted)?);
        self.remember(Arc::clone(&key));
        Ok(key)
    }

    pub(super) fn remember(&self, key: Arc<Key>) {
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
    }
}

/// A secret as somebody sets it.
pub struct SetSecret {
    pub name: SecretName,
    pub value: Zeroizing<Vec<u8>>,
    /// As they were if nothing is said.
    pub hosts: Option<BTreeSet<HostPort>>,
    /// As they were if nothing is said; at first a file or a descriptor, and through the broker
    /// where there is a host.
    pub deliveries: Option<BTreeSet<Delivery>>,
}

impl fmt::Debug for SetSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetSecret")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// That some may have a secret from now on. It is said by a person, which is their approval.
#[derive(Debug, Clone)]
pub struct GrantSecret {
    pub secret: SecretName,
    pub conversation_id: Option<String>,
    pub agent_id: Option<String>,
    /// All that the secret allows, but the environment, if nothing is said.
    pub deliveries: Option<BTreeSet<Delivery>>,
    /// A day if nothing is said.
    pub lasts: Option<Duration>,
}

/// The secrets of a store with what opens them.
#[derive(Debug, Clone, Copy)]
pub struct Secrets<'a> {
    store: &'a Store,
    vault: &'a Vault,
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, Stage::Parse, message)
}

pub(super) fn bound_to(place: &ValuePlace) -> Vec<u8> {
    // None of the three can hold a slash.
    let ValuePlace {
        space,
        name,
        version,
    } = place;
    format!("secret/{space}/{name}/{version}").into_bytes()
}

pub(super) fn unopened(place: &ValuePlace) -> Error {
    Error::new(
        Code::StoreUnavailable,
        Stage::Open,
        format!(
            "the value of the secret `{}` (version {}) is not as it was written",
            place.name, place.version
        ),
    )
    .hint("somebody has changed the database: restore it from a copy that you trust")
    .hint(format!(
        "or remove it and set it anew: `glovebox secret rm {}`",
        place.name
    ))
}

fn usual_deliveries(hosts: &BTreeSet<HostPort>) -> BTreeSet<Delivery> {
    let mut usual = BTreeSet::from([Delivery::File, Delivery::Descriptor]);
    if !hosts.is_empty() {
        usual.insert(Delivery::Broker);
    }
    usual
}

fn check_places(
    name: &SecretName,
    hosts: &BTreeSet<HostPort>,
    deliveries: &BTreeSet<Delivery>,
) -> Result<()> {
    if hosts.len() > HOSTS_MOST {
        let message = format!("a secret is for {HOSTS_MOST} hosts at the most");
        return Err(invalid(message).hint("set it again under another name for the others"));
    }
    if let Some(wide) = hosts.iter().find(|it| it.below().is_some()) {
        let message = format!("`{name}` would go to any host that is like `{wide}`");
        return Err(invalid(message).hint("name each host that may have it: `--host HOST:PORT`"));
    }
    if deliveries.is_empty() {
        return Err(invalid(format!("`{name}` could not be given in any way"))
            .hint("allow one: `--deliver file`"));
    }
    if deliveries.contains(&Delivery::Broker) && hosts.is_empty() {
        let message = format!("`{name}` is to be brokered, and there is no host that may have it");
        return Err(invalid(message).hint("name it: `--host api.example.com:443`"));
    }
    Ok(())
}

impl<'a> Secrets<'a> {
    pub fn new(store: &'a Store, vault: &'a Vault) -> Self {
        Self { store, vault }
    }

    pub(super) fn store(&self) -> &'a Store {
        self.store
    }

    pub(super) fn vault(&self) -> &'a Vault {
        self.vault
    }

    /// Sets it, or gives it a new value. The value that it has already changes nothing.
    pub fn set(&self, space: &SpaceId, set: SetSecret, by: &Actor) -> Result<Secret> {
        glovebox_capture::Secrets::check(&set.name, &set.value)?;
        let mut attempt = 1;
        loop {
            match self.try_set(space, &set, by) {
                Err(error) if error.code == Code::Conflict && attempt < ATTEMPTS => attempt += 1,
                done => return done,
            }
        }
    }

    fn try_set(&self, space: &SpaceId, set: &SetSecret, by: &Actor) -> Result<Secret> {
        let before = match self.store.secret(space, &set.name) {
            Err(error) if error.code == Code::NotFound => None,
            found => Some(found?),
        };
        let seen = self.store.secret_version(space, &set.name)?;
        let kept = before.as_ref();
        let hosts = set.hosts.clone();
        let hosts = hosts
            .or_else(|| kept.map(|it| it.hosts.clone()))
            .unwrap_or_default();
        let deliveries = set.deliveries.clone();
        let deliveries = deliveries
            .or_else(|| kept.map(|it| it.deliveries.clone()))
            .unwrap_or_else(|| usual_deliveries(&hosts));
        check_places(&set.name, &hosts, &deliveries)?;
        let is_same = match kept {
            None => false,
            Some(kept) => {
                let place = ValuePlace {
                    space: space.clone(),
                    name: set.name.clone(),
                    version: kept.version,
                };
                self.value(&place)?
                    .is_some_and(|value| *value == *set.value)
            }
        };
        if let Some(kept) = &before
            && is_same
            && (&kept.hosts, &kept.deliveries) == (&hosts, &deliveries)
        {
            return Ok(kept.clone());
        }
        let place = ValuePlace {
            space: space.clone(),
            name: set.name.clone(),
            version: seen + 1,
        };
        let write = SecretWrite {
            name: set.name.clone(),
            seen,
            hosts,
            deliveries,
            value: match is_same {
                true => None,
                false => Some(self.sealed(&place, &set.value)?),
            },
        };
        self.store.put_secret(space, write, by)
    }

    /// What needs the key is tried again when the key was exchanged meanwhile: what was read
    /// before that belongs to a key that is gone.
    fn with_present_key<T>(&self, work: impl Fn(Option<&str>) -> Result<T>) -> Result<T> {
        let mut present = self.store.secrets_key()?;
        for _ in 1..ATTEMPTS {
            let done = work(present.as_deref());
            if done.is_ok() {
                return done;
            }
            let now = self.store.secrets_key()?;
            if now == present {
                return done;
            }
            present = now;
        }
        work(present.as_deref())
    }

    fn sealed(&self, place: &ValuePlace, value: &[u8]) -> Result<SealedValue> {
        let key = self.with_present_key(|present| match self.vault.key(present) {
            Ok(key) => Ok(key),
            // Where nothing is sealed any more, another key may begin.
            Err(error) => match self.store.has_sealed_values()? {
                true => Err(error),
                false => self.vault.key(None),
            },
        })?;
        Ok(SealedValue {
            version: place.version,
            key_id: key.id().to_owned(),
            sealed: key.seal().close(&bound_to(place), value)?,
        })
    }

    /// The key that seals everything now; none where nothing is sealed yet.
    pub(super) fn present_key(&self) -> Result<Option<Arc<Key>>> {
        self.with_present_key(|present| match present {
            None => Ok(None),
            Some(id) => self.vault.key(Some(id)).map(Some),
        })
    }

    /// None when it is gone.
    pub(super) fn value(&self, place: &ValuePlace) -> Result<Option<Zeroizing<Vec<u8>>>> {
        self.with_present_key(|_| match self.store.sealed_value(place)? {
            None => Ok(None),
            Some(sealed) => self.opened(place, &sealed).map(Some),
        })
    }

    fn opened(&self, place: &ValuePlace, value: &SealedValue) -> Result<Zeroizing<Vec<u8>>> {
        let key = self.vault.key(Some(&value.key_id))?;
        let plain = key.seal().open(&bound_to(place), &value.sealed);
        plain.ok_or_else(|| unopened(place))
    }

    /// One that is not there is an error that says how to set it.
    pub fn get(&self, space: &SpaceId, name: &SecretName) -> Result<Secret> {
        self.store.secret(space, name)
    }

    /// In the order of their names.
    pub fn list(
        &self,
        space: &SpaceId,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Secret>> {
        self.store.secrets(space, limit, cursor)
    }

    /// With all its values and grants. Needs no key.
    pub fn remove(&self, space: &SpaceId, name: &SecretName, by: &Actor) -> Result<Removal> {
        let (secret, revoked) = self.store.remove_secret(space, name, by)?;
        self.tell(space, name, None);
        Ok(Removal {
            secret,
            revoked,
            still_held: holds(self.store, space, &Meant::Secret(name))?,
        })
    }

    /// Lets a conversation or an agent have a secret without being asked each time. To be called
    /// for a person only.
    pub fn grant(&self, space: &SpaceId, asked: GrantSecret, by: &Actor) -> Result<SecretGrant> {
        if asked.conversation_id.is_none() && asked.agent_id.is_none() {
            return Err(
                invalid("a grant is for a conversation, for an agent, or for both")
                    .hint("say for whom: `--conversation ID` or `--agent ID`"),
            );
        }
        let secret = self.get(space, &asked.secret)?;
        let name = &secret.name;
        let deliveries = asked.deliveries.unwrap_or_else(|| {
            let mut usual = secret.deliveries.clone();
            usual.remove(&Delivery::Env);
            usual
        });
        if let Some(beyond) = deliveries.difference(&secret.deliveries).next() {
            let message = format!("the secret `{name}` may not be given as `{beyond}`");
            return Err(invalid(message).hint(format!(
                "allow it first: `glovebox secret set {name} --deliver {beyond}`"
            )));
        }
        if deliveries.is_empty() {
            let message = format!("the secret `{name}` may be given as `env` alone");
            return Err(invalid(message).hint("say that you want it so: `--deliver env`"));
        }
        let lasts = asked.lasts.unwrap_or(GRANT_USUAL);
        if lasts.is_zero() || lasts > GRANT_MOST {
            let days = GRANT_MOST.as_secs() / (24 * 3600);
            let message = format!("a grant lasts for some time, and for {days} days at the most");
            return Err(invalid(message).hint("say how long: `--for 24h`"));
        }
        let granted_at = Timestamp::now();
        let lasts = SignedDuration::try_from(lasts).map_err(|_| invalid("it lasts too long"))?;
        let grant = SecretGrant {
            grant_id: GrantId::from_random(random()?),
            secret: asked.secret,
            conversation_id: asked.conversation_id,
            agent_id: asked.agent_id,
            deliveries,
            granted_by: by.name.clone(),
            granted_at,
            expires_at: granted_at.saturating_add(lasts).unwrap_or(Timestamp::MAX),
            revoked_at: None,
        };
        self.store.grant_secret(space, &grant, by)?;
        Ok(grant)
    }

    /// Newest first.
    pub fn grants(&self, space: &SpaceId, filter: &SecretGrantFilter) -> Result<Page<SecretGrant>> {
        self.store.secret_grants(space, filter)
    }

    /// Those that are in force for what has these ids.
    pub fn granted(&self, ids: &Correlation, vouched: Vouched) -> Result<Vec<SecretGrant>> {
        self.store.secret_grants_for(ids, vouched)
    }

    pub fn revoke(&self, space: &SpaceId, id: &GrantId, by: &Actor) -> Result<Revocation> {
        let grant = self.store.revoke_secret_grant(space, id, by)?;
        self.revoked(space, vec![grant])
    }

    /// All grants of a secret that are in force.
    pub fn revoke_all(&self, space: &SpaceId, name: &SecretName, by: &Actor) -> Result<Revocation> {
        let grants = self.store.revoke_secret_grants(space, name, by)?;
        self.revoked(space, grants)
    }

    fn revoked(&self, space: &SpaceId, revoked: Vec<SecretGrant>) -> Result<Revocation> {
        for grant in &revoked {
            self.tell(space, &grant.secret, Some(grant.grant_id.clone()));
        }
        let ids: Vec<GrantId> = revoked.iter().map(|it| it.grant_id.clone()).collect();
        Ok(Revocation {
            still_held: holds(self.store, space, &Meant::Grants(&ids))?,
            revoked,
        })
    }

    fn tell(&self, space: &SpaceId, secret: &SecretName, grant: Option<GrantId>) {
        self.vault.listeners.tell(&Revoked {
            space: space.clone(),
            secret: secret.clone(),
            grant,
        });
    }

    /// Called after each grant or secret that this process takes back, for as long as the answer
    /// is held. What another process takes back is seen by [`Secrets::stands`].
    pub fn on_revoke(&self, hook: impl Fn(&Revoked) + Send + Sync + 'static) -> RevokedWatch {
        self.vault.listeners.add(hook)
    }

    /// Counts the changes of a space, whoever makes them.
    pub fn stamp(&self, space: &SpaceId) -> Result<u64> {
        self.store.secrets_stamp(space)
    }

    /// Whether what an exec was given may still be used.
    pub fn stands(&self, space: &SpaceId, given: &SecretGiven) -> Result<bool> {
        let place = ValuePlace {
            space: space.clone(),
            name: given.name.clone(),
            version: given.version,
        };
        if self.store.sealed_value(&place)?.is_none() {
            return Ok(false);
        }
        let Some(id) = &given.grant_id else {
            return Ok(true);
        };
        match self.store.secret_grant(space, id) {
            Err(error) if error.code == Code::NotFound => Ok(false),
            found => {
                let grant = found?;
                Ok(grant.revoked_at.is_none() && Timestamp::now() < grant.expires_at)
            }
        }
    }

    /// Writes down what an exec is given, before it starts. A conflict when it may not be any more.
    pub fn note_use(&self, ids: &Correlation, exec: &ExecId, given: &[SecretGiven]) -> Result<()> {
        self.store.use_secrets(ids, exec, given)
    }

    /// Every value of the space, older ones included. The same as before, not read again, while
    /// nobody has changed anything.
    pub fn masks(&self, space: &SpaceId) -> Result<Arc<Masks>> {
        let stamp = self.stamp(space)?;
        self.vault.masks.get(space, stamp, || {
            self.with_present_key(|_| {
                let sealed = self.store.sealed_values(space)?;
                let values = sealed.iter().map(|(place, value)| {
                    let plain = self.opened(place, value)?;
                    Ok((place.name.clone(), plain))
                });
                values.collect::<Result<Vec<_>>>().map(Masks::new)
            })
        })
    }
}
