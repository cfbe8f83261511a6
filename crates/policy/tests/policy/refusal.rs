//! A request that wants more: refused by name, or brought down and told.

use glovebox_model::{
    Access, Blame, Code, Error, LimitsDemand, NetworkMode, PartialProfile, SecurityMode, Stage,
    Tier,
};
use glovebox_policy::{Config, HostFacts, Layer, Surface, assess, resolve};

use crate::fixture::{call, capping, destinations, limit, patterns, run, silent};

fn refused(asked: PartialProfile, layers: &[Layer]) -> Error {
    let error = run(call(asked), layers).unwrap_err();
    assert_eq!(error.code, Code::PolicyDenied);
    assert_eq!(error.stage, Stage::Resolve);
    assert_eq!(error.blame, Blame::Policy);
    error
}

#[test]
fn every_field_that_goes_too_far_is_refused_by_name() {
    let allowlist = Layer::settings(PartialProfile {
        network: Some(NetworkMode::Allowlist),
        allow_net: Some(destinations(&["*.x.io:443"])),
        ..silent()
    });
    let cases: Vec<(PartialProfile, Vec<Layer>, &str)> = vec![
        (
            limit("memory", "2G"),
            vec![],
            "`memory` `2G` is more than the system defaults allow, which is `1G`",
        ),
        (
            limit("pids", "11"),
            vec![Layer::skill("shell.run", limit("pids", "10"))],
            "`pids` `11` is more than skill `shell.run` allows, which is `10`",
        ),
        (
            PartialProfile {
                network: Some(NetworkMode::Unrestricted),
                ..silent()
            },
            vec![],
            "`network` `unrestricted` is more than the system defaults allow, which is `none`",
        ),
        (
            PartialProfile {
                allow_net: Some(destinations(&["a.x.io:443", "x.io:443", "y.io:443"])),
                ..silent()
            },
            vec![allowlist],
            "`allow_net` `x.io:443, y.io:443` is more than the settings allow, which is `*.x.io:443`",
        ),
        (
            PartialProfile {
                workspace: Some(Access::Rw),
                ..silent()
            },
            vec![Layer::agent(
                "bot",
                PartialProfile {
                    workspace: Some(Access::Ro),
                    ..silent()
                },
            )],
            "`workspace` `rw` is more than agent `bot` allows, which is `ro`",
        ),
        (
            PartialProfile {
                env_allow: Some(patterns(&["*"])),
                ..silent()
            },
            vec![Layer::user(
                "dana",
                PartialProfile {
                    env_allow: Some(patterns(&[])),
                    ..silent()
                },
            )],
            "`env_allow` `*` is more than user `dana` allows, which is nothing",
        ),
        (
            PartialProfile {
                tier: Some(Tier::Low),
                ..silent()
            },
            vec![Layer::conversation(
                "c1",
                PartialProfile {
                    tier: Some(Tier::High),
                    ..silent()
                },
            )],
            "`tier` `low` is looser than conversation `c1` demands, which is `high`",
        ),
        (
            PartialProfile {
                security: Some(SecurityMode::Permissive),
                ..silent()
            },
            vec![],
            "`security` `permissive` is looser than the system defaults demand, which is `strict`",
        ),
        (
            PartialProfile {
                limits_demand: Some(LimitsDemand::Supervised),
                ..silent()
            },
            vec![Layer::settings(PartialProfile {
                limits_demand: Some(LimitsDemand::Kernel),
                ..silent()
            })],
            "`limits_demand` `supervised` is looser than the settings demand, which is `kernel`",
        ),
    ];
    for (asked, layers, message) in cases {
        assert_eq!(refused(asked.clone(), &layers).message, message);
        let capped = run(capping(asked), &layers).unwrap();
        assert_eq!(capped.capped().len(), 1, "{message}");
        let report = &capped.capped()[0];
        assert!(
            message.contains(&format!("`{}`", report.field)),
            "{message}"
        );
    }
}

#[test]
fn a_refusal_points_at_the_line_and_says_the_ways_out() {
    let text = "[settings]\nmemory = \"512M\"\n\n[agent.bot]\nmemory = \"256M\"\npids = 8\n";
    let config = Config::parse(text, "glovebox.toml").unwrap();
    let mut asked = call(limit("memory", "300M"));
    asked.ids.agent_id = Some("bot".to_owned());
    asked.overrides.limits.pids = Some(glovebox_model::Count(9));
    let host = HostFacts {
        memory_bytes: 1 << 34,
        cpus: 2,
    };
    let system = config.system(Surface::Server, host).unwrap();
    let layers = config.layers_for(&asked.ids);
    let error = resolve(asked, &system, &layers).unwrap_err();
    assert_eq!(
        error.message,
        "`memory` `300M` is more than agent `bot` allows, which is `256M`"
    );
    let rule = error.rule.unwrap();
    assert_eq!((rule.file.as_str(), rule.line), ("glovebox.toml", 5));
    assert_eq!(
        error.hints,
        [
            "also refused: `pids` `9` is more than agent `bot` allows, which is `8`",
            "ask for `256M` or less",
            "change `memory` at `glovebox.toml:5`",
            "`--on-exceed cap` (in a request `on_exceed: cap`) runs with what is allowed and reports it in `capped`",
        ]
    );
}

#[test]
fn the_defaults_say_how_far_the_settings_could_go() {
    let hints = refused(limit("memory", "2G"), &[]).hints;
    assert!(hints.contains(&"set `memory` under `[settings]`, up to `4G`".to_owned()));
}

#[test]
fn capping_grants_the_part_that_is_allowed_and_reports_it() {
    let layers = [Layer::settings(PartialProfile {
        network: Some(NetworkMode::Allowlist),
        allow_net: Some(destinations(&["*.x.io:443"])),
        ..limit("memory", "512M")
    })];
    let asked = PartialProfile {
        allow_net: Some(destinations(&["a.x.io:443", "y.io:443"])),
        ..limit("memory", "1G")
    };
    let granted = run(capping(asked), &layers).unwrap();
    assert_eq!(granted.profile().allow_net, destinations(&["a.x.io:443"]));
    let report: Vec<_> = granted
        .capped()
        .iter()
        .map(|it| [&*it.field, &*it.asked, &*it.granted, &*it.layer])
        .collect();
    assert_eq!(
        report,
        [
            ["memory", "1G", "512M", "the settings"],
            [
                "allow_net",
                "a.x.io:443, y.io:443",
                "a.x.io:443",
                "the settings"
            ],
        ]
    );
}

#[test]
fn naming_destinations_asks_for_the_network() {
    let asked = || PartialProfile {
        allow_net: Some(destinations(&["a.io:443"])),
        ..silent()
    };
    let message = refused(asked(), &[]).message;
    assert!(
        message.starts_with("`network` `allowlist` is more"),
        "{message}"
    );
    let open = [Layer::settings(PartialProfile {
        network: Some(NetworkMode::Unrestricted),
        ..silent()
    })];
    let narrowed = run(call(asked()), &open).unwrap();
    assert_eq!(narrowed.profile().network, NetworkMode::Allowlist);
    assert_eq!(narrowed.profile().allow_net, destinations(&["a.io:443"]));
    let contradiction = PartialProfile {
        network: Some(NetworkMode::None),
        ..asked()
    };
    let error = run(call(contradiction), &open).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    assert_eq!(
        error.message,
        "`allow_net` has no meaning with `network` `none`"
    );
}

#[test]
fn an_allowlist_without_any_list_above_it_reaches_nothing() {
    let layers = [Layer::settings(PartialProfile {
        network: Some(NetworkMode::Allowlist),
        ..silent()
    })];
    let asked = PartialProfile {
        allow_net: Some(destinations(&["evil.io:443"])),
        ..silent()
    };
    assert_eq!(
        refused(asked, &layers).message,
        "`allow_net` `evil.io:443` is more than the system defaults allow, which is nothing"
    );
}

#[test]
fn values_out_of_range_are_refused_whoever_says_them_and_in_both_modes() {
    for (key, text) in [
        ("timeout", "0s"),
        ("cpu_time", "0s"),
        ("memory", "1M"),
        ("memory", "0"),
        ("memory", "100T"),
        ("pids", "0"),
        ("pids", "99999999"),
        ("cpus", "0"),
        ("disk", "0"),
        ("files", "0"),
        ("stdout", "0"),
        ("open_files", "3"),
    ] {
        for asked in [call(limit(key, text)), capping(limit(key, text))] {
            let error = run(asked, &[]).unwrap_err();
            assert_eq!(error.code, Code::InvalidArgument, "{key} {text}");
            assert!(
                error.message.starts_with(&format!("`{key}` `")),
                "{}",
                error.message
            );
        }
        let error = run(call(silent()), &[Layer::skill("s", limit(key, text))]).unwrap_err();
        assert_eq!(error.code, Code::InvalidConfig, "{key} {text}");
        assert!(error.message.ends_with("in skill `s`"), "{}", error.message);
    }
}

#[test]
fn a_pattern_with_a_star_inside_is_refused() {
    let asked = PartialProfile {
        env_allow: Some(patterns(&["A*B"])),
        ..silent()
    };
    assert_eq!(
        run(call(asked), &[]).unwrap_err().code,
        Code::InvalidArgument
    );
}

#[test]
fn a_request_that_asks_for_what_it_would_get_anyway_is_granted() {
    let layers = [Layer::settings(limit("memory", "512M"))];
    let assessed = resolve(
        call(limit("memory", "512M")),
        &crate::fixture::server(),
        &layers,
    )
    .map(assess)
    .unwrap();
    assert!(assessed.capped().is_empty());
}
