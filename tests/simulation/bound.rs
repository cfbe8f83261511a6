//! `apply --rerun` is bound to the contents that the simulation showed and to the scripts that it
//! ran.

use std::fs;

use crate::census::assert_untouched;
use crate::ground::{Ground, HELD};

fn plant(ground: &Ground) {
    for name in ["one", "two"] {
        ground.trial.put(name, format!("{name}\n"));
    }
}

/// A program that knows whether it is watched.
fn watched(shown: &str, done: &str) -> String {
    format!("if [ -n \"$GLOVEBOX_SIMULATION\" ]; then {shown}; else {done}; fi")
}

const NOTE: &str = "python3 -c 'import os; os.setxattr(\"file\", \"user.note\", b\"x\")'";

#[test]
fn a_rerun_that_leaves_other_files_is_held_and_says_how_they_differ() {
    let ground = Ground::root("");
    plant(&ground);
    let before = ground.census();
    let noted = format!("echo x > file; {NOTE}");
    for (shown, done, path, how) in [
        ("echo x > file", "echo y > file", "file", "other contents"),
        ("echo x > one", "echo y > one", "one", "other contents"),
        ("echo x > file", "mkdir file", "file", "a directory"),
        ("echo x > file", "ln -s one file", "file", "a symlink"),
        (
            "ln -s one file",
            "ln -s two file",
            "file",
            "leads elsewhere",
        ),
        (
            "echo x > file",
            "echo x > file; chmod 755 file",
            "file",
            "other mode",
        ),
        ("chmod 600 one", "chmod 666 one", "one", "other mode"),
        ("mkdir file", "mkdir -m 777 file", "file", "other mode"),
        ("echo x > file", &noted, "file", "other attributes"),
        ("echo x > one", "rm one", "one", "removed"),
        ("rm one", "true > one", "one", "written"),
        ("mv one uno", "cp one uno; echo z > one", "one", "written"),
        (
            "echo x > file",
            "echo x > file; echo x > more",
            "more",
            "written",
        ),
        (
            "echo x > file; rm two",
            "echo x > file",
            "two",
            "left as it was",
        ),
    ] {
        let simulated = ground.simulate(&watched(shown, done));
        simulated.expect("succeeded", 0);
        let rerun = ground.rerun(simulated.id());
        rerun.expect("held", HELD);
        assert_eq!(rerun.blocked_by(), ["preview"], "{done}");
        let why = rerun.record["gates"].to_string();
        let says = why.contains(&format!("`{path}`")) && why.contains(how);
        assert!(says && why.contains(simulated.id()), "{done}: {why}");
        assert_untouched(&ground.census(), &before, done);
        ground.glovebox(&["discard", rerun.id()]).assert_code(0);
    }
    ground.end();
}

/// Times are not compared: they differ each time.
#[test]
fn a_rerun_that_leaves_the_same_files_is_kept() {
    let ground = Ground::root("");
    plant(&ground);
    let line = format!(
        "echo x > file; {NOTE}; chmod 750 file; mkdir d; mv one d/uno; ln -s d link; rm two; \
         head -c 3000000 /dev/zero > d/large"
    );
    let simulated = ground.simulate(&line);
    simulated.expect("succeeded", 0);
    let rerun = ground.rerun(simulated.id());
    rerun.expect("succeeded", 0);
    assert_eq!(rerun.record["verdict"], "keep", "{:#}", rerun.record);
    assert_eq!(ground.read("d/uno"), "one\n");
    ground.end();
}

/// What differs by nature, as a time does, is for reviewers to look at and keep.
#[test]
fn what_a_rerun_wrote_otherwise_can_be_looked_at_and_kept_unless_a_gate_blocks_it() {
    let gate = "[[gate]]\nname = \"scope\"\nbecause = \"only stamps\"\n\
                check = [{ path_scope = { within = [\"stamp\"] } }]\n";
    let ground = Ground::root(gate);
    let stamp = ground.simulate("date +%s%N > stamp");
    stamp.expect("succeeded", 0);
    let rerun = ground.rerun(stamp.id());
    rerun.expect("held", HELD);
    let way = rerun.record["gates"].to_string();
    assert!(way.contains("glovebox apply"), "{way}");
    let diff = ground.glovebox(&["diff", rerun.id()]);
    diff.assert_code(0);
    ground.apply(rerun.id()).assert_code(0);
    assert!(diff.stdout.contains(ground.read("stamp").trim()));

    let stray = ground.simulate(&watched("date > stamp", "date > stamp; echo x > stray"));
    let rerun = ground.rerun(stray.id());
    assert_eq!(
        rerun.blocked_by(),
        ["preview", "scope"],
        "{:#}",
        rerun.record
    );
    ground.apply(rerun.id()).assert_refused("held");
    assert!(!ground.work().join("stray").exists());
    ground.end();
}

#[test]
fn a_script_that_changed_after_the_simulation_is_not_run() {
    let ground = Ground::root("");
    ground.trial.put("lib.sh", "echo done > done\n");
    let simulated = ground.simulate("sh lib.sh");
    simulated.expect("succeeded", 0);
    fs::write(ground.work().join("lib.sh"), "echo evil > done\n").unwrap();
    let changed = ground.census();
    let refused = ground.glovebox(&["apply", simulated.id(), "--rerun"]);
    refused.assert_refused("conflict");
    let said = refused.stderr.contains("`lib.sh` has changed")
        && refused.stderr.contains("simulate it again");
    assert!(said, "{}", refused.stderr);
    assert_untouched(&ground.census(), &changed, "refused");
    fs::write(ground.work().join("lib.sh"), "echo done > done\n").unwrap();
    ground.rerun(simulated.id()).expect("succeeded", 0);
    assert_eq!(ground.read("done"), "done\n");
    ground.end();
}
