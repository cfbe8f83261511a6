//! The workspace moved while the changes waited.

use crate::change::ground::{Ground, applied, conflict};

fn refused(line: &str, meanwhile: &str, expected: &[&str]) {
    let ground = Ground::new();
    ground.sh("mkdir -p d/e; echo a > a; echo b > b; echo x > d/x; echo y > d/e/y; ln -s a l");
    let held = ground.hold();
    ground.layered(&held, line);
    ground.sh(meanwhile);
    let before = ground.list();
    let outcome = ground.keep(&held);
    assert_eq!(conflict(&outcome), expected, "{line} / {meanwhile}");
    match expected {
        [] => applied(&outcome),
        _ => assert_eq!(ground.list(), before, "{line} / {meanwhile}"),
    }
    assert!(!ground.path("held/one/stage").exists());
}

#[test]
fn what_both_wrote_is_told_and_nothing_is_changed() {
    refused("echo n > a; echo n > n", "echo m >> a", &["a"]);
    refused("echo n > a", "touch a", &["a"]);
    refused("echo n > a", "echo other > o; mv o a", &["a"]);
    refused("rm a", "echo m >> a", &["a"]);
    refused("echo n > n", "echo m > n", &["n"]);
    refused("mkdir n; echo x > n/x", "mkdir n; echo y > n/x", &["n/x"]);
    refused("mkdir n", "echo file > n", &["n"]);
    refused("rm -r d", "echo m > d/e/new", &["d"]);
    refused("rm -r d; mkdir d", "echo m > d/e/new", &["d/e"]);
    refused("rm -r d; mkdir d", "echo m > d/new", &["d/new"]);
    refused("rm -r d; echo f > d", "chmod 600 d/e/y", &["d"]);
    refused("ln -sfn b l", "ln -sfn d l", &["l"]);
    refused("echo n >> d/x", "rm -r d", &["d"]);
    refused("echo n >> a", "rm a", &["a"]);
}

#[test]
fn what_only_one_of_them_wrote_is_no_conflict() {
    refused("echo n > a", "echo m > b; echo m > d/m", &[]);
    refused("rm a", "rm a", &[]);
    refused("echo n > d/n", "echo m > d/m; rm d/x", &[]);
    refused("mkdir n; echo x > n/x", "mkdir n; echo y > n/y", &[]);
    refused("chmod 700 d", "echo m > d/m", &[]);
    refused("mv a moved", "echo m > d/m", &[]);
}

/// By hand, to the workspace's own file: whoever wrote right before the exec is no conflict.
#[test]
fn what_was_written_just_before_belongs_to_the_base() {
    for _ in 0..50 {
        let ground = Ground::new();
        std::fs::write(ground.path("work/a"), "a").unwrap();
        let held = ground.hold();
        held.begin().unwrap();
        std::fs::write(ground.path("held/one/layer/upper/a"), "new").unwrap();
        applied(&ground.keep(&held));
        assert_eq!(
            std::fs::read_to_string(ground.path("work/a")).unwrap(),
            "new"
        );
    }
}

#[test]
fn what_is_written_right_after_is_a_conflict() {
    for _ in 0..50 {
        let ground = Ground::new();
        std::fs::write(ground.path("work/a"), "a").unwrap();
        let held = ground.hold();
        std::fs::write(ground.path("held/one/layer/upper/a"), "new").unwrap();
        held.begin().unwrap();
        std::fs::write(ground.path("work/a"), "b").unwrap();
        assert_eq!(conflict(&ground.keep(&held)), ["a"]);
    }
}

#[test]
fn without_a_beginning_nothing_is_kept() {
    let ground = Ground::new();
    let held = ground.hold();
    std::fs::write(ground.path("held/one/layer/upper/a"), "new").unwrap();
    let limits = glovebox_workspace::change::ReadLimits::default();
    assert!(held.keep(&ground.lower, limits).is_err());
    assert!(!ground.path("work/a").exists());
}
