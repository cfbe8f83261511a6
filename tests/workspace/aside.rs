//! `kill -9` while a workspace is made that comes with files: it is there whole, or not at all.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use crate::ground::Ground;

/// Starts it, and kills it when everything is there but the workspace's name.
#[track_caller]
fn killed_at(ground: &Ground, stage: &str, words: &[&str]) {
    let file = ground.trial.home().join("reached");
    let mut command = ground.command(words);
    command.env("GLOVEBOX_PAUSE_AT", format!("{stage}:{}", file.display()));
    let mut child: Child = command.spawn().unwrap();
    let reached = support::wait_until(Duration::from_secs(60), || file.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(reached, "it never came to `{stage}`");
    fs::remove_file(file).unwrap();
}

fn projects(ground: &Ground) -> PathBuf {
    ground.trial.state().join("projects")
}

fn names(at: &Path) -> Vec<String> {
    let entries = fs::read_dir(at).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn aside(ground: &Ground) -> usize {
    let all = names(&projects(ground));
    all.iter().filter(|name| name.starts_with('.')).count()
}

#[test]
fn a_fork_that_is_killed_is_no_workspace_and_leaves_nothing() {
    let ground = Ground::root("");
    ground.plant();
    let fork = ["workspace", "fork", "copy"];
    killed_at(&ground, "fork", &fork);
    assert!(!projects(&ground).join("copy").exists(), "half a workspace");
    assert_eq!(aside(&ground), 1, "it was being built");
    ground.json(&fork);
    let made = projects(&ground).join("copy/work");
    assert_eq!(names(&made), names(&ground.work()));
    assert_eq!(aside(&ground), 0, "{:?}", names(&projects(&ground)));
    ground.trial.end();
}

#[test]
fn a_workspace_whose_seeding_is_killed_is_seeded_whole_by_the_next() {
    let ground = Ground::root("");
    let template = ground.trial.home().join("template");
    fs::create_dir_all(template.join("src")).unwrap();
    fs::write(template.join("src/first"), "first\n").unwrap();
    fs::write(template.join("last"), "last\n").unwrap();
    let settings = format!(
        "[workspace]\ntemplate = {:?}\n",
        template.display().to_string()
    );
    fs::write(ground.config(), settings).unwrap();
    let run = [
        "run",
        "--toolchain",
        "off",
        "--project",
        "new",
        "--",
        "/bin/ls",
    ];
    killed_at(&ground, "seed", &run);
    assert!(!projects(&ground).join("new").exists(), "half a workspace");
    let ended = ground.glovebox(&run);
    ended.assert_code(0);
    assert_eq!(ended.stdout, "last\nsrc\n");
    assert_eq!(aside(&ground), 0, "{:?}", names(&projects(&ground)));
    ground.trial.end();
}
