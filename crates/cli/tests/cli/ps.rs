//! Listing execs and showing one.

use crate::trial::Trial;

#[test]
fn a_fresh_machine_has_nothing_and_reading_makes_nothing() {
    let trial = Trial::new();
    let listed = trial.run(&["ps"]).exits(0);
    assert_eq!(listed.stdout, "");
    assert!(listed.stderr.contains("nothing is running"), "{listed:?}");
    let listed = trial.run(&["ps", "--all", "--json"]).exits(0);
    assert_eq!(listed.stdout, "{\"items\":[],\"next\":null}\n");
    for reading in [&["show", "e_1"][..], &["logs", "e_1"], &["audit", "export"]] {
        let refused = trial.run(reading).exits(1);
        assert!(
            refused.stderr.starts_with("error[not_found]"),
            "{refused:?}"
        );
        assert!(refused.stderr.contains("hint:"), "{refused:?}");
    }
    trial.run(&["audit", "tail"]).exits(0);
    trial.run(&["audit", "query", "--json"]).exits(0);
    trial.run(&["audit", "verify"]).exits(0);
    trial.run(&["doctor"]).exits(0);
    trial.run(&["policy", "explain", "--", "true"]).exits(0);
    assert!(!trial.state().exists());
}

#[test]
fn what_runs_is_listed_until_it_ends() {
    let trial = Trial::new();
    let (mut child, id) = trial.start("read line");
    let listed = trial.run(&["ps"]).exits(0);
    let row = listed.stdout.lines().nth(1).unwrap();
    assert!(row.starts_with(&id[..14]), "{listed:?}");
    assert!(
        row.contains("running") && row.contains("sh -c 'read line'"),
        "{row}"
    );
    assert_eq!(listed.stderr, "", "its process is alive");
    let shown = trial.run(&["show", &id]).exits(0);
    assert!(shown.stdout.contains("status      running\n"), "{shown:?}");

    drop(child.0.stdin.take());
    child.answer().exits(1);
    assert_eq!(trial.run(&["ps", "--quiet"]).exits(0).stdout, "");
    assert_eq!(trial.run(&["ps", "-aq"]).exits(0).stdout, format!("{id}\n"));
}

#[test]
fn an_exec_whose_process_was_killed_is_told_from_one_that_runs() {
    let trial = Trial::new();
    let (mut child, id) = trial.start("echo so far; read line");
    child.end();
    let listed = trial.run(&["ps"]).exits(0);
    let gone = format!("the process that ran `{id}` is gone");
    assert!(listed.stderr.contains(&gone), "{listed:?}");
    let shown = trial.run(&["show", &id, "--json"]).exits(0).json();
    assert_eq!(shown["abandoned"], true);
    // Nobody will ever write the end of it, and following ends all the same.
    let followed = trial.run(&["logs", "--follow", &id]).exits(0);
    assert!(followed.stderr.contains(&gone), "{followed:?}");

    trial.record("true");
    let shown = trial.run(&["show", &id]).exits(0);
    assert!(shown.stdout.contains("status      lost\n"), "{shown:?}");
    let shown = trial.run(&["show", &id, "--json"]).exits(0).json();
    assert!(shown.get("abandoned").is_none(), "{shown}");
}

#[test]
fn a_record_is_the_same_from_run_and_show_and_ps() {
    let trial = Trial::new();
    let record = trial.record("echo hi; exit 3");
    let id = record["exec_id"].as_str().unwrap();
    assert_eq!(trial.run(&["show", id, "--json"]).exits(0).json(), record);
    let page = trial.run(&["ps", "--all", "--json"]).exits(0).json();
    assert_eq!(page["items"][0], record);
    let shown = trial.run(&["show", id]).exits(0).stdout;
    for line in [
        "status      failed (exit code 3)",
        "command     sh -c 'echo hi; exit 3'",
        "network     none",
        "receipt",
    ] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
}

#[test]
fn an_id_may_be_shortened_while_it_is_the_only_one() {
    let trial = Trial::new();
    let record = trial.record("true");
    let id = record["exec_id"].as_str().unwrap();
    for short in [&id[..8], &id[2..10], id] {
        let shown = trial.run(&["show", short, "--json"]).exits(0).json();
        assert_eq!(shown["exec_id"], id);
    }
    for wrong in ["e_", "zebra", "e_g", "\u{1b}[2J", &format!("{id}0")] {
        let refused = trial.run(&["show", wrong]).exits(1);
        assert!(
            refused.stderr.starts_with("error[not_found]"),
            "{refused:?}"
        );
        assert!(!refused.stderr.contains('\u{1b}'), "{refused:?}");
    }
    // Among 17 ids two start with the same digit.
    for _ in 0..16 {
        trial
            .run(&["run", "--scratch", "--pids", "99999", "--", "true"])
            .exits(3);
    }
    let ids = trial.run(&["ps", "-aq"]).stdout;
    let shared = ('0'..='f')
        .find(|digit| {
            let start = format!("e_{digit}");
            ids.lines().filter(|id| id.starts_with(&start)).count() > 1
        })
        .unwrap();
    let refused = trial.run(&["show", &format!("e_{shared}")]).exits(2);
    assert!(refused.stderr.contains("say more of it"), "{refused:?}");
}

#[test]
fn listings_are_filtered_and_go_on_page_by_page() {
    let trial = Trial::new();
    for script in ["true", "exit 1", "true"] {
        trial.record(script);
    }
    let ids = |args: &[&str]| {
        let listed = trial.run(args).exits(0).stdout;
        listed.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let all = ids(&["ps", "--all", "--quiet"]);
    assert_eq!(all.len(), 3);
    assert_eq!(ids(&["ps", "--status", "failed", "-q"]), all[1..2]);
    let first = trial.run(&["ps", "--all", "-n", "2", "--json"]).json();
    let cursor = first["next"].as_str().unwrap();
    assert_eq!(ids(&["ps", "-a", "-q", "--cursor", cursor]), all[2..]);
    let told = trial.run(&["ps", "--all", "-n", "2"]).exits(0);
    assert!(
        told.stderr.contains(&format!("`--cursor {cursor}`")),
        "{told:?}"
    );
    for wrong in [
        &["ps", "--status", "asleep"][..],
        &["ps", "--limit", "0"],
        &["ps", "--all", "--status", "failed"],
        &["ps", "--cursor", "x"],
    ] {
        trial.run(wrong).exits(2);
    }
}

#[test]
fn a_hostile_command_line_cannot_steer_a_terminal() {
    let trial = Trial::new();
    let hostile = "true # \u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\r\nexec        forged";
    let record = trial.record(hostile);
    let id = record["exec_id"].as_str().unwrap();
    for args in [&["ps", "--all"][..], &["show", id], &["audit", "tail"]] {
        let printed = trial.run(args).exits(0).stdout;
        for steering in ['\u{1b}', '\u{7}', '\u{9b}', '\r', '\u{202e}'] {
            assert!(!printed.contains(steering), "{steering:?} in {printed:?}");
        }
        assert!(!printed.contains("\nexec        forged"), "{printed}");
    }
}
