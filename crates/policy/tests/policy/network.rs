//! `[network]`, `[[webhook]]`, the limits of a network, and the secrets that a call wants.

use glovebox_model::{
    ApprovalMode, Bytes, Code, Delivery, EnvKey, Millis, NetworkMode, PartialProfile, Permit,
    ReasonCode, ReasonKind, WebhookEvent,
};
use glovebox_policy::{
    Config, DecisionContext, Endpoint, GrantKind, GrantedSecret, NetworkSettings, Surface,
    WebhookKey, assess, decide, resolve, secret_variable,
};

use crate::fixture::{HOST, call, destinations, limit, run, secret, silent, variable};

fn read(text: &str) -> Config {
    Config::parse(text, "g.toml").unwrap()
}

#[test]
fn without_a_section_the_defaults_hold_and_nothing_private_is_open() {
    let config = read("");
    assert_eq!(config.network(), &NetworkSettings::default());
    assert!(config.network().private.is_empty() && config.network().inspect.is_empty());
    assert!(config.webhooks().is_empty());
    let retrieval = &config.network().retrieval;
    assert_eq!(retrieval.max_bytes, Bytes::mib(5));
    assert_eq!(retrieval.timeout, Millis::secs(20));
    assert_eq!(retrieval.connect_timeout, Millis::secs(5));
    assert_eq!((retrieval.redirects, retrieval.per_minute), (5, 60));
    assert_eq!((retrieval.concurrent, retrieval.concurrent_total), (4, 32));
}

#[test]
fn every_key_of_the_network_is_read() {
    let config = read(
        "[network]\n\
         private = [\"127.0.0.1:5000\", \"[::1]:5000\", \"Registry.corp.:5000\"]\n\
         extra_ca = \"/etc/ca.pem\"\n\
         inspect = [{ host = \"api.x.org:443\", methods = [\"GET\", \"HEAD\"], paths = [\"/v1/**\"] }, { host = \"*.y.org:443\" }]\n\
         [network.retrieval]\n\
         allow = [\"*.x.org:443\"]\nports = [\"docs.x.org:8443\"]\nmax_bytes = \"64M\"\n\
         timeout = \"1m\"\nconnect_timeout = 2\nredirects = 0\nconcurrent = 1\n\
         concurrent_total = 2\nper_minute = 3\njson_depth = 4\njson_nodes = 5\n",
    );
    let network = config.network();
    let shown: Vec<_> = network.private.iter().map(Endpoint::to_string).collect();
    assert_eq!(
        shown,
        ["registry.corp:5000", "127.0.0.1:5000", "[::1]:5000"]
    );
    assert_eq!(network.extra_ca.as_deref(), Some("/etc/ca.pem".as_ref()));
    let [api, all] = &network.inspect[..] else {
        panic!("{:?}", network.inspect);
    };
    assert_eq!(api.host.to_string(), "api.x.org:443");
    let methods: Vec<_> = api.methods.iter().flatten().map(String::as_str).collect();
    assert_eq!(methods, ["GET", "HEAD"]);
    assert_eq!(api.paths.as_deref(), Some(&["/v1/**".to_owned()][..]));
    assert_eq!((&all.methods, &all.paths), (&None, &None));
    let it = &network.retrieval;
    assert_eq!(it.allow, destinations(&["*.x.org:443"]));
    assert_eq!(
        it.ports.iter().map(Endpoint::port).collect::<Vec<_>>(),
        [8443]
    );
    assert_eq!(it.max_bytes, Bytes::mib(64));
    assert_eq!(
        (it.timeout, it.connect_timeout),
        (Millis::secs(60), Millis::secs(2))
    );
    assert_eq!(
        (it.redirects, it.concurrent, it.concurrent_total),
        (0, 1, 2)
    );
    assert_eq!((it.per_minute, it.json_depth, it.json_nodes), (3, 4, 5));
}

const HOOK: &str = "[[webhook]]\nname = \"chat\"\nurl = \"https://x.org/h\"\nevents = [\"exec\"]\n";

#[test]
fn webhooks_say_who_is_told_what_and_how_it_is_signed() {
    let config = read(
        "[[webhook]]\nname = \"chat\"\nurl = \"https://x.org/h\"\nevents = [\"approval\", \"approval.settled\"]\nkey_file = \"/k\"\n\
         [[webhook]]\nname = \"log\"\nurl = \"http://127.0.0.1:8000/h\"\nevents = [\"exec\"]\nsecret = \"hook-key\"\nspace = \"acme\"\n",
    );
    let [chat, log] = config.webhooks() else {
        panic!("{:?}", config.webhooks());
    };
    assert_eq!(
        chat.events.iter().copied().collect::<Vec<_>>(),
        [
            WebhookEvent::ApprovalRequested,
            WebhookEvent::ApprovalSettled
        ]
    );
    assert_eq!(chat.key, WebhookKey::File("/k".into()));
    assert_eq!(chat.space, None);
    assert_eq!(log.events, [WebhookEvent::ExecEnded].into());
    assert_eq!(log.key, WebhookKey::Secret("hook-key".parse().unwrap()));
    assert_eq!(log.space.as_ref().map(|it| it.as_str()), Some("acme"));
}

#[test]
fn every_mistake_is_named_with_its_place() {
    let hook = |more: &str| format!("{HOOK}{more}");
    for (text, message) in [
        (
            "[network]\nprivate = [\"10.0.0.0/8:80\"]\n".to_owned(),
            "`private`: `10.0.0.0/8:80` is not a host name (g.toml:2:12)",
        ),
        (
            "[network]\nprivate = [\"*.corp:80\"]\n".to_owned(),
            "`private`: `*.corp:80` is a pattern; write each host out (g.toml:2:12)",
        ),
        (
            "[network]\nprivate = [\"127.0.0.1\"]\n".to_owned(),
            "`private`: `127.0.0.1` has no port; write `host:port` (g.toml:2:12)",
        ),
        (
            "[network]\nextra_ca = \"ca.pem\"\n".to_owned(),
            "`extra_ca`: `ca.pem` is not an absolute path (g.toml:2:12)",
        ),
        (
            "[network]\nextra_ca = \"/etc/../ca.pem\"\n".to_owned(),
            "`extra_ca`: `/etc/../ca.pem` is not the clean path of a file (g.toml:2:12)",
        ),
        (
            "[network]\nprivat = []\n".to_owned(),
            "unknown key `privat` under `[network]` (g.toml:2:1)",
        ),
        (
            "[network]\nallow_net = []\n".to_owned(),
            "`allow_net` is not said under `[network]` (g.toml:2:1)",
        ),
        (
            "network = \"none\"\n".to_owned(),
            "`network` must be a table, not a string (g.toml:1:11)",
        ),
        (
            "[network]\ninspect = [{ methods = [\"GET\"] }]\n".to_owned(),
            "the entry has no `host` (g.toml:2:12)",
        ),
        (
            "[network]\ninspect = [{ host = \"10.0.0.1:443\" }]\n".to_owned(),
            "`host`: destination `10.0.0.1:443` is an address; only names can be allowed (g.toml:2:21)",
        ),
        (
            "[network]\ninspect = [{ host = \"x.org:443\", methods = [\"get\"] }]\n".to_owned(),
            "`methods`: `get` is not a method; write it in capitals, such as `GET` (g.toml:2:45)",
        ),
        (
            "[network]\ninspect = [{ host = \"x.org:443\", methods = [] }]\n".to_owned(),
            "`methods` is empty, so nothing would pass (g.toml:2:44)",
        ),
        (
            "[network]\ninspect = [{ host = \"x.org:443\", paths = [\"/a/../b\"] }]\n".to_owned(),
            "`paths`: `/a/../b` is not a clean path (g.toml:2:43)",
        ),
        (
            "[network]\ninspect = [{ host = \"x.org:443\", paths = [\"/a?b=c\"] }]\n".to_owned(),
            "`paths`: `/a?b=c` holds `?`, `#` or `\\`; only the path is compared (g.toml:2:43)",
        ),
        (
            "[network.retrieval]\nmax_bytes = \"65M\"\n".to_owned(),
            "`max_bytes`: `65M` is above `64M`, the most that makes sense (g.toml:2:13)",
        ),
        (
            "[network.retrieval]\nredirects = 6\n".to_owned(),
            "`redirects` must be a whole number from 0 to 5 (g.toml:2:13)",
        ),
        (
            "[network.retrieval]\ntimeout = \"1s\"\n".to_owned(),
            "`connect_timeout` of `5s` is longer than `timeout`, which is `1s` (g.toml:2:11)",
        ),
        (
            "[network.retrieval]\nallow = [\"x.org\"]\n".to_owned(),
            "`allow`: destination `x.org` has no port; write `host:port` (g.toml:2:10)",
        ),
        (
            "[settings]\nnetwork_time = \"25h\"\n".to_owned(),
            "`network_time` `25h` is above `24h`, the most that makes sense (g.toml:2:16)",
        ),
        (
            "[ceilings]\nnetwork_time = 86401\n".to_owned(),
            "`network_time` `86401s` is above `24h`, the most that makes sense (g.toml:2:16)",
        ),
        (
            "[settings]\negress_connections = 0\n".to_owned(),
            "`egress_connections` `0` is below `1`, the least that works (g.toml:2:22)",
        ),
        (hook(""), "the webhook has no `key_file` (g.toml:1:1)"),
        (
            hook("key_file = \"/k\"\nsecret = \"s\"\n"),
            "the webhook has both `key_file` and `secret` (g.toml:5:1)",
        ),
        (
            hook("secret = \"../s\"\n"),
            "`secret`: secret name `../s` must start with a letter or a digit (g.toml:5:10)",
        ),
        (
            HOOK.replace("exec", "webhook.test"),
            "`events`: `webhook.test` is not an event (g.toml:4:11)",
        ),
        (
            HOOK.replace("\"exec\"", ""),
            "`events` is empty, so the webhook would be told nothing (g.toml:4:10)",
        ),
        (
            HOOK.replace("https://x.org/h", "ftp://user:hunter2@x.org"),
            "`url` does not begin with `https://` or `http://` (g.toml:3:7)",
        ),
        (
            format!("{HOOK}key_file = \"/k\"\n{HOOK}key_file = \"/k\"\n"),
            "two webhooks are called `chat` (g.toml:6:1)",
        ),
        (
            "[webhook]\nname = \"x\"\n".to_owned(),
            "`webhook` must be one or more tables; write `[[webhook]]`, with two brackets, not a table (g.toml:1:1)",
        ),
    ] {
        let error = Config::parse(&text, "g.toml").unwrap_err();
        assert_eq!(error.code, Code::InvalidConfig);
        assert_eq!(error.message, message, "{text}");
        assert!(error.rule.is_some(), "{text}");
    }
}

#[test]
fn a_network_is_open_for_a_day_at_most_whoever_asks() {
    assert!(run(call(limit("network_time", "1h")), &[]).is_ok());
    for text in ["86401s", "25h", "7d"] {
        let error = run(call(limit("network_time", text)), &[]).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{text}");
        assert!(error.message.contains("above `24h`"), "{error}");
    }
}

/// Everything that could let a call pass without asking, at once.
fn all_is_granted(
    mode: ApprovalMode,
    policy: &str,
    overrides: PartialProfile,
) -> glovebox_model::Ruling {
    let config = read(&format!(
        "[approvals]\nmode = \"{mode}\"\nauto = true\n{policy}\
         [[rule]]\ndecision = \"allow\"\ntool = \"*\"\n\
         [[rule]]\ndecision = \"allow\"\nnetwork = [\"unrestricted\", \"allowlist\"]\n\
         [[rule]]\ndecision = \"allow\"\nsecret = \"*\"\n"
    ));
    let system = config.system(Surface::Server, HOST).unwrap();
    let mut call = call(overrides);
    call.on_exceed = glovebox_model::OnExceed::Ask;
    let ids = call.ids.clone();
    let plain = assess(resolve(crate::fixture::call(silent()), &system, &[]).unwrap());
    let grants: Vec<GrantKind> = glovebox_policy::kind_of(&plain, None).into_iter().collect();
    assert_eq!(grants.len(), 1);
    let assessed = assess(resolve(call, &system, &config.layers_for(&ids)).unwrap());
    let (rules, tools) = (config.rules_for(&ids), config.tools_for(&ids));
    decide(
        &assessed,
        &DecisionContext {
            rules: &rules,
            tool: "run_command",
            tools: &tools,
            grants: &grants,
            approvals: config.approvals(),
            simulate: false,
            backend: None,
            secrets: &[],
            network: config.network(),
        },
    )
}

#[test]
fn an_unrestricted_network_asks_a_person_whoever_granted_it() {
    let by_request = PartialProfile {
        network: Some(NetworkMode::Unrestricted),
        ..silent()
    };
    for mode in ApprovalMode::ALL {
        for (policy, overrides) in [
            ("[settings]\nnetwork = \"unrestricted\"\n", silent()),
            (
                "[settings]\nnetwork = \"unrestricted\"\n",
                by_request.clone(),
            ),
            (
                "[ceilings]\nnetwork = \"unrestricted\"\n",
                by_request.clone(),
            ),
        ] {
            let ruling = all_is_granted(mode, policy, overrides);
            assert_eq!(ruling.permit, Permit::Ask, "{mode} {policy}");
            // What is an upgrade is never approved automatically.
            let open: Vec<_> = ruling
                .upgrades
                .iter()
                .filter(|it| it.field == "network" && it.asked == "unrestricted")
                .collect();
            assert_eq!(open.len(), 1, "{mode} {policy}");
            let code = |it: &&glovebox_model::Reason| {
                it.code == Some(ReasonCode::NetUnrestrictedRequested)
                    && it.kind == ReasonKind::Upgrade
            };
            assert_eq!(ruling.reasons.iter().filter(code).count(), 1);
        }
    }
}

#[test]
fn a_list_that_policy_gives_is_no_upgrade() {
    let policy = "[settings]\nnetwork = \"allowlist\"\nallow_net = [\"x.org:8443\"]\n";
    let ruling = all_is_granted(ApprovalMode::Cowork, policy, silent());
    assert_eq!((ruling.permit, ruling.upgrades.len()), (Permit::Allow, 0));
}

#[test]
fn a_secret_is_known_by_one_variable_and_wanted_once() {
    let named = |name: &str, key: Option<&str>| glovebox_model::SecretUse {
        variable: key.map(|it| it.parse().unwrap()),
        ..secret(name, Delivery::File)
    };
    for (name, key, expected) in [
        ("registry-token", None, "REGISTRY_TOKEN"),
        ("a.b_c", None, "A_B_C"),
        ("2fa", Some("TWO"), "TWO"),
    ] {
        let key: EnvKey = secret_variable(&named(name, key)).unwrap();
        assert_eq!(key.as_str(), expected);
    }
    for (wanted, message) in [
        (
            vec![named("2fa", None)],
            "secret `2fa` gives no name of a variable",
        ),
        (
            vec![named("a1", None), secret("a1", Delivery::Env)],
            "secret `a1` is wanted twice",
        ),
        (
            vec![named("a-b", None), named("a.b", None)],
            "the variable `A_B` of secret `a.b` is also set by another secret",
        ),
        (
            vec![named("flavour", None)],
            "the variable `FLAVOUR` of secret `flavour` is also set by the environment",
        ),
        (
            vec![named("path", None)],
            "secret `path` cannot be known as `PATH`",
        ),
        (
            vec![named("x1", Some("LD_PRELOAD"))],
            "secret `x1` cannot be known as `LD_PRELOAD`",
        ),
        (
            vec![named("x1", Some("GLOVEBOX_X"))],
            "the variable `GLOVEBOX_X` of secret `x1` is reserved: keys beginning with `GLOVEBOX` are set by Glovebox",
        ),
    ] {
        let mut call = call(silent());
        call.env = vec![variable("FLAVOUR", "C")];
        call.secrets = wanted;
        let error = run(call, &[]).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument);
        assert_eq!(error.message, message);
        assert!(!error.hints.is_empty());
    }
}

#[test]
fn a_grant_gives_a_secret_in_the_ways_that_it_names() {
    let config = read("");
    let (rules, tools) = (
        config.rules_for(&call(silent()).ids),
        config.tools_for(&call(silent()).ids),
    );
    let granted = [GrantedSecret {
        name: "token".parse().unwrap(),
        deliveries: [Delivery::File, Delivery::Broker].into(),
    }];
    for delivery in Delivery::ALL {
        let mut call = call(silent());
        call.secrets = vec![secret("token", delivery)];
        let assessed = run(call, &[]).unwrap();
        let ruling = decide(
            &assessed,
            &DecisionContext {
                rules: &rules,
                tool: "run_command",
                tools: &tools,
                grants: &[],
                approvals: config.approvals(),
                simulate: false,
                backend: None,
                secrets: &granted,
                network: config.network(),
            },
        );
        let expected = match delivery {
            Delivery::File | Delivery::Broker => (Permit::Allow, 0),
            Delivery::Descriptor | Delivery::Env => (Permit::Ask, 1),
        };
        assert_eq!(
            (ruling.permit, ruling.upgrades.len()),
            expected,
            "{delivery}"
        );
    }
}
