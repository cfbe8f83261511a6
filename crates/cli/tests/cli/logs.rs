//! Printing what an exec wrote.

use std::io::Write;

use crate::trial::{Running, Trial, until};

#[test]
fn each_stream_goes_to_its_own_and_one_alone_to_stdout() {
    let trial = Trial::new();
    let record = trial.record("echo out; echo err >&2");
    let id = record["exec_id"].as_str().unwrap();
    let both = trial.run(&["logs", id]).exits(0);
    assert_eq!(
        (both.stdout.as_str(), both.stderr.as_str()),
        ("out\n", "err\n")
    );
    let one = trial.run(&["logs", "--stdout", id]).exits(0);
    assert_eq!((one.stdout.as_str(), one.stderr.as_str()), ("out\n", ""));
    let one = trial.run(&["logs", "--stderr", id]).exits(0);
    assert_eq!((one.stdout.as_str(), one.stderr.as_str()), ("err\n", ""));
    let lines = trial.run(&["logs", "--json", id]).exits(0);
    assert_eq!(
        lines.stdout,
        "{\"stream\":\"stdout\",\"text\":\"out\\n\"}\n{\"stream\":\"stderr\",\"text\":\"err\\n\"}\n"
    );
    trial.run(&["logs", "--stdout", "--stderr", id]).exits(2);
}

#[test]
fn following_shows_all_of_it_and_ends_with_the_exec() {
    let trial = Trial::new();
    let (mut child, id) = trial.start("echo first; read line; echo second; echo last >&2");
    until(|| (trial.run(&["logs", &id]).exits(0).stdout == "first\n").then_some(()));
    let follower = Running::spawn(&mut trial.command(&["logs", "--follow", &id]));
    let mut stdin = child.0.stdin.take().unwrap();
    stdin.write_all(b"go\n").unwrap();
    drop(stdin);
    child.answer().exits(0);
    let followed = follower.answer().exits(0);
    assert_eq!(followed.stdout, "first\nsecond\n");
    assert_eq!(followed.stderr, "last\n");
}

#[test]
fn bytes_come_out_as_they_went_in() {
    let trial = Trial::new();
    let record = trial.record("printf '\\377\\000\\033[31m'; head -c 200000 /dev/zero");
    let id = record["exec_id"].as_str().unwrap();
    let output = trial.command(&["logs", id]).output().unwrap();
    assert_eq!(&output.stdout[..7], b"\xff\0\x1b[31m");
    assert_eq!(output.stdout.len(), 7 + 200_000);
}

#[test]
fn what_was_cut_and_what_never_ran_is_said() {
    let trial = Trial::new();
    let args = [
        "run",
        "--scratch",
        "--max-output",
        "10",
        "--json",
        "--",
        "seq",
        "100",
    ];
    let record = trial.run(&args).json();
    let id = record["exec_id"].as_str().unwrap();
    let cut = trial.run(&["logs", id]).exits(0);
    assert_eq!(cut.stdout, "1\n2\n3\n4\n5\n");
    assert!(
        cut.stderr
            .contains("only the head of its stdout (292 B) was kept"),
        "{cut:?}"
    );
    assert_eq!(trial.run(&["logs", "--quiet", id]).exits(0).stderr, "");

    trial
        .run(&["run", "--scratch", "--pids", "99999", "--", "true"])
        .exits(3);
    let id = trial.run(&["ps", "-q", "--status", "policy_denied"]).stdout;
    let nothing = trial.run(&["logs", id.trim()]).exits(0);
    assert_eq!(nothing.stdout, "");
    assert!(nothing.stderr.contains("has no output"), "{nothing:?}");
}
