//! What people agreed to is what runs: files that a command names, files that it runs without naming
//! them, and all of it while others write to the workspace.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use support::{Client, wait_until};

use crate::approvals_ground::{House, MANUAL, allow, reply, text};

const PATIENCE: Duration = Duration::from_secs(60);

fn put(client: &Client, path: &str, content: &str) {
    let path = format!("/v1/workspaces/p/files/{path}");
    let kind = Some("application/octet-stream");
    let put = client.try_bytes("PUT", &path, kind, content.as_bytes());
    let put = put.unwrap();
    assert_eq!(put.status, 200, "{}", put.text());
}

fn argv(words: &[&str]) -> Value {
    json!({"project_id": "p", "exec": {"kind": "argv", "command": words[0], "args": words[1..]}})
}

fn work(house: &House) -> PathBuf {
    house.trial.state().join("projects/p/work")
}

/// The approval that an exec waits for once `old` counts no more.
fn next(house: &House, exec: &str, old: &str) -> String {
    let waits = || {
        let record = house.agent.get(&format!("/v1/execs/{exec}")).json();
        let id = record["approval_id"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        (record["status"] == "awaiting_approval" && id != old).then_some(id)
    };
    let is_asked = wait_until(PATIENCE, || waits().is_some());
    assert!(
        is_asked,
        "{}",
        house.agent.get(&format!("/v1/execs/{exec}")).text()
    );
    waits().unwrap()
}

#[test]
fn what_changed_after_an_answer_is_asked_about_anew_and_said() {
    let house = House::open(MANUAL);
    let touch = "touch NAME\n";
    let python = "open('NAME', 'w')\n";
    let rows: [(&[&str], &str, &str, &str); 11] = [
        (&["python3", "-m", "mod"], "mod.py", python, "workspace"),
        (&["python3", "pkg"], "pkg/__main__.py", python, "workspace"),
        (&["make"], "Makefile", "all:\n\ttouch NAME\n", "workspace"),
        (&["sh", "lib.sh"], "lib.sh", touch, "workspace"),
        (&["sh", "-c", ". ./lib.sh"], "lib.sh", touch, "workspace"),
        (&["sh", "-c", "sh < lib.sh"], "lib.sh", touch, "workspace"),
        (
            &["sh", "-c", "f=lib.sh; sh $f"],
            "lib.sh",
            touch,
            "workspace",
        ),
        (&["sh", "-c", "sh li*.sh"], "lib.sh", touch, "workspace"),
        (&["bash", "-c", "$(<lib.sh)"], "lib.sh", touch, "workspace"),
        (
            &["find", ".", "-name", "lib.sh", "-exec", "sh", "{}", ";"],
            "lib.sh",
            touch,
            "workspace",
        ),
        (
            &["sh", "/proc/self/cwd/lib.sh"],
            "lib.sh",
            touch,
            "workspace",
        ),
    ];
    for (words, file, text, to) in rows {
        put(&house.agent, file, &text.replace("NAME", "first"));
        let (exec, id) = house.ask(&argv(words));
        let ask = house.ann.get(&format!("/v1/approvals/{id}")).json()["ask"].clone();
        assert_eq!(
            (&ask["bound"]["to"], &ask["bound"]["held"]),
            (&json!(to), &json!(true)),
            "{ask}"
        );
        put(&house.agent, file, &text.replace("NAME", "second"));
        allow(&house.ann, &id);
        let void = id;
        let id = next(&house, &exec, &void);
        let state = house.ann.get(&format!("/v1/approvals/{void}")).json();
        assert_eq!(state["state"], "void", "{state}");
        let ask = house.ann.get(&format!("/v1/approvals/{id}")).json()["ask"].clone();
        let changed = ask["changed"].as_array().cloned().unwrap_or_default();
        assert!(changed.contains(&json!(file)), "{words:?} {ask}");
        assert!(!work(&house).join("first").exists() && !work(&house).join("second").exists());
        // What is there now was seen by people and runs.
        allow(&house.ann, &id);
        let record = house.agent.ended(&exec);
        assert_eq!(record["status"], "succeeded", "{words:?} {record}");
        assert!(!work(&house).join("first").exists(), "{words:?}");
        assert!(work(&house).join("second").exists(), "{words:?} {record}");
        for name in ["second", file.split('/').next().unwrap()] {
            let path = work(&house).join(name);
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
        let _ = fs::remove_dir_all(work(&house).join("__pycache__"));
    }
    house.close();
}

#[test]
fn a_command_that_runs_no_file_is_bound_to_none_and_one_that_rewrites_its_script_says_so() {
    let house = House::open(MANUAL);
    put(&house.agent, "lib.sh", "echo first\n");
    let (exec, id) = house.ask(&argv(&["touch", "a"]));
    let ask = house.ann.get(&format!("/v1/approvals/{id}")).json()["ask"].clone();
    assert_eq!(ask["bound"]["to"], "nothing", "{ask}");
    put(&house.agent, "lib.sh", "echo other\n");
    allow(&house.ann, &id);
    assert_eq!(house.agent.ended(&exec)["status"], "succeeded");
    let (exec, id) = house.ask(&argv(&["sh", "lib.sh"]));
    let ask = house.ann.get(&format!("/v1/approvals/{id}")).json()["ask"].clone();
    assert_eq!(ask["bound"]["to"], "files", "{ask}");
    // Another file is none of its business.
    put(&house.agent, "other", "x");
    allow(&house.ann, &id);
    let record = house.agent.ended(&exec);
    assert_eq!(
        (&record["stdout"], &record["verdict"]),
        (&json!("other\n"), &json!("keep")),
        "{record}"
    );
    let line = "sh lib.sh; echo echo second > lib.sh; sh lib.sh";
    let (exec, id) = house.ask(&argv(&["sh", "-c", line]));
    allow(&house.ann, &id);
    let record = house.agent.ended(&exec);
    assert_eq!(record["stdout"], "other\nsecond\n", "{record}");
    let notes = record["notes"].to_string();
    assert!(
        notes.contains("the run itself changed `lib.sh`"),
        "{record}"
    );
    assert_eq!(
        fs::read_to_string(work(&house).join("lib.sh")).unwrap(),
        "echo second\n"
    );
    house.close();
}

#[test]
fn a_shell_in_a_used_home_is_asked_about_and_what_may_run_anything_has_no_kind() {
    let house = House::open(MANUAL);
    let made = json!({"lifetime": "shared", "project_id": "p"});
    let made = house.admin().post("/v1/sandboxes", &made);
    assert!(made.status < 300, "{}", made.text());
    let name = text(&made.json()["sandbox_id"]);
    for program in [
        json!({"kind": "argv", "command": "bash", "args": ["-lc", "ls"]}),
        json!({"kind": "shell", "command": "bash", "args": ["-lc", "ls"]}),
    ] {
        let body = json!({"project_id": "p", "sandbox": {"id": name}, "exec": program});
        let (_, id) = house.ask(&body);
        let bound = house.ann.get(&format!("/v1/approvals/{id}")).json()["ask"]["bound"].clone();
        assert_eq!(
            (&bound["to"], &bound["held"]),
            (&json!("workspace"), &json!(false)),
            "{bound}"
        );
        reply(&house.ann, &id, &json!({"decision": "deny"}));
    }
    let mut body = argv(&["git", "status"]);
    body["task_ref"] = json!({"conversation_id": "chat"});
    let (_, id) = house.ask(&body);
    let refused = reply(&house.ann, &id, &json!({"decision": "allow_kind"}));
    assert_eq!(
        refused.json()["error"]["code"],
        "conflict",
        "{}",
        refused.text()
    );
    reply(&house.ann, &id, &json!({"decision": "deny"}));
    house.close();
}

#[test]
fn what_changed_while_it_was_queued_is_asked_about_anew() {
    let house = House::open(MANUAL);
    house.admin().set(&json!({"max_concurrent_execs": 1}));
    let status = |exec: &str| {
        let record = house.agent.get(&format!("/v1/execs/{exec}")).json();
        text(&record["status"])
    };
    put(&house.agent, "lib.sh", "echo first\n");
    let (first, id) = house.ask(&argv(&["sleep", "50"]));
    allow(&house.ann, &id);
    assert!(wait_until(PATIENCE, || status(&first) == "running"));
    let (exec, id) = house.ask(&argv(&["sh", "-c", "f=lib.sh; sh $f"]));
    allow(&house.ann, &id);
    assert_eq!(status(&exec), "queued");
    put(&house.agent, "lib.sh", "echo second\n");
    let canceled = house
        .agent
        .post(&format!("/v1/execs/{first}/cancel"), &json!({}));
    assert!(canceled.status < 300, "{}", canceled.text());
    let id = next(&house, &exec, &id);
    let ask = house.ann.get(&format!("/v1/approvals/{id}")).json()["ask"].clone();
    let changed = ask["changed"].as_array().cloned().unwrap_or_default();
    assert!(changed.contains(&json!("/workspace/work")), "{ask}");
    allow(&house.ann, &id);
    let record = house.agent.ended(&exec);
    assert_eq!(record["stdout"], "second\n", "{record}");
    house.close();
}

/// How a writer exchanges what was approved for something else, and back.
type Exchange = fn(&Client, &Path, evil: bool);

fn in_place(_: &Client, work: &Path, evil: bool) {
    fs::write(work.join("d/lib.sh"), script(evil)).unwrap();
}

fn over_http(agent: &Client, _: &Path, evil: bool) {
    put(agent, "d/lib.sh", &script(evil));
}

fn by_rename(_: &Client, work: &Path, evil: bool) {
    fs::write(work.join("new"), script(evil)).unwrap();
    fs::rename(work.join("new"), work.join("d/lib.sh")).unwrap();
}

fn by_link(_: &Client, work: &Path, evil: bool) {
    fs::write(work.join("new"), script(evil)).unwrap();
    fs::remove_file(work.join("d/lib.sh")).unwrap();
    fs::hard_link(work.join("new"), work.join("d/lib.sh")).unwrap();
    fs::remove_file(work.join("new")).unwrap();
}

fn by_directory(_: &Client, work: &Path, evil: bool) {
    fs::create_dir(work.join("e")).unwrap();
    fs::write(work.join("e/lib.sh"), script(evil)).unwrap();
    fs::rename(work.join("d"), work.join("f")).unwrap();
    fs::rename(work.join("e"), work.join("d")).unwrap();
    fs::remove_dir_all(work.join("f")).unwrap();
}

/// Shells read a script while they run it.
fn script(evil: bool) -> String {
    match evil {
        true => "echo evil\n".repeat(400),
        false => format!("echo good\nsleep 0.02\n{}echo good\n", "#\n".repeat(400)),
    }
}

#[test]
fn races_with_writers_never_run_what_was_not_approved() {
    let house = House::open(MANUAL);
    let rounds = match support::is_full() {
        true => 500,
        false => 5,
    };
    put(&house.agent, "d/lib.sh", &script(false));
    let work = work(&house);
    let ways: [(&str, Exchange); 5] = [
        ("in place", in_place),
        ("over HTTP", over_http),
        ("by rename", by_rename),
        ("by a second name", by_link),
        ("by the directory above", by_directory),
    ];
    let commands: [&[&str]; 2] = [&["sh", "d/lib.sh"], &["sh", "-c", "cat d/lib.sh | sh"]];
    for (way, exchange) in ways {
        let (mut ran, mut refused) = (0, 0);
        for round in 0..rounds {
            in_place(&house.agent, &work, false);
            let (exec, id) = house.ask(&argv(commands[round % commands.len()]));
            let done = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let agent = house.agent.at(house.address());
                let (done, work) = (&done, &work);
                scope.spawn(move || {
                    let mut evil = true;
                    // Sooner and later: before the start, while it is built, while it runs.
                    std::thread::sleep(Duration::from_millis(7 * (round as u64 % 16)));
                    while !done.load(Ordering::Relaxed) {
                        exchange(&agent, work, evil);
                        evil = !evil;
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    exchange(&agent, work, false);
                });
                allow(&house.ann, &id);
                let record = settled(&house, &exec, &id);
                done.store(true, Ordering::Relaxed);
                let output = text(&record["stdout"]);
                assert!(!output.contains("evil"), "{way} {round}: {record}");
                match record["status"].as_str() {
                    Some("succeeded") => {
                        assert_eq!(output, "good\ngood\n", "{way} {round}: {record}");
                        ran += 1;
                    }
                    _ => refused += 1,
                }
            });
        }
        println!("{way}: {ran} ran as approved, {refused} were refused or asked about anew");
    }
    house.close();
}

/// An exec that has ended, or is asked about once more and denied then.
fn settled(house: &House, exec: &str, old: &str) -> Value {
    let look = || house.agent.get(&format!("/v1/execs/{exec}")).json();
    let is_settled = || {
        let record = look();
        let waits = record["status"] == "awaiting_approval";
        let asked_anew = waits && record["approval_id"] != old;
        let is_over = !["queued", "running", "awaiting_approval"]
            .iter()
            .any(|it| record["status"] == *it);
        asked_anew || is_over
    };
    assert!(wait_until(PATIENCE, is_settled), "{}", look());
    let record = look();
    if record["status"] == "awaiting_approval" {
        reply(
            &house.ann,
            &text(&record["approval_id"]),
            &json!({"decision": "deny"}),
        );
        return house.agent.ended(exec);
    }
    record
}

#[test]
fn ground_of_a_killed_server_is_cleared_when_it_starts_again() {
    let mut house = House::open(MANUAL);
    put(&house.agent, "a", "x");
    let (exec, id) = house.ask(&argv(&["sh", "-c", "f=600; sleep $f"]));
    allow(&house.ann, &id);
    let ground = house.trial.state().join("projects/p/ground").join(&exec);
    let runs = || house.agent.get(&format!("/v1/execs/{exec}")).json()["status"] == "running";
    assert!(wait_until(PATIENCE, || runs() && ground.join("copy/a").exists()));
    house.restart();
    assert_eq!(house.agent.ended(&exec)["status"], "lost");
    assert!(!ground.exists());
    house.close();
}
