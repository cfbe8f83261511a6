//! Images that other programs wrote.

use std::process::Command;

use crate::images::made::{docker_save, layers};
use crate::images::state::state;

/// Whether a program is there. In CI its absence is a failure.
#[allow(clippy::print_stderr)]
fn there(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    assert!(
        there || std::env::var_os("CI").is_none(),
        "`{program}` is missing"
    );
    if !there {
        eprintln!("`{program}` is missing: not tested");
    }
    there
}

#[test]
fn what_skopeo_writes_is_the_same_image() {
    if !there("skopeo") {
        return;
    }
    let state = state();
    let saved = state.path.join("saved.tar");
    std::fs::write(&saved, docker_save(&layers())).unwrap();
    let layout = state.path.join("layout");
    let again = state.path.join("again.tar");
    let copy = |from: String, to: String| {
        let output = Command::new("skopeo")
            .args(["--insecure-policy", "copy", "--tmpdir"])
            .arg(&state.path)
            .args([&from, &to])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{from} to {to}: {errors}");
    };
    copy(
        format!("docker-archive:{}", saved.display()),
        format!("oci:{}:made", layout.display()),
    );
    copy(
        format!("oci:{}:made", layout.display()),
        format!("docker-archive:{}:made:again", again.display()),
    );
    let from_layout = state.import_folder("layout", &layout).unwrap();
    let from_archive = state
        .import("again", &std::fs::read(&again).unwrap())
        .unwrap();
    for record in [from_layout, from_archive] {
        assert_eq!(state.text(&record, "etc/old"), "new");
        assert!(!state.has(&record, "etc/gone"));
        assert!(!state.has(&record, "opt/x"));
        assert_eq!(record.files, 4);
    }
}
