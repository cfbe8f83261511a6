//! What the host can do, shown by doing it.

use crate::trial::{Answer, Trial, names};

fn doctor(trial: &Trial, temporary: &str, variable: (&str, &str)) -> Answer {
    let mut command = trial.command(&["doctor", "--json"]);
    command.env("TMPDIR", temporary).env(variable.0, variable.1);
    command.output().unwrap().into()
}

#[test]
fn a_real_run_shows_what_is_enforced_and_leaves_nothing() {
    let trial = Trial::new();
    let work = trial.work();
    let report = doctor(&trial, work.to_str().unwrap(), ("NO_COLOR", "1"))
        .exits(0)
        .json();
    assert_eq!(report["usable"], true);
    let backend = &report["backends"][0];
    assert_eq!(backend["name"], "native");
    assert_eq!(backend["guarantees"].as_array().unwrap().len(), 19);
    assert_eq!(backend["trial"]["isolation"]["no_network"], "kernel");
    assert_eq!(backend["trial"]["seen"].as_array().unwrap().len(), 5);
    assert!(names(&work).is_empty(), "{:?}", names(&work));
    assert!(!trial.state().exists());
}

#[test]
fn every_line_that_is_not_ok_says_what_to_do() {
    let trial = Trial::new();
    let text = trial.run(&["doctor"]).exits(0).stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("ok ") && line.contains("a real run"))
    );
    let mut supervised = 0;
    for pair in lines
        .windows(2)
        .filter(|pair| pair[0].starts_with("supervised "))
    {
        supervised += 1;
        assert!(pair[1].trim_start().starts_with("fix: "), "{pair:?}");
    }
    assert!(supervised > 0, "{text}");
    // Nothing here has a kernel of its own by itself, and nothing is wrong with that.
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("absent ") && line.contains("own_kernel")),
        "{text}"
    );
}

#[test]
fn what_does_not_work_is_an_exit_code_and_a_fix() {
    let trial = Trial::new();
    let report = doctor(&trial, "/nowhere", ("NO_COLOR", "1"))
        .exits(1)
        .json();
    assert_eq!(report["usable"], false);
    assert_eq!(report["backends"][0]["trial"]["health"], "failed");
    let mut command = trial.command(&["doctor"]);
    let text = Answer::from(command.env("TMPDIR", "/nowhere").output().unwrap())
        .exits(1)
        .stdout;
    assert!(text.contains("fix: set `TMPDIR`"), "{text}");

    let mut command = trial.command(&["doctor"]);
    let wrong = trial.file("wrong.toml", "[settings]\nmemry = 1\n");
    command.env("GLOVEBOX_CONFIG", wrong);
    let text = Answer::from(command.output().unwrap()).exits(1).stdout;
    assert!(text.contains("failed  configuration"), "{text}");

    std::fs::write(trial.state(), "in the way").unwrap();
    let text = trial.run(&["doctor"]).exits(1).stdout;
    assert!(text.contains("failed  state directory"), "{text}");
}

/// Debug builds can leave out one part of the hardening: the doctor must see that it is missing.
#[cfg(debug_assertions)]
#[test]
fn a_sandbox_that_lacks_a_part_is_not_called_usable() {
    let trial = Trial::new();
    let work = trial.work();
    for part in ["no new privileges", "filter", "empty bounding set"] {
        let report = doctor(&trial, work.to_str().unwrap(), ("GLOVEBOX_MUTATION", part));
        assert_eq!(report.exits(1).json()["usable"], false, "{part}");
    }
}
