//! The layers folded into one value per field, each with the layer that decided it.

use std::collections::BTreeSet;

use glovebox_model::{
    Access, ApprovalMode, BackendName, Guarantee, LimitField, LimitsDemand, NetworkMode,
    PartialProfile, Profile, SecurityMode, Tier,
};

use crate::bound::{Amount, Bound};
use crate::destinations::Destinations;
use crate::field::Field;
use crate::layer::{Decider, Layer, LayerName};
use crate::pattern::EnvPatterns;
use crate::system::{Clock, System, cpu_time};

/// A value and who decided it.
#[derive(Debug, Clone)]
pub(crate) struct Held<T> {
    pub(crate) value: T,
    pub(crate) by: Decider,
    /// When the request chose the value: the widest it could have chosen.
    pub(crate) most: Option<String>,
    /// An escalation that a person has yet to agree to; a preset does not take it back.
    pub(crate) raised: bool,
}

impl<T> Held<T> {
    pub(crate) fn new(value: T, by: Decider) -> Self {
        Self {
            value,
            by,
            most: None,
            raised: false,
        }
    }
}

impl<T: Bound> Held<T> {
    /// The layer becomes the decider only when it really narrows.
    pub(crate) fn narrow(&mut self, value: &T, by: &Decider) {
        let met = self.value.meet(value);
        if !met.covers(&self.value) {
            *self = Self::new(met, by.clone());
        }
    }
}

/// Something that the request asked for and may not have.
#[derive(Debug, Clone)]
pub(crate) struct Exceeded {
    pub(crate) field: Field,
    pub(crate) asked: String,
    /// The part of `asked` that goes too far.
    pub(crate) beyond: String,
    pub(crate) allowed: String,
    pub(crate) granted: String,
    pub(crate) by: Decider,
}

#[derive(Debug, Clone)]
pub(crate) struct Effective {
    pub(crate) limits: [Held<Amount>; LimitField::COUNT],
    pub(crate) network: Held<NetworkMode>,
    pub(crate) allow_net: Held<Destinations>,
    pub(crate) workspace: Held<Access>,
    pub(crate) env_allow: Held<EnvPatterns>,
    pub(crate) tier: Held<Tier>,
    pub(crate) security: Held<SecurityMode>,
    pub(crate) limits_demand: Held<LimitsDemand>,
    pub(crate) approval: Held<ApprovalMode>,
    /// What each layer that requires something requires; the whole is their union.
    pub(crate) require: Vec<Held<BTreeSet<Guarantee>>>,
    pub(crate) backend: Held<Option<BackendName>>,
    pub(crate) runtime: Held<Option<String>>,
    pub(crate) image: Held<Option<String>>,
}

impl Effective {
    /// `layers` are in their order of application.
    pub(crate) fn of(system: &System, layers: &[&Layer], clock: Clock) -> Self {
        Self {
            limits: LimitField::ALL.map(|field| limit(system, layers, clock, field)),
            network: network(layers),
            allow_net: allow_net(layers),
            workspace: fold(&Field::Workspace, Access::Rw, layers, |it| it.workspace),
            env_allow: env_allow(layers),
            tier: fold(&Field::Tier, Tier::Safe, layers, |it| it.tier),
            security: fold(&Field::Security, SecurityMode::Strict, layers, |it| {
                it.security
            }),
            limits_demand: fold(
                &Field::LimitsDemand,
                LimitsDemand::Supervised,
                layers,
                |it| it.limits_demand,
            ),
            approval: fold(&Field::Approval, ApprovalMode::Cowork, layers, |it| {
                it.approval
            }),
            require: layers
                .iter()
                .filter(|layer| !layer.profile().require.is_empty())
                .map(|layer| {
                    let required = layer.profile().require.clone();
                    Held::new(required, layer.decider(&Field::Require))
                })
                .collect(),
            backend: nearest(&Field::Backend, layers, |it| it.backend),
            runtime: nearest(&Field::Runtime, layers, |it| it.runtime.clone()),
            image: nearest(&Field::Image, layers, |it| it.image.clone()),
        }
    }

    pub(crate) fn profile(&self) -> Profile {
        let network = self.network.value;
        Profile {
            limits: LimitField::gather(|field| self.limits[field as usize].value.raw),
            network,
            // A list without its mode reaches nothing, so it is not shown as if it did.
            allow_net: match network {
                NetworkMode::Allowlist => self.allow_net.value.clone().into_set(),
                NetworkMode::None | NetworkMode::Retrieval | NetworkMode::Unrestricted => {
                    Destinations::nothing().into_set()
                }
            },
            workspace: self.workspace.value,
            env_allow: self.env_allow.value.0.clone(),
            tier: self.tier.value,
            security: self.security.value,
            limits_demand: self.limits_demand.value,
            approval: self.approval.value,
            require: self
                .require
                .iter()
                .flat_map(|held| held.value.iter().copied())
                .collect(),
            backend: self.backend.value,
            runtime: self.runtime.value.clone(),
            image: self.image.value.clone(),
        }
    }
}

/// Folds one bounded field. The first settings layer that speaks replaces the default, since the
/// default is only what holds when the operator is silent; from there on everything narrows.
fn fold<T: Bound>(
    field: &Field,
    default: T,
    layers: &[&Layer],
    opinion: impl Fn(&PartialProfile) -> Option<T>,
) -> Held<T> {
    let mut held: Option<Held<T>> = None;
    for layer in layers {
        let Some(value) = opinion(layer.profile()) else {
            continue;
        };
        let by = layer.decider(field);
        match &mut held {
            Some(held) => held.narrow(&value, &by),
            None if layer.name() == LayerName::Settings => held = Some(Held::new(value, by)),
            None => {
                let mut from_default = system_default(default.clone());
                from_default.narrow(&value, &by);
                held = Some(from_default);
            }
        }
    }
    held.unwrap_or_else(|| system_default(default))
}

fn system_default<T>(value: T) -> Held<T> {
    Held::new(value, Decider::plain(LayerName::System))
}

fn only_settings<'a>(layers: &[&'a Layer]) -> Vec<&'a Layer> {
    let settings = |layer: &&&Layer| layer.name() == LayerName::Settings;
    layers.iter().filter(settings).copied().collect()
}

fn limit(system: &System, layers: &[&Layer], clock: Clock, field: LimitField) -> Held<Amount> {
    let amount = |raw| Amount { field, raw };
    let default = match field {
        // An operator who allows more time means it, so the derived default follows.
        LimitField::CpuTime => {
            let settings = only_settings(layers);
            let time = limit(system, &settings, clock, clock.field()).value.raw;
            let cpus = limit(system, &settings, clock, LimitField::Cpus).value.raw;
            let time = glovebox_model::Millis(time);
            let cpus = glovebox_model::Cpus(u32::try_from(cpus).unwrap_or(u32::MAX));
            cpu_time(time, cpus).min(system.cpu_ceiling(clock)).get()
        }
        _ => field.get(system.defaults()),
    };
    fold(&Field::Limit(field), amount(default), layers, |it| {
        field.opinion(&it.limits).map(amount)
    })
}

/// A layer that lists destinations means that nothing else is reached, so a list without a mode
/// is an opinion on the mode as well. Settings that only list grant nothing.
fn network(layers: &[&Layer]) -> Held<NetworkMode> {
    let mut held = fold(&Field::Network, NetworkMode::None, layers, |it| it.network);
    for layer in layers.iter().filter(|it| it.profile().allow_net.is_some()) {
        held.narrow(&NetworkMode::Allowlist, &layer.decider(&Field::AllowNet));
    }
    for layer in layers.iter().filter(|it| forbids_network(it.profile())) {
        held.narrow(&WITHOUT_NETWORK, &layer.decider(&Field::Require));
    }
    held
}

/// The most that a sandbox without a network can have: what is fetched is fetched from outside.
pub(crate) const WITHOUT_NETWORK: NetworkMode = NetworkMode::Retrieval;

/// Requiring that there is no network is an opinion on the network as well. Else one layer would
/// grant what another forbids, and no backend could ever satisfy both.
pub(crate) fn forbids_network(profile: &PartialProfile) -> bool {
    profile.require.contains(&Guarantee::NoNetwork)
}

/// Where the settings open the network without a list, any list below them narrows; everywhere
/// else no list means no destination.
fn allow_net(layers: &[&Layer]) -> Held<Destinations> {
    let settings = network(&only_settings(layers));
    let list = |it: &PartialProfile| it.allow_net.clone().map(Destinations::Only);
    if settings.value == NetworkMode::Unrestricted {
        let mut held = Held::new(Destinations::Any, settings.by);
        // Whoever says "only what is listed" below and lists nothing allows nothing. Else a list of
        // another layer would open what this one had closed.
        let closed = |it: &PartialProfile| {
            (it.network == Some(NetworkMode::Allowlist)).then(Destinations::nothing)
        };
        for layer in layers {
            let stated = list(layer.profile()).or_else(|| closed(layer.profile()));
            if let Some(value) = stated {
                held.narrow(&value, &layer.decider(&Field::AllowNet));
            }
        }
        return held;
    }
    fold(&Field::AllowNet, Destinations::nothing(), layers, list)
}

pub(crate) fn env_allow(layers: &[&Layer]) -> Held<EnvPatterns> {
    fold(&Field::EnvAllow, EnvPatterns::every_key(), layers, |it| {
        it.env_allow.clone().map(EnvPatterns)
    })
}

/// A preference: the nearest layer that speaks wins.
fn nearest<T>(
    field: &Field,
    layers: &[&Layer],
    opinion: impl Fn(&PartialProfile) -> Option<T>,
) -> Held<Option<T>> {
    layers
        .iter()
        .rev()
        .find_map(|layer| {
            let value = opinion(layer.profile())?;
            Some(Held::new(Some(value), layer.decider(field)))
        })
        .unwrap_or_else(|| system_default(None))
}
