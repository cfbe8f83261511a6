//! The second stage of the path: how risky the call is, and what its declared tier narrows.

use glovebox_model::{Call, Capped, EnvVar, Profile, Risk, RiskSignal, Tier};

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
}

/// Never refuses: a tier is a hint that can raise isolation and ask for approval. The declared
/// tier's preset narrows here; a tier that is only assessed leaves limits alone.
pub fn assess(mut resolved: Resolved) -> Assessed {
    let signals: Vec<RiskSignal> = declared(resolved.effective.tier.value)
        .into_iter()
        .collect();
    let tier = signals.iter().map(|it| it.tier).max().unwrap_or(Tier::Safe);
    let preset = resolved.preset.clone();
    resolved.effective.narrow_to(&preset);
    Assessed {
        profile: resolved.effective.profile(),
        risk: Risk { tier, signals },
        resolved,
    }
}

fn declared(tier: Tier) -> Option<RiskSignal> {
    (tier > Tier::Safe).then(|| RiskSignal {
        name: "declared_tier".to_owned(),
        tier,
        at: None,
    })
}
