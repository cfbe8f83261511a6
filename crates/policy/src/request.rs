//! The request's own layer: what it asks for is granted, or found to go too far.

use glovebox_model::{Code, Error, NetworkMode, PartialProfile, Result, Stage, Tier};

use crate::bound::{Amount, Bound};
use crate::destinations::Destinations;
use crate::effective::{Effective, Exceeded, Held};
use crate::field::{Field, LimitField};
use crate::layer::{Decider, LayerName};
use crate::pattern::EnvPatterns;
use crate::preset::{TierPresets, preset};

/// The preset of the tier that was declared in the end.
#[derive(Debug, Clone)]
pub(crate) struct Preset {
    tier: Tier,
    profile: PartialProfile,
}

impl Preset {
    fn of(tier: Tier, presets: TierPresets) -> Self {
        Self {
            tier,
            profile: preset(tier, presets),
        }
    }

    fn by(&self) -> Decider {
        Decider::tier(self.tier)
    }

    /// The environment keys that are left to a call once the preset is counted in.
    pub(crate) fn env_allow(&self, held: &Held<EnvPatterns>) -> Held<EnvPatterns> {
        let mut held = held.clone();
        if let Some(most) = self.profile.env_allow.clone() {
            held.narrow(&EnvPatterns(most), &self.by());
        }
        held
    }
}

/// Contradictions inside the request itself.
pub(crate) fn check_consistent(asked: &PartialProfile) -> Result<()> {
    let lists = asked.allow_net.as_ref().is_some_and(|it| !it.is_empty());
    match asked.network {
        Some(mode @ (NetworkMode::None | NetworkMode::Retrieval | NetworkMode::Unrestricted))
            if lists =>
        {
            Err(Error::new(
                Code::InvalidArgument,
                Stage::Resolve,
                format!("`allow_net` has no meaning with `network` `{mode}`"),
            )
            .hint("leave out `network`, or ask for `allowlist`"))
        }
        Some(_) | None => Ok(()),
    }
}

impl Effective {
    /// Applies the request and says where it went too far; those fields end at what is allowed.
    pub(crate) fn request(
        &mut self,
        asked: &PartialProfile,
        presets: TierPresets,
    ) -> (Preset, Vec<Exceeded>) {
        let mut exceeded = Vec::new();
        let mut note = |it: Option<Exceeded>| exceeded.extend(it);
        note(ask(&mut self.tier, Field::Tier, asked.tier, None));
        let preset = Preset::of(self.tier.value, presets);
        let bound = &preset.profile;
        let by = preset.by();

        for (field, held) in LimitField::ALL.into_iter().zip(&mut self.limits) {
            let amount = |raw| Amount { field, raw };
            let most = field.opinion(&bound.limits).map(amount);
            let wanted = field.opinion(&asked.limits).map(amount);
            note(ask(
                held,
                Field::Limit(field),
                wanted,
                most.map(|it| (it, &by)),
            ));
        }
        let mode = asked_mode(asked, self.network.value);
        let most = bound.network.map(|it| (it, &by));
        note(ask(&mut self.network, Field::Network, mode, most));
        note(self.request_destinations(asked, bound.network.map(|it| (it, &by))));
        let most = bound.workspace.map(|it| (it, &by));
        note(ask(
            &mut self.workspace,
            Field::Workspace,
            asked.workspace,
            most,
        ));
        let most = bound.env_allow.clone().map(|it| (EnvPatterns(it), &by));
        let wanted = asked.env_allow.clone().map(EnvPatterns);
        note(ask(&mut self.env_allow, Field::EnvAllow, wanted, most));
        note(ask(
            &mut self.security,
            Field::Security,
            asked.security,
            None,
        ));
        note(ask(
            &mut self.limits_demand,
            Field::LimitsDemand,
            asked.limits_demand,
            None,
        ));
        prefer(&mut self.backend, asked.backend);
        prefer(&mut self.image, asked.image.clone());
        (preset, exceeded)
    }

    /// Where the mode ends below `allowlist`, no destination is granted, whatever the lists say.
    fn request_destinations(
        &mut self,
        asked: &PartialProfile,
        preset: Option<(NetworkMode, &Decider)>,
    ) -> Option<Exceeded> {
        let wanted = asked.allow_net.clone().map(Destinations::Only);
        let mut mode = self.network.clone();
        if let Some((most, by)) = preset {
            mode.narrow(&most, by);
        }
        let closed =
            (mode.value < NetworkMode::Allowlist).then(|| (Destinations::nothing(), &mode.by));
        ask(&mut self.allow_net, Field::AllowNet, wanted, closed)
    }

    pub(crate) fn narrow_to(&mut self, preset: &Preset) {
        let by = preset.by();
        let bound = &preset.profile;
        for (field, held) in LimitField::ALL.into_iter().zip(&mut self.limits) {
            if let Some(raw) = field.opinion(&bound.limits) {
                held.narrow(&Amount { field, raw }, &by);
            }
        }
        if let Some(network) = bound.network {
            self.network.narrow(&network, &by);
        }
        if let Some(workspace) = bound.workspace {
            self.workspace.narrow(&workspace, &by);
        }
        self.env_allow = preset.env_allow(&self.env_allow);
    }
}

/// Naming destinations is asking for the mode that reaches them, and for no more than that.
fn asked_mode(asked: &PartialProfile, held: NetworkMode) -> Option<NetworkMode> {
    match (asked.network, &asked.allow_net) {
        (Some(mode), _) => Some(mode),
        (None, None) => None,
        (None, Some(list)) if list.is_empty() => Some(held.min(NetworkMode::Allowlist)),
        (None, Some(_)) => Some(NetworkMode::Allowlist),
    }
}

fn ask<T: Bound>(
    held: &mut Held<T>,
    field: Field,
    asked: Option<T>,
    preset: Option<(T, &Decider)>,
) -> Option<Exceeded> {
    let asked = asked?;
    let mut allowed = held.clone();
    if let Some((most, by)) = preset {
        allowed.narrow(&most, by);
    }
    if allowed.value.covers(&asked) {
        if !asked.covers(&held.value) {
            *held = Held {
                value: asked,
                by: Decider::plain(LayerName::Request),
                most: Some(allowed.value.show()),
            };
        }
        return None;
    }
    let granted = allowed.value.meet(&asked);
    let exceeded = Exceeded {
        field,
        asked: asked.show(),
        beyond: allowed.value.beyond(&asked),
        allowed: allowed.value.show(),
        granted: granted.show(),
        by: allowed.by.clone(),
    };
    *held = Held {
        value: granted,
        ..allowed
    };
    Some(exceeded)
}

fn prefer<T>(held: &mut Held<Option<T>>, asked: Option<T>) {
    if asked.is_some() {
        *held = Held {
            value: asked,
            by: Decider::plain(LayerName::Request),
            most: None,
        };
    }
}
