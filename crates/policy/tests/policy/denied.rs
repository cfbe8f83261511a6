//! Which paths the sandbox denies, and which are left to the text of a command.

use glovebox_model::{BackendName, ByteString, Program};
use glovebox_policy::{Config, DeniedPaths, HeldBy, denied_paths, path_rules};

use crate::fixture::{call, run, silent};

fn denied(policy: &str) -> (DeniedPaths, Vec<HeldBy>) {
    let config = Config::parse(policy, "policy.toml").unwrap();
    let mut call = call(silent());
    let script = ByteString::try_from("make").unwrap();
    call.program = Program::Shell { script };
    let rules = config.rules_for(&call.ids);
    let assessed = run(call, &[]).unwrap();
    let tools = ["run_command"];
    let found = denied_paths(&assessed, &rules, &tools, Some(BackendName::Native));
    let held = path_rules(&rules, &found);
    (found, held.iter().map(|it| it.held_by).collect())
}

#[test]
fn a_rule_that_names_no_command_is_held_by_the_sandbox() {
    for (more, expected) in [
        ("", HeldBy::Sandbox),
        ("tool = \"run_command\"", HeldBy::Sandbox),
        ("tool = \"run_code\"", HeldBy::Nothing),
        ("backend = \"native\"", HeldBy::Sandbox),
        ("backend = \"docker\"", HeldBy::Nothing),
        ("network = \"none\"", HeldBy::Sandbox),
        ("network = \"allowlist\"", HeldBy::Nothing),
        ("secret = \"*\"", HeldBy::Nothing),
        ("tier = \"critical\"", HeldBy::Nothing),
        ("when = \"language == 'shell'\"", HeldBy::Sandbox),
        ("when = \"language == 'python'\"", HeldBy::Nothing),
        // It cannot be evaluated for this call.
        ("when = \"secrets[0] == 'x'\"", HeldBy::Sandbox),
        ("command = \"cat\"", HeldBy::Text),
        ("host = \"example.com\"", HeldBy::Text),
    ] {
        let rule =
            format!("[[rule]]\ndecision = \"deny\"\npath = \"/workspace/work/.ssh/**\"\n{more}\n");
        let (found, held) = denied(&rule);
        assert_eq!(held, [expected], "{more}");
        assert_eq!(found.is_empty(), expected != HeldBy::Sandbox, "{more}");
    }
    for other in ["ask", "allow"] {
        let rule = format!("[[rule]]\ndecision = \"{other}\"\npath = \"/workspace/work/x\"\n");
        assert_eq!(
            denied(&rule),
            (DeniedPaths::default(), Vec::new()),
            "{other}"
        );
    }
}

#[test]
fn what_is_denied_and_what_can_appear_later() {
    let rule = r#"
[[rule]]
decision = "deny"
name = "keys"
path = ["/workspace/work/.ssh/**", "/workspace/work/.env", "**/*.pem", "/etc/*.key"]
"#;
    let (found, _) = denied(rule);
    for (path, expected) in [
        ("/workspace/work/.ssh", true),
        ("/workspace/work/.ssh/a/b", true),
        ("/workspace/work/.sshd", false),
        ("/workspace/work/.env", true),
        // A directory of that name, with all in it.
        ("/workspace/work/.env/x", true),
        ("/workspace/work/a/x.pem", true),
        ("/workspace/work/a.pem/x", true),
        ("/workspace/work/a.pe", false),
        ("/workspace/work", false),
        ("/", false),
    ] {
        assert_eq!(found.of(path).is_some(), expected, "{path}");
    }
    assert!(found.named("/workspace/work/.env/x").is_none());
    let literal: Vec<_> = found
        .iter()
        .map(|it| (it.literal(), it.is_anywhere()))
        .collect();
    let expected = [
        (Some("/workspace/work/.ssh"), false),
        (Some("/workspace/work/.env"), false),
        (None, true),
        (None, false),
    ];
    assert_eq!(literal, expected);
    let shown = found.iter().next().unwrap().to_string();
    assert_eq!(
        shown,
        "rule `keys` at policy.toml:2 (`/workspace/work/.ssh/**`)"
    );
    for (directory, expected) in [
        ("/workspace/work", 3),
        ("/workspace/work/.ssh/x", 2),
        ("/workspace/inputs", 1),
        ("/etc", 2),
        ("/etc/ssl", 1),
    ] {
        assert_eq!(
            found.below(directory).iter().count(),
            expected,
            "{directory}"
        );
    }
}
