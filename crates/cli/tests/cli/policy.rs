//! Asking policy without running anything.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use crate::server::{Served, with};
use crate::trial::Trial;

#[test]
fn a_decision_comes_with_its_fields_and_an_exit_code() {
    let trial = Trial::new();
    let allowed = trial
        .run(&["policy", "explain", "--memory", "64M", "--", "make"])
        .exits(0);
    assert!(
        allowed.stdout.starts_with("decision: allow\n"),
        "{allowed:?}"
    );
    let memory = allowed
        .stdout
        .lines()
        .find(|line| line.starts_with("memory "))
        .unwrap();
    assert!(
        memory.contains("64M") && memory.contains("the request"),
        "{memory}"
    );

    let denied = trial
        .run(&["policy", "explain", "--pids", "99999", "--", "make"])
        .exits(3);
    assert!(denied.stdout.starts_with("decision: deny\n"), "{denied:?}");
    assert!(denied.stdout.contains("hint: ask for"), "{denied:?}");
    let args = [
        "policy", "explain", "--pids", "99999", "--json", "--", "make",
    ];
    let answer = trial.run(&args).exits(3).json();
    assert_eq!(answer["decision"], "deny");
    assert_eq!(answer["code"], "policy_denied");
    let capped = [
        "policy",
        "explain",
        "--pids",
        "99999",
        "--on-exceed",
        "cap",
        "--",
        "make",
    ];
    assert!(
        trial
            .run(&capped)
            .exits(0)
            .stdout
            .contains("capped: pids from 99999")
    );
}

#[test]
fn the_line_that_decided_is_named() {
    let trial = Trial::new();
    let config = trial.file("team.toml", "[settings]\n# few\npids = 7\n");
    let config = config.to_str().unwrap();
    let args = ["--config", config, "policy", "explain", "--", "make"];
    let pids = trial.run(&args).exits(0).stdout;
    let pids = pids.lines().find(|line| line.starts_with("pids ")).unwrap();
    assert!(
        pids.contains(&format!("the settings ({config}:3)")),
        "{pids}"
    );
    let args = [
        "--config", config, "policy", "explain", "--pids", "8", "--", "make",
    ];
    let denied = trial.run(&args).exits(3);
    assert!(
        denied.stdout.contains(&format!("--> {config}:3")),
        "{denied:?}"
    );
}

#[test]
fn explaining_decides_as_running_does() {
    let trial = Trial::new();
    for options in [
        &["--pids", "9"][..],
        &["--pids", "99999"],
        &["--tier", "high", "--net", "allowlist"],
    ] {
        let with = |head: [&'static str; 2]| [&head, options, &["--", "true"]].concat();
        let explained = trial.run(&with(["policy", "explain"])).code;
        let ran = trial.run(&with(["run", "--scratch"])).code;
        assert_eq!(explained, ran, "{options:?}");
    }
}

#[test]
fn a_good_file_is_summed_up() {
    let trial = Trial::new();
    let good = trial.file(
        "good.toml",
        "[settings]\nmemory = \"1G\"\n[user.dana]\npids = 5\n",
    );
    let good = good.to_str().unwrap();
    let answer = trial.run(&["policy", "check", good]).exits(0);
    assert_eq!(
        answer.stdout,
        format!("`{good}` is good\n[settings] memory\n[user.dana] pids\n")
    );
    let answer = trial
        .run(&["policy", "check", "--json", good])
        .exits(0)
        .json();
    assert_eq!(answer["sections"][1]["name"], "user.dana");
}

#[test]
fn a_wrong_file_says_where_and_what_was_meant() {
    let trial = Trial::new();
    let check = |content: &str| {
        let file = trial.file("wrong.toml", content);
        trial
            .run(&["policy", "check", file.to_str().unwrap()])
            .exits(2)
            .stderr
    };
    let typo = check("[settings]\nmemroy = \"1G\"\n");
    assert!(
        typo.contains("wrong.toml:2:1") && typo.contains("did you mean `memory`?"),
        "{typo}"
    );
    let value = check("[settings]\npids = 5\nmemory = \"lots\"\n");
    assert!(value.contains("wrong.toml:3:10"), "{value}");
    let syntax = check("[settings\n");
    assert!(syntax.contains("wrong.toml:1:"), "{syntax}");
    let above = check("[settings]\npids = 40000\n");
    assert!(above.contains("above the ceiling"), "{above}");

    let refused = trial.run(&["policy", "check", "/nowhere.toml"]).exits(2);
    assert!(
        refused.stderr.contains("cannot use the configuration"),
        "{refused:?}"
    );
    let file = trial.file("wrong.toml", "[settings]\nmemroy = 1\n");
    let refused = trial
        .run(&["policy", "check", "--json", file.to_str().unwrap()])
        .exits(2);
    let error: serde_json::Value = serde_json::from_str(&refused.stderr).unwrap();
    assert_eq!(error["error"]["code"], "invalid_config");
    assert_eq!(error["error"]["rule"]["line"], 2);
}

#[test]
fn another_policy_is_tried_on_what_is_on_record() {
    let trial = Trial::new();
    let nothing = trial.file("same.toml", "");
    let nothing = nothing.to_str().unwrap();
    let none = trial.run(&["policy", "replay", nothing]).exits(0);
    assert_eq!(none.stdout, "0 execs on record, 0 decided otherwise\n");
    trial.run(&["run", "--scratch", "--", "true"]).exits(0);
    trial.run(&["run", "--scratch", "--", "ls", "-a"]).exits(0);
    let same = trial.run(&["policy", "replay", nothing]).exits(0);
    assert_eq!(same.stdout, "2 execs on record, 0 decided otherwise\n");
    let text = "[[rule]]\ndecision = \"deny\"\ncommand = \"ls *\"\nbecause = \"no looking\"\n";
    let stricter = trial.file("stricter.toml", text);
    let stricter = stricter.to_str().unwrap();
    let told = trial.run(&["policy", "replay", stricter]).exits(0).stdout;
    assert!(told.contains("  allow -> deny  ls -a\n  deny: "), "{told}");
    assert!(
        told.contains(&format!("no looking (`ls -a`) --> {stricter}:1\n")),
        "{told}"
    );
    assert!(
        told.ends_with("2 execs on record, 1 decided otherwise\n"),
        "{told}"
    );
    let few = ["policy", "replay", stricter, "--limit", "1", "--json"];
    let few = trial.run(&few).exits(0).json();
    assert_eq!(few["execs"], 1);
    assert_eq!(few["differences"][0]["would_say"], "deny");
    let server = Served::start(&trial, &[]);
    let there = trial.run(&with(&server, &["policy", "replay", stricter]));
    let there = there.exits(0).stdout;
    assert!(
        there.contains("  allow -> deny  ls -a\n  deny: "),
        "{there}"
    );
    assert!(
        there.ends_with("2 execs on record, 1 decided otherwise\n"),
        "{there}"
    );
    assert_eq!(server.close().0, Some(0));
    let wrong = trial.file("wrong.toml", "[[rule]]\ndecison = \"deny\"\n");
    let wrong = trial
        .run(&["policy", "replay", wrong.to_str().unwrap()])
        .exits(2);
    assert!(wrong.stderr.contains("wrong.toml:2"), "{wrong:?}");
}

#[test]
fn a_shadow_decides_nothing_and_is_on_record() {
    let trial = Trial::new();
    let text = "[[rule]]\ndecision = \"deny\"\ncommand = \"ls *\"\n";
    let shadow = trial.file("shadow.toml", text);
    let shadow = ["--shadow-policy", shadow.to_str().unwrap()];
    let run = |command: &[&'static str]| {
        let args = [&shadow[..], &["run", "--scratch", "--"], command].concat();
        trial.run(&args).exits(0)
    };
    let none = trial.run(&["policy", "shadow"]).exits(0);
    assert!(none.stderr.contains("--shadow-policy FILE"), "{none:?}");
    run(&["true"]);
    run(&["ls", "-a"]);
    let told = trial.run(&["policy", "shadow"]).exits(0).stdout;
    assert_eq!(told.matches("allow -> deny").count(), 1, "{told}");
    assert!(told.contains("(`ls -a`) --> shadow.toml:1\n"), "{told}");
    let told = trial.run(&["policy", "shadow", "--json"]).exits(0).json();
    assert_eq!(told["items"][0]["would_say"], "deny");
    assert_eq!(told["items"][1], serde_json::Value::Null);
    let missing = [
        "--shadow-policy",
        "missing.toml",
        "run",
        "--scratch",
        "--",
        "true",
    ];
    trial.run(&missing).exits(2);
}

#[test]
fn a_rule_sees_what_is_in_the_scripts_that_are_run() {
    let trial = Trial::new();
    let rule = "[[rule]]\nname = \"no-curl\"\ndecision = \"deny\"\ncommand = \"curl\"\n";
    let config = trial.file("team.toml", rule);
    let write = |name: &str, text: &str| std::fs::write(trial.work().join(name), text).unwrap();
    write("fetch.sh", "#!/bin/sh\ncurl --version\n");
    write("fine.sh", "#!/bin/sh\necho fine\n");
    let run = |words: &[&str]| {
        let mut all = vec!["--config", config.to_str().unwrap(), "run", "--"];
        all.extend(words);
        trial.run(&all)
    };
    let denied = run(&["sh", "fetch.sh"]).exits(3);
    assert!(denied.stderr.contains("no-curl"), "{denied:?}");
    assert_eq!(run(&["sh", "fine.sh"]).exits(0).stdout, "fine\n");
    // What it writes itself nobody has read: people would have to be asked.
    let hidden = run(&["sh", "-c", "echo 'curl x' > made.sh; sh made.sh"]).exits(3);
    assert!(hidden.stderr.contains("approval_unavailable"), "{hidden:?}");
}

/// Neither its name nor its first line says what a file is when an interpreter is given it.
#[test]
fn a_script_is_read_as_what_runs_it() {
    let trial = Trial::new();
    let rule = "[[rule]]\nname = \"no-id\"\ndecision = \"deny\"\ncommand = \"id\"\n";
    let config = trial.file("team.toml", rule);
    for (name, text) in [
        ("shell.py", "id\n"),
        ("node.js", "id\n"),
        ("poly.sh", "#!python\nid\n"),
        ("args.sh", "#!/bin/sh -e python\nid\n"),
        ("bare.py", "id\n"),
        ("python", "import os\nos.system(\"id\")\n"),
        ("extglob", ""),
    ] {
        let path = trial.work().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }
    let run = |words: &[&str]| {
        let mut all = vec!["--config", config.to_str().unwrap(), "run", "--"];
        all.extend(words);
        trial.run(&all)
    };
    for words in [
        &["sh", "shell.py"][..],
        &["sh", "node.js"],
        &["sh", "poly.sh"],
        &["bash", "-O", "extglob", "shell.py"],
        &["bash", "--", "shell.py"],
        &["busybox", "sh", "shell.py"],
        &["sh", "-c", ". ./shell.py"],
        &["./args.sh"],
        // The shell takes what the kernel cannot start for a script of its own.
        &["sh", "-c", "./bare.py"],
    ] {
        let denied = run(words).exits(3);
        assert!(denied.stderr.contains("no-id"), "{words:?} {denied:?}");
    }
    // Nobody can tell: one is in another language, whatever its name says, and one starts commands
    // although it has no name that says so.
    for words in [["perl", "poly.sh"], ["python3", "python"]] {
        let unread = run(&words).exits(3);
        assert!(unread.stderr.contains("approval_unavailable"), "{unread:?}");
    }
}
