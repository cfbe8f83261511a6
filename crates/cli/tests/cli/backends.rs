//! What execs can run in, and what each enforces.

use serde_json::Value;

use crate::server::{Served, with};
use crate::trial::Trial;

fn native(listed: &Value) -> &Value {
    let all = listed["items"].as_array().unwrap();
    all.iter().find(|it| it["name"] == "native").unwrap()
}

#[test]
fn every_guarantee_is_shown_with_its_evidence() {
    let trial = Trial::new();
    let table = trial.run(&["backend", "ls"]).exits(0).stdout;
    assert!(table.starts_with("GUARANTEE"), "{table}");
    let line = table
        .lines()
        .find(|it| it.starts_with("no_network "))
        .unwrap();
    assert_eq!(line.split_whitespace().nth(1), Some("kernel"), "{table}");
    let listed = trial.run(&["backend", "ls", "--json"]).exits(0).json();
    let guarantees = native(&listed)["guarantees"].as_array().unwrap();
    assert_eq!(guarantees.len(), 19);
    assert!(guarantees.iter().all(|it| it["evidence"] != ""));
    let text = trial.run(&["backend", "probe", "native"]).exits(0).stdout;
    assert!(text.starts_with("native: usable\n"), "{text}");
    assert!(!text.contains("a real run"), "{text}");
    // Looking makes nothing.
    assert!(!trial.state().exists());
    trial
        .run(&["backend", "probe", "native", "--runtime", "runsc"])
        .exits(2);
}

#[test]
fn a_probe_that_runs_is_on_record() {
    let trial = Trial::new();
    let probed = trial
        .run(&["backend", "probe", "native", "--run", "--json"])
        .exits(0)
        .json();
    assert_eq!(probed["trial"]["health"], "ok");
    assert_eq!(probed["trial"]["seen"].as_array().unwrap().len(), 5);
    let record = &trial.run(&["ps", "--all", "--json"]).exits(0).json()["items"][0];
    assert_eq!(
        (&record["backend"], &record["status"]),
        (&"native".into(), &"succeeded".into())
    );
}

#[test]
fn an_engine_that_is_not_there_is_not_usable_and_nothing_falls_back_to_another() {
    let trial = Trial::new();
    let nobody = format!("unix://{}/nobody.sock", trial.work().display());
    let run = |args: &[&str]| -> crate::trial::Answer {
        let mut command = trial.command(args);
        command.env("DOCKER_HOST", &nobody).output().unwrap().into()
    };
    let text = run(&["backend", "probe", "docker"]).exits(1);
    assert!(text.stdout.starts_with("docker: not usable\n"), "{text:?}");
    assert!(text.stdout.contains("hint: "), "{text:?}");
    let refused = run(&["run", "--scratch", "--backend", "docker", "--", "true"]).exits(125);
    assert!(
        refused.stderr.contains("error[backend_unavailable]"),
        "{refused:?}"
    );
    // No other backend has it, so it is refused and not run without.
    let refused = run(&["run", "--scratch", "--require", "own-kernel", "--", "true"]).exits(125);
    assert!(refused.stderr.contains("own_kernel"), "{refused:?}");
    run(&["doctor"]).exits(0);
}

#[test]
fn a_backend_and_its_runtime_are_one_word_or_two_that_agree() {
    let trial = Trial::new();
    let nobody = format!("unix://{}/nobody.sock", trial.work().display());
    let run = |args: &[&str]| -> crate::trial::Answer {
        let mut command = trial.command(args);
        command.env("DOCKER_HOST", &nobody).output().unwrap().into()
    };
    // Understood: nothing is wrong but that no engine is there.
    for named in [
        &["--backend", "docker:runsc"][..],
        &["--backend", "docker:runsc", "--runtime", "runsc"],
    ] {
        let words = [&["run", "--scratch"], named, &["--", "true"]].concat();
        let refused = run(&words).exits(125);
        assert!(
            refused.stderr.contains("error[backend_unavailable]"),
            "{refused:?}"
        );
    }
    trial.file("code.py", "1");
    let create = [
        "sandbox",
        "create",
        "--lifetime",
        "shared",
        "--project",
        "p",
    ];
    for command in [&["run", "--scratch"][..], &["code", "--scratch"], &create] {
        let contradicts = ["--backend", "docker:runsc", "--runtime", "runc"];
        let program: &[&str] = match command[0] {
            "run" => &["--", "true"],
            "code" => &["python", "../code.py"],
            _ => &[],
        };
        let refused = run(&[command, &contradicts, program].concat()).exits(2);
        assert!(refused.stderr.contains("named twice"), "{refused:?}");
        for wrong in [
            "native:runsc",
            "docker:",
            "dokcer:runsc",
            "docker:--privileged",
        ] {
            run(&[command, &["--backend", wrong], program].concat()).exits(2);
        }
    }
    let probed = run(&["backend", "probe", "docker:runsc"]).exits(1);
    assert!(probed.stdout.contains("runsc"), "{probed:?}");
    run(&["backend", "probe", "docker:runsc", "--runtime", "runc"]).exits(2);
    run(&["backend", "probe", "native:runsc"]).exits(2);
}

#[test]
fn a_server_says_what_it_has() {
    let trial = Trial::new();
    let server = Served::start(&trial, &[]);
    let listed = trial
        .run(&with(&server, &["backend", "ls", "--json"]))
        .exits(0)
        .json();
    let here = trial.run(&["backend", "ls", "--json"]).exits(0).json();
    assert_eq!(native(&listed), native(&here));
    trial
        .run(&with(&server, &["backend", "probe", "native"]))
        .exits(0);
    let refused = trial
        .run(&with(&server, &["backend", "probe", "native", "--run"]))
        .exits(2);
    assert!(refused.stderr.contains("--scratch"), "{refused:?}");
    let required = [
        "run",
        "--scratch",
        "--require",
        "own_kernel",
        "--backend",
        "native",
    ];
    let required = [&required[..], &["--", "true"]].concat();
    let refused = trial.run(&with(&server, &required)).exits(125);
    assert!(refused.stderr.contains("own_kernel"), "{refused:?}");
}
