//! The ledger: reading, verifying, exporting.

use std::fs;
use std::io::{BufRead, BufReader};

use serde_json::Value;

use crate::trial::{Running, Trial, names};

fn receipt(record: &Value) -> String {
    let receipt = &record["receipt"];
    format!("{}:{}", receipt["seq"], receipt["hash"].as_str().unwrap())
}

#[test]
fn entries_are_found_by_what_they_are_about() {
    let trial = Trial::new();
    let first = trial.record("true");
    trial
        .run(&["run", "--scratch", "--task-id", "t1", "--", "false"])
        .exits(1);
    trial
        .run(&["run", "--scratch", "--pids", "99999", "--", "true"])
        .exits(3);

    let tail = trial
        .run(&["audit", "tail", "-n", "2", "--json"])
        .exits(0)
        .stdout;
    let kinds: Vec<Value> = tail
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["kind"].clone())
        .collect();
    assert_eq!(kinds, ["outcome", "refused"]);

    let count = |args: &[&str]| {
        let mut all = vec!["audit", "query", "--json"];
        all.extend(args);
        trial.run(&all).exits(0).json()["items"]
            .as_array()
            .unwrap()
            .len()
    };
    let id = first["exec_id"].as_str().unwrap();
    assert_eq!(count(&[]), 5);
    assert_eq!(count(&["--exec", &id[..10]]), 2);
    assert_eq!(count(&["--kind", "refused"]), 1);
    assert_eq!(count(&["--task", "t1"]), 2);
    assert_eq!(count(&["--agent", "nobody"]), 0);
    assert_eq!(count(&["--tag", "status:failed"]), 1);
    assert_eq!(count(&["--since", "1h"]), 5);
    assert_eq!(count(&["--until", "1h"]), 0);
    assert_eq!(
        count(&["--since", "2020-01-01", "--until", "2021-01-01"]),
        0
    );

    let page = trial.run(&["audit", "query", "--json", "-n", "3"]).json();
    let cursor = page["next"].as_str().unwrap();
    assert_eq!(count(&["--cursor", cursor]), 2);
    let text = trial
        .run(&["audit", "query", "--task", "t1"])
        .exits(0)
        .stdout;
    assert!(text.contains("failed, exit code 1"), "{text}");
    for wrong in [
        &["audit", "query", "--kind", "guessed"][..],
        &["audit", "query", "--since", "yesterday"],
        &["audit", "query", "--cursor", "x"],
    ] {
        trial.run(wrong).exits(2);
    }
}

#[test]
fn entries_are_found_by_tags_mode_and_age() {
    let trial = Trial::new();
    trial.record("true");
    let wrong = ["run", "--scratch", "--task-id", "t1", "--", "false"];
    trial.run(&wrong).exits(1);
    let beyond = ["run", "--scratch", "--pids", "99999", "--", "true"];
    trial.run(&beyond).exits(3);

    let found = |args: &[&str]| -> Vec<Value> {
        let mut all = vec!["audit", "query", "--json"];
        all.extend(args);
        let page = trial.run(&all).exits(0).json();
        page["items"].as_array().unwrap().clone()
    };
    let tags = |some: &[&'static str]| -> Vec<&'static str> {
        some.iter().flat_map(|tag| ["--tag", *tag]).collect()
    };
    assert_eq!(found(&tags(&["success"])).len(), 1);
    assert_eq!(found(&tags(&["failure"])).len(), 2);
    assert_eq!(found(&tags(&["failure", "sandbox_execution"])).len(), 1);
    assert_eq!(found(&tags(&["failure", "success"])).len(), 0);
    assert_eq!(found(&tags(&["tool_invocation", "policy_denied"])).len(), 1);
    assert_eq!(found(&["--mode", "run"]).len(), 3);
    assert_eq!(found(&["--mode", "simulate"]).len(), 0);
    assert_eq!(found(&["--severity", "warning"]).len(), 2);
    assert_eq!(found(&["--workflow", "none"]).len(), 0);
    for (tier, count) in [("hot", 5), ("warm", 0), ("cold", 0), ("archived", 0)] {
        let entries = found(&["--tier", tier]);
        assert_eq!(entries.len(), count, "{tier}");
        assert!(entries.iter().all(|it| it["retention_tier"] == tier));
    }
    let failed = &found(&["--task", "t1", "--tag", "failure"])[0];
    let provenance = &failed["body"]["provenance"];
    assert_eq!(provenance["task_id"], "t1");
    let sandbox = provenance["step_id"].as_str().unwrap();
    assert!(sandbox.starts_with("sb_"), "{failed}");
    assert_eq!(found(&["--sandbox", sandbox]).len(), 1);
    for wrong in [["--mode", "guessed"], ["--tier", "tepid"]] {
        let all = [&["audit", "query"][..], &wrong].concat();
        trial.run(&all).exits(2);
    }
    trial.run(&["audit", "verify"]).exits(0);
}

#[test]
fn a_timeline_joins_what_was_planned_with_how_it_ended() {
    let trial = Trial::new();
    let none = trial.run(&["audit", "timeline", "t1"]).exits(0);
    assert!(none.stderr.contains("no entry of this task"), "{none:?}");
    trial.record("true");
    for (program, code) in [("true", 0), ("false", 1)] {
        let run = ["run", "--scratch", "--task-id", "t1", "--", program];
        trial.run(&run).exits(code);
    }
    let timeline = trial.run(&["audit", "timeline", "t1", "--json"]).exits(0);
    let timeline = timeline.json();
    let steps = timeline["steps"].as_array().unwrap();
    assert_eq!((steps.len(), &timeline["next"]), (2, &Value::Null));
    for (step, status) in steps.iter().zip(["succeeded", "failed"]) {
        assert_eq!(step["planned"]["kind"], "planned");
        assert_eq!(step["outcome"]["body"]["status"], status);
        assert_eq!(step["planned"]["exec_id"], step["exec_id"]);
        assert_eq!(step["outcome"]["retention_tier"], "hot");
    }
    let first = trial.run(&["audit", "timeline", "t1", "-n", "1", "--json"]);
    let next = first.exits(0).json()["next"].as_str().unwrap().to_owned();
    let rest = trial.run(&["audit", "timeline", "t1", "--cursor", &next]);
    let rest = rest.exits(0).stdout;
    let id = steps[1]["exec_id"].as_str().unwrap();
    assert!(
        rest.starts_with(id) && rest.contains("exit code 1"),
        "{rest}"
    );
}

#[test]
fn following_shows_entries_as_they_come_even_the_first() {
    let trial = Trial::new();
    let mut follower = Running::spawn(&mut trial.command(&["audit", "tail", "--follow", "--json"]));
    let mut lines = BufReader::new(follower.0.stdout.take().unwrap()).lines();
    for expected in [1, 2, 3, 4] {
        if expected % 2 == 1 {
            trial.record("true");
        }
        let entry: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(entry["seq"], expected);
    }
    follower.end();
}

#[test]
fn a_sound_ledger_verifies_with_every_receipt_it_gave() {
    let trial = Trial::new();
    let receipts = [trial.record("true"), trial.record("exit 1")].map(|it| receipt(&it));
    let sound = trial.run(&["audit", "verify"]).exits(0);
    assert_eq!(
        sound.stdout,
        format!("sound: 4 entries, the last is {}\n", receipts[1])
    );
    let args = [
        "audit",
        "verify",
        "--receipt",
        &receipts[0],
        "--receipt",
        &receipts[1],
    ];
    trial.run(&args).exits(0);
    let answer = trial.run(&["audit", "verify", "--json"]).exits(0).json();
    assert_eq!(
        (&answer["sound"], &answer["entries"]),
        (&true.into(), &4.into())
    );
    assert_eq!(
        trial.run(&["audit", "verify", "--quiet"]).exits(0).stdout,
        ""
    );

    let other = format!("2:{}", "0".repeat(64));
    let refused = trial
        .run(&["audit", "verify", "--receipt", &other])
        .exits(1);
    assert!(
        refused.stdout.starts_with("tampered: 1 problem"),
        "{refused:?}"
    );
    assert!(
        refused.stdout.contains("entry 2: a receipt says"),
        "{refused:?}"
    );
    trial
        .run(&["audit", "verify", "--receipt", "2:short"])
        .exits(2);
}

#[test]
fn an_edited_database_is_noticed_and_the_place_named() {
    let trial = Trial::new();
    trial.record("true");
    trial.record("true");
    let database = rusqlite::Connection::open(trial.state().join("glovebox.db")).unwrap();
    let again = lift_triggers(&database);
    let edit = "UPDATE ledger_entries SET body = replace(body, 'sh', 'id') WHERE seq = 3";
    assert_eq!(database.execute(edit, ()).unwrap(), 1);
    database.execute_batch(&again).unwrap();
    drop(database);
    let found = trial.run(&["audit", "verify"]).exits(1);
    assert!(found.stdout.starts_with("tampered: "), "{found:?}");
    assert!(
        found.stdout.contains("entry 3: entry was edited"),
        "{found:?}"
    );
    let answer = trial.run(&["audit", "verify", "--json"]).exits(1).json();
    assert_eq!(answer["sound"], false);
    assert_eq!(answer["problems"][0]["seq"], 3);

    // Without what guards it, it is another database.
    let database = rusqlite::Connection::open(trial.state().join("glovebox.db")).unwrap();
    lift_triggers(&database);
    drop(database);
    let found = trial.run(&["audit", "verify"]).exits(1);
    assert!(
        found.stdout.contains("tables, indexes or triggers"),
        "{found:?}"
    );
    let answer = trial.run(&["audit", "verify", "--json"]).exits(1).json();
    assert_eq!(answer["sound"], false);
    let refused = trial.run(&["run", "--scratch", "--", "true"]).exits(125);
    assert!(refused.stderr.contains("ledger_tampered"), "{refused:?}");
}

/// Whoever can write the file can also drop what guards it against mistakes. Returns what puts it
/// back, so that nobody misses it.
fn lift_triggers(database: &rusqlite::Connection) -> String {
    let sql = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'";
    let mut guards = database.prepare(sql).unwrap();
    let rows = guards.query_map((), |row| Ok((row.get(0)?, row.get(1)?)));
    let guards: Vec<(String, String)> = rows.unwrap().map(Result::unwrap).collect();
    let mut again = String::new();
    for (name, sql) in guards {
        let drop_guard = format!("DROP TRIGGER \"{name}\"");
        database.execute_batch(&drop_guard).unwrap();
        again.push_str(&format!("{sql};"));
    }
    again
}

/// "Sound" is never said over a deleted space.
#[test]
fn all_spaces_are_verified_here_and_from_an_export() {
    let trial = Trial::new();
    trial.record("true");
    let token = [
        "token", "create", "--role", "agent", "--space", "team-a", "--name", "b",
    ];
    trial.run(&token).exits(0);
    let out = trial.work().join("all.jsonl");
    let out = out.to_str().unwrap();
    let verify = ["audit", "verify"];
    let offline = ["audit", "verify", "--export", out];
    let export = ["audit", "export", "-o", out];
    trial.run(&export).exits(0);
    for verify in [&verify[..], &offline] {
        let sound = trial.run(verify).exits(0);
        assert!(sound.stdout.contains("4 entries in 2 spaces"), "{sound:?}");
    }
    let one = ["audit", "verify", "--space", "team-a"];
    let one = trial.run(&one).exits(0).stdout;
    assert!(
        one.starts_with("sound: 1 entry of the space `team-a` alone"),
        "{one}"
    );

    let path = trial.state().join("glovebox.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    let again = lift_triggers(&database);
    let wipe = "DELETE FROM ledger_entries WHERE space_id = 'team-a';
        DELETE FROM ledger_heads WHERE space_id = 'team-a';
        DELETE FROM ledger_rows WHERE space_id = 'team-a';
        DELETE FROM tokens WHERE space_id = 'team-a';";
    database.execute_batch(&format!("{wipe}{again}")).unwrap();
    drop(database);
    trial.run(&export).exits(0);
    for verify in [&verify[..], &offline] {
        let found = trial.run(verify).exits(1).stdout;
        let what = "entry 1 of `team-a`: the operator's ledger names entry 1";
        assert!(found.contains(what), "{found}");
    }

    // Nor is the whole made anew when it is gone.
    for name in ["glovebox.db", "glovebox.db-wal", "glovebox.db-shm"] {
        let _ = fs::remove_file(trial.state().join(name));
    }
    let refused = trial.run(&["run", "--scratch", "--", "true"]).exits(125);
    assert!(refused.stderr.contains("is gone"), "{refused:?}");
    assert!(
        refused.stderr.contains("restore `glovebox.db`"),
        "{refused:?}"
    );
    assert!(!path.exists());
}

#[test]
fn a_ledger_that_was_replaced_is_noticed_from_outside() {
    let trial = Trial::new();
    let kept = receipt(&trial.record("true"));
    let checkpoint = trial.work().join("checkpoint.jsonl");
    let out = checkpoint.to_str().unwrap();
    trial.run(&["audit", "export", "-o", out]).exits(0);
    trial.record("true");
    trial
        .run(&["audit", "verify", "--checkpoint", out])
        .exits(0);

    fs::remove_file(trial.state().join("glovebox.db")).unwrap();
    let gone = trial.run(&["audit", "verify"]).exits(1);
    assert!(gone.stdout.contains("its database is gone"), "{gone:?}");
    fs::remove_dir_all(trial.state()).unwrap();
    trial.run(&["audit", "verify"]).exits(0);
    trial.run(&["audit", "verify", "--receipt", &kept]).exits(1);
    trial
        .run(&["audit", "verify", "--checkpoint", out])
        .exits(1);

    trial.record("true");
    trial.record("true");
    trial.run(&["audit", "verify"]).exits(0);
    trial.run(&["audit", "verify", "--receipt", &kept]).exits(1);
    trial
        .run(&["audit", "verify", "--checkpoint", out])
        .exits(1);
    let not_one = trial.file("x", "{}\n");
    let refused = trial.run(&["audit", "verify", "--checkpoint", not_one.to_str().unwrap()]);
    assert!(
        refused
            .exits(2)
            .stderr
            .contains("does not end with a checkpoint")
    );
}

#[test]
fn an_export_verifies_without_the_state_directory_and_not_when_edited() {
    let trial = Trial::new();
    trial.record("true");
    let export = trial.run(&["audit", "export"]).exits(0).stdout;
    let out = trial.work().join("ledger.jsonl");
    let named = trial
        .run(&["audit", "export", "--output", out.to_str().unwrap()])
        .exits(0);
    assert_eq!(named.stdout, "");
    assert_eq!(fs::read_to_string(&out).unwrap(), export);
    assert_eq!(names(&trial.work()), ["ledger.jsonl"]);

    let elsewhere = Trial::new();
    let path = out.to_str().unwrap();
    let sound = elsewhere
        .run(&["audit", "verify", "--export", path])
        .exits(0);
    assert!(sound.stdout.starts_with("sound: 2 entries"), "{sound:?}");
    assert!(!elsewhere.state().exists());

    let edited = trial.file("edited", &export.replacen("\"planned\"", "\"refused\"", 1));
    let found = elsewhere.run(&["audit", "verify", "--export", edited.to_str().unwrap()]);
    assert!(found.exits(1).stdout.contains("entry 1: entry was edited"));
    let cut: String = export
        .lines()
        .take(2)
        .map(|line| format!("{line}\n"))
        .collect();
    let cut = trial.file("cut", &cut);
    let found = elsewhere.run(&["audit", "verify", "--export", cut.to_str().unwrap()]);
    assert!(found.exits(1).stdout.contains("it was cut"));
    let other = trial.file("other", "hello\n");
    elsewhere
        .run(&["audit", "verify", "--export", other.to_str().unwrap()])
        .exits(2);
    elsewhere
        .run(&["audit", "verify", "--export", "/nowhere"])
        .exits(2);

    let events = trial
        .run(&["audit", "export", "--format", "ocsf"])
        .exits(0)
        .stdout;
    let event: Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    assert_eq!(event["class_uid"], 1007);
}

#[test]
fn an_export_that_cannot_be_written_leaves_nothing() {
    let trial = Trial::new();
    trial.record("true");
    for wrong in ["/nowhere/ledger", trial.work().to_str().unwrap()] {
        let refused = trial.run(&["audit", "export", "--output", wrong]).exits(2);
        assert!(
            refused.stderr.contains("cannot write the export"),
            "{refused:?}"
        );
    }
    trial
        .run(&["audit", "export", "--output", "/dev/full"])
        .exits(125);
    trial
        .run(&["audit", "export", "--output", "/dev/null"])
        .exits(0);
    assert!(names(&trial.work()).is_empty());
}
