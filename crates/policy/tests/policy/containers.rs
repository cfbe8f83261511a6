//! `[docker]` and `[agent.NAME.docker]`: merging, where each value came from, and what is refused.

use glovebox_model::{Bytes, Correlation, DockerConfig, Lifetime, Pull, SpaceId, Ulimit};
use glovebox_policy::{Config, LayerName};

const BOTH: &str = r#"[docker]
image = "debian:12"
memory_swap = "2G"
dns = ["1.1.1.1"]
binds = ["/srv/a:/a"]
bind_roots = ["/srv"]
env = { LANG = "C", PAGER = "cat" }

[docker.ulimits]
nofile = 1024
core = "0:0"

[agent.bot.docker]
image = "python:3.13"
dns = ["9.9.9.9"]
binds = ["/srv/b:/b:rw"]

[agent.bot.docker.env]
LANG = "de"
SECRET = "hunter2"

[agent.bot.docker.ulimits]
nofile = { soft = 10, hard = 20 }
"#;

fn of_agent(agent: &str) -> Correlation {
    Correlation {
        agent_id: Some(agent.to_owned()),
        ..Correlation::of_space(SpaceId::local())
    }
}

fn parse(text: &str) -> Config {
    Config::parse(text, "g.toml").unwrap()
}

fn both(soft: u64, hard: u64) -> Ulimit {
    Ulimit { soft, hard }
}

#[test]
fn silence_means_the_defaults() {
    let config = parse("").docker_for(&of_agent("bot"), Lifetime::Exec);
    assert_eq!(config, DockerConfig::default());
}

#[test]
fn every_key_is_read() {
    let text = r#"
[docker]
cli = "/usr/bin/podman"
image = "debian:12"
pull = "missing"
platform = "linux/arm64"
runtime = "runsc"
container_prefix = "gb-"
read_only_root = false
tmpfs = ["/tmp:size=1g"]
network = "bridge"
user = "5:6"
cap_drop = ["ALL"]
env = { A = "1" }
setup_command = "apt-get update"
memory_swap = 4294967296
ulimits = { nofile = "1:2" }
seccomp_profile = "/etc/s.json"
apparmor_profile = "mine"
selinux_label = "type:svirt_t"
dns = ["::1"]
extra_hosts = ["db:10.0.0.5"]
binds = ["/srv/a:/a:ro"]
bind_roots = ["/srv"]
publish = [8080, 1]
shm_size = "128M"
host_state_dir = "/var/lib/glovebox"
"#;
    let text_of = |it: &str| it.to_owned();
    let some = |it: &str| Some(it.to_owned());
    let list = |it: &str| vec![it.to_owned()];
    assert_eq!(
        parse(text).docker_for(&of_agent("bot"), Lifetime::Agent),
        DockerConfig {
            cli: text_of("/usr/bin/podman"),
            image: text_of("debian:12"),
            pull: Pull::Missing,
            platform: some("linux/arm64"),
            runtime: some("runsc"),
            container_prefix: text_of("gb-"),
            read_only_root: false,
            tmpfs: list("/tmp:size=1g"),
            network: some("bridge"),
            user: text_of("5:6"),
            cap_drop: list("ALL"),
            env: [(text_of("A"), text_of("1"))].into(),
            setup_command: some("apt-get update"),
            memory_swap: Some(Bytes(4 << 30)),
            ulimits: [(text_of("nofile"), both(1, 2))].into(),
            seccomp_profile: some("/etc/s.json"),
            apparmor_profile: some("mine"),
            selinux_label: some("type:svirt_t"),
            dns: list("::1"),
            extra_hosts: list("db:10.0.0.5"),
            binds: list("/srv/a:/a:ro"),
            bind_roots: list("/srv"),
            publish: vec![8080, 1],
            shm_size: Some(Bytes::mib(128)),
            host_state_dir: some("/var/lib/glovebox"),
        }
    );
}

#[test]
fn an_agents_section_merges_keys_adds_binds_and_replaces_the_rest() {
    let config = parse(BOTH).docker_for(&of_agent("bot"), Lifetime::Agent);
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(
        config,
        DockerConfig {
            image: "python:3.13".to_owned(),
            memory_swap: Some(Bytes(2 << 30)),
            dns: vec!["9.9.9.9".to_owned()],
            binds: vec!["/srv/a:/a".to_owned(), "/srv/b:/b:rw".to_owned()],
            bind_roots: vec!["/srv".to_owned()],
            env: [
                pair("LANG", "de"),
                pair("PAGER", "cat"),
                pair("SECRET", "hunter2")
            ]
            .into(),
            ulimits: [
                ("core".to_owned(), both(0, 0)),
                ("nofile".to_owned(), both(10, 20))
            ]
            .into(),
            ..DockerConfig::default()
        }
    );
}

#[test]
fn what_one_agent_says_counts_neither_for_another_nor_for_a_shared_sandbox() {
    let config = parse(BOTH);
    let shared = config.docker_for(&of_agent("bot"), Lifetime::Shared);
    assert_eq!(
        shared,
        config.docker_for(&of_agent("other"), Lifetime::Agent)
    );
    assert_eq!(shared.image, "debian:12");
    assert_eq!(shared.binds, ["/srv/a:/a"]);
    assert!(!shared.env.contains_key("SECRET"));
    let rows = config.docker_sources(&of_agent("bot"), Lifetime::Shared);
    assert!(rows.iter().all(|row| row.by.layer != LayerName::Agent));
}

#[test]
fn each_value_names_its_line_and_no_variable_its_value() {
    let rows = parse(BOTH).docker_sources(&of_agent("bot"), Lifetime::Session);
    let shown = |field: &str| -> Vec<String> {
        rows.iter()
            .filter(|row| row.field == field)
            .map(|row| {
                let line = row.by.source.as_ref().map_or(0, |it| it.line);
                format!("{} | {}:{line} | {}", row.value, row.by, row.change)
            })
            .collect()
    };
    for (field, expected) in [
        (
            "docker.image",
            &["python:3.13 | agent `bot`:14 | change `image` at `g.toml:14`"][..],
        ),
        (
            "docker.memory_swap",
            &["2G | the settings:3 | change `memory_swap` at `g.toml:3`"],
        ),
        (
            "docker.user",
            &["1000:1000 | the system defaults:0 | set `user` under `[docker]`"],
        ),
        (
            "docker.platform",
            &["- | the system defaults:0 | set `platform` under `[docker]`"],
        ),
        (
            "docker.env.LANG",
            &["set | agent `bot`:19 | change `env.LANG` at `g.toml:19`"],
        ),
        (
            "docker.env.PAGER",
            &["set | the settings:7 | change `env.PAGER` at `g.toml:7`"],
        ),
        (
            "docker.ulimits.nofile",
            &["10:20 | agent `bot`:23 | change `ulimits.nofile` at `g.toml:23`"],
        ),
        (
            "docker.binds",
            &[
                "/srv/a:/a | the settings:5 | change `binds` at `g.toml:5`",
                "/srv/b:/b:rw | agent `bot`:16 | change `binds` at `g.toml:16`",
            ],
        ),
    ] {
        assert_eq!(shown(field), expected, "{field}");
    }
    let json = serde_json::to_string(&rows).unwrap();
    assert!(!json.contains("hunter2"), "{json}");
}

#[test]
fn every_mistake_is_named_with_its_place_and_the_way_out() {
    for (text, message, hint) in [
        (
            "[docker]\nimgae = \"x\"\n",
            "unknown key `imgae` under `[docker]` (g.toml:2:1)",
            "did you mean `image`?",
        ),
        (
            "[agent.a.docker]\nbind_roots = [\"/\"]\n",
            "`bind_roots` is the same for every agent (g.toml:2:1)",
            "write it under `[docker]`",
        ),
        (
            "[agent.a.docker]\ncli = \"sh\"\n",
            "`cli` is the same for every agent (g.toml:2:1)",
            "write it under `[docker]`",
        ),
        (
            "[docker]\nnetwork = \"host\"\n",
            "`network`: `host` is a network of somebody else's (g.toml:2:11)",
            "",
        ),
        (
            "[docker]\nuser = \"0:0\"\n",
            "`user`: `0:0` is root (g.toml:2:8)",
            "",
        ),
        (
            "[docker]\nseccomp_profile = \"unconfined\"\n",
            "`seccomp_profile`: `unconfined` switches the filter off (g.toml:2:19)",
            "",
        ),
        (
            "[docker]\nimage = \"--privileged\"\n",
            "`image`: `--privileged` is not a name that the engine would take as one (g.toml:2:9)",
            "",
        ),
        (
            "[docker]\nbinds = [\"/a:/b\", \"/etc\"]\n",
            "`binds`: `/etc` is not `source:target[:ro|rw]` (g.toml:2:19)",
            "",
        ),
        (
            "[docker]\nmemory_swap = \"lots\"\n",
            "`memory_swap`: `lots` is not a size such as `512M`, `1G` or `4096` (g.toml:2:15)",
            "",
        ),
        (
            "[docker.ulimits]\nnofile = \"9:3\"\n",
            "`nofile`: the soft limit 9 is above the hard limit 3 (g.toml:2:10)",
            "",
        ),
        (
            "[docker.ulimits]\nnofile = { soft = 1 }\n",
            "`nofile` must be a number, `\"soft:hard\"` or `{ soft = …, hard = … }`, not a table (g.toml:2:10)",
            "",
        ),
        (
            "[docker.ulimits]\nnofile = { soft = 1, hrad = 2 }\n",
            "unknown key `hrad` of a limit (g.toml:2:22)",
            "did you mean `hard`?",
        ),
        (
            "[docker]\npublish = [0]\n",
            "`publish` must be a whole number from 1 to 65535 (g.toml:2:12)",
            "",
        ),
        (
            "[docker.env]\nA = \"x\\ny\"\n",
            "the value of environment key `A` contains a NUL or a new line (g.toml:2:5)",
            "",
        ),
        (
            "[docker]\npull = \"always\"\n",
            "`pull`: `always` is not one of `never`, `missing` (g.toml:2:8)",
            "valid here: `never`, `missing`",
        ),
    ] {
        let error = Config::parse(text, "g.toml").unwrap_err();
        assert_eq!(error.message, message);
        match hint {
            "" => {}
            hint => assert!(error.hints.iter().any(|it| it == hint), "{error:?}"),
        }
    }
}
