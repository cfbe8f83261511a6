//! Workspaces, their snapshots, and changes that wait; here and at a server.

use std::fs;

use serde_json::{Value, json};

use crate::server::{Served, with};
use crate::trial::{Trial, names};

/// A snapshot before every exec.
fn careful(trial: &Trial) -> String {
    let config = trial.file("careful.toml", "[workspace]\nsnapshot_before = \"safe\"\n");
    config.to_str().unwrap().to_owned()
}

fn held(trial: &Trial, script: &str) -> Value {
    let args = ["run", "--hold", "--json", "--", "sh", "-c", script];
    trial.run(&args).exits(0).json()
}

#[test]
fn what_an_exec_did_is_undone_and_that_is_undone_too() {
    let trial = Trial::new();
    let config = careful(&trial);
    let file = trial.work().join("file");
    fs::write(&file, "one\n").unwrap();
    let nothing = trial.run(&["workspace", "undo"]).exits(1);
    assert!(nothing.stderr.contains("snapshot_before"), "{nothing:?}");
    let script = "echo two >> file; mkdir d; echo x > d/x";
    let run = [
        "--config", &config, "run", "--json", "--", "sh", "-c", script,
    ];
    let record = trial.run(&run).exits(0).json();
    let before = record["snapshot_before"].as_str().unwrap();
    let page = trial.run(&["show", record["exec_id"].as_str().unwrap()]);
    assert!(page.exits(0).stdout.contains(before));

    let diff = trial.run(&["snapshot", "diff"]).exits(0).stdout;
    assert!(
        diff.contains("--- a/file\n+++ b/file\n@@ -1,1 +1,2 @@\n one\n+two\n"),
        "{diff}"
    );
    let stat = trial.run(&["snapshot", "diff", &before[..12], "--stat"]);
    assert!(
        stat.exits(0)
            .stdout
            .ends_with("2 added, 0 removed, 1 changed\n")
    );

    let undone = trial.run(&["workspace", "undo", "--json"]).exits(0).json();
    assert_eq!(undone["exec_id"], record["exec_id"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\n");
    assert_eq!(names(&trial.work()), ["file"]);
    let back = undone["before"].as_str().unwrap();
    trial.run(&["snapshot", "restore", &back[5..20]]).exits(0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\ntwo\n");
    assert_eq!(names(&trial.work()), ["d", "file"]);
    // By its id, and from the exec alone.
    let id = record["exec_id"].as_str().unwrap();
    trial.run(&["workspace", "undo", &id[..12]]).exits(0);
    assert_eq!(names(&trial.work()), ["file"]);
}

#[test]
fn changes_wait_and_are_kept_or_discarded() {
    let trial = Trial::new();
    fs::write(trial.work().join("file"), "one\n").unwrap();
    let args = [
        "run",
        "--hold",
        "--",
        "sh",
        "-c",
        "echo two >> file; echo n > new",
    ];
    let told = trial.run(&args).exits(0);
    assert_eq!(names(&trial.work()), ["file"], "nothing is written yet");
    for word in [
        "1 created, 1 modified",
        "workspace changes e_",
        "keep e_",
        "discard e_",
    ] {
        assert!(told.stderr.contains(word), "{word}: {told:?}");
    }
    let info = trial.run(&["workspace", "info", "--json"]).exits(0).json();
    let id = info["waiting"][0].as_str().unwrap().to_owned();
    let shown = trial.run(&["workspace", "changes", &id]).exits(0).stdout;
    assert!(
        shown.contains("+++ b/file") && shown.contains("+two\n"),
        "{shown}"
    );
    let whole = trial
        .run(&["workspace", "changes", &id, "--json"])
        .exits(0)
        .json();
    assert_eq!(whole["changes"][1]["what"], "created", "{whole}");
    trial.run(&["workspace", "keep", &id[..12]]).exits(0);
    assert_eq!(fs::read_to_string(trial.work().join("new")).unwrap(), "n\n");
    trial.run(&["workspace", "keep", &id]).exits(1);

    // Somebody else changed the same file meanwhile.
    let second = held(&trial, "echo three >> file");
    let id = second["exec_id"].as_str().unwrap();
    fs::write(trial.work().join("file"), "mine\n").unwrap();
    let refused = trial.run(&["workspace", "keep", id]).exits(2);
    assert!(refused.stderr.contains("`file`"), "{refused:?}");
    assert_eq!(
        fs::read_to_string(trial.work().join("file")).unwrap(),
        "mine\n"
    );
    trial.run(&["workspace", "discard", id]).exits(0);
    assert_eq!(
        trial.run(&["workspace", "info", "--json"]).json()["waiting"],
        json!([])
    );

    for (code, kept) in [("0", true), ("3", false)] {
        let script = format!("echo x > made-{code}; exit {code}");
        let told = trial.run(&["run", "--keep-if-ok", "--", "sh", "-c", &script]);
        assert_eq!(trial.work().join(format!("made-{code}")).exists(), kept);
        let word = if kept { "are kept" } else { "are discarded" };
        assert!(told.stderr.contains(word), "{told:?}");
    }
}

/// A decision belongs to the directory of its exec, not to wherever somebody stands.
#[test]
fn another_directory_is_not_taken_for_the_one_of_an_exec() {
    let trial = Trial::new();
    let record = held(&trial, "echo x > made");
    let id = record["exec_id"].as_str().unwrap();
    let other = trial.work().join("other");
    fs::create_dir(&other).unwrap();
    for verb in ["changes", "keep", "discard", "undo"] {
        let mut command = trial.command(&["workspace", verb, id]);
        let refused = command.current_dir(&other).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{verb}: {said}");
        assert!(said.contains("another directory"), "{verb}: {said}");
    }
    assert_eq!(names(&other), [] as [&str; 0]);
    trial.run(&["workspace", "keep", id]).exits(0);
}

#[test]
fn a_home_directory_is_refused_and_nothing_is_made_only_to_be_read() {
    let trial = Trial::new();
    for args in [
        &["workspace", "ls"][..],
        &["snapshot", "gc"],
        &["snapshot", "verify"],
        &["cache", "ls"],
    ] {
        trial.run(args).exits(0);
    }
    for args in [
        &["file", "ls", "--project", "none"][..],
        &["workspace", "info", "--project", "none"],
        &["workspace", "rm", "none"],
        &["snapshot", "take", "--project", "none"],
    ] {
        let refused = trial.run(args).exits(1);
        assert!(
            refused.stderr.contains("there is no workspace `none`"),
            "{refused:?}"
        );
    }
    assert!(!trial.state().exists());
    let mut command = trial.command(&["snapshot", "take"]);
    let home = trial.work().parent().unwrap().to_owned();
    let refused = command.current_dir(home).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        said.contains("workspace_refused") && said.contains("hint"),
        "{said}"
    );
}

#[test]
fn a_kept_workspace_is_seeded_forked_reset_and_removed() {
    let trial = Trial::new();
    let template = trial.work().join("template");
    fs::create_dir(&template).unwrap();
    fs::write(template.join("start"), "s").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", template.join("out")).unwrap();
    let from = template.to_str().unwrap();
    let seed = [
        "workspace",
        "seed",
        "--project",
        "demo",
        "--from",
        from,
        "--json",
    ];
    let seeded = trial.run(&seed).exits(0).json();
    assert_eq!(seeded["made"], 1);
    assert_eq!(seeded["skipped"][0]["path"], "out");
    let fork = trial.run(&["workspace", "fork", "--project", "demo", "demo-2"]);
    assert_eq!(fork.exits(0).stdout, "demo-2\n");
    trial
        .run(&["workspace", "fork", "--project", "demo", "demo-2"])
        .exits(2);
    let reset = ["workspace", "reset", "--project", "demo"];
    let refused = trial.run(&reset).exits(2);
    assert!(refused.stderr.contains("--yes"), "{refused:?}");
    trial.run(&[&reset[..], &["--yes"]].concat()).exits(0);
    let left = trial.run(&["file", "ls", "--project", "demo", "--quiet"]);
    assert_eq!(left.exits(0).stdout, "");
    // The workspace of somebody's own is never emptied.
    fs::write(trial.work().join("mine"), "").unwrap();
    trial.run(&["workspace", "reset", "--yes"]).exits(2);
    assert!(trial.work().join("mine").exists());
    let fork = trial.run(&["file", "cat", "--project", "demo-2", "start"]);
    assert_eq!(fork.exits(0).stdout, "s");
    assert_eq!(
        trial.run(&["workspace", "ls", "--quiet"]).stdout,
        "demo\ndemo-2\n"
    );
    trial
        .run(&["workspace", "rm", "demo", "scratch", "demo-2"])
        .exits(1);
    assert_eq!(trial.run(&["workspace", "ls", "--quiet"]).stdout, "");
}

#[test]
fn a_workspace_is_rolled_back_to_what_was_verified_and_to_nothing_else() {
    let trial = Trial::new();
    let file = trial.work().join("file");
    let roll = ["workspace", "rollback", "--json"];
    fs::write(&file, "good").unwrap();
    let none = trial.run(&["workspace", "rollback"]).exits(1);
    assert!(none.stderr.contains("glovebox snapshot take"), "{none:?}");
    let take = || {
        let taken = trial.run(&["snapshot", "take"]).exits(0).stdout;
        taken.trim().to_owned()
    };
    let good = take();
    let unknown = trial.run(&["workspace", "rollback"]).exits(1);
    assert!(unknown.stderr.contains("snapshot verify"), "{unknown:?}");
    let shown = |id: &str| {
        trial
            .run(&["snapshot", "show", id, "--json"])
            .exits(0)
            .json()
    };
    assert_eq!(shown(&good)["verified_at"], serde_json::Value::Null);
    trial.run(&["snapshot", "verify"]).exits(0);
    assert!(shown(&good)["verified_at"].is_string());
    let listed = trial.run(&["snapshot", "ls"]).exits(0).stdout;
    assert!(
        listed.contains("VERIFIED") && listed.contains(" ago"),
        "{listed}"
    );

    fs::write(&file, "bad").unwrap();
    let bad = take();
    let refused = trial.run(&["workspace", "rollback", "--to", &bad]).exits(2);
    assert!(refused.stderr.contains("is not verified"), "{refused:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "bad");
    let done = trial.run(&roll).exits(0).json();
    assert_eq!(done["snapshot_id"], good.as_str());
    assert_ne!(done["state_before"], done["state_after"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "good");

    // What was kept on the way is verified now as well, and is not where it goes by itself.
    trial.run(&["snapshot", "rm", &bad]).exits(0);
    trial.run(&["snapshot", "verify"]).exits(0);
    fs::write(&file, "worse").unwrap();
    let again = trial.run(&roll).exits(0).json();
    assert_eq!(again["snapshot_id"], good.as_str());
    assert_eq!(again["state_after"], done["state_after"]);
    let before = done["before"].as_str().unwrap();
    trial
        .run(&["workspace", "rollback", "--to", before])
        .exits(0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "bad");

    let rolled = [
        "audit",
        "query",
        "--tag",
        "event:workspace.rolled_back",
        "--json",
    ];
    let rolled = trial.run(&rolled).exits(0).json();
    let entries = rolled["items"].as_array().unwrap();
    assert_eq!(entries.len(), 3);
    let state = &entries[2]["body"]["details"]["state"];
    assert_eq!(state["before"], done["state_before"]);
    assert_eq!(state["after"], done["state_after"]);
    trial.run(&["audit", "verify"]).exits(0);
}

#[test]
fn damage_that_is_found_later_takes_the_mark_away() {
    let trial = Trial::new();
    fs::write(trial.work().join("file"), "contents that are kept").unwrap();
    let taken = trial.run(&["snapshot", "take"]).exits(0).stdout;
    let id = taken.trim();
    trial.run(&["snapshot", "verify"]).exits(0);
    let packs = trial.state().join("snapshots/packs");
    for name in names(&packs) {
        let pack = packs.join(name);
        let mut bytes = fs::read(&pack).unwrap();
        bytes.iter_mut().skip(16).for_each(|byte| *byte ^= 1);
        fs::write(&pack, bytes).unwrap();
    }
    trial.run(&["snapshot", "verify"]).exits(1);
    let refused = trial.run(&["workspace", "rollback", "--to", id]).exits(2);
    assert!(refused.stderr.contains("is not verified"), "{refused:?}");
    let found = [
        "audit",
        "query",
        "--tag",
        "event:snapshot.damaged",
        "--json",
    ];
    let found = trial.run(&found).exits(0).json();
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
}

#[test]
fn snapshots_are_named_by_their_beginning_and_checked() {
    let trial = Trial::new();
    fs::write(trial.work().join("file"), "contents that are kept").unwrap();
    let take = ["snapshot", "take", "--label", "first", "--note", "n"];
    let id = trial.run(&take).exits(0).stdout.trim().to_owned();
    trial.run(&["snapshot", "show", &id[..14]]).exits(0);
    for wrong in ["snap_zz", "", "snap_", "../x", "e_1"] {
        trial.run(&["snapshot", "show", wrong]).exits(1);
    }
    let several = trial.run(&["snapshot", "take"]).exits(0).stdout;
    let shared: String = id
        .chars()
        .zip(several.chars())
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a)
        .collect();
    let code = if shared.len() > "snap_".len() { 2 } else { 1 };
    trial.run(&["snapshot", "show", &shared]).exits(code);
    let sound = trial.run(&["snapshot", "verify", "--json"]).exits(0).json();
    assert_eq!(sound["sound"], true);
    let packs = trial.state().join("snapshots/packs");
    let pack = packs.join(&names(&packs)[0]);
    let mut bytes = fs::read(&pack).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 1;
    fs::write(&pack, bytes).unwrap();
    let damaged = trial.run(&["snapshot", "verify"]).exits(1);
    assert!(damaged.stdout.contains("damaged"), "{damaged:?}");
    trial.run(&["snapshot", "rm", &id]).exits(0);
    trial.run(&["snapshot", "rm", &id]).exits(1);
}

#[test]
fn caches_are_filled_listed_and_removed_by_an_operator() {
    let trial = Trial::new();
    let from = trial.work().join("from");
    fs::create_dir(&from).unwrap();
    fs::write(from.join("wheel"), "w").unwrap();
    let from = from.to_str().unwrap();
    trial
        .run(&["cache", "fill", "pip", "--from", from])
        .exits(0);
    let listed = trial.run(&["cache", "ls", "--json"]).exits(0).json();
    assert_eq!(listed["items"][0]["name"], "pip");
    assert_eq!(listed["items"][0]["shared"], true);
    trial.run(&["cache", "prune", "--max-bytes", "1"]).exits(0);
    trial.run(&["cache", "rm", "pip", "--user", "1"]).exits(1);
    assert_eq!(trial.run(&["cache", "rm", "pip"]).exits(0).stdout, "pip\n");
    trial.run(&["cache", "rm", "pip"]).exits(1);
    trial
        .run(&["cache", "fill", "Pip", "--from", from])
        .exits(2);
    trial
        .run(&["--server", "http://127.0.0.1:1", "cache", "ls"])
        .exits(2);
}

/// One shape for programs, whoever is asked.
#[test]
fn a_server_is_asked_with_the_same_words() {
    let trial = Trial::new();
    let config = careful(&trial);
    let server = Served::start(&trial, &["--config", &config]);
    let there = |args: &[&str]| trial.run(&with(&server, args));
    let refused = there(&["snapshot", "take"]).exits(2);
    assert!(refused.stderr.contains("--project NAME"), "{refused:?}");
    let project = ["--project", "demo"];
    let run = [
        "run",
        "--project",
        "demo",
        "--json",
        "--",
        "sh",
        "-c",
        "echo one > file",
    ];
    there(&run).exits(0);
    let take = [&["snapshot", "take", "--label", "a"][..], &project].concat();
    let id = there(&take).exits(0).stdout.trim().to_owned();
    let run = [
        "run",
        "--project",
        "demo",
        "--json",
        "--",
        "sh",
        "-c",
        "echo two > file",
    ];
    let record = there(&run).exits(0).json();
    for args in [
        &["workspace", "ls", "--json"][..],
        &["workspace", "info", "--project", "demo", "--json"],
        &["snapshot", "ls", "--project", "demo", "--json"],
        &["snapshot", "show", &id[..12], "--project", "demo", "--json"],
        &["snapshot", "diff", &id, "--project", "demo", "--json"],
        &["snapshot", "diff", &id, "--project", "demo"],
        &["snapshot", "verify", "--json"],
    ] {
        let (here, at) = (trial.run(args).exits(0), there(args).exits(0));
        assert_eq!(here.stdout, at.stdout, "{args:?}");
    }
    let undone = there(&[&["workspace", "undo", "--json"][..], &project].concat());
    assert_eq!(undone.exits(0).json()["exec_id"], record["exec_id"]);
    let cat = ["file", "cat", "--project", "demo", "file"];
    assert_eq!(there(&cat).exits(0).stdout, "one\n");
    there(&["workspace", "fork", "--project", "demo", &id[..12], "copy"]).exits(0);
    there(&["snapshot", "restore", &id, "--project", "demo"]).exits(0);

    let hold = [
        "run",
        "--hold",
        "--project",
        "demo",
        "--json",
        "--",
        "sh",
        "-c",
        "echo n > new",
    ];
    let record = there(&hold).exits(0).json();
    let id = record["exec_id"].as_str().unwrap();
    let shown = there(&["workspace", "changes", &id[..12]]).exits(0).stdout;
    assert!(shown.contains("+++ b/new"), "{shown}");
    there(&["workspace", "keep", id]).exits(0);
    there(&["file", "stat", "--project", "demo", "new"]).exits(0);
    there(&["workspace", "discard", id]).exits(1);
    there(&["workspace", "seed", "--project", "demo", "--from", "."]).exits(2);
    there(&["workspace", "reset", "--project", "demo", "--yes"]).exits(0);
    there(&["snapshot", "gc"]).exits(0);
    there(&["workspace", "rm", "demo", "copy"]).exits(0);
    assert_eq!(there(&["workspace", "ls", "--quiet"]).exits(0).stdout, "");
}
