//! `[pool]` and `[sandbox]`, and the configurations that are handed out as examples.

use glovebox_model::{
    Code, Correlation, Lifetime, Millis, PoolConfig, SandboxSettings, SpaceId, Stage,
};
use glovebox_policy::{Config, Surface};

use crate::fixture::HOST;

const EXAMPLES: [(&str, &str); 3] = [
    (
        "minimal.toml",
        include_str!("../../../../examples/config/minimal.toml"),
    ),
    (
        "development.toml",
        include_str!("../../../../examples/config/development.toml"),
    ),
    (
        "production.toml",
        include_str!("../../../../examples/config/production.toml"),
    ),
];

fn of_agent(agent: &str) -> Correlation {
    Correlation {
        agent_id: Some(agent.to_owned()),
        ..Correlation::of_space(SpaceId::local())
    }
}

fn parse(text: &str) -> Config {
    Config::parse(text, "g.toml").unwrap()
}

#[test]
fn every_example_is_accepted_by_a_server_and_by_a_developers_machine() {
    for (name, text) in EXAMPLES {
        let config = Config::parse(text, name).unwrap_or_else(|why| panic!("{name}: {why}"));
        for surface in [Surface::Server, Surface::Local] {
            if let Err(why) = config.system(surface, HOST) {
                panic!("{name}: {why}");
            }
        }
    }
}

#[test]
fn the_examples_differ_in_what_they_keep() {
    let [minimal, development, production] = EXAMPLES.map(|(name, text)| {
        let config = Config::parse(text, name).unwrap();
        let ids = Correlation::of_space(SpaceId::local());
        (config.pool(), config.sandbox_for(&ids))
    });
    assert!(!minimal.0.enabled);
    assert_eq!(minimal.1.lifetime, Lifetime::Exec);
    assert_eq!(development.1.lifetime, Lifetime::Session);
    assert!(development.1.keep_root && !production.1.keep_root);
    assert!(production.0.min > development.0.min);
}

#[test]
fn a_file_that_says_nothing_means_the_defaults() {
    let config = parse("");
    assert_eq!(config.pool(), PoolConfig::default());
    let ids = Correlation::of_space(SpaceId::local());
    assert_eq!(config.sandbox_for(&ids), SandboxSettings::default());
}

#[test]
fn every_key_of_the_pool_is_read() {
    let text = "[pool]\nenabled = false\nmin = 1\nmax = 9\npython = 3\nnode = 4\nidle_timeout = 30\nmax_age = \"2h\"\nacquire_timeout = \"0s\"\n";
    assert_eq!(
        parse(text).pool(),
        PoolConfig {
            enabled: false,
            min: 1,
            max: 9,
            python: 3,
            node: 4,
            idle_timeout: Millis::secs(30),
            max_age: Millis::secs(7200),
            acquire_timeout: Millis(0),
        }
    );
}

#[test]
fn zero_never_prunes() {
    let config = parse("[sandbox]\nprune_idle = 0\nprune_age = \"30d\"\n");
    let ids = Correlation::of_space(SpaceId::local());
    let settings = config.sandbox_for(&ids);
    assert_eq!(settings.prune_idle, None);
    assert_eq!(settings.prune_age, Some(Millis::secs(30 * 86_400)));
}

#[test]
fn an_agent_decides_for_itself_and_never_for_a_shared_sandbox() {
    let config = parse(
        "[sandbox]\nlifetime = \"shared\"\n[agent.bot.sandbox]\nlifetime = \"agent\"\nkeep_root = true\n[agent.mole.sandbox]\nkeep_root = true\n",
    );
    let bot = config.sandbox_for(&of_agent("bot"));
    assert_eq!((bot.lifetime, bot.keep_root), (Lifetime::Agent, true));
    let asked = config.sandbox_of(&of_agent("bot"), Lifetime::Shared);
    assert_eq!((asked.lifetime, asked.keep_root), (Lifetime::Shared, false));
    let mole = config.sandbox_for(&of_agent("mole"));
    assert_eq!((mole.lifetime, mole.keep_root), (Lifetime::Shared, false));
    let other = config.sandbox_of(&of_agent("other"), Lifetime::Session);
    assert_eq!(
        (other.lifetime, other.keep_root),
        (Lifetime::Session, false)
    );
}

#[test]
fn every_mistake_is_named_with_its_place_and_the_way_out() {
    for (text, message, hint) in [
        (
            "[pool]\nidle_timout = 3\n",
            "unknown key `idle_timout` under `[pool]` (g.toml:2:1)",
            "did you mean `idle_timeout`?",
        ),
        (
            "[pool]\nmin = -1\n",
            "`min` must be a whole number from 0 to 4096 (g.toml:2:7)",
            "",
        ),
        (
            "[pool]\nmin = \"2\"\n",
            "`min` must be a whole number from 0 to 4096, not a string (g.toml:2:7)",
            "",
        ),
        (
            "[pool]\nmax_age = \"0s\"\n",
            "`max_age`: `0s` is below `1s`, the least that works (g.toml:2:11)",
            "",
        ),
        (
            "[pool]\nmin = 3\nmax = 4\n",
            "`min`, `python` and `node` together are 5, above `max`, which is 4 (g.toml:3:1)",
            "set `max` to 5 or more, or lower the others",
        ),
        (
            "[sandbox]\nlifetime = \"sesion\"\n",
            "`lifetime`: `sesion` is not one of `exec`, `session`, `agent`, `shared` (g.toml:2:12)",
            "did you mean `session`?",
        ),
        (
            "[sandbox]\nkeep_root = 1\n",
            "`keep_root` must be `true` or `false`, not an integer (g.toml:2:13)",
            "",
        ),
        (
            "[agent.a.sandbox]\nprune_idle = \"1h\"\n",
            "`prune_idle` is the same for every agent (g.toml:2:1)",
            "write it under `[sandbox]`",
        ),
        (
            "[agent.a]\nsandbox = 1\n",
            "`sandbox` must be a table, not an integer (g.toml:2:11)",
            "",
        ),
        (
            "[space.a.sandbox]\nlifetime = \"agent\"\n",
            "unknown key `sandbox` under `[space.a]` (g.toml:1:10)",
            "valid here: ",
        ),
    ] {
        let error = Config::parse(text, "g.toml").unwrap_err();
        assert_eq!(
            (error.code, error.stage),
            (Code::InvalidConfig, Stage::Parse)
        );
        assert_eq!(error.message, message);
        match hint {
            "" => {}
            hint => assert!(
                error.hints.iter().any(|it| it.starts_with(hint)),
                "{error:?}"
            ),
        }
    }
}

#[test]
fn a_device_is_given_only_where_the_ceilings_and_the_settings_say_so() {
    use crate::fixture::{call, limit};
    use glovebox_policy::resolve;
    let granted = |text: &str, wanted: &str| {
        let config = parse(text);
        let asked = call(limit("gpus", wanted));
        let system = config.system(Surface::Server, HOST)?;
        let layers = config.layers_for(&asked.ids);
        resolve(asked, &system, &layers).map(|it| it.profile().limits.gpus.0)
    };
    assert_eq!(granted("", "0").unwrap(), 0);
    assert_eq!(granted("", "1").unwrap_err().code, Code::PolicyDenied);
    let settings = "[settings]\ngpus = 2\n";
    assert_eq!(
        granted(settings, "1").unwrap_err().code,
        Code::InvalidConfig
    );
    let both = format!("{settings}[ceilings]\ngpus = 4\n");
    assert_eq!(granted(&both, "2").unwrap(), 2);
    assert_eq!(granted(&both, "3").unwrap_err().code, Code::PolicyDenied);
    let narrowed = format!("{both}[space.local]\ngpus = 0\n");
    assert_eq!(
        granted(&narrowed, "1").unwrap_err().code,
        Code::PolicyDenied
    );
    let ceiling_alone = "[ceilings]\ngpus = 4\n";
    assert_eq!(
        granted(ceiling_alone, "1").unwrap_err().code,
        Code::PolicyDenied
    );
}
