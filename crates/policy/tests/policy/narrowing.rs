//! The law of the resolver: nothing anybody says makes anything wider than any layer allows.

use std::collections::BTreeSet;

use glovebox_model::{
    Access, Count, Guarantee, HostPort, LimitField, LimitsDemand, NetworkMode, OnExceed,
    PartialLimits, PartialProfile, Profile, SecurityMode, Tier,
};
use glovebox_policy::{Layer, System, TierPresets, assess, demand, resolve};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::fixture::{call, layer_at, server};

/// A server whose operator gives devices, so that every limit can be asked for too much of.
fn system() -> System {
    server().with_ceilings(&PartialLimits {
        gpus: Some(Count(8)),
        tpus: Some(Count(8)),
        ..PartialLimits::default()
    })
}

const HOSTS: [&str; 6] = [
    "x.io:443",
    "*.x.io:443",
    "a.x.io:443",
    "*.a.x.io:443",
    "b.a.x.io:443",
    "a.x.io:80",
];
const REQUIRED: [Guarantee; 3] = [
    Guarantee::NoNetwork,
    Guarantee::DiskLimit,
    Guarantee::OwnKernel,
];
const PATTERNS: [&str; 6] = ["*", "A*", "AB*", "A", "AB", "B"];

/// Written apart from the resolver, from the words of the design.
fn reaches(list: &BTreeSet<HostPort>, host: &str, port: u16) -> bool {
    list.iter().any(|it| {
        it.port() == port
            && match it.host().strip_prefix("*.") {
                None => it.host() == host,
                Some(parent) => host
                    .strip_suffix(parent)
                    .is_some_and(|rest| rest.ends_with('.')),
            }
    })
}

fn lets_set(list: &BTreeSet<String>, key: &str) -> bool {
    list.iter().any(|it| match it.strip_suffix('*') {
        None => it == key,
        Some(beginning) => key.starts_with(beginning),
    })
}

fn limits() -> impl Strategy<Value = PartialLimits> {
    let system = system();
    let one = move |field: LimitField| {
        let (default, ceiling) = (field.get(system.defaults()), field.get(system.ceilings()));
        option::weighted(
            0.4,
            select(vec![default / 2, default, default + 1, ceiling]),
        )
    };
    LimitField::ALL.map(one).prop_map(|values| {
        let mut limits = PartialLimits::default();
        for (field, raw) in LimitField::ALL.into_iter().zip(values) {
            if let Some(raw) = raw {
                field.set(&mut limits, raw);
            }
        }
        limits
    })
}

fn profile() -> impl Strategy<Value = PartialProfile> {
    let hosts = subsequence(HOSTS.to_vec(), 0..=HOSTS.len())
        .prop_map(|list| list.iter().map(|it| it.parse().unwrap()).collect());
    let patterns = subsequence(PATTERNS.to_vec(), 0..=PATTERNS.len())
        .prop_map(|list| list.iter().map(|it| (*it).to_owned()).collect());
    (
        limits(),
        option::of(select(NetworkMode::ALL.to_vec())),
        option::of(hosts),
        option::of(select(vec![Access::None, Access::Ro, Access::Rw])),
        option::of(patterns),
        option::of(select(Tier::ALL.to_vec())),
        option::of(select(vec![SecurityMode::Permissive, SecurityMode::Strict])),
        option::of(select(vec![LimitsDemand::Supervised, LimitsDemand::Kernel])),
        subsequence(REQUIRED.to_vec(), 0..=REQUIRED.len()),
    )
        .prop_map(
            |(
                limits,
                network,
                allow_net,
                workspace,
                env_allow,
                tier,
                security,
                limits_demand,
                require,
            )| {
                PartialProfile {
                    require: require.into_iter().collect(),
                    limits,
                    network,
                    allow_net,
                    workspace,
                    env_allow,
                    tier,
                    security,
                    limits_demand,
                    ..PartialProfile::default()
                }
            },
        )
}

fn layers() -> impl Strategy<Value = Vec<Layer>> {
    let one = (0usize..6, profile()).prop_map(|(place, profile)| layer_at(place, profile));
    proptest::collection::vec(one, 0..7)
}

/// A request without the contradiction that is refused before anything is compared.
fn request() -> impl Strategy<Value = PartialProfile> {
    profile()
        .prop_filter("a list goes with its mode", |it| {
            it.allow_net.as_ref().is_none_or(BTreeSet::is_empty)
                || matches!(it.network, None | Some(NetworkMode::Allowlist))
        })
        .prop_filter("a network is not wanted and forbidden at once", |it| {
            !it.require.contains(&Guarantee::NoNetwork)
                || (it.allow_net.as_ref().is_none_or(BTreeSet::is_empty)
                    && it.network.is_none_or(|it| it <= NetworkMode::Retrieval))
        })
}

/// Every field of the result lies within what this one opinion says.
fn assert_within(held: &Profile, bound: &PartialProfile) -> Result<(), TestCaseError> {
    for field in LimitField::ALL {
        if let Some(most) = field.opinion(&bound.limits) {
            prop_assert!(field.get(&held.limits) <= most, "{}", field.key());
        }
    }
    if let Some(most) = bound.network {
        prop_assert!(held.network <= most);
    }
    if let Some(list) = &bound.allow_net {
        prop_assert!(held.network <= NetworkMode::Allowlist);
        for host in ["x.io", "a.x.io", "b.a.x.io", "c.b.a.x.io", "ax.io", "y.io"] {
            for port in [80, 443] {
                prop_assert!(
                    !reaches(&held.allow_net, host, port) || reaches(list, host, port),
                    "{host}:{port}"
                );
            }
        }
    }
    if let Some(most) = bound.workspace {
        prop_assert!(held.workspace <= most);
    }
    if let Some(list) = &bound.env_allow {
        for key in ["A", "AB", "ABC", "AC", "B", "BC", "Z"] {
            prop_assert!(
                !lets_set(&held.env_allow, key) || lets_set(list, key),
                "{key}"
            );
        }
    }
    if let Some(least) = bound.tier {
        prop_assert!(held.tier >= least);
    }
    if let Some(least) = bound.security {
        prop_assert!(held.security >= least);
    }
    if let Some(least) = bound.limits_demand {
        prop_assert!(held.limits_demand >= least);
    }
    prop_assert!(held.require.is_superset(&bound.require));
    prop_assert!(demand(held).is_superset(&bound.require));
    if bound.require.contains(&Guarantee::NoNetwork) {
        prop_assert!(held.network <= NetworkMode::Retrieval);
    }
    Ok(())
}

/// A whole profile as one layer would say it.
fn as_opinion(profile: &Profile) -> PartialProfile {
    let listed = profile.network == NetworkMode::Allowlist;
    PartialProfile {
        limits: profile.limits.into(),
        network: Some(profile.network),
        allow_net: listed.then(|| profile.allow_net.clone()),
        workspace: Some(profile.workspace),
        env_allow: Some(profile.env_allow.clone()),
        tier: Some(profile.tier),
        security: Some(profile.security),
        limits_demand: Some(profile.limits_demand),
        require: profile.require.clone(),
        ..PartialProfile::default()
    }
}

/// Without settings that speak, the defaults bound; with them, the ceilings do.
fn assert_within_system(held: &Profile, layers: &[Layer]) -> Result<(), TestCaseError> {
    let system = system();
    let settings = |it: &&Layer| it.name() == glovebox_policy::LayerName::Settings;
    let settings: Vec<_> = layers.iter().filter(settings).map(Layer::profile).collect();
    for field in LimitField::ALL {
        let most = field.get(system.ceilings());
        prop_assert!(field.get(&held.limits) <= most, "{}", field.key());
        let spoke = settings
            .iter()
            .any(|it| field.opinion(&it.limits).is_some());
        if !spoke && field != LimitField::CpuTime {
            let most = field.get(system.defaults());
            prop_assert!(field.get(&held.limits) <= most, "{}", field.key());
        }
    }
    if settings.iter().all(|it| it.network.is_none()) {
        prop_assert_eq!(held.network, NetworkMode::None);
    }
    if settings.iter().all(|it| it.security.is_none()) {
        prop_assert_eq!(held.security, SecurityMode::Strict);
    }
    if held.network != NetworkMode::Allowlist {
        prop_assert!(held.allow_net.is_empty());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn nothing_is_ever_wider_than_any_layer(
        layers in layers(), asked in request(), full in any::<bool>(), cap in any::<bool>(),
    ) {
        let presets = if full { TierPresets::Full } else { TierPresets::Basic };
        let system = system().with_presets(presets);
        let mut asked_call = call(asked.clone());
        asked_call.on_exceed = if cap { OnExceed::Cap } else { OnExceed::Refuse };
        let Ok(resolved) = resolve(asked_call, &system, &layers) else {
            prop_assert!(!cap, "capping refused");
            return Ok(());
        };
        let before = resolved.profile();
        let assessed = assess(resolved);
        for held in [&before, assessed.profile()] {
            for layer in &layers {
                assert_within(held, layer.profile())?;
            }
            assert_within(held, &asked)?;
            assert_within_system(held, &layers)?;
        }
        assert_within(assessed.profile(), &as_opinion(&before))?;
    }

    #[test]
    fn capping_never_refuses_and_reports_exactly_what_refusing_would_name(
        layers in layers(), asked in request(),
    ) {
        let mut capping = call(asked.clone());
        capping.on_exceed = OnExceed::Cap;
        let capped = resolve(capping, &system(), &layers).unwrap();
        let fields: Vec<_> = capped.capped().iter().map(|it| it.field.clone()).collect();
        match resolve(call(asked), &system(), &layers) {
            Ok(plain) => {
                prop_assert!(fields.is_empty());
                prop_assert_eq!(plain.profile(), capped.profile());
            }
            Err(error) => {
                let mut named = vec![error.message];
                named.extend(error.hints.iter().filter_map(|it| it.strip_prefix("also refused: ").map(str::to_owned)));
                prop_assert_eq!(named.len(), fields.len());
                for (sentence, field) in named.iter().zip(&fields) {
                    let start = format!("`{}` ", field);
                    prop_assert!(sentence.starts_with(&start), "{sentence} {field}");
                }
            }
        }
    }

    #[test]
    fn what_was_granted_can_be_asked_for_again(layers in layers(), asked in request()) {
        let mut capping = call(asked);
        capping.on_exceed = OnExceed::Cap;
        let granted = assess(resolve(capping, &system(), &layers).unwrap());
        let again = as_opinion(granted.profile());
        let second = assess(resolve(call(again.clone()), &system(), &layers).unwrap());
        assert_within(second.profile(), &again)?;
        assert_within(granted.profile(), &as_opinion(second.profile()))?;
    }

    #[test]
    fn handing_in_more_layers_never_widens(layers in layers(), extra in profile(), place in 1usize..6) {
        let plain = resolve(call(PartialProfile::default()), &system(), &layers).unwrap().profile();
        let mut more = layers.clone();
        more.push(layer_at(place, extra));
        let narrowed = resolve(call(PartialProfile::default()), &system(), &more).unwrap().profile();
        assert_within(&narrowed, &as_opinion(&plain))?;
    }
}
