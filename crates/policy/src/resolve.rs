//! The first stage of the path: a call and the layers above it become one effective profile, or
//! a refusal that says which layer decided.

use std::collections::BTreeSet;

use glovebox_model::{
    Call, Capped, Code, EnvVar, Error, HostPort, OnExceed, PartialProfile, Profile, Result, Stage,
    Upgrade,
};

use crate::decided::{Decided, decisions, way_up};
use crate::effective::{Effective, Exceeded};
use crate::env::settle;
use crate::escalate::check_escalation;
use crate::field::Field;
use crate::layer::{Decider, Layer, LayerName};
use crate::name::{check_image, check_runtime};
use crate::pattern::check_pattern;
use crate::range::check_limits;
use crate::request::{Beyond, Preset, check_consistent};
use crate::secret::check_secrets;
use crate::system::{Clock, System};

/// A call whose every field is decided. Only `resolve` makes one.
#[derive(Debug, Clone)]
pub struct Resolved {
    pub(crate) call: Call,
    pub(crate) system: System,
    pub(crate) effective: Effective,
    pub(crate) preset: Preset,
    pub(crate) env: Vec<EnvVar>,
    pub(crate) env_deciders: Vec<(glovebox_model::EnvKey, Decider)>,
    pub(crate) capped: Vec<Capped>,
    pub(crate) upgrades: Vec<Upgrade>,
    /// The destinations among the upgrades that policy does not give.
    pub(crate) destinations: BTreeSet<HostPort>,
}

impl Resolved {
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// Before the declared tier's preset, which `assess` applies.
    pub fn profile(&self) -> Profile {
        self.effective.profile()
    }

    /// The variables to set, sorted by key. Values may be private: never print or store them.
    pub fn env(&self) -> &[EnvVar] {
        &self.env
    }

    pub fn decisions(&self) -> Vec<Decided> {
        decisions(&self.effective, &self.env_deciders, &self.system)
    }

    /// What whoever approved the call left of it. Fields that cannot be narrowed are not theirs to
    /// say, and are ignored.
    #[must_use]
    pub fn narrowed(mut self, most: &PartialProfile) -> Self {
        self.effective.narrow_by(most);
        self
    }

    pub fn capped(&self) -> &[Capped] {
        &self.capped
    }

    /// What the call wants beyond policy; nothing of it may be used before a person agreed.
    pub fn upgrades(&self) -> &[Upgrade] {
        &self.upgrades
    }
}

/// Layers may come in any order; they apply in the order of their names, and two of the same name
/// in the order given.
pub fn resolve(call: Call, system: &System, layers: &[Layer]) -> Result<Resolved> {
    let mut layers: Vec<&Layer> = layers.iter().collect();
    layers.sort_by_key(|layer| layer.name());
    for layer in &layers {
        check_values(layer.profile(), |field| layer.decider(field))?;
    }
    check_values(&call.overrides, |_| Decider::plain(LayerName::Request))?;
    check_consistent(&call.overrides)?;
    system.check(layers.iter().copied())?;

    let mut effective = Effective::of(system, &layers, Clock::of(&call));
    let beyond = match call.on_exceed {
        OnExceed::Refuse | OnExceed::Cap => Beyond::Bring,
        OnExceed::Ask => Beyond::Keep,
    };
    let (preset, mut exceeded) = effective.request(&call.overrides, system.presets(), beyond);
    let allow = preset.env_allow(&effective.env_allow);
    let env = settle(&call, &layers, &allow, beyond)?;
    exceeded.extend(env.exceeded);
    check_secrets(&call, &env.vars)?;
    let (mut capped, mut upgrades) = (Vec::new(), Vec::new());
    let mut destinations = BTreeSet::new();
    match (call.on_exceed, exceeded.split_first()) {
        (_, None) => {}
        (OnExceed::Refuse, Some((first, others))) => return Err(refusal(first, others, system)),
        (OnExceed::Cap, Some(_)) => capped = exceeded.into_iter().map(cap).collect(),
        (OnExceed::Ask, Some(_)) => {
            check_escalation(&exceeded, &effective, system)?;
            destinations = exceeded.iter().flat_map(destinations_of).collect();
            upgrades = exceeded.into_iter().map(upgrade).collect();
        }
    }
    Ok(Resolved {
        call,
        system: *system,
        effective,
        preset,
        env: env.vars,
        env_deciders: env.deciders,
        capped,
        upgrades,
        destinations,
    })
}

/// Read back from the text of the excess, which lists each as it is written.
fn destinations_of(exceeded: &Exceeded) -> Vec<HostPort> {
    match exceeded.field {
        Field::AllowNet => {
            let listed = exceeded.beyond.split(", ");
            listed.filter_map(|it| it.parse().ok()).collect()
        }
        _ => Vec::new(),
    }
}

/// Values that no layer may hold, whatever the others say.
fn check_values(profile: &PartialProfile, by: impl Fn(&Field) -> Decider) -> Result<()> {
    check_limits(&profile.limits)
        .map_err(|(field, why)| out_of_range(&by(&Field::Limit(field)), &why))?;
    for pattern in profile.env_allow.iter().flatten() {
        check_pattern(pattern)
            .map_err(|why| out_of_range(&by(&Field::EnvAllow), &format!("`env_allow`: {why}")))?;
    }
    if let Some(runtime) = &profile.runtime {
        check_runtime(runtime).map_err(|why| out_of_range(&by(&Field::Runtime), &why))?;
    }
    if let Some(image) = &profile.image {
        check_image(image).map_err(|why| out_of_range(&by(&Field::Image), &why))?;
    }
    Ok(())
}

fn out_of_range(by: &Decider, why: &str) -> Error {
    if by.layer == LayerName::Request {
        return Error::new(Code::InvalidArgument, Stage::Resolve, why);
    }
    let error = Error::new(
        Code::InvalidConfig,
        Stage::Resolve,
        format!("{why}, in {by}"),
    );
    match &by.source {
        Some(source) => error.at_rule(source.file.clone(), source.line),
        None => error,
    }
}

fn cap(exceeded: Exceeded) -> Capped {
    Capped {
        field: exceeded.field.to_string(),
        asked: exceeded.asked,
        granted: exceeded.granted,
        layer: exceeded.by.to_string(),
    }
}

fn upgrade(exceeded: Exceeded) -> Upgrade {
    Upgrade {
        field: exceeded.field.to_string(),
        asked: exceeded.asked,
        given: exceeded.allowed,
        layer: exceeded.by.to_string(),
    }
}

pub(crate) fn quoted(value: &str) -> String {
    match value {
        "nothing" | "any destination" => value.to_owned(),
        value => format!("`{value}`"),
    }
}

pub(crate) fn sentence(exceeded: &Exceeded) -> String {
    let Exceeded {
        field,
        beyond,
        allowed,
        by,
        ..
    } = exceeded;
    let allowed = quoted(allowed);
    match field {
        Field::Env(key) => {
            let allows = by.verb("allows", "allow");
            format!("environment key `{key}` is not among those that {by} {allows}: {allowed}")
        }
        Field::Tier | Field::Security | Field::LimitsDemand | Field::Approval => {
            let demands = by.verb("demands", "demand");
            format!("`{field}` `{beyond}` is looser than {by} {demands}, which is {allowed}")
        }
        Field::Limit(_)
        | Field::Network
        | Field::AllowNet
        | Field::Workspace
        | Field::EnvAllow
        | Field::Require
        | Field::Backend
        | Field::Runtime
        | Field::Image => {
            let allows = by.verb("allows", "allow");
            format!("`{field}` `{beyond}` is more than {by} {allows}, which is {allowed}")
        }
    }
}

/// The first excess is the error, with every other one named, so that one round trip shows all.
fn refusal(first: &Exceeded, others: &[Exceeded], system: &System) -> Error {
    let mut error = Error::new(Code::PolicyDenied, Stage::Resolve, sentence(first));
    for other in others {
        error = error.hint(format!("also refused: {}", sentence(other)));
    }
    if let Field::Limit(_) = first.field {
        error = error.hint(format!("ask for `{}` or less", first.allowed));
    }
    let rule_field = match &first.field {
        Field::Env(_) => &Field::EnvAllow,
        field => field,
    };
    error = error
        .hint(way_up(rule_field, &first.by, None, system))
        .hint("`--on-exceed cap` (in a request `on_exceed: cap`) runs with what is allowed and reports it in `capped`");
    match &first.by.source {
        Some(source) => error.at_rule(source.file.clone(), source.line),
        None => error,
    }
}
