//! The configuration file: what it gives, and what it says when it is wrong.

use glovebox_model::{
    Access, BackendName, Bytes, Code, Correlation, Cpus, Error, Guarantee, Millis, NetworkMode,
    SpaceId, Stage,
};
use glovebox_policy::{Config, LayerName, Surface, TierPresets};
use proptest::prelude::*;

use crate::fixture::HOST;

const EXAMPLE: &str = include_str!("../../../../docs/config.example.toml");

fn ids(space: &str, user: Option<&str>, agent: Option<&str>) -> Correlation {
    Correlation {
        user_id: user.map(str::to_owned),
        agent_id: agent.map(str::to_owned),
        ..Correlation::of_space(space.parse().unwrap())
    }
}

fn refused(text: &str) -> Error {
    let error = Config::parse(text, "g.toml").unwrap_err();
    assert_eq!(error.code, Code::InvalidConfig);
    assert_eq!(error.stage, Stage::Parse);
    error
}

#[test]
fn the_example_parses_and_applies() {
    let config = Config::parse(EXAMPLE, "config.example.toml").unwrap();
    let system = config.system(Surface::Server, HOST).unwrap();
    assert_eq!(system.ceilings().memory_bytes, Bytes::mib(16 << 10));
    let names: Vec<_> = config
        .layers_for(&ids("acme", Some("dana@example.com"), Some("reviewer")))
        .iter()
        .map(glovebox_policy::Layer::name)
        .collect();
    assert_eq!(
        names,
        [
            LayerName::Settings,
            LayerName::Space,
            LayerName::User,
            LayerName::Agent
        ]
    );
    assert_eq!(config.layers_for(&ids("other", None, None)).len(), 1);
}

/// The example states a server's defaults; they are not to drift apart.
#[test]
fn the_example_states_the_defaults_of_a_server() {
    let config = Config::parse(EXAMPLE, "config.example.toml").unwrap();
    let settings = &config.layers_for(&Correlation::of_space(SpaceId::local()))[0];
    let defaults = glovebox_policy::System::new(Surface::Server, HOST);
    assert_eq!(settings.profile().limits, (*defaults.defaults()).into());
}

#[test]
fn units_are_strings_or_numbers() {
    let text = "[settings]\ntimeout = 30\ncpu_time = 1.5\nmemory = 536_870_912\ncpus = 0.5\ndisk = \"1.5G\"\npids = \"7\"\n";
    let config = Config::parse(text, "g.toml").unwrap();
    let layers = config.layers_for(&Correlation::of_space(SpaceId::local()));
    let limits = &layers[0].profile().limits;
    assert_eq!(limits.wall_ms, Some(Millis::secs(30)));
    assert_eq!(limits.cpu_ms, Some(Millis(1500)));
    assert_eq!(limits.memory_bytes, Some(Bytes::mib(512)));
    assert_eq!(limits.cpus_milli, Some(Cpus(500)));
    assert_eq!(limits.disk_bytes, Some(Bytes(3 << 29)));
    assert_eq!(limits.pids.map(|it| it.0), Some(7));
}

#[test]
fn every_key_reaches_its_field() {
    let text = r#"
[space.local]
network = "allowlist"
allow_net = ["a.io:443"]
workspace = "ro"
env_allow = ["A*"]
tier = "high"
security = "permissive"
limits_demand = "kernel"
require = ["own_kernel", "disk_limit"]
backend = "docker"
runtime = "runsc"
image = "python:3.13"
env = { LANG = "C" }
"#;
    let config = Config::parse(text, "g.toml").unwrap();
    let layers = config.layers_for(&Correlation::of_space(SpaceId::local()));
    let profile = layers[0].profile();
    assert_eq!(profile.network, Some(NetworkMode::Allowlist));
    assert_eq!(profile.allow_net.as_ref().map(|it| it.len()), Some(1));
    assert_eq!(profile.workspace, Some(Access::Ro));
    assert_eq!(profile.env_allow, Some(crate::fixture::patterns(&["A*"])));
    assert_eq!(profile.tier, Some(glovebox_model::Tier::High));
    assert_eq!(
        profile.security,
        Some(glovebox_model::SecurityMode::Permissive)
    );
    assert_eq!(
        profile.limits_demand,
        Some(glovebox_model::LimitsDemand::Kernel)
    );
    assert_eq!(
        profile.require,
        [Guarantee::OwnKernel, Guarantee::DiskLimit].into()
    );
    assert_eq!(profile.backend, Some(BackendName::Docker));
    assert_eq!(profile.runtime.as_deref(), Some("runsc"));
    assert_eq!(profile.image.as_deref(), Some("python:3.13"));
    assert_eq!(profile.env.len(), 1);
}

#[test]
fn a_backend_may_be_written_with_its_runtime() {
    for text in [
        "backend = \"docker:runsc\"",
        "backend = \"docker:runsc\"\nruntime = \"runsc\"",
        "runtime = \"runsc\"\nbackend = \"docker:runsc\"",
    ] {
        let config = Config::parse(&format!("[settings]\n{text}\n"), "g.toml").unwrap();
        let layers = config.layers_for(&Correlation::of_space(SpaceId::local()));
        let profile = layers[0].profile();
        assert_eq!(profile.backend, Some(BackendName::Docker), "{text}");
        assert_eq!(profile.runtime.as_deref(), Some("runsc"), "{text}");
    }
    for (text, part) in [
        (
            "backend = \"docker:runsc\"\nruntime = \"runc\"",
            "named twice",
        ),
        (
            "runtime = \"runc\"\nbackend = \"docker:runsc\"",
            "named twice",
        ),
        ("backend = \"native:runsc\"", "has no runtime"),
        ("backend = \"docker:\"", "no runtime is named"),
        ("backend = \"docker:-v\"", "does not begin with"),
        ("backend = \"dokcer:runsc\"", "is not one of"),
    ] {
        let error = refused(&format!("[settings]\n{text}\n"));
        assert!(error.message.contains(part), "{text}: {}", error.message);
    }
}

#[test]
fn presets_and_ceilings_reach_the_system_layer() {
    let text =
        "[settings]\ntier_presets = \"full\"\ntimeout = \"10m\"\n[ceilings]\ntimeout = \"10m\"\n";
    let system = Config::parse(text, "g.toml")
        .unwrap()
        .system(Surface::Server, HOST)
        .unwrap();
    assert_eq!(system.presets(), TierPresets::Full);
    assert_eq!(system.ceilings().wall_ms, Millis::secs(600));
}

#[test]
fn settings_above_their_ceiling_are_refused_at_their_line() {
    let config = Config::parse("[settings]\n\nmemory = \"8G\"\n", "g.toml").unwrap();
    let error = config.system(Surface::Server, HOST).unwrap_err();
    assert_eq!(error.code, Code::InvalidConfig);
    assert_eq!(
        error.message,
        "the settings set `memory` to `8G`, above the ceiling of `4G`"
    );
    assert_eq!(error.rule.unwrap().line, 3);
}

#[test]
fn every_mistake_is_named_with_its_place_and_the_way_out() {
    for (text, message, hint) in [
        (
            "[settings]\nmemroy = \"1G\"\n",
            "unknown key `memroy` under `[settings]` (g.toml:2:1)",
            "did you mean `memory`?",
        ),
        (
            "[agent.bot]\n  wall_ms = 3\n",
            "unknown key `wall_ms` under `[agent.bot]` (g.toml:2:3)",
            "here it is called `timeout`",
        ),
        (
            "[ceilings]\nworkspace = \"ro\"\n",
            "unknown key `workspace` under `[ceilings]` (g.toml:2:1)",
            "valid here: `timeout`, `session_time`, `cpu_time`, `memory`, `pids`, `cpus`, `disk`, `files`, `stdout`, `stderr`, `artifacts`, `open_files`, `gpus`, `tpus`, `egress_bytes`, `egress_connections`, `network_time`, `network`",
        ),
        (
            "[settings]\nrequire = [\"own_kernal\"]\n",
            "`require`: `own_kernal` is not one of `own_users`, `own_pids`, `own_mounts`, `own_ipc`, `own_hostname`, `own_cgroup_view`, `no_network`, `egress_only`, `read_only_root`, `no_capabilities`, `no_new_privileges`, `syscall_filter`, `file_rules`, `no_survivors`, `memory_limit`, `pids_limit`, `cpu_limit`, `disk_limit`, `own_kernel` (g.toml:2:12)",
            "did you mean `own_kernel`?",
        ),
        (
            "[settings]\nnetwork = \"unrestricted\"\nrequire = [\"no_network\"]\n",
            "`require` of `no_network` contradicts `network = \"unrestricted\"` (g.toml:3:1)",
            "leave out one of the two",
        ),
        (
            "[setings]\nmemory = \"1G\"\n",
            "unknown key `setings` at the top (g.toml:1:2)",
            "did you mean `settings`?",
        ),
        (
            "memory = \"1G\"\n",
            "`memory` stands outside any section (g.toml:1:1)",
            "write it under `[settings]`",
        ),
        (
            "[space]\nmemory = \"1G\"\n",
            "`memory` stands under `[space]` without the name of a space (g.toml:2:1)",
            "write it under `[space.NAME]`",
        ),
        (
            "[settings]\nnetwork = \"alowlist\"\n",
            "`network`: `alowlist` is not one of `none`, `retrieval`, `allowlist`, `unrestricted` (g.toml:2:11)",
            "did you mean `allowlist`?",
        ),
        (
            "[settings]\nnetwork = \"none\"\nallow_net = [\"a.io:1\"]\n",
            "`allow_net` has no meaning with `network = \"none\"` (g.toml:3:1)",
            "set `network = \"allowlist\"`, or leave out `allow_net`",
        ),
        (
            "[settings]\nallow_net = [\"a.io:1\"]\n",
            "`allow_net` has no effect without `network` (g.toml:2:1)",
            "set `network = \"allowlist\"` beside it",
        ),
    ] {
        let error = refused(text);
        assert_eq!(error.message, message);
        assert_eq!(error.hints, [hint], "{text}");
    }
}

#[test]
fn wrong_values_are_named_with_their_place() {
    for (text, message) in [
        (
            "[settings]\nmemory = true\n",
            "`memory` must be a size such as `512M`, `1G` or `4096`, not a boolean (g.toml:2:10)",
        ),
        (
            "[settings]\nmemory = 1.5\n",
            "`memory` must be a size such as `512M`, `1G` or `4096`, not a decimal number (g.toml:2:10)",
        ),
        (
            "[settings]\nmemory = \"12 parsecs\"\n",
            "`memory`: `12 parsecs` is not a size such as `512M`, `1G` or `4096` (g.toml:2:10)",
        ),
        (
            "[settings]\ntimeout = \"5 minutes\"\n",
            "`timeout`: `5 minutes` is not a duration such as `30s`, `250ms`, `5m` or `1h` (g.toml:2:11)",
        ),
        (
            "[settings]\npids = -1\n",
            "`pids`: `-1` is not a whole number (g.toml:2:8)",
        ),
        (
            "[settings]\npids = 0\n",
            "`pids` `0` is below `1`, the least that works (g.toml:2:8)",
        ),
        (
            "[ceilings]\nmemory = \"1M\"\n",
            "`memory` `1M` is below `8M`, the least that works (g.toml:2:10)",
        ),
        (
            "[settings]\nworkspace = 3\n",
            "`workspace` must be a string, not an integer (g.toml:2:13)",
        ),
        (
            "[settings]\nallow_net = \"a.io:1\"\n",
            "`allow_net` must be an array of strings, not a string (g.toml:2:13)",
        ),
        (
            "[settings]\nnetwork = \"allowlist\"\nallow_net = [\"a.io:1\", \"10.0.0.1:80\"]\n",
            "`allow_net`: destination `10.0.0.1:80` is an address; only names can be allowed (g.toml:3:24)",
        ),
        (
            "[settings]\nenv_allow = [\"A*B\"]\n",
            "`env_allow`: `A*B` is not an environment key, nor the beginning of one followed by `*` (g.toml:2:14)",
        ),
        (
            "[settings.env]\n\"A-B\" = \"x\"\n",
            "`env`: environment key `A-B` may hold only letters, digits and `_` (g.toml:2:1)",
        ),
        (
            "[settings.env]\nA = 1\n",
            "`A` must be a string, not an integer (g.toml:2:5)",
        ),
        (
            "[settings.env]\nA = \"x\\u0000\"\n",
            "the value of environment key `A` contains a NUL byte (g.toml:2:5)",
        ),
        (
            "[settings]\nimage = \" \"\n",
            "`image` is empty (g.toml:2:9)",
        ),
        (
            "settings = 1\n",
            "`settings` must be a table, not an integer (g.toml:1:12)",
        ),
        (
            "[space.\"a/b\"]\n",
            "space id `a/b` may hold only letters, digits, `.`, `_` and `-` (g.toml:1:8)",
        ),
        (
            "[user.\"\"]\n",
            "the name of the user is empty (g.toml:1:7)",
        ),
        (
            "[settings]\nmemory = \"1G\"\nmemory = \"2G\"\n",
            "duplicate key (g.toml:3:1)",
        ),
        ("[settings\n", "unclosed table, expected `]` (g.toml:1:10)"),
    ] {
        assert_eq!(refused(text).message, message);
    }
}

#[test]
fn the_first_mistake_of_the_file_is_the_one_reported() {
    let error = refused("[space.z]\nzzz = 1\n[agent.a]\naaa = 1\n");
    assert_eq!(error.rule.unwrap().line, 2);
}

#[test]
fn an_empty_file_changes_nothing() {
    let config = Config::parse("", "g.toml").unwrap();
    assert_eq!(config, Config::default());
    assert!(
        config
            .layers_for(&Correlation::of_space(SpaceId::local()))
            .is_empty()
    );
}

#[test]
fn a_file_too_large_is_refused_unread() {
    let error = refused(&"#".repeat((4 << 20) + 1));
    assert_eq!(
        error.message,
        "the file is larger than 4194304 bytes (g.toml:1:1)"
    );
}

fn arbitrary_line() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        Just("memory"),
        Just("timeout"),
        Just("network"),
        Just("allow_net"),
        Just("env_allow"),
        Just("env"),
        Just("env.A"),
        Just("tier"),
        Just("nonsense"),
        Just("cpus"),
        Just("image"),
        Just("require"),
        Just("runtime"),
        Just("ulimits"),
        Just("binds"),
        Just("memory_swap"),
        Just("publish"),
        Just("max_age"),
        Just("prune_idle"),
    ];
    let value = prop_oneof![
        Just("1"),
        Just("-1"),
        Just("0.5"),
        Just("nan"),
        Just("1e300"),
        Just("\"1G\""),
        Just("\"none\""),
        Just("[\"*\"]"),
        Just("{ A = \"b\" }"),
        Just("[[]]"),
        Just("true"),
        Just("1979-05-27"),
        Just("0xff"),
        Just("9223372036854775807"),
        Just("\"é\""),
    ];
    prop_oneof![
        (key, value).prop_map(|(key, value)| format!("{key} = {value}")),
        Just("[settings]".to_owned()),
        Just("[agent.a]".to_owned()),
        Just("[space]".to_owned()),
        Just("[ceilings]".to_owned()),
        Just("[docker]".to_owned()),
        Just("[agent.a.docker]".to_owned()),
        Just("[pool]".to_owned()),
        Just("[sandbox]".to_owned()),
        Just("[agent.a.sandbox]".to_owned()),
        "\\PC{0,20}",
    ]
}

proptest! {
    #[test]
    fn parsing_never_panics(text in "[\\PC\n\t\r\"\\[\\]=.]{0,200}") {
        let _ = Config::parse(&text, "g.toml");
    }

    #[test]
    fn parsing_what_nearly_is_a_configuration_never_panics(
        lines in proptest::collection::vec(arbitrary_line(), 0..12),
    ) {
        let text = lines.join("\n");
        if let Err(error) = Config::parse(&text, "g.toml") {
            let line = error.rule.unwrap().line;
            prop_assert!((1..=u32::try_from(lines.len().max(1)).unwrap()).contains(&line));
        }
    }

    #[test]
    fn a_mistake_is_reported_at_its_own_line(before in 0usize..40, after in 0usize..5) {
        let text = format!("[settings]\n{}bogus_key_zz = 1\n{}", "# x\n".repeat(before), "# y\n".repeat(after));
        let line = Config::parse(&text, "g.toml").unwrap_err().rule.unwrap().line;
        prop_assert_eq!(line, u32::try_from(before).unwrap() + 2);
    }
}
