//! The time of one exec: its policy, what it has used of it, and its end.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use glovebox_capture::Secrets;
use glovebox_egress::Scheme;
use glovebox_model::{HostPort, NetCode, NetworkMode, SecretName};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use zeroize::Zeroizing;

use crate::denial::Denial;
use crate::destination::Destination;
use crate::names::Standing;
use crate::policy::{Brokered, Inspect, Policy};
use crate::previewed::{Preview, Stray, strayed};
use crate::simulate::Play;

#[derive(Debug)]
pub(crate) struct Term {
    policy: Policy,
    masks: Result<Secrets, Denial>,
    connections: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    revoked: Mutex<BTreeSet<SecretName>>,
    play: Option<Arc<Play>>,
    preview: Option<Preview>,
    cut: watch::Sender<bool>,
}

/// Why a connection ended before its ends did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    Closed,
    Expired,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Sent,
    Received,
}

impl Term {
    pub(crate) fn new(mut policy: Policy) -> Self {
        let play = policy.simulate.take().map(|it| Arc::new(Play::new(it)));
        let previewed = policy.previewed.take().filter(|_| play.is_none());
        if play.is_some() {
            // Nothing is sent, so nothing may be put in: what is not here cannot be.
            for secret in &mut policy.secrets {
                secret.value = Zeroizing::default();
            }
        }
        let values = policy
            .secrets
            .iter()
            .filter(|_| play.is_none())
            .map(|it| (it.name.clone(), it.value.clone()));
        let masks = Secrets::compile(values).map_err(|unfit| {
            Denial::new(
                NetCode::Other,
                format!("answers cannot be searched for a secret: {unfit}"),
                "give the secret another value, or deliver it in another way",
            )
        });
        Self {
            masks,
            policy,
            connections: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            revoked: Mutex::default(),
            play,
            preview: previewed.map(Preview::new),
            cut: watch::Sender::new(false),
        }
    }

    /// There if nothing is real.
    pub(crate) fn play(&self) -> Option<&Arc<Play>> {
        self.play.as_ref()
    }

    pub(crate) fn preview(&self) -> Option<&Preview> {
        self.preview.as_ref()
    }

    pub(crate) fn stray(&self) -> Option<Stray> {
        self.preview.as_ref().and_then(Preview::stray)
    }

    /// Whether there could be a network at all.
    pub(crate) fn has_network(&self) -> bool {
        match self.policy.mode {
            NetworkMode::None | NetworkMode::Retrieval => false,
            NetworkMode::Allowlist | NetworkMode::Unrestricted => true,
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.cut.borrow()
    }

    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= Instant::from_std(self.policy.closes)
    }

    /// The rule that lets it through; an unrestricted network needs none.
    pub(crate) fn decide(&self, destination: &Destination) -> Result<Option<HostPort>, Denial> {
        let (host, port) = (destination.name(), destination.port());
        self.state(host, port)?;
        let allow = &self.policy.allow;
        let rule = match self.policy.mode {
            NetworkMode::None | NetworkMode::Retrieval => {
                let why = "this run has no network";
                return Err(Denial::of(NetCode::NetModeNone, host, port, why));
            }
            NetworkMode::Unrestricted => None,
            NetworkMode::Allowlist => match allow.iter().find(|it| destination.is_meant_by(it)) {
                Some(rule) => Some(rule.clone()),
                None if allow.iter().any(|it| destination.host().is_meant_by(it)) => {
                    let why = format!("`{host}` is on the list with other ports");
                    return Err(Denial::of(NetCode::PortNotAllowed, host, port, why));
                }
                None => {
                    let why = format!("`{host}` is not on the list of this run");
                    return Err(Denial::of(NetCode::NotInAllowlist, host, port, why));
                }
            },
        };
        if self.is_spent() {
            return Err(Denial::limit("egress_bytes", self.policy.bytes));
        }
        Ok(rule)
    }

    /// Whether there is a network at all at this moment.
    pub(crate) fn state(&self, host: &str, port: u16) -> Result<(), Denial> {
        if let Some(stray) = self.stray() {
            return Err(strayed(&stray.to_string()));
        }
        // What was begun in a simulation is judged by its policy, also while it is being ended.
        if self.is_closed() && self.play.is_none() {
            return Err(no_network(host, port));
        }
        if self.is_over() {
            let why = "the time for which the network was granted is over";
            return Err(Denial::of(NetCode::PolicyExpired, host, port, why));
        }
        Ok(())
    }

    pub(crate) fn standing(&self, host: &glovebox_egress::Host) -> Standing {
        match self.policy.allow.iter().any(|it| host.is_meant_by(it)) {
            true => Standing::Listed,
            false => Standing::Any,
        }
    }

    /// Counts one more connection, or says that there may be no more.
    pub(crate) fn begin(&self) -> Result<(), Denial> {
        let most = self.policy.connections;
        let more = |count: u64| (count < most).then_some(count + 1);
        match self
            .connections
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
        {
            Ok(_) => Ok(()),
            Err(_) => Err(Denial::limit("egress_connections", most)),
        }
    }

    /// Counts bytes. An error means that these are already too many and may not go on.
    pub(crate) fn spend(&self, way: Way, bytes: usize) -> io::Result<()> {
        let counter = match way {
            Way::Sent => &self.sent,
            Way::Received => &self.received,
        };
        counter.fetch_add(bytes as u64, Ordering::Relaxed);
        match self.used() > self.policy.bytes {
            true => Err(io::Error::other("the limit `egress_bytes` is used up")),
            false => Ok(()),
        }
    }

    fn used(&self) -> u64 {
        self.sent().saturating_add(self.received())
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.used() >= self.policy.bytes
    }

    pub(crate) fn bytes_most(&self) -> u64 {
        self.policy.bytes
    }

    pub(crate) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    pub(crate) fn close(&self) {
        self.cut.send_replace(true);
    }

    /// Returns when it was closed, whatever its time.
    pub(crate) async fn closed(&self) {
        let mut cut = self.cut.subscribe();
        // The sender is here.
        let _ = cut.wait_for(|it| *it).await;
    }

    /// Returns when nothing may go on.
    pub(crate) async fn over(&self) -> Cut {
        let mut cut = self.cut.subscribe();
        tokio::select! {
            biased;
            _ = cut.wait_for(|it| *it) => Cut::Closed,
            () = sleep_until(Instant::from_std(self.policy.closes)) => Cut::Expired,
        }
    }

    pub(crate) fn revoke(&self, name: &SecretName) {
        let mut revoked = self.revoked.lock().unwrap_or_else(PoisonError::into_inner);
        revoked.insert(name.clone());
    }

    pub(crate) fn is_revoked(&self, name: &SecretName) -> bool {
        let revoked = self.revoked.lock().unwrap_or_else(PoisonError::into_inner);
        revoked.contains(name)
    }

    pub(crate) fn inspections(&self, destination: &Destination) -> Vec<&Inspect> {
        let all = self.policy.inspect.iter();
        all.filter(|it| destination.is_meant_by(&it.host)).collect()
    }

    /// The secrets that are bound to a destination, revoked ones too.
    fn secrets(&self, destination: &Destination) -> Vec<&Brokered> {
        let all = self.policy.secrets.iter();
        all.filter(|it| it.hosts.iter().any(|rule| destination.is_meant_by(rule)))
            .collect()
    }

    /// Those whose values are put into a request in the place of placeholders.
    pub(crate) fn put_in(&self, destination: &Destination, scheme: Scheme) -> Vec<&Brokered> {
        match scheme {
            Scheme::Http => Vec::new(),
            Scheme::Https => self.secrets(destination),
        }
    }

    /// What must not come back. Without it no value may go out.
    pub(crate) fn masks(&self) -> Result<&Secrets, Denial> {
        self.masks.as_ref().map_err(Denial::clone)
    }

    /// Whether a brokered secret is held. Its value may come back from anywhere: a host that has
    /// it may have told others. So whatever is answered must be readable, and is searched.
    pub(crate) fn is_guarded(&self) -> bool {
        !self.policy.secrets.is_empty()
    }

    pub(crate) fn is_inspected(&self, destination: &Destination) -> bool {
        self.is_guarded() || !self.inspections(destination).is_empty()
    }
}

pub(crate) fn no_network(host: &str, port: u16) -> Denial {
    let why = "nothing runs that has a network";
    Denial::of(NetCode::NetModeNone, host, port, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::Simulated;

    fn policy() -> Policy {
        let at = || ["a.test:443".parse().unwrap()].into();
        Policy {
            mode: NetworkMode::Allowlist,
            allow: at(),
            bytes: 1,
            connections: 1,
            closes: std::time::Instant::now(),
            inspect: Vec::new(),
            secrets: vec![Brokered {
                name: "token".parse().unwrap(),
                placeholder: "PLACE".to_owned(),
                value: Zeroizing::new(b"real value of it".to_vec()),
                hosts: at(),
            }],
            simulate: None,
            previewed: None,
        }
    }

    #[test]
    fn a_simulation_knows_whose_secrets_there_are_and_not_what_they_are() {
        let at = Destination::new(glovebox_egress::Host::parse("a.test").unwrap(), 443).unwrap();
        let real = Term::new(policy());
        assert_eq!(&**real.secrets(&at)[0].value, b"real value of it");
        let simulation = glovebox_model::Simulation::default();
        let played = Term::new(Policy {
            simulate: Some(Simulated::new(&simulation).unwrap()),
            ..policy()
        });
        assert!(played.secrets(&at)[0].value.is_empty());
        assert!(played.masks().unwrap().is_empty());
        assert!(played.is_inspected(&at));
    }
}
