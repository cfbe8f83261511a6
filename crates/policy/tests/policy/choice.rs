//! Which backend is chosen, and that naming one never buys less than policy demands.

use std::collections::BTreeSet;

use glovebox_model::{
    BackendName, Code, Evidence, Grade, Guarantee, LimitsDemand, NetworkMode, PartialProfile,
    Profile, SecurityMode,
};
use glovebox_policy::{Layer, Offer, choose, demand};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::fixture::{call, run};

fn profile(change: impl FnOnce(&mut Profile)) -> Profile {
    let assessed = run(call(PartialProfile::default()), &[]).unwrap();
    let mut profile = assessed.profile().clone();
    change(&mut profile);
    profile
}

fn found(guarantee: Guarantee, grade: Grade) -> Evidence {
    Evidence {
        guarantee,
        grade,
        evidence: format!("saw {guarantee}"),
        fix: (grade < Grade::Kernel).then(|| format!("fix {guarantee}")),
    }
}

/// Gives everything but what is listed.
fn offer(
    backend: BackendName,
    runtime: Option<&str>,
    cost: u32,
    except: &[(Guarantee, Grade)],
) -> Offer {
    let grade = |it: Guarantee| {
        except
            .iter()
            .find(|(guarantee, _)| *guarantee == it)
            .map_or(Grade::Kernel, |(_, grade)| *grade)
    };
    Offer {
        backend,
        runtime: runtime.map(str::to_owned),
        evidence: Ok(Guarantee::ALL.map(|it| found(it, grade(it))).into()),
        cost,
    }
}

const NO_KERNEL: (Guarantee, Grade) = (Guarantee::OwnKernel, Grade::Unavailable);

fn house() -> [Offer; 3] {
    [
        offer(BackendName::Docker, Some("runsc"), 300, &[]),
        offer(BackendName::Native, None, 1, &[NO_KERNEL]),
        offer(BackendName::Docker, None, 200, &[NO_KERNEL]),
    ]
}

fn taken(profile: &Profile, offers: &[Offer]) -> (BackendName, Option<String>) {
    let choice = choose(profile, offers).unwrap();
    let kept: BTreeSet<_> = choice.isolation.0.keys().copied().collect();
    assert_eq!(kept, demand(profile));
    (choice.backend, choice.runtime)
}

#[test]
fn strict_and_permissive_demand_the_same_and_more_than_nothing() {
    let strict = demand(&profile(|_| {}));
    let names: Vec<_> = strict.iter().map(|it| it.as_str()).collect();
    assert_eq!(
        names,
        [
            "own_pids",
            "own_mounts",
            "own_ipc",
            "own_hostname",
            "no_network",
            "read_only_root",
            "no_capabilities",
            "no_new_privileges",
            "syscall_filter",
            "no_survivors",
            "memory_limit",
            "pids_limit",
            "cpu_limit"
        ]
    );
    let permissive = profile(|it| it.security = SecurityMode::Permissive);
    assert_eq!(demand(&permissive), strict);
}

#[test]
fn only_a_granted_network_lifts_the_demand_for_none() {
    for (mode, demanded) in [
        (NetworkMode::None, true),
        (NetworkMode::Retrieval, true),
        (NetworkMode::Allowlist, false),
        (NetworkMode::Unrestricted, false),
    ] {
        let held = demand(&profile(|it| it.network = mode));
        assert_eq!(held.contains(&Guarantee::NoNetwork), demanded, "{mode}");
    }
}

#[test]
fn a_granted_network_is_ours_alone_to_open() {
    let (strict, permissive) = (SecurityMode::Strict, SecurityMode::Permissive);
    for (mode, security, demanded) in [
        (NetworkMode::None, strict, false),
        (NetworkMode::Retrieval, strict, false),
        (NetworkMode::Allowlist, strict, true),
        (NetworkMode::Allowlist, permissive, true),
        (NetworkMode::Unrestricted, strict, true),
        (NetworkMode::Unrestricted, permissive, false),
    ] {
        let held = demand(&profile(|it| {
            it.network = mode;
            it.security = security;
        }));
        let is = held.contains(&Guarantee::EgressOnly);
        assert_eq!(is, demanded, "{mode} {security:?}");
    }
}

#[test]
fn without_a_name_the_cheapest_that_satisfies_is_taken() {
    let plain = profile(|_| {});
    assert_eq!(taken(&plain, &house()), (BackendName::Native, None));
    let own_kernel = profile(|it| it.require = [Guarantee::OwnKernel].into());
    assert_eq!(
        taken(&own_kernel, &house()),
        (BackendName::Docker, Some("runsc".to_owned()))
    );
}

#[test]
fn a_named_backend_may_choose_its_runtime_and_a_named_runtime_its_backend() {
    let own_kernel = profile(|it| {
        it.require = [Guarantee::OwnKernel].into();
        it.backend = Some(BackendName::Docker);
    });
    let runsc = (BackendName::Docker, Some("runsc".to_owned()));
    assert_eq!(taken(&own_kernel, &house()), runsc);
    let named = profile(|it| it.runtime = Some("runsc".to_owned()));
    assert_eq!(taken(&named, &house()), runsc);
    let docker = profile(|it| it.backend = Some(BackendName::Docker));
    assert_eq!(taken(&docker, &house()), (BackendName::Docker, None));
}

#[test]
fn a_named_backend_that_lacks_something_is_refused_though_another_has_it() {
    let named = profile(|it| {
        it.require = [Guarantee::OwnKernel].into();
        it.backend = Some(BackendName::Native);
    });
    let error = choose(&named, &house()).unwrap_err();
    assert_eq!(error.code, Code::BackendUnavailable);
    assert_eq!(
        error.message,
        "`native` cannot run this: no `own_kernel` (saw own_kernel)"
    );
    assert_eq!(
        error.hints,
        [
            "for `own_kernel`: fix own_kernel",
            "`docker` with the runtime `runsc` gives it: name that, or leave the choice open",
        ]
    );
}

#[test]
fn every_missing_guarantee_is_named_with_what_was_seen() {
    let offers = [offer(
        BackendName::Native,
        None,
        1,
        &[
            (Guarantee::SyscallFilter, Grade::Unavailable),
            (Guarantee::MemoryLimit, Grade::Supervised),
        ],
    )];
    let kernel = profile(|it| it.limits_demand = LimitsDemand::Kernel);
    let error = choose(&kernel, &offers).unwrap_err();
    assert_eq!(
        error.message,
        "`native` cannot run this: no `syscall_filter` (saw syscall_filter), \
         `memory_limit` is only supervised (saw memory_limit)"
    );
}

#[test]
fn with_several_candidates_each_says_what_it_lacks() {
    let own_kernel = profile(|it| it.require = [Guarantee::OwnKernel].into());
    let mut offers = house().to_vec();
    offers[0].evidence = Err("`runsc` does not start: no such file".to_owned());
    let error = choose(&own_kernel, &offers).unwrap_err();
    assert_eq!(
        error.message,
        "no backend on this host gives what policy demands"
    );
    assert_eq!(
        error.hints[..3],
        [
            "`native`: no `own_kernel` (saw own_kernel)",
            "`docker`: no `own_kernel` (saw own_kernel)",
            "`docker` with the runtime `runsc`: `runsc` does not start: no such file",
        ]
    );
}

#[test]
fn what_is_not_there_is_never_replaced() {
    for (backend, runtime, message) in [
        (None, Some("kata"), "the runtime `kata` is not there"),
        (
            Some(BackendName::Docker),
            Some("kata"),
            "`docker` with the runtime `kata` is not there",
        ),
        (
            Some(BackendName::Native),
            Some("runsc"),
            "`native` with the runtime `runsc` is not there",
        ),
    ] {
        let named = profile(|it| {
            it.backend = backend;
            it.runtime = runtime.map(str::to_owned);
        });
        let error = choose(&named, &house()).unwrap_err();
        assert_eq!(error.message, message);
        assert_eq!(
            error.hints[0],
            "there is `docker` with the runtime `runsc`, `native`, `docker`"
        );
    }
    let error = choose(&profile(|_| {}), &[]).unwrap_err();
    assert_eq!(error.message, "there is no backend on this host");
}

#[test]
fn a_supervised_limit_will_do_unless_the_kernels_is_demanded() {
    let offers = [offer(
        BackendName::Native,
        None,
        1,
        &[
            (Guarantee::MemoryLimit, Grade::Supervised),
            (Guarantee::DiskLimit, Grade::Supervised),
        ],
    )];
    assert!(choose(&profile(|_| {}), &offers).is_ok());
    let whole = profile(|it| it.limits_demand = LimitsDemand::Kernel);
    assert!(choose(&whole, &offers).is_err());
    for one in [Guarantee::MemoryLimit, Guarantee::DiskLimit] {
        let required = profile(|it| it.require = [one].into());
        assert!(choose(&required, &offers).is_err(), "{one}");
    }
    // Anything else is the kernel's or nothing.
    let watched = [offer(
        BackendName::Native,
        None,
        1,
        &[(Guarantee::NoSurvivors, Grade::Supervised)],
    )];
    assert!(choose(&profile(|_| {}), &watched).is_err());
}

#[test]
fn what_nobody_looked_for_is_missing_and_of_two_findings_the_worse_counts() {
    let mut silent = offer(BackendName::Native, None, 1, &[]);
    let evidence = silent.evidence.as_mut().unwrap();
    evidence.retain(|it| it.guarantee != Guarantee::NoCapabilities);
    let error = choose(&profile(|_| {}), &[silent.clone()]).unwrap_err();
    assert_eq!(
        error.message,
        "`native` cannot run this: no `no_capabilities` (nobody looked for it)"
    );
    let evidence = silent.evidence.as_mut().unwrap();
    for grade in [Grade::Kernel, Grade::Unavailable, Grade::Kernel] {
        evidence.push(found(Guarantee::NoCapabilities, grade));
    }
    assert!(choose(&profile(|_| {}), &[silent]).is_err());
}

#[test]
fn no_layer_and_no_request_takes_a_requirement_away() {
    let require = |list: &[Guarantee]| PartialProfile {
        require: list.iter().copied().collect(),
        ..PartialProfile::default()
    };
    let layers = [
        Layer::settings(require(&[Guarantee::OwnKernel])),
        Layer::agent(
            "bot",
            require(&[Guarantee::DiskLimit, Guarantee::OwnKernel]),
        ),
    ];
    let mut asked = require(&[Guarantee::FileRules]);
    asked.backend = Some(BackendName::Native);
    asked.runtime = Some("runc".to_owned());
    asked.image = Some("mine:1".to_owned());
    let assessed = run(call(asked), &layers).unwrap();
    assert_eq!(
        assessed.profile().require,
        [
            Guarantee::OwnKernel,
            Guarantee::DiskLimit,
            Guarantee::FileRules
        ]
        .into()
    );
    let rows: Vec<_> = assessed
        .decisions()
        .into_iter()
        .filter(|row| row.field == "require")
        .map(|row| format!("{}: {}; {}", row.by, row.value, row.change))
        .collect();
    assert_eq!(
        rows,
        [
            "the settings: own_kernel; change `require` of the settings",
            "agent `bot`: disk_limit, own_kernel; change `require` of agent `bot`",
            "the request: file_rules; the request may require less",
        ]
    );
    assert!(choose(assessed.profile(), &house()).is_err());
}

#[test]
fn requiring_no_network_closes_what_another_layer_opened() {
    let open = Layer::settings(PartialProfile {
        network: Some(NetworkMode::Unrestricted),
        ..PartialProfile::default()
    });
    let closed = PartialProfile {
        require: [Guarantee::NoNetwork].into(),
        ..PartialProfile::default()
    };
    let by_request = run(call(closed.clone()), std::slice::from_ref(&open)).unwrap();
    assert_eq!(by_request.profile().network, NetworkMode::Retrieval);
    let layers = [open, Layer::agent("bot", closed.clone())];
    let by_agent = run(call(PartialProfile::default()), &layers).unwrap();
    assert_eq!(by_agent.profile().network, NetworkMode::Retrieval);
    let wants = PartialProfile {
        network: Some(NetworkMode::Unrestricted),
        ..PartialProfile::default()
    };
    let error = run(call(wants.clone()), &layers).unwrap_err();
    assert_eq!(error.code, Code::PolicyDenied);
    assert_eq!(
        error.message,
        "`network` `unrestricted` is more than agent `bot` allows, which is `retrieval`"
    );
    let both = PartialProfile {
        require: closed.require,
        ..wants
    };
    let error = run(call(both), &layers).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
}

#[test]
fn a_runtime_that_would_be_an_option_is_refused_wherever_it_comes_from() {
    let asked = PartialProfile {
        runtime: Some("--privileged".to_owned()),
        ..PartialProfile::default()
    };
    let error = run(call(asked.clone()), &[]).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    let error = run(
        call(PartialProfile::default()),
        &[Layer::agent("bot", asked)],
    )
    .unwrap_err();
    assert_eq!(error.code, Code::InvalidConfig);
}

#[test]
fn the_host_itself_is_taken_only_by_name_and_never_in_strict_security() {
    let host = || offer(BackendName::Host, None, 0, &[]);
    let open = |it: &mut Profile| it.security = SecurityMode::Permissive;
    // The cheapest by far, and the only one that is there.
    for held in [profile(|_| {}), profile(open)] {
        let error = choose(&held, &[host()]).unwrap_err();
        assert_eq!(error.code, Code::BackendUnavailable);
        assert!(!error.hints.join(" ").contains("`host`: name"), "{error:?}");
    }
    let native = offer(
        BackendName::Native,
        None,
        1,
        &[(Guarantee::NoSurvivors, Grade::Unavailable)],
    );
    let named = profile(|it| it.backend = Some(BackendName::Native));
    let error = choose(&named, &[native, host()]).unwrap_err();
    assert!(
        !error.hints.join(" ").contains("host` gives it"),
        "{error:?}"
    );
    let strict = profile(|it| it.backend = Some(BackendName::Host));
    let error = choose(&strict, &[host()]).unwrap_err();
    assert_eq!(error.code, Code::PolicyDenied);
    assert!(error.hints[0].contains("leave out `--backend host`"));
}

#[test]
fn the_host_gives_watched_limits_and_nothing_that_is_required() {
    let limits = Guarantee::ALL.into_iter().map(|it| match it.is_limit() {
        true => (it, Grade::Supervised),
        false => (it, Grade::Unavailable),
    });
    let host = offer(BackendName::Host, None, 1, &limits.collect::<Vec<_>>());
    let named = |more: fn(&mut Profile)| {
        profile(|it| {
            it.backend = Some(BackendName::Host);
            it.security = SecurityMode::Permissive;
            more(it);
        })
    };
    let choice = choose(&named(|_| {}), std::slice::from_ref(&host)).unwrap();
    assert_eq!(choice.backend, BackendName::Host);
    assert!(
        choice
            .isolation
            .0
            .values()
            .all(|it| *it == Grade::Supervised)
    );
    for guarantee in Guarantee::ALL {
        let mut held = named(|_| {});
        held.require = [guarantee].into();
        let error = choose(&held, std::slice::from_ref(&host)).unwrap_err();
        assert!(error.message.contains(guarantee.as_str()), "{error:?}");
    }
    let kernel = named(|it| it.limits_demand = LimitsDemand::Kernel);
    assert!(choose(&kernel, std::slice::from_ref(&host)).is_err());
}

fn any_offer() -> impl Strategy<Value = Offer> {
    let grade = select(vec![Grade::Unavailable, Grade::Supervised, Grade::Kernel]);
    let mostly_kernel = prop_oneof![8 => Just(Grade::Kernel), 1 => grade];
    (
        select(BackendName::ALL.to_vec()),
        proptest::option::of(select(vec!["runc", "runsc"])),
        proptest::collection::vec(mostly_kernel, Guarantee::ALL.len()),
        0u32..3,
    )
        .prop_map(|(backend, runtime, grades, cost)| Offer {
            backend,
            runtime: runtime.map(str::to_owned),
            evidence: Ok(Guarantee::ALL
                .into_iter()
                .zip(grades)
                .map(|(guarantee, grade)| found(guarantee, grade))
                .collect()),
            cost,
        })
}

proptest! {
    /// Whatever is named, what is taken gives the whole demand, is what was named, and was not
    /// there for less.
    #[test]
    fn what_is_taken_satisfies_and_is_what_was_named(
        offers in proptest::collection::vec(any_offer(), 0..6),
        backend in proptest::option::of(select(BackendName::ALL.to_vec())),
        runtime in proptest::option::of(select(vec!["runc", "runsc", "kata"])),
        require in subsequence(Guarantee::ALL.to_vec(), 0..3),
        kernel in any::<bool>(),
    ) {
        let held = profile(|it| {
            it.backend = backend;
            it.runtime = runtime.map(str::to_owned);
            it.require = require.iter().copied().collect();
            if kernel {
                it.limits_demand = LimitsDemand::Kernel;
            }
        });
        let enough = |offer: &&Offer| {
            let seen = offer.evidence.as_ref().unwrap();
            demand(&held).iter().all(|it| {
                let grade = seen.iter().find(|seen| seen.guarantee == *it).unwrap().grade;
                grade == Grade::Kernel
                    || (grade == Grade::Supervised && it.is_limit() && !kernel && !require.contains(it))
            })
        };
        let named = |offer: &&Offer| {
            // Strict security never runs on the host itself.
            offer.backend != BackendName::Host
                && backend.is_none_or(|it| it == offer.backend)
                && runtime.is_none_or(|it| Some(it) == offer.runtime.as_deref())
        };
        let least = offers.iter().filter(named).filter(enough).min_by_key(|it| it.cost);
        match (choose(&held, &offers), least) {
            (Ok(choice), Some(least)) => {
                prop_assert_eq!(choice.backend, least.backend);
                prop_assert_eq!(&choice.runtime, &least.runtime);
                let without = profile(|it| it.require.clone_from(&held.require));
                prop_assert!(demand(&without).iter().all(|it| choice.isolation.0.contains_key(it)));
            }
            (Err(error), None) if backend == Some(BackendName::Host) => {
                prop_assert_eq!(error.code, Code::PolicyDenied);
            }
            (Err(error), None) => prop_assert_eq!(error.code, Code::BackendUnavailable),
            (got, expected) => prop_assert!(false, "{got:?} {expected:?}"),
        }
    }
}
