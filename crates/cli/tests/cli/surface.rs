//! What holds for every command: help, completions, manual, colours, readers that go away.

use std::io::Read;
use std::process::Stdio;

use crate::trial::{Trial, names};

/// Every command there is, from the pages that are made from the same definition.
fn commands(trial: &Trial) -> Vec<Vec<String>> {
    let pages = trial.work().join("pages");
    trial
        .run(&["man", "--dir", pages.to_str().unwrap()])
        .exits(0);
    names(&pages)
        .iter()
        .map(|page| {
            let name = page.strip_suffix(".1").unwrap();
            // A hyphen is between words, except inside those that have their own.
            let words = name.replace("rotate-key", "rotate_key");
            let words = words.replace("close-input", "close_input");
            let words = words.split('-').skip(1);
            words.map(|word| word.replace('_', "-")).collect()
        })
        .collect()
}

#[test]
fn every_command_has_a_page_and_help_with_examples() {
    let trial = Trial::new();
    let commands = commands(&trial);
    for known in [
        &["run"][..],
        &["ps"],
        &["audit", "verify"],
        &["policy", "explain"],
        &["policy", "replay"],
        &["policy", "shadow"],
        &["approval", "approve"],
        &["approval", "watch"],
        &["approval", "revoke"],
        &["secret", "set"],
        &["secret", "grant"],
        &["secret", "rotate-key"],
        &["exec"],
        &["shell"],
        &["session", "start"],
        &["session", "attach"],
        &["session", "close-input"],
        &["sandbox", "create"],
        &["sandbox", "ls"],
        &["sandbox", "info"],
        &["sandbox", "explain"],
        &["sandbox", "recreate"],
        &["sandbox", "prune"],
        &["sandbox", "rm"],
        &["image", "import"],
        &["image", "ls"],
        &["image", "rm"],
        &["backend", "ls"],
        &["backend", "probe"],
        &["workspace", "undo"],
        &["workspace", "fork"],
        &["workspace", "keep"],
        &["snapshot", "take"],
        &["snapshot", "diff"],
        &["file", "upload"],
        &["file", "watch"],
        &["artifact", "get"],
        &["cache", "fill"],
    ] {
        assert!(commands.iter().any(|it| it == known), "{known:?}");
    }
    for command in commands {
        let mut args = command.clone();
        args.push("--help".to_owned());
        let help = trial.run(&args).exits(0).stdout;
        assert!(
            ["glovebox ", "echo ", "docker save "]
                .iter()
                .any(|first| help.contains(&format!("Examples:\n  {first}"))),
            "{command:?}: {help}"
        );
        assert!(help.contains("--json"), "{command:?}");
    }
    let page = trial.run(&["man"]).exits(0).stdout;
    assert!(page.contains(".TH glovebox 1"), "{page}");
}

#[test]
fn completions_know_the_commands() {
    let trial = Trial::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = trial.run(&["completions", shell]).exits(0).stdout;
        for word in [
            "doctor", "policy", "follow", "recreate", "lifetime", "probe", "snapshot", "upload",
        ] {
            assert!(script.contains(word), "{word} for {shell}");
        }
    }
    trial.run(&["completions", "tcl"]).exits(2);
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let trial = Trial::new();
    for args in [
        &["ps", "--colour"][..],
        &["frobnicate"],
        &["show"],
        &["audit"],
        &["exec", "one"],
        &["session", "start", "--size", "80", "--", "true"],
        &["session", "log", "e_1", "--screen", "--follow"],
        &["run", "-it", "--detach-key", "C-1", "--", "true"],
        &["sandbox", "recreate"],
        &["sandbox", "recreate", "one", "--all"],
        &["sandbox", "ls", "--lifetime", "exec"],
        &[
            "run",
            "--sandbox",
            "one",
            "--backend",
            "docker",
            "--",
            "true",
        ],
        &[
            "run",
            "--sandbox",
            "one",
            "--lifetime",
            "agent",
            "--",
            "true",
        ],
        &["run", "--require", "magic", "--", "true"],
        &["image", "import", "x"],
        &["backend", "probe", "magic"],
        &["run", "--hold", "--keep-if-ok", "--", "true"],
        &["workspace", "fork"],
        &["file", "cat", "x", "--range", "9-3"],
        &["file", "write", "x", "--mode", "7777"],
        &["file", "write", "x", "--new", "--if-match", "e"],
        &["file", "download"],
        &["snapshot", "rm"],
        &["cache", "fill", "pip"],
        &[],
    ] {
        let refused = trial.run(args).exits(2);
        assert_eq!(refused.stdout, "", "{args:?}");
    }
}

#[test]
fn nothing_is_coloured_where_no_terminal_is() {
    let trial = Trial::new();
    trial.record("true");
    for args in [
        &["ps", "--all"][..],
        &["doctor"],
        &["audit", "tail"],
        &["audit", "verify"],
        &["show", "zebra"],
    ] {
        let mut command = trial.command(args);
        let printed = command.env("TERM", "xterm-256color").output().unwrap();
        assert!(!printed.stdout.contains(&0x1b), "{args:?}");
        assert!(!printed.stderr.contains(&0x1b), "{args:?}");
    }
}

#[test]
fn a_reader_that_goes_away_ends_a_command_quietly() {
    let trial = Trial::new();
    let record = trial.record("seq 100000");
    let id = record["exec_id"].as_str().unwrap();
    for args in [
        &["ps", "--all"][..],
        &["ps", "--all", "--json"],
        &["show", id],
        &["logs", id],
        &["logs", "--follow", "--json", id],
        &["audit", "tail"],
        &["audit", "tail", "--follow"],
        &["audit", "query", "--json"],
        &["audit", "verify"],
        &["audit", "export"],
        &["policy", "explain", "--", "true"],
        &["doctor"],
        &["completions", "bash"],
        &["man"],
        &["sandbox", "ls", "--json"],
        &["session", "ls", "--json"],
        &["image", "ls", "--json"],
        &["backend", "ls"],
        &["workspace", "ls", "--json"],
        &["workspace", "info"],
        &["snapshot", "ls", "--json"],
        &["snapshot", "verify"],
        &["file", "ls", "--json"],
        &["cache", "ls", "--json"],
        &["artifact", "ls", id, "--json"],
        &["--help"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = trial.command(args);
        let mut child = command
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(command);
        let code = child.wait().unwrap().code();
        let mut said = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert_eq!((code, said.as_str()), (Some(0), ""), "{args:?}");
    }
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let refused = trial
        .command(&["ps", "--all"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("cannot write the output"));
}

/// The verdict is in the exit code, whether anybody reads the sentence or not.
#[test]
fn a_verdict_survives_a_reader_that_goes_away() {
    let trial = Trial::new();
    trial.record("true");
    let receipt = format!("9:{}", "0".repeat(64));
    for (args, code) in [
        (&["audit", "verify", "--receipt", &receipt][..], 1),
        (&["policy", "explain", "--pids", "99999", "--", "true"], 3),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = trial.command(args).stdout(writer).status().unwrap();
        assert_eq!(status.code(), Some(code), "{args:?}");
    }
}
