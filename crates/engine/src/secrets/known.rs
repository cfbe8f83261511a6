//! What is looked for in everything that leaves a space: its secrets, ready to be found.
//!
//! For people that is all of them. For an agent with a token of its own it is what was granted to it, or
//! given to the exec that is told of, so that a program held the value: whatever else is masked, and what is
//! only brokered, would tell it that a guess was right, and, while output waits for what may come next,
//! even that the beginning of one is.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use glovebox_capture::Secrets;
use glovebox_model::{
    Correlation, Delivery, Exec, Result, SecretGiven, SecretName, SpaceId, Vouched,
};
use glovebox_store::{Hide, Mask};
use serde_json::Value;

use crate::dispatch::Dispatcher;
use crate::secrets::Masks;
use crate::secrets::SecretAccess;

/// Agents and conversations of a space that are remembered.
const REMEMBERED_MOST: usize = 1000;

/// The last that was known of each space.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    spaces: Arc<Mutex<HashMap<SpaceId, OfSpace>>>,
    /// Those that have called with a token of their own.
    callers: Arc<Mutex<HashSet<(SpaceId, String)>>>,
}

/// Values, and the same ready to be looked for.
#[derive(Debug)]
struct OfSpace {
    values: Arc<Masks>,
    all: Arc<Secrets>,
    agents: HashMap<Whose, Arc<Granted>>,
}

/// An agent, in a conversation or without one. A conversation that it only names gives it nothing that
/// was granted to the conversation.
type Whose = (String, Option<String>, Vouched);

#[derive(Debug)]
struct Granted {
    names: BTreeSet<SecretName>,
    secrets: Arc<Secrets>,
}

fn compiled(values: &Masks, is_meant: impl Fn(&SecretName) -> bool) -> Result<Arc<Secrets>> {
    let meant = values.iter().filter(|(name, _)| is_meant(name));
    let values = meant.map(|(name, value)| (name.clone(), value.to_vec()));
    Ok(Arc::new(Secrets::compile(values)?))
}

impl Known {
    fn lock(&self) -> MutexGuard<'_, HashMap<SpaceId, OfSpace>> {
        self.spaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn callers(&self) -> MutexGuard<'_, HashSet<(SpaceId, String)>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// None for people, and for whom they speak.
    fn whose(&self, ids: &Correlation, vouched: Vouched) -> Option<Whose> {
        if vouched.is_by_people() {
            return None;
        }
        let agent = ids.agent_id.clone()?;
        let caller = (ids.space_id.clone(), agent);
        let is_own = self.callers().contains(&caller);
        is_own.then(|| (caller.1, ids.conversation_id.clone(), vouched))
    }

    fn get(&self, space: &SpaceId) -> Option<Arc<Secrets>> {
        self.lock().get(space).map(|it| Arc::clone(&it.all))
    }

    fn of(&self, space: &SpaceId, whose: &Whose) -> Option<Arc<Granted>> {
        self.lock()
            .get(space)
            .and_then(|it| it.agents.get(whose).cloned())
    }

    fn ready(&self, space: &SpaceId, values: Arc<Masks>) -> Result<Arc<Secrets>> {
        if let Some(known) = self.lock().get(space)
            && Arc::ptr_eq(&known.values, &values)
        {
            return Ok(Arc::clone(&known.all));
        }
        let all = compiled(&values, |_| true)?;
        let known = OfSpace {
            values,
            all: Arc::clone(&all),
            agents: HashMap::new(),
        };
        self.lock().insert(space.clone(), known);
        Ok(all)
    }

    /// Ready for an agent too. `values` are those of the space as they are now, and changed with
    /// every grant.
    fn ready_for(
        &self,
        space: &SpaceId,
        whose: Whose,
        values: &Arc<Masks>,
        names: impl FnOnce() -> Result<BTreeSet<SecretName>>,
    ) -> Result<Arc<Granted>> {
        if let Some(known) = self.of(space, &whose) {
            return Ok(known);
        }
        let names = names()?;
        let secrets = compiled(values, |it| names.contains(it))?;
        let granted = Arc::new(Granted { names, secrets });
        if let Some(known) = self.lock().get_mut(space)
            && Arc::ptr_eq(&known.values, values)
        {
            if known.agents.len() >= REMEMBERED_MOST {
                known.agents.clear();
            }
            known.agents.insert(whose, Arc::clone(&granted));
        }
        Ok(granted)
    }

    /// What an agent was granted, and what was given beside it.
    fn with(
        &self,
        space: &SpaceId,
        granted: &Granted,
        given: &[SecretName],
    ) -> Option<Arc<Secrets>> {
        if given.iter().all(|it| granted.names.contains(it)) {
            return Some(Arc::clone(&granted.secrets));
        }
        let values = self.lock().get(space).map(|it| Arc::clone(&it.values))?;
        let is_meant = |name: &SecretName| granted.names.contains(name) || given.contains(name);
        compiled(&values, is_meant).ok()
    }

    /// Of every space that was asked for.
    fn all(&self) -> Vec<Arc<Secrets>> {
        let all = self.lock();
        let all = all.values().map(|it| Arc::clone(&it.all));
        all.filter(|secrets| !secrets.is_empty()).collect()
    }
}

impl Dispatcher {
    /// What is looked for in what this caller is told.
    pub fn masks_for(&self, ids: &Correlation, vouched: Vouched) -> Result<Arc<Secrets>> {
        self.engine().secrets.masks_for(ids, vouched, &[])
    }

    /// For what is told of an exec.
    pub fn masks_of(&self, exec: &Exec) -> Result<Arc<Secrets>> {
        self.engine()
            .secrets
            .masks_for(&exec.ids, exec.vouched, &exec.secrets)
    }

    /// What was last known, without asking the store.
    pub fn known_masks(&self, ids: &Correlation, vouched: Vouched) -> Option<Arc<Secrets>> {
        let known = self.engine().instance.known_secrets();
        match known.whose(ids, vouched) {
            None => known.get(&ids.space_id),
            Some(whose) => {
                let granted = known.of(&ids.space_id, &whose)?;
                Some(Arc::clone(&granted.secrets))
            }
        }
    }

    /// This agent of the space calls with a token of its own.
    pub fn heard_agent(&self, space: &SpaceId, agent: &str) {
        let caller = (space.clone(), agent.to_owned());
        self.engine()
            .instance
            .known_secrets()
            .callers()
            .insert(caller);
    }

    pub fn log_mask(&self) -> LogMask {
        LogMask(self.engine().instance.known_secrets().clone())
    }
}

/// Takes out of the log what is secret in any space.
#[derive(Debug, Clone)]
pub struct LogMask(Known);

impl LogMask {
    pub fn clean<'l>(&self, line: &'l [u8]) -> Cow<'l, [u8]> {
        let mut clean = Cow::Borrowed(line);
        for secrets in self.0.all() {
            if let Cow::Owned(masked) = secrets.redact(&clean) {
                clean = Cow::Owned(masked);
            }
        }
        clean
    }
}

impl SecretAccess {
    /// Everything secret of a space, as it is now.
    pub(crate) fn masks(&self, space: &SpaceId) -> Result<Arc<Secrets>> {
        let masks = self.open()?.masks(space)?;
        self.instance.known_secrets().ready(space, masks)
    }

    /// The same as far as what has these ids may know of it.
    pub(crate) fn masks_for(
        &self,
        ids: &Correlation,
        vouched: Vouched,
        given: &[SecretGiven],
    ) -> Result<Arc<Secrets>> {
        let (space, known) = (&ids.space_id, self.instance.known_secrets());
        let values = self.open()?.masks(space)?;
        let all = known.ready(space, Arc::clone(&values))?;
        let Some(whose) = known.whose(ids, vouched).filter(|_| !all.is_empty()) else {
            return Ok(all);
        };
        let names = || self.instance.store()?.secrets_once_handed(ids, vouched);
        let granted = known.ready_for(space, whose, &values, names)?;
        let given = given.iter().filter(|it| it.delivery.is_handed());
        let given: Vec<SecretName> = given.map(|it| it.name.clone()).collect();
        Ok(known.with(space, &granted, &given).unwrap_or(all))
    }

    /// Takes out what is secret of something that is about to be shown. Whether anything was.
    pub(crate) fn hide(&self, space: &SpaceId, shown: &mut Value) -> Result<bool> {
        Ok(self.masks(space)?.redact_json(shown))
    }
}

/// What is written down of people's execs holds no secret that was known when they began; of an agent's
/// none that it was granted or given.
impl Mask for Known {
    fn within(&self, space: &SpaceId, record: &Value) -> Hide {
        let ids = serde_json::from_value::<Correlation>(record["ids"].clone());
        let vouched = serde_json::from_value::<Vouched>(record["vouched"].clone());
        let vouched = vouched.unwrap_or_default();
        let granted = ids
            .ok()
            .and_then(|it| self.of(space, &self.whose(&it, vouched)?));
        let name = |it: &Value| it["name"].as_str().and_then(|name| name.parse().ok());
        let given = record["secrets"].as_array().into_iter().flatten();
        let handed = given.filter(|it| it["delivery"] != Delivery::Broker.as_str());
        let given: Vec<SecretName> = handed.filter_map(name).collect();
        let secrets = match granted {
            Some(granted) => self.with(space, &granted, &given),
            None => None,
        };
        let secrets = secrets.or_else(|| self.get(space)).unwrap_or_default();
        Box::new(move |value| secrets.redact_json(value))
    }

    fn knows(&self, space: &SpaceId) -> bool {
        self.get(space).is_some_and(|it| !it.is_empty())
    }
}
