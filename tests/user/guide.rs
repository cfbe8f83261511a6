//! Guides do what they show, for root and for an ordinary user.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use support::{Caller, Trial, glovebox};

const WORKSPACES: &str = include_str!("../../docs/guide/workspaces.md");
const SESSIONS: &str = include_str!("../../docs/guide/sessions.md");
const SIMULATION: &str = include_str!("../../docs/guide/simulation.md");
const MCP: &str = include_str!("../../docs/guide/mcp.md");
const SKILLS: &str = include_str!("../../docs/guide/skills.md");
const POLICY: &str = include_str!("../../docs/guide/policy.md");

/// Blocks of `sh`, each with the block of `text` that follows it.
fn steps(page: &str) -> Vec<(String, String)> {
    let mut steps: Vec<(String, String)> = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else {
            continue;
        };
        let inside = lines.by_ref().take_while(|line| *line != "```");
        let block: String = inside.map(|line| format!("{line}\n")).collect();
        match (kind, steps.last_mut()) {
            ("sh", _) => steps.push((block, String::new())),
            ("text", Some((_, printed))) if printed.is_empty() => *printed = block,
            (kind, _) => panic!("what is a block of `{kind}`?"),
        }
    }
    steps
}

/// `…` stands for anything within a line.
fn fits(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
        last = Some(part);
    }
    match last {
        None => rest.is_empty(),
        Some(last) => rest.is_empty() || last.is_empty(),
    }
}

fn follow(page: &str, caller: Caller) {
    let Some(trial) = Trial::new(caller) else {
        return;
    };
    let bin = trial.home().join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(glovebox(), bin.join("glovebox")).unwrap();
    // One shell for all of it, as a reader has.
    let mut script = "set -eu\n".to_owned();
    for (commands, _) in steps(page) {
        script += &format!("{commands}\necho ======\n");
    }
    let mut shell = Command::new("bash");
    if let (Caller::User, Some(account)) = (caller, caller.account()) {
        shell.uid(account.uid).gid(account.gid);
    }
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
    let ended = shell
        .args([
            "--noprofile",
            "--norc",
            "-c",
            &format!("exec 2>&1\n{script}"),
        ])
        .env_remove("GLOVEBOX_SERVER")
        .env("PATH", path)
        .env("HOME", trial.home())
        .current_dir(trial.work())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{printed}");
    let blocks: Vec<&str> = printed.split("======\n").collect();
    for ((commands, expected), printed) in steps(page).iter().zip(blocks) {
        let lines = (expected.lines().count(), printed.lines().count());
        let same = expected.lines().zip(printed.lines());
        assert!(
            lines.0 == lines.1 && same.clone().all(|(pattern, line)| fits(pattern, line)),
            "{commands}\nsays:\n{expected}\nprints:\n{printed}"
        );
    }
    trial.end();
}

#[test]
fn the_guide_to_skills_is_true_for_root() {
    follow(SKILLS, Caller::Root);
}

#[test]
fn the_guide_to_skills_is_true_for_a_user() {
    follow(SKILLS, Caller::User);
}

#[test]
fn the_guide_to_workspaces_is_true_for_root() {
    follow(WORKSPACES, Caller::Root);
}

#[test]
fn the_guide_to_workspaces_is_true_for_a_user() {
    follow(WORKSPACES, Caller::User);
}

#[test]
fn the_guide_to_sessions_is_true_for_root() {
    follow(SESSIONS, Caller::Root);
}

#[test]
fn the_guide_to_sessions_is_true_for_a_user() {
    follow(SESSIONS, Caller::User);
}

#[test]
fn the_guide_to_policy_is_true_for_root() {
    follow(POLICY, Caller::Root);
}

#[test]
fn the_guide_to_policy_is_true_for_a_user() {
    follow(POLICY, Caller::User);
}

#[test]
fn the_guide_to_simulation_is_true_for_root() {
    follow(SIMULATION, Caller::Root);
}

#[test]
fn the_guide_to_simulation_is_true_for_a_user() {
    follow(SIMULATION, Caller::User);
}

#[test]
fn the_guide_to_mcp_is_true_for_root() {
    follow(MCP, Caller::Root);
}

#[test]
fn the_guide_to_mcp_is_true_for_a_user() {
    follow(MCP, Caller::User);
}

#[test]
fn a_pattern_leaves_out_only_what_it_says() {
    assert!(fits("a `e_…`: b", "a `e_12`: b"));
    assert!(fits("sound: … in …", "sound: 3 in 4"));
    for (pattern, line) in [("a", "ab"), ("a…c", "abcd"), ("a…c", "ab"), ("x…", "a")] {
        assert!(!fits(pattern, line), "{pattern} {line}");
    }
}
