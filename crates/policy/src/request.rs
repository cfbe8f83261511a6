//! The request's own layer: what it asks for is granted, or found to go too far.

use glovebox_model::{Code, Error, LimitField, NetworkMode, PartialProfile, Result, Stage, Tier};

use crate::bound::{Amount, Bound};
use crate::destinations::Destinations;
use crate::effective::{Effective, Exceeded, Held, WITHOUT_NETWORK, forbids_network};
use crate::field::Field;
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

/// What becomes of a wish that goes too far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beyond {
    /// The field ends at what is allowed.
    Bring,
    /// The field keeps what was asked for, for a person to agree to.
    Keep,
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
        Some(mode) if mode > WITHOUT_NETWORK && forbids_network(asked) => Err(contradicts(
            format!("`network` `{mode}` contradicts `require` of `no_network`"),
        )),
        None if lists && forbids_network(asked) => Err(contradicts(
            "`allow_net` contradicts `require` of `no_network`".to_owned(),
        )),
        Some(_) | None => Ok(()),
    }
}

fn contradicts(message: String) -> Error {
    Error::new(Code::InvalidArgument, Stage::Resolve, message).hint("leave out one of the two")
}

impl Effective {
    /// Applies the request and says where it went too far.
    pub(crate) fn request(
        &mut self,
        asked: &PartialProfile,
        presets: TierPresets,
        beyond: Beyond,
    ) -> (Preset, Vec<Exceeded>) {
        let mut exceeded = Vec::new();
        let mut note = |it: Option<Exceeded>| exceeded.extend(it);
        note(ask(
            &mut self.tier,
            Field::Tier,
            asked.tier,
            None,
            Beyond::Bring,
        ));
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
                beyond,
            ));
        }
        let mode = asked_mode(asked, self.network.value);
        let most = bound.network.map(|it| (it, &by));
        note(ask(&mut self.network, Field::Network, mode, most, beyond));
        note(self.request_destinations(asked, bound.network.map(|it| (it, &by)), beyond));
        let most = bound.workspace.map(|it| (it, &by));
        note(ask(
            &mut self.workspace,
            Field::Workspace,
            asked.workspace,
            most,
            beyond,
        ));
        let most = bound.env_allow.clone().map(|it| (EnvPatterns(it), &by));
        let wanted = asked.env_allow.clone().map(EnvPatterns);
        note(ask(
            &mut self.env_allow,
            Field::EnvAllow,
            wanted,
            most,
            Beyond::Bring,
        ));
        note(ask(
            &mut self.security,
            Field::Security,
            asked.security,
            None,
            Beyond::Bring,
        ));
        note(ask(
            &mut self.limits_demand,
            Field::LimitsDemand,
            asked.limits_demand,
            None,
            Beyond::Bring,
        ));
        note(ask(
            &mut self.approval,
            Field::Approval,
            asked.approval,
            None,
            Beyond::Bring,
        ));
        if !asked.require.is_empty() {
            let by = Decider::plain(LayerName::Request);
            self.require.push(Held::new(asked.require.clone(), by));
        }
        prefer(&mut self.backend, asked.backend);
        prefer(&mut self.runtime, asked.runtime.clone());
        prefer(&mut self.image, asked.image.clone());
        (preset, exceeded)
    }

    /// Where the mode ends below `allowlist`, no destination is granted, whatever the lists say.
    fn request_destinations(
        &mut self,
        asked: &PartialProfile,
        preset: Option<(NetworkMode, &Decider)>,
        beyond: Beyond,
    ) -> Option<Exceeded> {
        let wanted = asked.allow_net.clone().map(Destinations::Only);
        let mut mode = self.network.clone();
        if let Some((most, by)) = preset
            && !mode.raised
        {
            mode.narrow(&most, by);
        }
        let closed =
            (mode.value < NetworkMode::Allowlist).then(|| (Destinations::nothing(), &mode.by));
        ask(&mut self.allow_net, Field::AllowNet, wanted, closed, beyond)
    }

    pub(crate) fn narrow_to(&mut self, preset: &Preset) {
        let by = preset.by();
        let bound = &preset.profile;
        for (field, held) in LimitField::ALL.into_iter().zip(&mut self.limits) {
            if let Some(raw) = field.opinion(&bound.limits)
                && !held.raised
            {
                held.narrow(&Amount { field, raw }, &by);
            }
        }
        if let Some(network) = bound.network
            && !self.network.raised
        {
            self.network.narrow(&network, &by);
        }
        if let Some(workspace) = bound.workspace
            && !self.workspace.raised
        {
            self.workspace.narrow(&workspace, &by);
        }
        self.env_allow = preset.env_allow(&self.env_allow);
    }

    /// What whoever approved it left of it, an escalation included: their word is the last one.
    pub(crate) fn narrow_by(&mut self, most: &PartialProfile) {
        let by = Decider::plain(LayerName::Approval);
        for (field, held) in LimitField::ALL.into_iter().zip(&mut self.limits) {
            if let Some(raw) = field.opinion(&most.limits) {
                held.narrow(&Amount { field, raw }, &by);
            }
        }
        if let Some(network) = most.network {
            self.network.narrow(&network, &by);
        }
        if let Some(list) = &most.allow_net {
            self.allow_net
                .narrow(&Destinations::Only(list.clone()), &by);
        }
        if let Some(workspace) = most.workspace {
            self.workspace.narrow(&workspace, &by);
        }
        if !most.require.is_empty() {
            self.require.push(Held::new(most.require.clone(), by));
        }
    }
}

/// Naming destinations is asking for the mode that reaches them, and for no more than that.
fn asked_mode(asked: &PartialProfile, held: NetworkMode) -> Option<NetworkMode> {
    match (asked.network, &asked.allow_net) {
        (None, _) if forbids_network(asked) => Some(held.min(WITHOUT_NETWORK)),
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
    beyond: Beyond,
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
                raised: false,
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
    *held = match beyond {
        Beyond::Bring => Held {
            value: granted,
            ..allowed
        },
        Beyond::Keep => Held {
            value: asked,
            by: Decider::plain(LayerName::Request),
            most: None,
            raised: true,
        },
    };
    Some(exceeded)
}

fn prefer<T>(held: &mut Held<Option<T>>, asked: Option<T>) {
    if asked.is_some() {
        *held = Held {
            value: asked,
            by: Decider::plain(LayerName::Request),
            most: None,
            raised: false,
        };
    }
}
