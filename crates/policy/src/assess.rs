//! The second stage of the path: how risky the call is, and what its declared tier narrows.

use glovebox_model::{Call, Capped, EnvVar, HostPort, Profile, Risk, RiskSignal, Tier, Upgrade};
use glovebox_risk::{changes_meaning, may_change_what_runs, variable_signal};

use crate::decided::{Decided, decisions};
use crate::resolve::Resolved;

/// A resolved call with its risk and its final profile. Only `assess` makes one.
#[derive(Debug, Clone)]
pub struct Assessed {
    resolved: Resolved,
    profile: Profile,
    risk: Risk,
}

impl Assessed {
    pub fn call(&self) -> &Call {
        &self.resolved.call
    }

    pub fn into_call(self) -> Call {
        self.resolved.call
    }

    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The variables to set, sorted by key. Values may be private: never print or store them.
    pub fn env(&self) -> &[EnvVar] {
        &self.resolved.env
    }

    /// Variables of the caller's that change what a name means. Those of the operator's layers are
    /// part of the policy: whoever wrote its rules set them.
    pub(crate) fn changed_names(&self) -> Vec<String> {
        changed_names(&self.resolved)
    }

    /// Those of the caller's that are not known to change nothing.
    pub(crate) fn uncertain_names(&self) -> Vec<String> {
        callers_names(&self.resolved, may_change_what_runs)
    }

    pub fn risk(&self) -> &Risk {
        &self.risk
    }

    pub fn decisions(&self) -> Vec<Decided> {
        let Resolved {
            effective,
            env_deciders,
            system,
            ..
        } = &self.resolved;
        decisions(effective, env_deciders, system)
    }

    pub fn capped(&self) -> &[Capped] {
        &self.resolved.capped
    }

    /// What the call wants beyond policy; nothing of it may be used before a person agreed.
    pub fn upgrades(&self) -> &[Upgrade] {
        &self.resolved.upgrades
    }

    /// The destinations among them.
    pub(crate) fn wanted_destinations(&self) -> impl Iterator<Item = &HostPort> {
        self.resolved.destinations.iter()
    }
}

/// Never refuses: a tier is a hint that can raise isolation and ask for approval. The declared
/// tier's preset narrows here; a tier that is only assessed leaves limits alone.
pub fn assess(resolved: Resolved) -> Assessed {
    assess_with(resolved, Vec::new())
}

/// As `assess`, with signals of what the program names and somebody else has read: its scripts.
pub fn assess_with(mut resolved: Resolved, beside: Vec<RiskSignal>) -> Assessed {
    let found = glovebox_risk::signals(&resolved.call.program);
    let mut signals: Vec<RiskSignal> = declared(resolved.effective.tier.value)
        .into_iter()
        .chain(
            changed_names(&resolved)
                .iter()
                .filter_map(|it| variable_signal(it)),
        )
        .chain(found)
        .collect();
    for signal in beside {
        if !signals.contains(&signal) {
            signals.push(signal);
        }
    }
    let tier = signals.iter().map(|it| it.tier).max().unwrap_or(Tier::Safe);
    let preset = resolved.preset.clone();
    resolved.effective.narrow_to(&preset);
    let mut profile = resolved.effective.profile();
    if resolved.call.session.is_some() {
        profile.limits.wall_ms = profile.limits.session_ms;
    }
    Assessed {
        profile,
        risk: Risk { tier, signals },
        resolved,
    }
}

/// More of them say nothing new.
const VARIABLES_MAX: usize = 32;

fn changed_names(resolved: &Resolved) -> Vec<String> {
    callers_names(resolved, changes_meaning)
}

fn callers_names(resolved: &Resolved, counts: fn(&str) -> bool) -> Vec<String> {
    let deciders = resolved.env_deciders.iter();
    deciders
        .filter(|(key, by)| !by.layer.is_operator() && counts(key.as_str()))
        .map(|(key, _)| key.to_string())
        .take(VARIABLES_MAX)
        .collect()
}

/// The one signal that is not found in the program.
pub(crate) const DECLARED: &str = "declared_tier";

fn declared(tier: Tier) -> Option<RiskSignal> {
    (tier > Tier::Safe).then(|| RiskSignal {
        name: DECLARED.to_owned(),
        tier,
        at: None,
    })
}
