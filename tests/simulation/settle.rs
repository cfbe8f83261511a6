//! What becomes of a simulation: applied, all of it or nothing; refused; dropped.

use std::fs;

use glovebox_model::{ByteString, Deed, FileOp};
use serde_json::Value;
use support::Caller;

use crate::census::assert_untouched;
use crate::ground::{Ground, HELD};

const CHANGE: &str = "echo changed > one; rm two; mkdir made; echo x > made/x; mv three moved; \
                      ln -s made link; chmod 600 four";

fn plant(ground: &Ground) {
    for name in ["one", "two", "three", "four"] {
        ground.trial.put(name, format!("{name}\n"));
    }
}

fn applied_once(caller: Caller) {
    let Some(ground) = Ground::new(caller, "") else {
        return;
    };
    plant(&ground);
    let before = ground.census();
    let simulated = ground.simulate(CHANGE);
    simulated.expect("succeeded", 0);
    assert_untouched(&ground.census(), &before, "simulated");
    let diff = ground.glovebox(&["diff", simulated.id()]);
    diff.assert_code(0);
    assert!(diff.stdout.contains("+changed"), "{}", diff.stdout);

    ground.apply(simulated.id()).assert_code(0);
    assert_eq!(ground.read("one"), "changed\n");
    assert_eq!(
        (ground.read("moved"), ground.read("made/x")),
        ("three\n".into(), "x\n".into())
    );
    let gone = ["two", "three"].map(|name| ground.work().join(name).exists());
    assert_eq!(gone, [false, false]);
    let after = ground.census();
    ground.apply(simulated.id()).assert_refused("not_found");
    ground
        .glovebox(&["discard", simulated.id()])
        .assert_refused("not_found");
    assert_untouched(&ground.census(), &after, "a second time");
    ground.end();
}

#[test]
fn what_was_simulated_is_applied_once() {
    applied_once(Caller::Root);
}

#[test]
fn what_an_ordinary_user_simulated_is_applied_once() {
    applied_once(Caller::User);
}

/// A file that moved is one effect, not two; what only looks alike is none.
#[test]
fn a_rename_is_told_with_both_its_names() {
    let ground = Ground::root("");
    plant(&ground);
    ground.trial.put("twin", "one\n");
    let simulated =
        ground.simulate("mkdir d; mv one d/uno; mv two three; rm four; echo five > five");
    simulated.expect("succeeded", 0);
    let effects = ground.effects(simulated.id());
    let mut told: Vec<(FileOp, String, Option<String>)> = effects
        .iter()
        .filter_map(|it| match &it.deed {
            Deed::FilesystemWrite(write) => Some(write),
            _ => None,
        })
        .map(|it| {
            let from = it.from.as_ref().map(ByteString::display);
            (it.operation, it.path.display(), from)
        })
        .collect();
    told.sort_by(|one, other| one.1.cmp(&other.1));
    let one = |operation, path: &str, from: Option<&str>| {
        (operation, path.to_owned(), from.map(str::to_owned))
    };
    let expected = [
        one(FileOp::Created, "d", None),
        one(FileOp::Renamed, "d/uno", Some("one")),
        one(FileOp::Created, "five", None),
        one(FileOp::Removed, "four", None),
        one(FileOp::Renamed, "three", Some("two")),
    ];
    assert_eq!(told, expected);
    ground.glovebox(&["discard", simulated.id()]).assert_code(0);
    ground.end();
}

#[test]
fn a_base_that_moved_is_a_conflict_and_nothing_is_applied() {
    let ground = Ground::root("");
    plant(&ground);
    let simulated = ground.simulate(CHANGE);
    // The last path that would be reached, so that others come before it.
    fs::write(ground.work().join("two"), "somebody else\n").unwrap();
    let moved = ground.census();
    let refused = ground.apply(simulated.id());
    refused.assert_refused("conflict");
    assert!(refused.stderr.contains("two"), "{}", refused.stderr);
    assert_untouched(&ground.census(), &moved, "all or nothing");
    ground.glovebox(&["discard", simulated.id()]).assert_code(0);
    assert_untouched(&ground.census(), &moved, "discarded");
    ground.end();
}

#[test]
fn what_was_dropped_cannot_be_applied() {
    let ground = Ground::root("");
    plant(&ground);
    let before = ground.census();
    let simulated = ground.simulate(CHANGE);
    ground.glovebox(&["discard", simulated.id()]).assert_code(0);
    ground.apply(simulated.id()).assert_refused("not_found");
    assert_untouched(&ground.census(), &before, "discarded");
    ground.end();
}

#[test]
fn what_a_gate_blocks_cannot_be_made_true_in_any_way() {
    let ground = Ground::root("");
    plant(&ground);
    let before = ground.census();
    let simulated = ground.simulate(&format!("{CHANGE}; echo x > /etc/glovebox-test; true"));
    simulated.expect("held", HELD);
    assert_eq!(simulated.blocked_by(), ["violations"]);
    for words in [
        &["apply", simulated.id()][..],
        &["apply", simulated.id(), "--rerun"],
        &["workspace", "keep", simulated.id()],
    ] {
        let refused = ground.glovebox(words);
        refused.assert_refused("held");
        assert_eq!(refused.code, HELD, "{words:?}");
        assert_untouched(&ground.census(), &before, "refused");
    }
    ground.glovebox(&["discard", simulated.id()]).assert_code(0);
    ground.end();
}

/// The gate's own program sees the changes, writes where it likes, and nothing of that is left.
#[test]
fn a_gates_command_sees_the_changes_and_leaves_nothing() {
    let gates = r#"
[[gate]]
name = "looks"
because = "the new file must be there and the old one gone"
check = [{ command = { argv = ["sh", "-c",
    "test \"$(cat made/x)\" = x && test ! -e two && echo left > left && rm one"] } }]
"#;
    let ground = Ground::root(gates);
    plant(&ground);
    let before = ground.census();
    let simulated = ground.simulate(CHANGE);
    simulated.expect("succeeded", 0);
    let asked = simulated.record["gates"].as_array().unwrap();
    assert!(
        asked
            .iter()
            .any(|it| it["gate"] == "looks" && it["status"] == "passed"),
        "{asked:#?}"
    );
    assert_untouched(&ground.census(), &before, "judged");
    ground.apply(simulated.id()).assert_code(0);
    assert!(!ground.work().join("left").exists());
    assert_eq!(ground.read("one"), "changed\n");

    // On the workspace as it is now its first test fails.
    let other = ground.simulate("rm made/x; echo more > more");
    other.expect("held", HELD);
    assert_eq!(other.blocked_by(), ["looks"]);
    let refused = ground.apply(other.id());
    refused.assert_refused("held");
    assert_eq!(refused.code, HELD);
    assert!(!ground.work().join("more").exists());
    ground.glovebox(&["discard", other.id()]).assert_code(0);
    ground.end();
}

#[test]
fn a_transaction_is_kept_when_gates_agree_and_held_when_not() {
    let gates = "[[gate]]\nname = \"scope\"\nbecause = \"only made\"\n\
                 check = [\"exit\", { path_scope = { within = [\"made\", \"made/**\"] } }]\n";
    let ground = Ground::root(gates);
    plant(&ground);
    let kept = ground.run(&["--transactional"], "mkdir made; echo x > made/x");
    kept.expect("succeeded", 0);
    assert_eq!(kept.record["verdict"], "keep");
    assert_eq!(ground.read("made/x"), "x\n");

    let before = ground.census();
    let held = ground.run(&["--transactional"], "echo y > made/x; echo stray > one");
    held.expect("held", HELD);
    assert_eq!(held.blocked_by(), ["scope"]);
    assert_untouched(&ground.census(), &before, "held");
    ground.apply(held.id());
    assert_untouched(&ground.census(), &before, "held back it cannot be applied");

    let failed = ground.run(&["--transactional"], "echo z > made/x; exit 3");
    assert_ne!(
        failed.record["verdict"],
        Value::from("keep"),
        "{:#}",
        failed.record
    );
    assert_untouched(&ground.census(), &before, "failed");
    ground.end();
}
