//! A server, and the same commands with and without it.

use std::io::{BufRead, BufReader};
use std::process::ChildStderr;

use serde_json::{Value, json};

use crate::trial::{Answer, Running, Trial, until};

pub(crate) struct Served {
    child: Running,
    stderr: BufReader<ChildStderr>,
    pub(crate) url: String,
    /// What it said before it listened.
    before: String,
}

impl Served {
    pub(crate) fn start(trial: &Trial, args: &[&str]) -> Self {
        Self::start_at(trial, "127.0.0.1:0", args)
    }

    pub(crate) fn start_at(trial: &Trial, address: &str, args: &[&str]) -> Self {
        let all: Vec<&str> = ["serve", "--listen", address]
            .iter()
            .chain(args)
            .copied()
            .collect();
        let mut command = trial.command(&all);
        let mut child = Running::spawn(command.env("GLOVEBOX_LOG", "warn"));
        let mut stderr = BufReader::new(child.0.stderr.take().unwrap());
        let mut before = String::new();
        let url = loop {
            let mut line = String::new();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "{before}");
            match line.strip_prefix("listening on ") {
                Some(url) => break url.trim().to_owned(),
                None => before.push_str(&line),
            }
        };
        Self {
            child,
            stderr,
            url,
            before,
        }
    }

    /// Asks it to close; its exit code and its last words.
    pub(crate) fn close(mut self) -> (Option<i32>, String) {
        let pid = rustix::process::Pid::from_child(&self.child.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let code = until(|| self.child.0.try_wait().unwrap()).code();
        let mut words = String::new();
        std::io::Read::read_to_string(&mut self.stderr, &mut words).unwrap();
        (code, words)
    }
}

pub(crate) fn with<'a>(server: &'a Served, args: &[&'a str]) -> Vec<&'a str> {
    [&["--server", &server.url][..], args].concat()
}

#[test]
fn everything_is_said_alike_with_and_without_a_server() {
    let trial = Trial::new();
    let record = trial.record("echo out; echo err >&2; exit 3");
    let id = record["exec_id"].as_str().unwrap();
    trial
        .run(&["run", "--scratch", "--memory", "9000G", "--", "true"])
        .exits(3);
    let server = Served::start(&trial, &[]);
    let token = trial.state().join("token");
    assert!(
        server.before.contains(token.to_str().unwrap()),
        "{}",
        server.before
    );
    let short = &id[..10];
    for (args, code) in [
        (&["ps", "--all", "--json"][..], 0),
        (&["ps", "--all", "--quiet"], 0),
        (&["ps", "--json"], 0),
        (&["show", id, "--json"], 0),
        (&["show", short, "--json"], 0),
        (&["logs", id], 0),
        (&["logs", short, "--json"], 0),
        (&["logs", "--follow", id], 0),
        (&["audit", "tail"], 0),
        (&["audit", "query", "--exec", short, "--json"], 0),
        (&["audit", "query", "--kind", "refused"], 0),
        (&["audit", "verify", "--json"], 0),
        (
            &[
                "audit",
                "verify",
                "--receipt",
                &format!("1:{}", "0".repeat(64)),
            ],
            1,
        ),
        (&["audit", "export", "--format", "ocsf"], 0),
        (&["audit", "export"], 0),
        (&["token", "ls", "--json"], 0),
        (&["policy", "explain", "--tier", "high", "--", "true"], 0),
        (&["policy", "explain", "--memory", "9000G", "--", "true"], 3),
    ] {
        let here = trial.run(args).exits(code);
        let there = trial.run(&with(&server, args)).exits(code);
        assert_eq!(here.stderr, there.stderr, "{args:?}");
        if args[0] == "policy" {
            // Another surface decides with defaults of its own.
            assert_eq!(
                here.stdout.lines().next(),
                there.stdout.lines().next(),
                "{args:?}"
            );
        } else {
            assert_eq!(here.stdout, there.stdout, "{args:?}");
        }
    }
    let (code, words) = server.close();
    assert_eq!(code, Some(0), "{words}");
    assert!(words.contains("closed; nothing was running"), "{words}");
}

#[test]
fn output_that_lies_elsewhere_is_not_called_none() {
    let trial = Trial::new();
    let record = trial.record("echo out");
    let id = record["exec_id"].as_str().unwrap();
    let silent = trial.record("true");
    // As for a server that shares the records and not the files.
    let file = trial.state().join(record["stdout_path"].as_str().unwrap());
    std::fs::remove_file(file).unwrap();
    let server = Served::start(&trial, &[]);
    for args in [&["logs", id][..], &["logs", "--follow", id]] {
        let refused = trial.run(&with(&server, args)).exits(1);
        assert!(
            refused.stderr.contains("does not lie with this server"),
            "{refused:?}"
        );
    }
    let silent = silent["exec_id"].as_str().unwrap();
    trial.run(&with(&server, &["logs", silent])).exits(0);
}

#[test]
fn a_server_that_goes_away_is_not_a_caller_who_canceled() {
    let trial = Trial::new();
    let server = Served::start(&trial, &["--drain", "0s"]);
    let args = ["run", "--scratch", "--", "sleep", "60"];
    let running = Running::spawn(&mut trial.command(&with(&server, &args)));
    until(|| {
        let listed = trial.run(&with(&server, &["ps", "--json"])).exits(0);
        listed.stdout.contains("\"running\"").then_some(())
    });
    let (code, words) = server.close();
    assert_eq!(code, Some(0), "{words}");
    let answer = running.answer();
    assert_eq!(answer.code, Some(125), "{answer:?}");
    let record = &trial.run(&["ps", "--all", "--json"]).exits(0).json()["items"][0];
    assert_eq!(
        (&record["status"], &record["error"]["code"]),
        (&json!("canceled"), &json!("shutting_down"))
    );
}

#[test]
fn a_run_at_a_server_is_a_run() {
    let trial = Trial::new();
    let server = Served::start(&trial, &[]);
    let run = |args: &[&str]| -> Answer { trial.run(&with(&server, args)) };
    let input = trial.file("in.txt", "from a file");
    let input = input.to_str().unwrap();
    let said = run(&[
        "run",
        "--scratch",
        "--input",
        input,
        "--env",
        "A=b",
        "--",
        "sh",
        "-c",
        "cat /workspace/inputs/in.txt; echo \" $A\"; echo err >&2; exit 7",
    ])
    .exits(7);
    assert_eq!(
        (said.stdout.as_str(), said.stderr.as_str()),
        ("from a file b\n", "err\n")
    );
    let record = run(&["run", "--scratch", "--json", "--", "echo", "hi"])
        .exits(0)
        .json();
    assert_eq!(
        (&record["status"], &record["stdout"]),
        (&json!("succeeded"), &json!("hi\n"))
    );
    let late = run(&[
        "run",
        "--scratch",
        "--timeout",
        "100ms",
        "--",
        "sleep",
        "60",
    ])
    .exits(124);
    assert!(late.stderr.contains("timed out"), "{late:?}");
    run(&["run", "--scratch", "--", "no-such-command"]).exits(127);
    let here = run(&["run", "--", "true"]).exits(2);
    assert!(
        here.stderr.contains("--project") && here.stderr.contains("--scratch"),
        "{here:?}"
    );
    let report = trial.work().join("report.json");
    run(&[
        "run",
        "--project",
        "p",
        "--report",
        report.to_str().unwrap(),
        "--",
        "touch",
        "x",
    ])
    .exits(0);
    let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    assert_eq!(report["project_id"], "p");
    run(&["run", "--project", "p", "--", "test", "-e", "x"]).exits(0);

    let mut command = trial.command(&with(
        &server,
        &[
            "run",
            "--scratch",
            "--client-id",
            "mine",
            "--",
            "sleep",
            "60",
        ],
    ));
    let running = Running::spawn(&mut command);
    until(|| run(&["ps", "--quiet"]).stdout.contains("e_").then_some(()));
    run(&["cancel", "mine"]).exits(0);
    assert_eq!(running.answer().code, Some(130));
    let record = run(&["show", "mine", "--json"]).exits(0).json();
    assert_eq!(record["status"], "canceled");
}

#[test]
fn tokens_and_settings_need_no_server() {
    let trial = Trial::new();
    // Nothing is made only to be read.
    trial.run(&["token", "ls"]).exits(0);
    trial.run(&["settings", "show"]).exits(0);
    assert!(!trial.state().exists());

    let made = trial.run(&[
        "token", "create", "--role", "agent", "--space", "local", "--name", "bot",
    ]);
    let secret = made.exits(0).stdout.trim().to_owned();
    assert!(secret.starts_with("gb_"), "{secret}");
    let again = [
        "token", "create", "--role", "agent", "--space", "local", "--name", "bot",
    ];
    trial.run(&again).exits(2);
    trial
        .run(&[
            "token",
            "create",
            "--role",
            "agent",
            "--space",
            "local",
            "--name",
            "x",
            "--scope",
            "tokens:write",
        ])
        .exits(2);
    let listed = trial.run(&["token", "ls", "--json"]).exits(0);
    assert!(!listed.stdout.contains(&secret), "{listed:?}");
    let id = listed.json()["items"][0]["token_id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        secret.starts_with(&id.replace("t_", "gb_")),
        "{secret} {id}"
    );
    let changed = trial
        .run(&["settings", "set", "max_concurrent_execs=2", "--json"])
        .exits(0)
        .json();
    assert_eq!(
        (
            &changed["version"],
            &changed["settings"]["max_concurrent_execs"]
        ),
        (&json!(1), &json!(2))
    );
    trial
        .run(&["settings", "set", "max_concurrent_execs=0"])
        .exits(2);
    trial.run(&["settings", "set", "max_concurrent=2"]).exits(2);

    // A server goes by both.
    let server = Served::start(&trial, &[]);
    let file = trial.file("bot.token", &secret);
    let file = file.to_str().unwrap();
    let as_bot = |args: &[&str]| {
        let own = ["--token-file", file];
        trial.run(&with(&server, &[&own[..], args].concat()))
    };
    as_bot(&["run", "--scratch", "--", "true"]).exits(0);
    let refused = as_bot(&["settings", "show"]).exits(4);
    assert!(refused.stderr.contains("error[forbidden]"), "{refused:?}");
    as_bot(&["audit", "tail"]).exits(4);
    let shown = trial
        .run(&with(&server, &["settings", "show"]))
        .exits(0)
        .stdout;
    assert!(shown.contains("max_concurrent_execs=2\n"), "{shown}");
    trial.run(&["token", "rm", &id]).exits(0);
    until(|| (as_bot(&["ps"]).code == Some(4)).then_some(()));
    let info = trial.run(&["token", "info", &id]).exits(0).stdout;
    assert!(info.contains("revoked"), "{info}");
}

#[test]
fn a_server_that_is_not_there_or_not_asked_is_said() {
    let trial = Trial::new();
    // Nothing listens on port 1.
    let nobody = "http://127.0.0.1:1";
    for args in [
        &["ps"][..],
        &["run", "--scratch", "--", "true"],
        &["audit", "verify"],
        &["token", "ls"],
    ] {
        let refused = trial
            .run(&[&["--server", nobody][..], args].concat())
            .exits(125);
        assert!(
            refused.stderr.contains("cannot reach the server"),
            "{refused:?}"
        );
    }
    let wrong = trial
        .command(&["ps"])
        .env("GLOVEBOX_SERVER", "somewhere")
        .output()
        .unwrap();
    assert!(
        Answer::from(wrong)
            .exits(2)
            .stderr
            .contains("GLOVEBOX_SERVER")
    );
    trial
        .run(&["--server", nobody, "policy", "check", "x"])
        .exits(2);
    trial.run(&["--server", nobody, "serve"]).exits(2);
    let local = trial.run(&["cancel", "e_1"]).exits(2);
    assert!(local.stderr.contains("Ctrl-C"), "{local:?}");
    let exposed = trial.run(&["serve", "--listen", "0.0.0.0:0"]).exits(2);
    assert!(exposed.stderr.contains("--tls-cert"), "{exposed:?}");
    assert!(!trial.state().exists());
}
