//! Configurations that cannot be used: nothing starts, and the message says where and why.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::bench::{Bench, Ended};

fn config(bench: &Bench, text: &str, mode: u32) -> PathBuf {
    let file = bench.path().join("config.toml");
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    file
}

/// Runs under this configuration; the payload would leave a file.
fn run_with(bench: &Bench, file: &std::path::Path) -> Ended {
    let mut command = bench.glovebox();
    command.arg("--config").arg(file);
    Ended::of(command.args(["run", "--", "sh", "-c", ": > ran"]))
}

#[track_caller]
fn refused(bench: &Bench, file: &std::path::Path, says: &[&str]) {
    let ended = run_with(bench, file);
    ended.assert_code(2).assert_says(&["error[invalid_config]"]);
    ended.assert_says(says);
    assert!(!bench.mark("ran").exists(), "it ran");
}

#[test]
fn an_unknown_key_is_refused_with_its_line_and_the_nearest_key() {
    let bench = Bench::new();
    let text = "# what may be used\n[settings]\nmemroy = \"1G\"\n";
    let file = config(&bench, text, 0o600);
    let says = ["`memroy`", "config.toml:3", "hint: did you mean `memory`?"];
    refused(&bench, &file, &says);
}

#[test]
fn torn_toml_is_refused_with_its_line() {
    let bench = Bench::new();
    let file = config(&bench, "[settings]\nlimits = {\n", 0o600);
    refused(&bench, &file, &["config.toml:"]);
}

#[test]
fn a_config_that_anybody_may_write_is_refused() {
    let bench = Bench::new();
    let file = config(&bench, "", 0o666);
    refused(&bench, &file, &["o+w", "hint: "]);
}

#[test]
fn a_named_config_that_is_missing_or_no_file_is_refused() {
    let bench = Bench::new();
    refused(
        &bench,
        &bench.path().join("missing.toml"),
        &["missing.toml"],
    );
    refused(&bench, &bench.work(), &["regular file"]);
    refused(&bench, std::path::Path::new("/dev/null"), &["regular file"]);
}

#[test]
fn a_config_that_is_not_text_or_too_large_is_refused() {
    let bench = Bench::new();
    let file = config(&bench, "", 0o600);
    std::fs::write(&file, b"\xff\xfe\x00").unwrap();
    refused(&bench, &file, &["config.toml"]);
    std::fs::write(&file, vec![b'#'; 2 << 20]).unwrap();
    refused(&bench, &file, &["1 MiB"]);
}

#[test]
fn an_empty_config_changes_nothing() {
    let bench = Bench::new();
    let file = config(&bench, "", 0o600);
    run_with(&bench, &file).assert_code(0);
    assert!(bench.mark("ran").exists());
}
