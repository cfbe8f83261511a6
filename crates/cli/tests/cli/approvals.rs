//! What policy wants a person for: asked at the terminal, refused without one, kept on record.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::terminal::Terminal;
use crate::trial::Trial;

const RULES: &str = "[[rule]]
name = \"touches\"
decision = \"ask\"
command = \"touch *\"
because = \"it leaves something\"
";

/// In the directory that the trial works in, so that what was done can be seen.
fn words<'w>(config: &'w str, options: &[&'w str], command: &[&'w str]) -> Vec<&'w str> {
    [&["--config", config, "run"][..], options, &["--"], command].concat()
}

fn config(trial: &Trial, more: &str) -> String {
    let file = trial.file("rules.toml", &format!("{more}{RULES}"));
    file.to_str().unwrap().to_owned()
}

fn approvals(trial: &Trial) -> Vec<Value> {
    let listed = trial.run(&["approval", "ls", "--all", "--json"]).exits(0);
    listed.json()["items"].as_array().unwrap().clone()
}

#[test]
fn without_a_terminal_it_is_refused_with_the_ways_out() {
    let trial = Trial::new();
    let config = config(&trial, "");
    let refused = trial.run(&words(&config, &[], &["touch", "made"])).exits(3);
    assert!(
        refused.stderr.contains("error[approval_unavailable]"),
        "{refused:?}"
    );
    assert!(
        refused.stderr.contains(&format!("--> {config}:1")),
        "{refused:?}"
    );
    for way in [
        "at a terminal",
        "`--server`",
        "change the rule at",
        "`auto = true`",
    ] {
        assert!(refused.stderr.contains(way), "{way}: {refused:?}");
    }
    assert!(!trial.work().join("made").exists());
    assert_eq!(approvals(&trial), Vec::<Value>::new());
    let waits = trial.run(&["approval", "ls"]).exits(0);
    assert!(waits.stderr.contains("nothing waits"), "{waits:?}");
}

#[test]
fn whoever_sits_at_the_terminal_sees_everything_and_allows_it_once() {
    let trial = Trial::new();
    let config = config(&trial, "");
    let args = words(&config, &[], &["sh", "-c", "true; touch made"]);
    let mut terminal = Terminal::start(&trial, &args, &[]);
    let asked = terminal.asked(1);
    for part in [
        "  | sh -c 'true; touch made'\n",
        "  ask: rule `touches` asks for approval: it leaves something (`touch made`)\n",
        &format!("    --> {config}:1\n"),
        "[o]nce, [e]dit, [d]eny: ",
    ] {
        assert!(asked.contains(part), "{part}\n{asked}");
    }
    // What is no answer asks again; nothing has started meanwhile.
    for (time, other) in ["\n", "yes\n", "k\n"].iter().enumerate() {
        terminal.press(other);
        terminal.asked(time + 2);
        assert!(!trial.work().join("made").exists());
    }
    terminal.press("o it is fine\n");
    let (code, said) = terminal.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(trial.work().join("made").exists());
    let approvals = approvals(&trial);
    assert_eq!(approvals.len(), 1);
    assert_eq!(approvals[0]["state"], "used");
    let reply = &approvals[0]["replies"][0];
    assert_eq!(reply["via"], "terminal");
    assert_eq!(
        reply["answer"],
        json!({"decision": "allow_once", "reason": "it is fine"})
    );
    let exec = approvals[0]["exec_id"].as_str().unwrap();
    let record = trial.run(&["show", exec, "--json"]).exits(0).json();
    assert_eq!(record["consent"]["agreed"], "people");
    let id = approvals[0]["id"].as_str().unwrap();
    let info = trial.run(&["approval", "info", id]).exits(0).stdout;
    assert!(info.starts_with("state       used\n"), "{info}");
    assert!(info.contains(": it is fine\n"), "{info}");
    // Used up: it is asked again.
    trial.run(&args).exits(3);
    let late = trial.run(&["approval", "approve", id]).exits(2);
    assert!(late.stderr.contains("error[conflict]"), "{late:?}");
}

#[test]
fn without_a_server_nothing_waits_and_whoever_does_not_wait_is_not_asked() {
    let trial = Trial::new();
    let config = config(&trial, "");
    let args = words(&config, &["--no-wait"], &["touch", "made"]);
    let terminal = Terminal::start(&trial, &args, &[]);
    let (code, said) = terminal.end();
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("error[approval_unavailable]"), "{said}");
    let refused = trial.run(&args).exits(5);
    for way in ["without `--no-wait`", "`--server`"] {
        assert!(refused.stderr.contains(way), "{way}: {refused:?}");
    }
    assert!(!trial.work().join("made").exists());
    assert_eq!(approvals(&trial), Vec::<Value>::new());
    let asks_nobody = words(&config, &["--no-wait"], &["true"]);
    trial.run(&asks_nobody).exits(0);
}

#[test]
fn a_no_an_end_of_input_and_an_interrupt_run_nothing() {
    let trial = Trial::new();
    let config = config(&trial, "");
    let args = words(&config, &[], &["touch", "made"]);
    for keys in ["d not now\n", "\u{4}", "\u{3}"] {
        let mut terminal = Terminal::start(&trial, &args, &[]);
        terminal.asked(1);
        terminal.press(keys);
        let (code, said) = terminal.end();
        assert_eq!(code, Some(3), "{keys:?}: {said}");
        assert!(said.contains("error[denied]"), "{keys:?}: {said}");
        assert!(!trial.work().join("made").exists(), "{keys:?}");
    }
    let approvals = approvals(&trial);
    assert_eq!(approvals.len(), 3);
    assert!(
        approvals.iter().all(|it| it["state"] == "denied"),
        "{approvals:?}"
    );
    let running = trial.run(&["ps", "--json"]).exits(0).json();
    assert_eq!(running["items"], json!([]));
}

#[test]
fn a_kind_is_allowed_in_one_conversation_until_it_is_revoked() {
    let trial = Trial::new();
    // A rule that asks goes on asking; the mode's own question is answered by a grant.
    let config = trial.file("manual.toml", "[settings]\napproval = \"manual\"\n");
    let config = config.to_str().unwrap();
    let run = |conversation: &'static str| {
        words(
            config,
            &["--conversation", conversation],
            &["touch", "made"],
        )
    };
    let mut terminal = Terminal::start(&trial, &run("one"), &[]);
    let asked = terminal.asked(1);
    assert!(
        asked.contains("[k]ind in this conversation (`touch"),
        "{asked}"
    );
    terminal.press("k\n");
    assert_eq!(terminal.end().0, Some(0));
    trial.run(&run("one")).exits(0);
    trial.run(&run("two")).exits(3);
    let grants = trial.run(&["approval", "grants", "--json"]).exits(0).json();
    let grant = &grants["items"][0];
    assert_eq!(grant["conversation_id"], "one");
    assert_eq!(grant["used"], 1);
    let id = grant["id"].as_str().unwrap();
    trial.run(&["approval", "revoke", id]).exits(0);
    trial.run(&run("one")).exits(3);
    let left = trial.run(&["approval", "grants", "--quiet"]).exits(0);
    assert_eq!(left.stdout, "");
    let all = trial.run(&["approval", "grants", "--all"]).exits(0);
    assert!(all.stdout.contains("revoked"), "{all:?}");
    let unknown = ["approval", "revoke", "grt_00000000000000000000000000000000"];
    trial.run(&unknown).exits(1);
}

#[test]
fn more_than_policy_gives_is_asked_for_with_its_reason_and_never_as_a_kind() {
    let trial = Trial::new();
    let config = config(&trial, "[settings]\npids = 64\n");
    let options = [
        "--pids",
        "128",
        "--conversation",
        "one",
        "--because",
        "make -j",
    ];
    let asking = [&options[..], &["--ask", "--json"]].concat();
    let args = words(&config, &asking, &["true"]);
    let mut terminal = Terminal::start(&trial, &args, &[]);
    let asked = terminal.asked(1);
    for part in [
        "Beyond policy\n  ",
        "asks for 128",
        "gives 64",
        "  | make -j\n",
    ] {
        assert!(asked.contains(part), "{part}\n{asked}");
    }
    assert!(!asked.contains("[k]ind"), "{asked}");
    terminal.press("k\n");
    terminal.asked(2);
    terminal.press("o\n");
    let (code, said) = terminal.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("\"pids\":128"), "{said}");
    // Without a person there is nobody to ask, and without `--ask` it is refused as ever.
    trial.run(&args).exits(3);
    let refused = trial.run(&words(&config, &options, &["true"])).exits(3);
    assert!(
        refused.stderr.contains("error[policy_denied]"),
        "{refused:?}"
    );
}

#[test]
fn what_is_edited_runs_in_its_place() {
    let trial = Trial::new();
    let config = config(&trial, "");
    let editor = trial.file(
        "edit",
        "#!/bin/sh\ngrep -q made \"$1\" && printf '[\"touch\", \"other\"]' > \"$1\"\n",
    );
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    let editor = [("EDITOR", editor.to_str().unwrap())];
    let args = words(&config, &[], &["touch", "made"]);
    // An editor that changes nothing, or fails, is no answer.
    for (other, why) in [
        ("true", "nothing was changed"),
        ("false", "nothing is taken over"),
    ] {
        let mut terminal = Terminal::start(&trial, &args, &[("EDITOR", other)]);
        terminal.asked(1);
        terminal.press("e\n");
        assert!(terminal.asked(2).contains(why));
        terminal.press("d\n");
        assert_eq!(terminal.end().0, Some(3));
    }
    let mut terminal = Terminal::start(&trial, &args, &editor);
    terminal.asked(1);
    terminal.press("e\n");
    let (code, said) = terminal.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(trial.work().join("other").exists());
    assert!(!trial.work().join("made").exists());
}
