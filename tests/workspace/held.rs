//! `--hold` and `--keep-if-ok`: what an exec wrote waits beside its workspace.

use serde_json::Value;
use support::Caller;

use crate::ground::{Ground, assert_same};

/// A file with a second name is left alone: a layer knows each of its names by itself.
const CHANGE: &str = "echo changed > src/main.py; rm nothing; mkdir made; echo x > made/x; \
                      mv .hidden moved; rm to; ln -s made to; chmod 600 '-rf *'";

fn id(record: &Value) -> &str {
    record["exec_id"].as_str().expect("an exec")
}

fn held(caller: Caller) {
    let Some(ground) = Ground::new(caller, "") else {
        return;
    };
    ground.plant();
    let before = ground.tree();
    // What the same line does to the workspace itself.
    let control = Ground::new(caller, "").expect("as above");
    control.plant();
    control.run(&[], CHANGE);

    let record = ground.run(&["--hold"], &format!("{CHANGE}; cat made/x"));
    assert_eq!(record["status"], "succeeded", "{record}");
    assert_eq!(
        (&record["writes"], &record["stdout"]),
        (&"held".into(), &"x\n".into())
    );
    assert_same(&ground.tree(), &before, "nothing is kept yet");
    let changes = ground.json(&["workspace", "changes", id(&record)]);
    let text = changes.to_string();
    for path in ["src/main.py", "made/x", "nothing", "moved"] {
        assert!(text.contains(path), "`{path}` is missing: {text}");
    }
    assert!(!text.contains("deep/er/data"), "untouched: {text}");

    ground.json(&["workspace", "keep", id(&record)]);
    let (now, expected) = (names(&ground), names(&control));
    assert_eq!(now, expected);
    ground
        .glovebox(&["workspace", "keep", id(&record)])
        .assert_refused("not_found");

    let again = ground.run(&["--hold"], "rm -rf ./*");
    let kept = ground.tree();
    ground.json(&["workspace", "discard", id(&again)]);
    assert_same(&ground.tree(), &kept, "discarded");
    ground
        .glovebox(&["workspace", "changes", id(&again)])
        .assert_refused("not_found");
    ground.trial.end();
    control.trial.end();
}

/// Path, mode and contents; times differ between two runs.
fn names(ground: &Ground) -> Vec<String> {
    let tree = ground.tree();
    let of = |(path, facts): (&std::path::PathBuf, &crate::ground::Facts)| {
        format!("{path:?} {}", facts.brief())
    };
    tree.iter().map(of).collect()
}

#[test]
fn what_is_held_back_is_shown_and_kept_or_discarded() {
    held(Caller::Root);
}

#[test]
fn what_an_ordinary_users_exec_holds_back_is_kept_or_discarded() {
    held(Caller::User);
}

#[test]
fn a_workspace_that_moved_meanwhile_is_a_conflict_and_nothing_is_kept() {
    let ground = Ground::root("");
    ground.plant();
    let record = ground.run(&["--hold"], CHANGE);
    std::fs::write(ground.work().join("src/main.py"), "somebody else\n").unwrap();
    let moved = ground.tree();
    let refused = ground.glovebox(&["workspace", "keep", id(&record)]);
    refused.assert_refused("conflict");
    assert!(refused.stderr.contains("src/main.py"), "{}", refused.stderr);
    assert_same(&ground.tree(), &moved, "all or nothing");
    ground.json(&["workspace", "discard", id(&record)]);
    ground.trial.end();
}

#[test]
fn a_change_elsewhere_is_no_conflict() {
    let ground = Ground::root("");
    ground.plant();
    let record = ground.run(&["--hold"], "echo held > src/held");
    std::fs::write(ground.work().join("elsewhere"), "somebody else\n").unwrap();
    ground.json(&["workspace", "keep", id(&record)]);
    let read = |name: &str| std::fs::read_to_string(ground.work().join(name)).unwrap();
    assert_eq!(
        (read("src/held"), read("elsewhere")),
        ("held\n".into(), "somebody else\n".into())
    );
    ground.trial.end();
}

#[test]
fn kept_if_it_succeeds_and_gone_if_it_fails() {
    let ground = Ground::root("");
    ground.plant();
    let before = ground.tree();
    for line in ["rm -rf ./*; exit 3", "rm -rf ./*; kill -9 $$"] {
        let failed = ground.run(&["--keep-if-ok"], line);
        assert_eq!(
            (&failed["status"], &failed["writes"]),
            (&"failed".into(), &"if_ok".into())
        );
        assert_same(&ground.tree(), &before, line);
        ground
            .glovebox(&["workspace", "changes", id(&failed)])
            .assert_refused("not_found");
    }
    let late = ground.run(&["--keep-if-ok", "--timeout", "1s"], "rm -rf ./*; sleep 60");
    assert_eq!(late["timed_out"], true, "{late}");
    assert_same(&ground.tree(), &before, "timed out");

    let kept = ground.run(&["--keep-if-ok"], "echo kept > made; rm nothing");
    assert_eq!(kept["status"], "succeeded", "{kept}");
    assert_eq!(
        std::fs::read_to_string(ground.work().join("made")).unwrap(),
        "kept\n"
    );
    assert!(!ground.work().join("nothing").exists());
    ground.trial.end();
}

/// It was asked to be kept by itself, and cannot be: it waits, and the record says why.
#[test]
fn kept_if_it_succeeds_waits_on_a_conflict() {
    let ground = Ground::root("");
    ground.plant();
    let line = "echo mine > .hidden; : > /workspace/artifacts/written; \
                while [ ! -e /workspace/artifacts/go ]; do sleep 0.02; done";
    let mut command = ground.command(&[
        "--json",
        "run",
        "--toolchain",
        "off",
        "--keep-if-ok",
        "--",
        "/bin/sh",
        "-c",
        line,
    ]);
    let child = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let find = |name: &str| {
        let shelves = std::fs::read_dir(ground.trial.state().join("projects")).ok()?;
        shelves.flatten().find_map(|project| {
            let execs = std::fs::read_dir(project.path().join("artifacts")).ok()?;
            execs
                .flatten()
                .map(|exec| exec.path())
                .find_map(|exec| found(&exec, name))
        })
    };
    let patience = std::time::Duration::from_secs(60);
    assert!(
        support::wait_until(patience, || find("written").is_some()),
        "it does not run"
    );
    std::fs::write(ground.work().join(".hidden"), "theirs\n").unwrap();
    std::fs::write(find("written").unwrap().with_file_name("go"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["status"], "succeeded", "{record}");
    assert!(record["notes"].to_string().contains("wait"), "{record}");
    assert_eq!(
        std::fs::read_to_string(ground.work().join(".hidden")).unwrap(),
        "theirs\n"
    );
    ground.json(&["workspace", "discard", id(&record)]);
    ground.trial.end();
}

/// A file of an exec's artifacts, wherever they lie while it runs.
fn found(below: &std::path::Path, name: &str) -> Option<std::path::PathBuf> {
    let mut waiting = vec![below.to_owned()];
    while let Some(path) = waiting.pop() {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            if entry.file_name() == name {
                return Some(entry.path());
            }
            if entry.file_type().is_ok_and(|it| it.is_dir()) {
                waiting.push(entry.path());
            }
        }
    }
    None
}
