//! `scripts/suite`: which tests are run once more when they failed, and which are not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;

use crate::tree::repository;

/// In the place of cargo: tests with these names fail, and pass when they are chosen one by one.
const CARGO: &str = r#"#!/bin/sh
mkdir -p target/nextest/default
exec >target/nextest/default/junit.xml
echo '<testsuites><testsuite name="crate::binary"><testcase name="good" time="1"/>'
for name in $FAILING; do
    echo "<testcase name=\"$name\" time=\"1\"><failure/><system-out>said $name</system-out></testcase>"
done
echo '</testsuite></testsuites>'
case "$*" in *binary_id*) exit 0 ;; *) exit 100 ;; esac
"#;

/// Whether a run with these failures is good, and what it says of them.
fn judged(failing: &str) -> (bool, Value) {
    let root = tempfile::tempdir().unwrap();
    let place = |name: &str| root.path().join(name);
    fs::create_dir(place("scripts")).unwrap();
    fs::copy(repository().join("scripts/suite"), place("scripts/suite")).unwrap();
    fs::create_dir(place("bin")).unwrap();
    fs::write(place("bin/cargo"), CARGO).unwrap();
    fs::set_permissions(place("bin/cargo"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", place("bin").display());
    let status = Command::new(place("scripts/suite"))
        .args(["--again", "results.json", "--workspace"])
        .current_dir(root.path())
        .env("PATH", path)
        .env("FAILING", failing)
        .status()
        .unwrap();
    let results = fs::read(place("results.json")).unwrap();
    (status.success(), serde_json::from_slice(&results).unwrap())
}

#[test]
fn a_few_that_pass_alone_are_flaky_and_their_first_words_are_kept() {
    let (good, said) = judged("one two three");
    assert!(good, "{said}");
    assert_eq!(said["flaky"].as_array().unwrap().len(), 3);
    assert_eq!(said["flaky"][0]["output"], "said one");
    assert_eq!(
        (&said["passed"], said["failed"].to_string()),
        (&4.into(), "[]".into())
    );
}

#[test]
fn more_than_a_few_are_a_failure() {
    let (good, said) = judged("one two three four");
    assert!(!good);
    assert_eq!(said["failed"].as_array().unwrap().len(), 4);
}

#[test]
fn findings_are_never_run_again() {
    for finding in [
        "escape::x",
        "kills::x",
        "races::x",
        "approvals::x",
        "a_ledger_x",
    ] {
        let (good, said) = judged(finding);
        assert!(!good, "{finding}: {said}");
    }
    // Nor are others for their letters.
    let (good, said) = judged("skills::x traces::x toolchain::x");
    assert!(good, "{said}");
}
