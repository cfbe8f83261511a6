//! Scripts that a program runs by name: rules that deny or ask look into them.

use glovebox_model::{ByteString, Permit, Program};
use glovebox_policy::{Config, DecisionContext, GrantKind, Scripts, decide, decide_with};
use glovebox_risk::{Reading, read};

use crate::fixture::{call, run, silent};

const POLICY: &str = r#"
[[rule]]
decision = "deny"
command = "rm"

[[rule]]
decision = "deny"
path = "/workspace/work/.git/**"

[[rule]]
decision = "allow"
command = "sh build.sh"
"#;

fn shell(script: &str) -> Program {
    let script = ByteString::try_from(script).unwrap();
    Program::Shell { script }
}

/// What is decided of a script that names others; none: nobody looks into scripts.
fn decided(script: &str, scripts: Option<Scripts<'_>>) -> Permit {
    let config = Config::parse(POLICY, "policy.toml").unwrap();
    let mut call = call(silent());
    call.program = shell(script);
    let ids = call.ids.clone();
    let assessed = run(call, &[]).unwrap();
    let (rules, tools) = (config.rules_for(&ids), config.tools_for(&ids));
    let standing = DecisionContext {
        rules: &rules,
        tool: "run_command",
        tools: &tools,
        grants: &[],
        approvals: config.approvals(),
        simulate: false,
        backend: None,
        secrets: &[],
        network: config.network(),
    };
    match scripts {
        Some(scripts) => decide_with(&assessed, &standing, scripts).permit,
        None => decide(&assessed, &standing).permit,
    }
}

fn given(script: &str, inside: &[Reading], unread: bool) -> Permit {
    let readings = inside;
    decided(script, Some(Scripts { readings, unread }))
}

#[test]
fn a_script_is_as_good_as_what_is_in_it() {
    let plain = [read(&shell("ls; cargo build"))];
    let removes = [read(&shell("ls && rm -rf x"))];
    let reaches = [read(&shell("cat .git/config"))];
    let evaluates = [read(&shell("eval \"$(cat y)\""))];
    let runs = [read(&shell("sh other.sh"))];
    let code = ByteString::try_from("import os; os.system('x')").unwrap();
    let python = [read(&Program::Python { code })];
    for script in [
        "sh build.sh",
        "./build.sh",
        "bash -x build.sh",
        "cd . && sh a",
    ] {
        assert_eq!(decided(script, None), Permit::Allow, "{script}");
        assert_eq!(given(script, &plain, false), Permit::Allow, "{script}");
        assert_eq!(given(script, &removes, false), Permit::Deny, "{script}");
        assert_eq!(given(script, &reaches, false), Permit::Deny, "{script}");
        assert!(given(script, &evaluates, false) > Permit::Allow, "{script}");
        assert_eq!(given(script, &runs, false), Permit::Ask, "{script}");
        assert_eq!(given(script, &python, false), Permit::Ask, "{script}");
        assert_eq!(given(script, &plain, true), Permit::Ask, "{script}");
        assert_eq!(given(script, &[], false), Permit::Ask, "{script}");
    }
}

#[test]
fn a_script_that_may_be_changed_before_it_runs_was_not_read() {
    let plain = [read(&shell("ls"))];
    for script in [
        "echo 'r''m x' > a; sh a",
        "cp b a; sh a",
        "sh a; sh b",
        "git checkout x && ./a",
        "touch b; uv run a.py",
        // What they run is in files that they do not name.
        "python3 -m pytest",
        "make check",
    ] {
        assert_eq!(given(script, &plain, false), Permit::Ask, "{script}");
    }
    for script in [
        "ls",
        "cargo build",
        "python3 -m json.tool a.json",
        "python3 -c 'print(1)'",
    ] {
        assert_eq!(given(script, &[], false), Permit::Allow, "{script}");
    }
}

#[test]
fn a_kind_can_be_bound_to_what_scripts_hold() {
    let kind = || GrantKind {
        kind: "k".to_owned(),
        shown: "s".to_owned(),
    };
    let (one, two) = ("a".to_owned(), "b".to_owned());
    assert_eq!(kind().bound_to(&[]), kind());
    assert_ne!(kind().bound_to(std::slice::from_ref(&one)), kind());
    let both = kind().bound_to(&[one.clone(), two.clone()]);
    assert_eq!(both, kind().bound_to(&[two, one]));
    assert_ne!(both.kind, kind().bound_to(&["a\", \"b".to_owned()]).kind);
    assert_eq!(both.shown, "s");
}
