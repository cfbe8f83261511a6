//! What goes beyond policy, and who may give it.

use glovebox_model::{
    ApprovalMode, BackendName, Delivery, HostPort, NetworkMode, Permit, Reason, ReasonCode,
    ReasonKind, SecretUse, Upgrade,
};

use super::Case;
use super::reason::plain;
use crate::field::Field;
use crate::network::Nearness;
use crate::rule::{Hit, Matchers};

impl Case<'_> {
    pub(super) fn upgrades(&self) -> Vec<Upgrade> {
        let asked = self.assessed.upgrades().iter().cloned();
        asked
            .chain(self.host_upgrades())
            .chain(self.open_network())
            .chain(self.wanted_secrets().map(of_secret))
            .collect()
    }

    pub(super) fn upgrade_reasons(&self) -> Vec<Reason> {
        let mut reasons: Vec<Reason> = self
            .assessed
            .upgrades()
            .iter()
            .map(|it| self.of(it))
            .collect();
        for it in self.host_upgrades() {
            let text = match it.field == Field::Backend.to_string() {
                true => "it would run on the host, without a sandbox".to_owned(),
                false => format!("it would see `{}` of the host", it.asked),
            };
            let way = "each such exec needs an approval of its own";
            let mut reason = plain(Permit::Ask, ReasonKind::Upgrade, text, way);
            reason.part = Some(it.field);
            reasons.push(reason);
        }
        if let Some(it) = self.open_network() {
            let text = "its network would be unrestricted, so that it reaches anything".to_owned();
            let mut reason = plain(Permit::Ask, ReasonKind::Upgrade, text, OPEN_WAY);
            reason.code = Some(ReasonCode::NetUnrestrictedRequested);
            reason.part = Some(it.field);
            reasons.push(reason);
        }
        reasons.extend(self.wanted_secrets().map(|it| self.of_wanted(it)));
        // Last: there may be more of them than are shown.
        reasons.extend(self.destinations());
        reasons
    }

    fn of(&self, it: &Upgrade) -> Reason {
        let text = format!(
            "`{}` of `{}` goes beyond `{}`, which is all that comes from {}",
            it.field, it.asked, it.given, it.layer
        );
        let code = if is_open(it) {
            Some(ReasonCode::NetUnrestrictedRequested)
        } else if is_of_network(it) {
            Some(ReasonCode::NetCustomPolicyRequested)
        } else {
            None
        };
        let way = match self.mode {
            _ if is_open(it) => OPEN_WAY,
            ApprovalMode::Evolution => "an allow rule, or a person, may give it",
            ApprovalMode::Cowork | ApprovalMode::Manual => "only a person may give it",
        };
        let mut reason = plain(Permit::Ask, ReasonKind::Upgrade, text, way);
        reason.code = code;
        reason.part = Some(it.field.clone());
        reason
    }

    /// What whoever decides should know of each destination that is wanted.
    fn destinations(&self) -> Vec<Reason> {
        let settings = self.standing.network;
        let mut reasons = Vec::new();
        for it in self.assessed.wanted_destinations() {
            let mut note = |code, text: String, way: &str| {
                let mut reason = plain(Permit::Ask, ReasonKind::Upgrade, text, way);
                reason.code = Some(code);
                reason.part = Some(it.to_string());
                reasons.push(reason);
            };
            let private = match settings.nearness(it) {
                Nearness::Public => None,
                Nearness::Listed => Some((
                    format!("`{}` is private, and the operator lists it", it.host()),
                    "only what is asked for reaches it",
                )),
                Nearness::Unlisted => Some((
                    format!("`{}` is no public host", it.host()),
                    "it is dialled only if the operator lists it in `private` under `[network]`",
                )),
            };
            if let Some((text, way)) = private {
                note(ReasonCode::NetPrivateDestinationRequested, text, way);
            }
            if let Some(name) = it.below() {
                let text = format!("it stands for every name below `{name}`");
                let way = "name the hosts that are needed";
                note(ReasonCode::NetWildcardDomainRequested, text, way);
            }
            if !is_usual(it) {
                let text = format!("port {} is neither 80 nor 443", it.port());
                let way = "only what is asked for reaches another port";
                note(ReasonCode::NetNonDefaultPortRequested, text, way);
            }
        }
        reasons
    }

    /// Reaching the host itself. Nothing but an approval of this very exec gives it.
    fn host_upgrades(&self) -> Vec<Upgrade> {
        let mut upgrades = Vec::new();
        if self.is_unsandboxed() {
            upgrades.push(Upgrade {
                field: Field::Backend.to_string(),
                asked: BackendName::Host.to_string(),
                given: BackendName::Native.to_string(),
                layer: "approvals.host".to_owned(),
            });
        }
        for target in &self.assessed.call().mounts {
            upgrades.push(Upgrade {
                field: "mounts".to_owned(),
                asked: target.clone(),
                given: "none".to_owned(),
                layer: "approvals.host_mounts".to_owned(),
            });
        }
        upgrades
    }

    /// A network without bounds is asked about although a layer gives it. What the request itself
    /// asked for is among its own upgrades already.
    fn open_network(&self) -> Option<Upgrade> {
        let asked = self.assessed.upgrades().iter().any(is_open);
        (self.is_open() && !asked).then(|| Upgrade {
            field: Field::Network.to_string(),
            asked: NetworkMode::Unrestricted.to_string(),
            given: NetworkMode::Allowlist.to_string(),
            layer: "approvals".to_owned(),
        })
    }

    fn is_open(&self) -> bool {
        self.assessed.profile().network == NetworkMode::Unrestricted
    }

    fn is_granted(&self, it: &SecretUse) -> bool {
        self.standing.secrets.iter().any(|grant| grant.gives(it))
    }

    /// Those that nobody granted.
    fn wanted_secrets(&self) -> impl Iterator<Item = &SecretUse> {
        let all = self.assessed.call().secrets.iter();
        all.filter(|it| !self.is_granted(it))
    }

    fn of_wanted(&self, it: &SecretUse) -> Reason {
        let text = format!("it would get secret `{}` {}", it.name, how(it.delivery));
        let grant = format!(
            "a grant of the secret (`glovebox secret grant {}`)",
            it.name
        );
        let way = match self.mode {
            ApprovalMode::Evolution => {
                format!("{grant}, an allow rule on `secret`, or a person, may give it")
            }
            ApprovalMode::Cowork | ApprovalMode::Manual => {
                format!("{grant}, or a person, may give it")
            }
        };
        let mut reason = plain(Permit::Ask, ReasonKind::Upgrade, text, &way);
        reason.part = Some(it.name.to_string());
        reason
    }

    pub(super) fn secrets_by_grant(&self) -> Vec<Reason> {
        let granted = |it: &&SecretUse| self.is_granted(it);
        let reason = |it: &SecretUse| {
            let text = format!(
                "secret `{}` is granted, and it gets it {}",
                it.name,
                how(it.delivery)
            );
            let way = "revoke the grant to be asked again";
            let mut reason = plain(Permit::Allow, ReasonKind::Grant, text, way);
            reason.part = Some(it.name.to_string());
            reason
        };
        let all = self.assessed.call().secrets.iter();
        all.filter(granted).map(reason).collect()
    }

    /// Only in `evolution`, and only by rules that speak of what is wanted: one that allows a
    /// command has not said that it may reach anything, or have a secret.
    pub(super) fn upgrade_allowed(&self) -> bool {
        let allows = &self.verdict.allows;
        if !self.host_upgrades().is_empty()
            || self.is_open()
            || self.mode != ApprovalMode::Evolution
            || allows.is_empty()
        {
            return false;
        }
        let spoken = |speaks: fn(&Matchers) -> bool| {
            let by = |hit: &Hit<'_>| speaks(&hit.rule.matchers);
            match allows
                .iter()
                .any(|hit| !hit.rule.matchers.command.is_empty())
            {
                true => allows.iter().all(by),
                false => allows.iter().any(by),
            }
        };
        let network = !self.assessed.upgrades().iter().any(is_of_network)
            || spoken(|it| !it.host.is_empty() || !it.network.is_empty());
        let secrets = self.wanted_secrets().next().is_none() || spoken(|it| !it.secret.is_empty());
        network && secrets
    }
}

const OPEN_WAY: &str = "a person agrees to each such exec; `allowlist` with `allow_net` asks less";

fn is_of_network(it: &Upgrade) -> bool {
    it.field == Field::Network.to_string() || it.field == Field::AllowNet.to_string()
}

fn is_open(it: &Upgrade) -> bool {
    it.field == Field::Network.to_string() && it.asked == NetworkMode::Unrestricted.as_str()
}

fn is_usual(it: &HostPort) -> bool {
    matches!(it.port(), 80 | 443)
}

fn of_secret(it: &SecretUse) -> Upgrade {
    Upgrade {
        field: "secrets".to_owned(),
        asked: format!("{} ({})", it.name, it.delivery),
        given: "none".to_owned(),
        layer: "grants of secrets".to_owned(),
    }
}

const fn how(delivery: Delivery) -> &'static str {
    match delivery {
        Delivery::File => "as a file",
        Delivery::Descriptor => "as an open descriptor",
        Delivery::Broker => "as a placeholder, whose value only its own hosts see",
        Delivery::Env => "in its environment",
    }
}
