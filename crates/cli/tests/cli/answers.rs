//! What waits at a server, and those who answer it from their own terminals.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::server::{Served, with};
use crate::terminal::Terminal;
use crate::trial::{Answer, Running, Trial, until};

const MANUAL: &str = "[settings]\napproval = \"manual\"\npids = 64\n";

/// A server at which the admin asks and `ann` answers.
struct House {
    trial: Trial,
    server: Served,
    ann: String,
}

impl House {
    fn open() -> Self {
        let trial = Trial::new();
        let config = trial.file("manual.toml", MANUAL);
        let server = Served::start(&trial, &["--config", config.to_str().unwrap()]);
        let create = ["token", "create", "--role", "approver"];
        let whose = ["--space", "local", "--name", "ann"];
        let made = trial.run(&[&create[..], &whose].concat()).exits(0);
        let ann = made.stdout.trim().to_owned();
        Self { trial, server, ann }
    }

    /// As the admin.
    fn run(&self, args: &[&str]) -> Answer {
        self.trial.run(&with(&self.server, args))
    }

    fn as_ann(&self, args: &[&str]) -> Answer {
        let mut command = self.trial.command(&with(&self.server, args));
        let output = command.env("GLOVEBOX_TOKEN", &self.ann).output();
        output.unwrap().into()
    }

    /// Starts something that has to be approved; it, and what it waits for.
    fn ask(&self, options: &[&str], command: &[&str]) -> (Running, String) {
        let place: &[&str] = match options.contains(&"--project") {
            true => &["run"],
            false => &["run", "--scratch"],
        };
        let run = [place, options, &["--"], command].concat();
        let child = Running::spawn(&mut self.trial.command(&with(&self.server, &run)));
        let id = until(|| {
            let listed = self.run(&["approval", "ls", "--quiet"]).exits(0).stdout;
            (!listed.is_empty()).then(|| listed.trim().to_owned())
        });
        (child, id)
    }

    /// Leaves nothing behind.
    fn close(self) {
        let (code, said) = self.server.close();
        assert_eq!(code, Some(0), "{said}");
    }

    fn approval(&self, id: &str) -> Value {
        self.run(&["approval", "info", id, "--json"])
            .exits(0)
            .json()
    }
}

#[test]
fn whoever_asked_waits_until_somebody_else_has_answered() {
    let house = House::open();
    let (child, id) = house.ask(&[], &["mkdir", "-v", "made"]);
    // It is on record as what it is.
    let running = house.run(&["ps", "--json"]).exits(0).json();
    assert_eq!(running["items"][0]["status"], "awaiting_approval");
    let own = house.run(&["approval", "approve", &id]).exits(4);
    assert!(
        own.stderr.contains("nobody approves their own request"),
        "{own:?}"
    );
    let yes = house
        .as_ann(&["approval", "approve", &id, "--reason", "go on"])
        .exits(0);
    assert!(yes.stderr.contains("is approved"), "{yes:?}");
    let ended = child.answer().exits(0);
    assert!(ended.stdout.contains("created directory"), "{ended:?}");
    let waited = format!("waits for a person to answer `{id}`");
    assert!(ended.stderr.contains(&waited), "{ended:?}");
    let how = format!(
        "glovebox --server {} approval approve {id}",
        house.server.url
    );
    assert!(ended.stderr.contains(&how), "{ended:?}");
    let approval = house.approval(&id);
    assert_eq!(approval["replies"][0]["by"], "ann");
    assert_eq!(approval["replies"][0]["answer"]["reason"], "go on");

    let (child, id) = house.ask(&[], &["mkdir", "-v", "made"]);
    house
        .as_ann(&["approval", "deny", &id, "--reason", "not today"])
        .exits(0);
    let ended = child.answer().exits(3);
    assert_eq!(ended.stdout, "");
    assert!(ended.stderr.contains("error[denied]"), "{ended:?}");
    assert!(ended.stderr.contains("not today"), "{ended:?}");
    let late = house.as_ann(&["approval", "approve", &id]).exits(2);
    assert!(late.stderr.contains("error[conflict]"), "{late:?}");
    let denied = ["approval", "ls", "--state", "denied", "--json"];
    let listed = house.run(&denied).exits(0).json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    assert_eq!(listed["items"][0]["id"], json!(id));
    house.close();
}

#[test]
fn whoever_does_not_wait_is_told_and_whoever_answers_may_follow_it() {
    let house = House::open();
    let left = |options: &[&str], script: &str| {
        let words = [&["run", "--scratch", "--no-wait"], options];
        house.run(&[&words.concat()[..], &["--", "sh", "-c", script]].concat())
    };
    let script = "mkdir -v made; echo err >&2; exit 7";
    let waits = left(&[], script).exits(5);
    assert_eq!(waits.stdout, "");
    let id = house.run(&["approval", "ls", "--quiet"]).exits(0).stdout;
    let id = id.trim();
    let way = format!("approval approve {id} --run");
    assert!(waits.stderr.contains(&way), "{waits:?}");
    let exec = house.approval(id)["exec_id"].as_str().unwrap().to_owned();
    assert!(waits.stderr.contains(&exec), "{waits:?}");

    // Where it cannot be followed, nothing is answered.
    let here = house.trial.run(&["approval", "approve", id, "--run"]);
    assert!(
        here.exits(2).stderr.contains("--server"),
        "without a server"
    );
    assert_eq!(house.approval(id)["state"], "pending");
    let ended = house.as_ann(&["approval", "approve", id, "--run"]).exits(7);
    assert!(ended.stdout.contains("created directory"), "{ended:?}");
    assert!(ended.stderr.contains("err\n"), "{ended:?}");
    assert_eq!(house.approval(id)["state"], "used");

    let record = left(&["--json"], script).exits(5).json();
    assert_eq!(record["status"], "awaiting_approval");
    let id = record["approval_id"].as_str().unwrap();
    let ended = house.as_ann(&["approval", "approve", id, "--run", "--json"]);
    let ended = ended.exits(7).json();
    assert_eq!(ended["exec_id"], record["exec_id"]);
    assert_eq!(ended["stderr"], "err\n");
    // What nobody has to agree to is waited for as ever.
    let plain = [
        "run",
        "--scratch",
        "--no-wait",
        "--",
        "cat",
        "/etc/hostname",
    ];
    assert_ne!(house.run(&plain).exits(0).stdout, "");
    house.close();
}

#[test]
fn whoever_stops_waiting_leaves_nothing_to_answer() {
    let house = House::open();
    let (child, id) = house.ask(&[], &["mkdir", "made"]);
    kill_process(Pid::from_child(&child.0), Signal::INT).unwrap();
    child.answer().exits(130);
    until(|| (house.approval(&id)["state"] == "void").then_some(()));
    let late = house.as_ann(&["approval", "approve", &id]).exits(2);
    assert!(late.stderr.contains("error[conflict]"), "{late:?}");
    house.close();
}

#[test]
fn it_is_allowed_with_less_or_as_another_program() {
    let house = House::open();
    let (child, id) = house.ask(&["--json"], &["mkdir", "made"]);
    let wrong = ["approval", "approve", &id, "--narrow", "ram=1"];
    let wrong = house.as_ann(&wrong).exits(2);
    assert!(wrong.stderr.contains("`memory`"), "{wrong:?}");
    let less = [
        "approval",
        "approve",
        &id,
        "--narrow",
        "pids=32",
        "--narrow",
        "timeout=20s",
    ];
    house.as_ann(&less).exits(0);
    let record = child.answer().exits(0).json();
    assert_eq!(record["policy_snapshot"]["limits"]["pids"], 32);
    assert_eq!(record["policy_snapshot"]["limits"]["wall_ms"], 20_000);

    let (child, id) = house.ask(&[], &["mkdir", "-v", "made"]);
    let words = house
        .trial
        .file("words.json", r#"["mkdir", "-v", "other"]"#);
    let edit = [
        "approval",
        "approve",
        &id,
        "--edit",
        words.to_str().unwrap(),
    ];
    house.as_ann(&edit).exits(0);
    let ended = child.answer().exits(0);
    assert!(
        ended.stdout.contains("other") && !ended.stdout.contains("made"),
        "{ended:?}"
    );
    house.close();
}

#[test]
fn a_kind_runs_by_itself_until_its_grant_is_revoked() {
    let house = House::open();
    let options = ["--conversation", "one", "--project", "demo"];
    let run = |more: &[&'static str]| [&["run"][..], more, &["--", "mkdir", "-p", "made"]].concat();
    let scratch = run(&["--scratch", "--conversation", "one"]);
    let kept = house.run(&scratch).exits(2);
    assert!(kept.stderr.contains("`--project ID`"), "{kept:?}");
    let (child, id) = house.ask(&options, &["mkdir", "-p", "made"]);
    house
        .as_ann(&["approval", "approve", &id, "--kind"])
        .exits(0);
    child.answer().exits(0);
    house.run(&run(&options)).exits(0);
    let grants = house.run(&["approval", "grants", "--json"]).exits(0).json();
    assert_eq!(grants["items"][0]["granted_by"], "ann");
    let grant = grants["items"][0]["id"].as_str().unwrap();
    house.as_ann(&["approval", "revoke", grant]).exits(0);
    let quiet = ["approval", "grants", "--quiet"];
    assert_eq!(house.run(&quiet).exits(0).stdout, "");
    let all = house.run(&[&quiet[..], &["--all"]].concat()).exits(0);
    assert_eq!(all.stdout.trim(), grant);
    let (child, id) = house.ask(&options, &["mkdir", "-p", "made"]);
    house.as_ann(&["approval", "deny", &id]).exits(0);
    child.answer().exits(3);
    house.close();
}

#[test]
fn an_approver_watches_and_answers_at_the_terminal() {
    let house = House::open();
    let watch = with(&house.server, &["approval", "watch", "--limit", "2"]);
    let token = [("GLOVEBOX_TOKEN", house.ann.as_str())];
    let mut terminal = Terminal::start(&house.trial, &watch, &token);
    let (child, _) = house.ask(&[], &["mkdir", "-v", "first"]);
    let asked = terminal.asked(1);
    assert!(asked.contains("  | mkdir -v first\n"), "{asked}");
    assert!(
        asked.contains("[o]nce, [e]dit, [l]ater, [d]eny: "),
        "{asked}"
    );
    terminal.press("o\n");
    child.answer().exits(0);
    let (child, id) = house.ask(&[], &["mkdir", "-v", "second"]);
    terminal.asked(2);
    // Somebody else was quicker: that is said, and nothing is asked again.
    house.as_ann(&["approval", "deny", &id]).exits(0);
    terminal.press("o\n");
    child.answer().exits(3);
    let (code, said) = terminal.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("conflict: "), "{said}");
    assert_eq!(house.approval(&id)["state"], "denied");
    house.close();
}

#[test]
fn without_a_terminal_a_watch_only_tells() {
    let house = House::open();
    let (child, id) = house.ask(&[], &["mkdir", "made"]);
    let told = house
        .as_ann(&["approval", "watch", "--limit", "1", "--json"])
        .exits(0);
    assert_eq!(told.json()["id"], json!(id));
    let told = house
        .as_ann(&["approval", "watch", "--limit", "1", "--quiet"])
        .exits(0);
    assert!(
        told.stdout.starts_with(&format!("{id}  pending  ")),
        "{told:?}"
    );
    assert_eq!(house.approval(&id)["state"], "pending");
    house.as_ann(&["approval", "deny", &id]).exits(0);
    child.answer().exits(3);
    house.close();
}
