//! What the program will find in its environment.

use std::collections::BTreeMap;

use glovebox_model::{Call, Code, PartialProfile};
use glovebox_policy::{Config, Layer, LayerName};

use crate::fixture::{PLACES, call, layer_at, patterns, run, silent, variable, with_env};

fn setting(pairs: &[(&str, &str)]) -> PartialProfile {
    let pair = |(key, value): &(&str, &str)| (key.parse().unwrap(), (*value).to_owned());
    PartialProfile {
        env: pairs.iter().map(pair).collect::<BTreeMap<_, _>>(),
        ..silent()
    }
}

fn allowing(list: &[&str]) -> PartialProfile {
    PartialProfile {
        env_allow: Some(patterns(list)),
        ..silent()
    }
}

fn env_of(call: Call, layers: &[Layer]) -> Vec<String> {
    let assessed = run(call, layers).unwrap();
    let shown = |it: &glovebox_model::EnvVar| format!("{}={}", it.key, it.value.display());
    assessed.env().iter().map(shown).collect()
}

#[test]
fn the_nearest_layer_wins_key_by_key_and_the_call_is_nearest() {
    let layers: Vec<_> = PLACES
        .map(|place| {
            layer_at(
                place,
                setting(&[
                    ("A", &place.to_string()),
                    (["S", "P", "U", "G", "C", "K"][place], "x"),
                ]),
            )
        })
        .collect();
    assert_eq!(
        env_of(with_env(&[("A", "mine"), ("B", "b")]), &layers),
        ["A=mine", "B=b", "C=x", "G=x", "K=x", "P=x", "S=x", "U=x"]
    );
    assert_eq!(env_of(call(silent()), &layers)[0], "A=5");
}

#[test]
fn keys_must_match_the_list_and_an_empty_list_allows_nothing() {
    let layers = [Layer::agent("bot", allowing(&["APP_*"]))];
    assert_eq!(
        env_of(with_env(&[("APP_MODE", "x")]), &layers),
        ["APP_MODE=x"]
    );
    let error = run(with_env(&[("OTHER", "x")]), &layers).unwrap_err();
    assert_eq!(error.code, Code::PolicyDenied);
    assert_eq!(
        error.message,
        "environment key `OTHER` is not among those that agent `bot` allows: `APP_*`"
    );
    let nothing = [Layer::agent("bot", allowing(&[]))];
    assert!(run(with_env(&[("A", "x")]), &nothing).is_err());
    assert!(run(call(silent()), &nothing).is_ok());
}

#[test]
fn capping_leaves_out_the_key_and_says_so() {
    let layers = [Layer::agent("bot", allowing(&["APP_*"]))];
    let asked = Call {
        on_exceed: glovebox_model::OnExceed::Cap,
        ..with_env(&[("OTHER", "x"), ("APP_A", "1")])
    };
    let assessed = run(asked, &layers).unwrap();
    assert_eq!(assessed.env().len(), 1);
    let report = &assessed.capped()[0];
    assert_eq!(
        [&*report.field, &*report.asked, &*report.granted],
        ["env.OTHER", "set", "unset"]
    );
}

#[test]
fn a_layer_above_may_set_what_a_layer_below_may_not() {
    let layers = [
        Layer::settings(setting(&[("LANG", "C")])),
        Layer::agent("bot", allowing(&[])),
    ];
    assert_eq!(env_of(call(silent()), &layers), ["LANG=C"]);
    let below = [
        Layer::agent("bot", allowing(&["APP_*"])),
        Layer::skill("s", setting(&[("LANG", "C")])),
    ];
    let error = run(call(silent()), &below).unwrap_err();
    assert_eq!(
        error.message,
        "skill `s` sets environment key `LANG`, which the `env_allow` of agent `bot` leaves out"
    );
}

#[test]
fn credentials_are_refused_without_printing_them() {
    let secret = ["ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].concat();
    for (key, value, message) in [
        (
            "OPENAI_API_KEY",
            "hunter2-hunter2",
            "environment key `OPENAI_API_KEY` looks like a credential, and no operator allows it",
        ),
        (
            "COLOUR",
            secret.as_str(),
            "the value of environment key `COLOUR` looks like a GitHub token, and no operator allows it",
        ),
    ] {
        let error = run(with_env(&[(key, value)]), &[]).unwrap_err();
        assert_eq!(error.code, Code::PolicyDenied);
        assert_eq!(error.message, message);
        let name = key.to_lowercase();
        assert_eq!(
            error.hints,
            [
                format!(
                    "keep it as a secret: `glovebox secret set {name}` reads the value, and `--secret {name}` (in a request `secrets`) gives it to a program"
                ),
                format!(
                    "an operator can allow it by listing exactly `{key}` in `env_allow` of the settings; `[\"*\", \"{key}\"]` keeps every other key"
                )
            ]
        );
        assert!(!format!("{error:?}").contains(value));
    }
}

#[test]
fn only_operators_can_declare_a_credential_and_only_by_its_exact_name() {
    let asked = || with_env(&[("DEMO_TOKEN", "x")]);
    let exact = || allowing(&["*", "DEMO_TOKEN"]);
    for (layers, allowed) in [
        (vec![Layer::settings(exact())], true),
        (vec![Layer::agent("bot", exact())], true),
        (vec![Layer::settings(allowing(&["*"]))], false),
        (vec![Layer::settings(allowing(&["DEMO_*"]))], false),
        (vec![Layer::conversation("c", exact())], false),
        (vec![Layer::skill("s", exact())], false),
        // A nearer layer does not widen: the settings spoke, and did not list it.
        (
            vec![
                Layer::settings(allowing(&["*"])),
                Layer::agent("bot", exact()),
            ],
            false,
        ),
        (
            vec![
                Layer::settings(exact()),
                Layer::skill("s", allowing(&["*"])),
            ],
            true,
        ),
        (
            vec![
                Layer::settings(exact()),
                Layer::skill("s", allowing(&["A"])),
            ],
            false,
        ),
    ] {
        assert_eq!(run(asked(), &layers).is_ok(), allowed, "{layers:?}");
    }
    let mut self_declared = asked();
    self_declared.overrides.env_allow = Some(patterns(&["*", "DEMO_TOKEN"]));
    assert!(run(self_declared, &[]).is_err());
}

#[test]
fn a_credential_in_the_configuration_is_refused_at_its_line() {
    let text = "[settings]\n[settings.env]\nLANG = \"C\"\nDEMO_TOKEN = \"abc\"\n";
    let config = Config::parse(text, "g.toml").unwrap();
    let asked = call(silent());
    let layers = config.layers_for(&asked.ids);
    let error = run(asked, &layers).unwrap_err();
    assert_eq!(error.rule.unwrap().line, 4);
}

#[test]
fn reserved_duplicate_and_oversized_variables_are_refused() {
    let large = "x".repeat((32 << 10) + 1);
    let many: Vec<_> = (0..513).map(|n| variable(&format!("K{n}"), "v")).collect();
    let heavy: Vec<_> = (0..9)
        .map(|n| variable(&format!("K{n}"), &large[1..]))
        .collect();
    let of = |env| Call {
        env,
        ..call(silent())
    };
    for (asked, message) in [
        (
            with_env(&[("GLOVEBOX_EFFECTS", "x")]),
            "environment key `GLOVEBOX_EFFECTS` is reserved: keys beginning with `GLOVEBOX` are set by Glovebox",
        ),
        (
            with_env(&[("A", "1"), ("A", "1")]),
            "environment key `A` is set twice",
        ),
        (
            with_env(&[("A", &large)]),
            "the value of environment key `A` has 32769 bytes, more than 32768",
        ),
        (of(many), "the environment has 513 keys, more than 512"),
        (
            of(heavy),
            "the environment has 294948 bytes, more than 262144",
        ),
    ] {
        let error = run(asked, &[]).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument);
        assert_eq!(error.message, message);
    }
    let mut twice = with_env(&[("A", "1")]);
    twice.overrides = setting(&[("A", "2")]);
    assert_eq!(
        run(twice, &[]).unwrap_err().message,
        "environment key `A` is set twice"
    );
}

#[test]
fn keys_that_change_loading_are_the_programs_own_business() {
    let keys = [
        ("PATH", "/x"),
        ("LD_PRELOAD", "y.so"),
        ("PYTHONPATH", "z"),
        ("BASH_ENV", "w"),
    ];
    assert_eq!(env_of(with_env(&keys), &[]).len(), keys.len());
}

#[test]
fn the_trace_names_keys_and_never_values() {
    let layers = [Layer::settings(setting(&[("PAGER", "cat-value")]))];
    let assessed = run(with_env(&[("A", "a-value")]), &layers).unwrap();
    let traced: Vec<_> = assessed
        .decisions()
        .into_iter()
        .filter(|it| it.field.starts_with("env."))
        .map(|it| (it.field, it.value, it.by.layer))
        .collect();
    assert_eq!(
        traced,
        [
            ("env.A".to_owned(), "set".to_owned(), LayerName::Request),
            (
                "env.PAGER".to_owned(),
                "set".to_owned(),
                LayerName::Settings
            ),
        ]
    );
}
