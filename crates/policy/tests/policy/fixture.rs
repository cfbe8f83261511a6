use glovebox_model::{
    ByteString, Call, Correlation, Delivery, EnvVar, LimitField, OnExceed, PartialLimits,
    PartialProfile, Program, Result, SecretUse, SpaceId, WorkspaceRef,
};
use glovebox_policy::{Assessed, HostFacts, Layer, Surface, System, assess, resolve};

pub(crate) const HOST: HostFacts = HostFacts {
    memory_bytes: 16 << 30,
    cpus: 8,
};

pub(crate) fn server() -> System {
    System::new(Surface::Server, HOST)
}

pub(crate) fn call(overrides: PartialProfile) -> Call {
    Call {
        overrides,
        ..Call::new(
            Correlation::of_space(SpaceId::local()),
            glovebox_model::Vouched::People,
            WorkspaceRef::Scratch,
            Program::Argv {
                command: ByteString::try_from("true").unwrap(),
                args: Vec::new(),
            },
        )
    }
}

pub(crate) fn capping(overrides: PartialProfile) -> Call {
    Call {
        on_exceed: OnExceed::Cap,
        ..call(overrides)
    }
}

pub(crate) fn with_env(pairs: &[(&str, &str)]) -> Call {
    Call {
        env: pairs
            .iter()
            .map(|(key, value)| variable(key, value))
            .collect(),
        ..call(PartialProfile::default())
    }
}

pub(crate) fn variable(key: &str, value: &str) -> EnvVar {
    EnvVar {
        key: key.parse().unwrap(),
        value: ByteString::try_from(value).unwrap(),
    }
}

pub(crate) fn secret(name: &str, delivery: Delivery) -> SecretUse {
    SecretUse {
        name: name.parse().unwrap(),
        delivery,
        variable: None,
    }
}

pub(crate) fn run(call: Call, layers: &[Layer]) -> Result<Assessed> {
    resolve(call, &server(), layers).map(assess)
}

pub(crate) fn silent() -> PartialProfile {
    PartialProfile::default()
}

/// A profile with one limit, written as a person would.
pub(crate) fn limit(key: &str, text: &str) -> PartialProfile {
    let field = LimitField::ALL
        .into_iter()
        .find(|it| it.key() == key)
        .unwrap();
    let mut limits = PartialLimits::default();
    field.set(&mut limits, field.parse(text).unwrap());
    PartialProfile { limits, ..silent() }
}

/// One layer of each name, in order, with the profile at one place.
pub(crate) fn layer_at(place: usize, profile: PartialProfile) -> Layer {
    match place {
        0 => Layer::settings(profile),
        1 => Layer::space(&SpaceId::local(), profile),
        2 => Layer::user("dana", profile),
        3 => Layer::agent("bot", profile),
        4 => Layer::conversation("c1", profile),
        5 => Layer::skill("shell.run", profile),
        _ => panic!("there are six layers between the defaults and the request"),
    }
}

pub(crate) const PLACES: std::ops::Range<usize> = 0..6;

pub(crate) fn destinations(list: &[&str]) -> std::collections::BTreeSet<glovebox_model::HostPort> {
    list.iter().map(|it| it.parse().unwrap()).collect()
}

pub(crate) fn patterns(list: &[&str]) -> std::collections::BTreeSet<String> {
    list.iter().map(|it| (*it).to_owned()).collect()
}
