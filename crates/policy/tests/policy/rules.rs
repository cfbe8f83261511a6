//! Rules as they are read, and the laws that hold for any of them.

use glovebox_model::{ApprovalMode, ByteString, Correlation, Delivery, Permit, Program, Ruling};
use glovebox_policy::{
    Action, ApprovalSettings, Binding, Config, DecisionContext, Surface, ToolPolicy, assess,
    compare, decide, decide_action, resolve,
};
use proptest::prelude::*;

use crate::fixture::{HOST, call, run, secret, silent, variable};

fn refused(text: &str) -> String {
    let error = Config::parse(text, "p.toml").unwrap_err();
    assert!(
        !error.hints.is_empty() || error.message.contains('`'),
        "{error}"
    );
    error.message
}

#[test]
fn every_mistake_in_a_rule_is_named_with_its_place() {
    for (text, expected) in [
        (
            "[[rule]]\ndecision = \"deny\"\n",
            "the rule says nothing about what it matches (p.toml:1:1)",
        ),
        (
            "[[rule]]\ntool = \"*\"\n",
            "the rule has no `decision` (p.toml:1:1)",
        ),
        (
            "[rule]\ntool = \"*\"\n",
            "`rule` must be one or more tables; write `[[rule]]`, with two brackets, not a table (p.toml:1:1)",
        ),
        (
            "[[rule]]\ndecision = \"deny\"\ncomand = \"rm\"\n",
            "unknown key `comand` in `[[rule]]` (p.toml:3:1)",
        ),
        (
            "[[rule]]\ndecision = \"forbid\"\ntool = \"*\"\n",
            "`decision`: `forbid` is not one of `allow`, `ask`, `deny` (p.toml:2:12)",
        ),
        (
            "[[rule]]\ndecision = \"deny\"\npath = \"etc/x\"\n",
            "`path`: `etc/x` is not an absolute path; begin it with `/` (the workspace is `/workspace/work`) or `**/` (p.toml:3:8)",
        ),
        (
            "[[rule]]\ndecision = \"deny\"\ncommand = [\"ls\", \"bin/ls\"]\n",
            "`command`: `bin/ls` names a program by a relative path (p.toml:3:18)",
        ),
        (
            "[[rule]]\ndecision = \"deny\"\nhost = \"a.*.b\"\n",
            "`host`: `a.*.b` has a `*` elsewhere than as its first label (p.toml:3:8)",
        ),
        (
            "[[rule]]\ndecision = \"deny\"\ncommand = \"rm\"\nmatch = \"ls\"\n",
            "`match`: `ls` is not matched by `command` (p.toml:4:9)",
        ),
        (
            "[[rule]]\ndecision = \"deny\"\ncommand = \"rm\"\nnot_match = [\"ls\", \"rm x\"]\n",
            "`not_match`: `rm x` is matched by `command` (p.toml:4:20)",
        ),
        (
            "[[rule]]\ndecision = \"deny\"\ntier = \"high\"\nmatch = \"ls\"\n",
            "the rule has no matcher that an example can be tried on (p.toml:4:9)",
        ),
        (
            "[[rule]]\ndecision = \"deny\"\nwhen = \"1 + 1\"\n",
            "`when`: `1 + 1` is neither true nor false (p.toml:3:8)",
        ),
        (
            "[[rule]]\ndecision = \"deny\"\nwhen = \"nobody == 'x'\"\n",
            "`when`: `nobody == \\'x\\'` cannot be evaluated: Undeclared reference to 'nobody' (p.toml:3:8)",
        ),
        (
            "[tools]\ndeny = [\"group:web\"]\n",
            "`deny`: `group:web` names a group that does not exist; there are `group:runtime`, `group:fs`, `group:sessions`, `group:memory`, `group:ui`, `group:automation`, `group:messaging`, `group:nodes` (p.toml:2:9)",
        ),
        (
            "[approvals]\nexpire = \"30d\"\n",
            "`expire`: `720h` is above `24h`, the most that makes sense (p.toml:2:10)",
        ),
        (
            "[approvals]\nelicitation = \"yes\"\n",
            "`elicitation` must be `true` or `false`, not a string (p.toml:2:15)",
        ),
        (
            "[approvals]\nquorum = 0\n",
            "`quorum` must be a whole number from 1 to 16 (p.toml:2:10)",
        ),
        (
            "[approvals]\nhost_mounts = [{ source = \"/etc/x\", target = \"/data\" }]\n",
            "`source`: `/etc/x` is, holds or lies in `/etc`, which is reserved (p.toml:2:27)",
        ),
        (
            "[approvals]\nmode = \"manual\"\n[settings]\napproval = \"cowork\"\n",
            "`mode` says again what `approval` under `[settings]` says (p.toml:2:1)",
        ),
    ] {
        assert_eq!(refused(text), expected);
    }
    let long = format!(
        "[[rule]]\ndecision = \"deny\"\ntool = \"{}\"\n",
        "a".repeat(257)
    );
    assert!(refused(&long).contains("is longer than 256 bytes"));
}

#[test]
fn whether_answers_of_hosts_count_is_said_or_left_open() {
    let said = |text: &str| {
        let config = Config::parse(text, "p").unwrap();
        config.approvals().elicitation
    };
    assert_eq!(said(""), None);
    assert_eq!(said("[approvals]\nelicitation = true\n"), Some(true));
    assert_eq!(said("[approvals]\nelicitation = false\n"), Some(false));
}

#[test]
fn too_many_rules_are_refused() {
    let rule = "[[rule]]\ndecision=\"deny\"\ntool=\"a\"\n";
    assert!(Config::parse(&rule.repeat(10_000), "p").is_ok());
    assert!(refused(&rule.repeat(10_001)).contains("more than 10000 rules"));
}

fn script(text: &str) -> glovebox_model::Call {
    let mut call = call(silent());
    call.program = Program::Shell {
        script: ByteString::try_from(text).unwrap(),
    };
    call
}

fn ruling(policy: &str, text: &str) -> Ruling {
    let config = Config::parse(policy, "p.toml").unwrap();
    let system = config.system(Surface::Server, HOST).unwrap();
    let call = script(text);
    let ids = call.ids.clone();
    let assessed = assess(resolve(call, &system, &config.layers_for(&ids)).unwrap());
    let (rules, tools) = (config.rules_for(&ids), config.tools_for(&ids));
    decide(
        &assessed,
        &DecisionContext {
            rules: &rules,
            tool: "run_command",
            tools: &tools,
            grants: &[],
            approvals: config.approvals(),
            simulate: false,
            backend: None,
            secrets: &[],
            network: config.network(),
        },
    )
}

#[test]
fn file_tools_are_decided_by_their_paths() {
    let config = Config::parse(
        "[[rule]]\nname = \"git\"\ndecision = \"deny\"\npath = \"/workspace/work/.git/**\"\n\
         [[rule]]\ndecision = \"allow\"\ntool = \"file.*\"\npath = \"/workspace/work/src/**\"\n",
        "p.toml",
    )
    .unwrap();
    let ids = Correlation::of_space(glovebox_model::SpaceId::local());
    let (rules, tools) = (config.rules_for(&ids), ToolPolicy::default());
    let approvals = ApprovalSettings::default();
    let permit = |path: &str, changes, mode| {
        let paths = [path.to_owned()];
        let action = Action {
            ids: &ids,
            paths: &paths,
            hosts: &[],
            changes,
            mode,
        };
        let standing = DecisionContext {
            rules: &rules,
            tool: "file.write",
            tools: &tools,
            grants: &[],
            approvals: &approvals,
            simulate: false,
            backend: None,
            secrets: &[],
            network: config.network(),
        };
        decide_action(&action, &standing).permit
    };
    assert_eq!(
        permit("src/../.git/config", true, ApprovalMode::Cowork),
        Permit::Deny
    );
    assert_eq!(permit("src/a", true, ApprovalMode::Manual), Permit::Allow);
    assert_eq!(permit("b", true, ApprovalMode::Manual), Permit::Ask);
    assert_eq!(permit("b", false, ApprovalMode::Manual), Permit::Allow);
    assert_eq!(permit("b", true, ApprovalMode::Cowork), Permit::Allow);
}

#[test]
fn any_change_gives_another_digest() {
    let key = [7; 32];
    let of = |change: &dyn Fn(&mut glovebox_model::Call), binding: Binding<'_>| {
        let mut call = script("ls");
        call.env = vec![variable("A", "1")];
        change(&mut call);
        run(call, &[]).unwrap().digest(&key, &binding).unwrap()
    };
    let plain = of(&|_| {}, Binding::default());
    assert_eq!(plain, of(&|_| {}, Binding::default()));
    let changes: [&dyn Fn(&mut glovebox_model::Call); 12] = [
        &|it| it.program = script("ls -l").program,
        &|it| it.cwd = Some(ByteString::try_from("x").unwrap()),
        &|it| it.env = vec![variable("A", "2")],
        &|it| it.env = vec![variable("B", "1")],
        &|it| it.ids.session_id = Some("s".to_owned()),
        &|it| it.ids.agent_id = Some("a".to_owned()),
        &|it| it.overrides = crate::fixture::limit("pids", "9"),
        &|it| it.workspace = glovebox_model::WorkspaceRef::Project("p".parse().unwrap()),
        &|it| it.justification = Some("because".to_owned()),
        &|it| it.secrets = vec![secret("one", Delivery::File)],
        &|it| it.secrets = vec![secret("two", Delivery::File)],
        &|it| it.secrets = vec![secret("one", Delivery::Env)],
    ];
    for (at, change) in changes.iter().enumerate() {
        assert_ne!(plain, of(change, Binding::default()), "change {at}");
    }
    for binding in [
        Binding {
            policy: "p",
            ..Binding::default()
        },
        Binding {
            backend: Some(glovebox_model::BackendName::Native),
            ..Binding::default()
        },
        Binding {
            image: Some("i"),
            ..Binding::default()
        },
        Binding {
            script: Some("s"),
            ..Binding::default()
        },
    ] {
        assert_ne!(plain, of(&|_| {}, binding), "{binding:?}");
    }
    let other = run(script("ls"), &[]).unwrap();
    assert_ne!(
        other.digest(&[1; 32], &Binding::default()).unwrap(),
        other.digest(&[2; 32], &Binding::default()).unwrap()
    );
}

#[test]
fn a_changed_policy_is_compared_by_what_it_decides() {
    let old = ruling("", "make");
    let new = ruling(
        "[[rule]]\ndecision = \"deny\"\ncommand = \"make\"\n",
        "make",
    );
    let change = compare(&old, &new).unwrap();
    assert_eq!(
        (change.was, change.becomes, change.looser),
        (Permit::Allow, Permit::Deny, false)
    );
    assert_eq!(compare(&old, &old), None);
}

fn rule() -> impl Strategy<Value = String> {
    let decision = prop::sample::select(vec!["allow", "ask", "deny"]);
    let matcher = prop::sample::select(vec![
        "command = \"make *\"",
        "command = [\"make\", \"ls\"]",
        "command = \"git push *\"",
        "command = \"*\"",
        "tool = \"run_*\"",
        "tool = \"group:fs\"",
        "path = \"/etc/**\"",
        "path = \"/workspace/work/*\"",
        "tier = \"high\"",
        "host = \"*\"",
        "when = \"size(commands) > 1\"",
    ]);
    (decision, matcher)
        .prop_map(|(decision, matcher)| format!("[[rule]]\ndecision = \"{decision}\"\n{matcher}\n"))
}

fn policy() -> impl Strategy<Value = (String, Vec<String>)> {
    let mode = prop::sample::select(vec!["manual", "cowork", "evolution"]);
    let head = mode.prop_map(|mode| format!("[approvals]\nmode = \"{mode}\"\n"));
    (head, prop::collection::vec(rule(), 0..5))
}

fn program() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "make all",
        "ls",
        "git push",
        "git -C . push",
        "cat /etc/passwd",
        "rm x",
        "echo $X",
        "touch a > b",
        "$X",
        "eval y",
    ]);
    prop::collection::vec(part, 1..4).prop_map(|parts| parts.join("; "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn another_deny_never_allows_more((head, rules) in policy(), more in rule(), text in program()) {
        let more = more.replace("\"allow\"", "\"deny\"").replace("\"ask\"", "\"deny\"");
        let before = ruling(&(head.clone() + &rules.concat()), &text);
        let after = ruling(&(head + &rules.concat() + &more), &text);
        prop_assert!(after.permit >= before.permit, "{:?} {:?}", before, after);
    }

    #[test]
    fn another_allow_never_undoes_a_rule((head, rules) in policy(), more in rule(), text in program()) {
        let more = more.replace("\"deny\"", "\"allow\"").replace("\"ask\"", "\"allow\"");
        let before = ruling(&(head.clone() + &rules.concat()), &text);
        let after = ruling(&(head + &rules.concat() + &more), &text);
        let by_rule = before.reasons.iter().any(|it| {
            it.permit == before.permit && it.kind == glovebox_model::ReasonKind::Rule
        });
        if before.permit == Permit::Deny || (before.permit == Permit::Ask && by_rule) {
            prop_assert_eq!(after.permit, before.permit);
        }
    }

    #[test]
    fn the_order_and_the_layer_of_rules_do_not_matter((head, rules) in policy(), text in program()) {
        let written = ruling(&(head.clone() + &rules.concat()), &text);
        let turned: String = rules.iter().rev().cloned().collect();
        prop_assert_eq!(written.permit, ruling(&(head.clone() + &turned), &text).permit);
        let elsewhere = turned.replace("[[rule]]", "[[space.local.rule]]");
        prop_assert_eq!(written.permit, ruling(&(head + &elsewhere), &text).permit);
    }

    #[test]
    fn a_stricter_mode_never_lets_more_pass(rules in prop::collection::vec(rule(), 0..5), text in program()) {
        let of = |mode: &str| {
            let head = format!("[approvals]\nmode = \"{mode}\"\n");
            ruling(&(head + &rules.concat()), &text).permit
        };
        prop_assert!(of("manual") >= of("cowork"));
        prop_assert!(of("cowork") >= of("evolution"));
    }
}

#[test]
fn a_tool_that_reaches_out_is_decided_by_its_hosts() {
    let config = Config::parse(
        "[[rule]]\ndecision = \"deny\"\nhost = \"*.evil.example\"\n\
         [[rule]]\ndecision = \"ask\"\nhost = \"wiki.example.com:443\"\n",
        "p.toml",
    )
    .unwrap();
    let ids = Correlation::of_space(glovebox_model::SpaceId::local());
    let (rules, tools) = (config.rules_for(&ids), ToolPolicy::default());
    let approvals = ApprovalSettings::default();
    let permit = |host: &str| {
        let hosts = [host.to_owned()];
        let action = Action {
            ids: &ids,
            paths: &[],
            hosts: &hosts,
            changes: false,
            mode: ApprovalMode::Cowork,
        };
        let standing = DecisionContext {
            rules: &rules,
            tool: "retrieve",
            tools: &tools,
            grants: &[],
            approvals: &approvals,
            simulate: false,
            backend: None,
            secrets: &[],
            network: config.network(),
        };
        decide_action(&action, &standing).permit
    };
    assert_eq!(permit("a.evil.example:443"), Permit::Deny);
    assert_eq!(permit("evil.example:443"), Permit::Allow, "the name itself");
    assert_eq!(permit("wiki.example.com:443"), Permit::Ask);
    assert_eq!(permit("wiki.example.com:80"), Permit::Allow);
    assert_eq!(permit("what is this/"), Permit::Deny, "it may be any host");
}
