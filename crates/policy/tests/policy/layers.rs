//! What each layer can do to each field.

use glovebox_model::{
    Access, ApprovalMode, BackendName, Bytes, LimitField, LimitsDemand, Millis, NetworkMode,
    PartialProfile, Profile, SecurityMode, Tier,
};
use glovebox_policy::{Layer, LayerName, Surface, System, assess, resolve};

use crate::fixture::{
    HOST, PLACES, call, destinations, layer_at, limit, patterns, run, server, silent,
};

fn profile(layers: &[Layer]) -> Profile {
    run(call(silent()), layers).unwrap().profile().clone()
}

/// A field's narrow and wide value, and how to read which one holds.
struct Case {
    name: &'static str,
    narrow: PartialProfile,
    wide: PartialProfile,
    is_narrow: fn(&Profile) -> bool,
}

fn cases() -> Vec<Case> {
    let open = || PartialProfile {
        network: Some(NetworkMode::Allowlist),
        ..silent()
    };
    vec![
        Case {
            name: "network",
            narrow: PartialProfile {
                network: Some(NetworkMode::Retrieval),
                ..silent()
            },
            wide: open(),
            is_narrow: |it| it.network == NetworkMode::Retrieval,
        },
        Case {
            name: "allow_net",
            narrow: PartialProfile {
                allow_net: Some(destinations(&["a.x.io:443"])),
                ..open()
            },
            wide: PartialProfile {
                allow_net: Some(destinations(&["*.x.io:443", "y.io:1"])),
                ..open()
            },
            is_narrow: |it| it.allow_net == destinations(&["a.x.io:443"]),
        },
        Case {
            name: "workspace",
            narrow: PartialProfile {
                workspace: Some(Access::Ro),
                ..silent()
            },
            wide: PartialProfile {
                workspace: Some(Access::Rw),
                ..silent()
            },
            is_narrow: |it| it.workspace == Access::Ro,
        },
        Case {
            name: "env_allow",
            narrow: PartialProfile {
                env_allow: Some(patterns(&["AB*"])),
                ..silent()
            },
            wide: PartialProfile {
                env_allow: Some(patterns(&["A*", "C"])),
                ..silent()
            },
            is_narrow: |it| it.env_allow == patterns(&["AB*"]),
        },
        Case {
            name: "tier",
            narrow: PartialProfile {
                tier: Some(Tier::High),
                ..silent()
            },
            wide: PartialProfile {
                tier: Some(Tier::Low),
                ..silent()
            },
            is_narrow: |it| it.tier == Tier::High,
        },
        Case {
            name: "security",
            narrow: PartialProfile {
                security: Some(SecurityMode::Strict),
                ..silent()
            },
            wide: PartialProfile {
                security: Some(SecurityMode::Permissive),
                ..silent()
            },
            is_narrow: |it| it.security == SecurityMode::Strict,
        },
        Case {
            name: "limits_demand",
            narrow: PartialProfile {
                limits_demand: Some(LimitsDemand::Kernel),
                ..silent()
            },
            wide: PartialProfile {
                limits_demand: Some(LimitsDemand::Supervised),
                ..silent()
            },
            is_narrow: |it| it.limits_demand == LimitsDemand::Kernel,
        },
        Case {
            name: "approval",
            narrow: PartialProfile {
                approval: Some(ApprovalMode::Manual),
                ..silent()
            },
            wide: PartialProfile {
                approval: Some(ApprovalMode::Evolution),
                ..silent()
            },
            is_narrow: |it| it.approval == ApprovalMode::Manual,
        },
    ]
}

#[test]
fn the_narrower_of_two_layers_holds_for_every_field_and_every_pair() {
    for case in cases() {
        for above in PLACES {
            for below in PLACES.filter(|below| *below > above) {
                // The settings open what the defaults keep closed; both layers of the pair then
                // have something to narrow.
                let base = layer_at(0, case.wide.clone());
                let narrow_above = [
                    base.clone(),
                    layer_at(above, case.narrow.clone()),
                    layer_at(below, case.wide.clone()),
                ];
                let narrow_below = [
                    base.clone(),
                    layer_at(above, case.wide.clone()),
                    layer_at(below, case.narrow.clone()),
                ];
                for layers in [narrow_above, narrow_below] {
                    let profile = profile(&layers);
                    assert!((case.is_narrow)(&profile), "{} {above} {below}", case.name);
                }
                let only_wide = [base, layer_at(below, case.wide.clone())];
                assert!(!(case.is_narrow)(&profile(&only_wide)), "{}", case.name);
            }
        }
    }
}

#[test]
fn every_limit_takes_the_minimum_of_every_pair_of_layers() {
    for field in LimitField::ALL {
        let default = field.get(server().defaults());
        let (less, least) = (default * 3 / 4, default / 2);
        let at = |place, raw| layer_at(place, limit(field.key(), &field.show(raw)));
        for above in PLACES {
            for below in PLACES.filter(|below| *below > above) {
                for layers in [
                    [at(above, less), at(below, least)],
                    [at(above, least), at(below, less)],
                ] {
                    let held = field.get(&profile(&layers).limits);
                    assert_eq!(held, least, "{} {above} {below}", field.key());
                }
            }
        }
    }
}

#[test]
fn settings_replace_the_defaults_up_to_the_ceiling_and_no_other_layer_can() {
    for field in LimitField::ALL {
        let ceiling = field.get(server().ceilings());
        let default = field.get(server().defaults());
        for place in PLACES {
            let layers = [layer_at(place, limit(field.key(), &field.show(ceiling)))];
            let held = field.get(&profile(&layers).limits);
            let expected = if place == 0 { ceiling } else { default };
            assert_eq!(held, expected, "{} {place}", field.key());
        }
    }
}

#[test]
fn settings_above_a_ceiling_are_refused() {
    let error = run(call(silent()), &[Layer::settings(limit("memory", "8G"))]).unwrap_err();
    assert_eq!(error.code.as_str(), "invalid_config");
    assert_eq!(
        error.message,
        "the settings set `memory` to `8G`, above the ceiling of `4G`"
    );
    assert_eq!(
        error.hints,
        [
            "set `memory` to `4G` or less",
            "or raise the ceiling: `memory = \"8G\"` under `[ceilings]`"
        ]
    );
}

#[test]
fn cpu_time_follows_the_time_and_the_processors_of_the_settings() {
    let mut settings = limit("timeout", "5m");
    settings.limits.cpus_milli = Some(glovebox_model::Cpus::whole(2));
    assert_eq!(
        profile(&[Layer::settings(settings)]).limits.cpu_ms,
        Millis::secs(600)
    );
    // A narrower layer below leaves it alone: processor time is then simply never reached.
    assert_eq!(
        profile(&[Layer::agent("bot", limit("timeout", "5s"))])
            .limits
            .cpu_ms,
        Millis::secs(60)
    );
}

#[test]
fn a_session_lasts_as_a_session_may_and_computes_as_long_as_it_lasts_unless_that_is_said() {
    let limits = |layers: &[Layer]| {
        let session = glovebox_model::Call {
            session: Some(glovebox_model::SessionTerms {
                terminal: None,
                idle_timeout_ms: None,
            }),
            ..call(silent())
        };
        run(session, layers).unwrap().profile().limits
    };
    let silent = limits(&[]);
    assert_eq!(
        (silent.wall_ms, silent.cpu_ms),
        (Millis::secs(3600), Millis::secs(3600))
    );
    let settings = Layer::settings(limit("cpu_time", "10m"));
    assert_eq!(limits(&[settings]).cpu_ms, Millis::secs(600));
    let agent = Layer::agent("bot", limit("cpu_time", "5m"));
    assert_eq!(limits(&[agent]).cpu_ms, Millis::secs(300));
}

#[test]
fn the_network_is_closed_until_the_settings_open_it() {
    for place in PLACES.skip(1) {
        let open = PartialProfile {
            network: Some(NetworkMode::Unrestricted),
            ..silent()
        };
        assert_eq!(profile(&[layer_at(place, open)]).network, NetworkMode::None);
    }
}

#[test]
fn a_layer_that_lists_destinations_closes_everything_else() {
    let layers = [
        Layer::settings(PartialProfile {
            network: Some(NetworkMode::Unrestricted),
            ..silent()
        }),
        Layer::agent(
            "bot",
            PartialProfile {
                allow_net: Some(destinations(&["a.io:443"])),
                ..silent()
            },
        ),
    ];
    let profile = profile(&layers);
    assert_eq!(profile.network, NetworkMode::Allowlist);
    assert_eq!(profile.allow_net, destinations(&["a.io:443"]));
}

#[test]
fn a_list_of_settings_without_a_mode_grants_nothing() {
    let layers = [Layer::settings(PartialProfile {
        allow_net: Some(destinations(&["a.io:443"])),
        ..silent()
    })];
    let profile = profile(&layers);
    assert_eq!(profile.network, NetworkMode::None);
    assert_eq!(profile.allow_net, destinations(&[]));
}

#[test]
fn preferences_come_from_the_nearest_layer_and_the_request_is_nearest() {
    let image = |name: &str| PartialProfile {
        image: Some(name.to_owned()),
        backend: Some(BackendName::Native),
        ..silent()
    };
    for above in PLACES {
        for below in PLACES.filter(|below| *below > above) {
            let layers = [
                layer_at(above, image("above")),
                layer_at(below, image("below")),
            ];
            assert_eq!(profile(&layers).image.as_deref(), Some("below"));
            let asked = run(call(image("mine")), &layers).unwrap();
            assert_eq!(asked.profile().image.as_deref(), Some("mine"));
        }
    }
    assert_eq!(profile(&[]).backend, None);
}

#[test]
fn the_order_in_which_layers_are_handed_in_does_not_matter() {
    let image = |name: &str| PartialProfile {
        image: Some(name.to_owned()),
        ..limit("pids", "10")
    };
    let mut layers: Vec<Layer> = PLACES
        .map(|place| layer_at(place, image(&place.to_string())))
        .collect();
    let expected = profile(&layers);
    layers.reverse();
    assert_eq!(profile(&layers), expected);
    assert_eq!(expected.image.as_deref(), Some("5"));
}

#[test]
fn the_trace_names_the_layer_that_really_narrowed() {
    let layers = [
        Layer::settings(limit("memory", "512M")),
        Layer::agent("bot", limit("memory", "1G")),
        Layer::user("dana", limit("pids", "10")),
    ];
    let assessed = run(call(limit("timeout", "5s")), &layers).unwrap();
    let by = |field: &str| {
        let decided = assessed
            .decisions()
            .into_iter()
            .find(|it| it.field == field)
            .unwrap();
        (decided.value, decided.by.layer)
    };
    assert_eq!(by("memory"), ("512M".to_owned(), LayerName::Settings));
    assert_eq!(by("pids"), ("10".to_owned(), LayerName::User));
    assert_eq!(by("timeout"), ("5s".to_owned(), LayerName::Request));
    assert_eq!(by("disk"), ("1G".to_owned(), LayerName::System));
}

#[test]
fn a_local_request_may_ask_for_anything_up_to_the_machines_share() {
    let system = System::new(Surface::Local, HOST);
    let asked = resolve(call(limit("memory", "8G")), &system, &[])
        .map(assess)
        .unwrap();
    assert_eq!(asked.profile().limits.memory_bytes, Bytes::mib(8 << 10));
    assert!(resolve(call(limit("memory", "9G")), &system, &[]).is_err());
}
