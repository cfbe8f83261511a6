//! Secrets as somebody types them: values from standard input, files and terminals, and from nowhere
//! else.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::terminal::Terminal;
use crate::trial::{Answer, Running, Trial, until};

const VALUE: &str = "ghp_Zk3vXq81LmNc02QpRt";
const OTHER: &str = "another-Value-2718";

/// With something to read.
fn fed(trial: &Trial, args: &[&str], input: &str) -> Answer {
    let mut command = trial.command(args);
    let mut child = Running::spawn(command.stdin(Stdio::piped()));
    let mut stdin = child.0.stdin.take().unwrap();
    // One that refuses before it reads may be gone by now.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.answer()
}

fn set(trial: &Trial, name: &str, value: &str) -> serde_json::Value {
    fed(trial, &["secret", "set", name, "--json"], value)
        .exits(0)
        .json()
}

#[test]
fn a_secret_is_set_listed_granted_and_removed() {
    let trial = Trial::new();
    let none = trial.run(&["secret", "ls"]).exits(0);
    assert!(none.stderr.contains("there are no secrets"), "{none:?}");
    let made = fed(
        &trial,
        &["secret", "set", "github", "--host", "api.github.com:443"],
        &format!("{VALUE}\n"),
    )
    .exits(0);
    assert!(
        made.stderr.contains("the newline at its end was left out"),
        "{made:?}"
    );
    assert!(
        made.stderr.contains("`github` is set (version 1)"),
        "{made:?}"
    );
    assert!(!format!("{made:?}").contains(VALUE));
    // Without the newline it is the same value.
    assert_eq!(set(&trial, "github", VALUE)["version"], 1);
    let kept = ["secret", "set", "github", "--keep-newline", "--json"];
    assert_eq!(
        fed(&trial, &kept, &format!("{VALUE}\n")).exits(0).json()["version"],
        2
    );
    let file = trial.file("value", OTHER);
    let from = [
        "secret",
        "set",
        "db",
        "--from-file",
        file.to_str().unwrap(),
        "--deliver",
        "file,env",
    ];
    let other = trial.run(&from).exits(0);
    assert!(other.stderr.contains("environment"), "{other:?}");

    let listed = trial.run(&["secret", "ls"]).exits(0).stdout;
    assert!(
        listed.contains("api.github.com:443") && listed.contains("file, env"),
        "{listed}"
    );
    let names = trial.run(&["secret", "ls", "--quiet"]).exits(0).stdout;
    assert_eq!(names, "db\ngithub\n");

    let grant = [
        "secret",
        "grant",
        "github",
        "--conversation",
        "c-17",
        "--for",
        "8h",
        "--json",
    ];
    let grant = trial.run(&grant).exits(0).json();
    let id = grant["grant_id"].as_str().unwrap();
    let grants = trial.run(&["secret", "grants"]).exits(0).stdout;
    assert!(grants.contains(id) && grants.contains("c-17"), "{grants}");
    let nobody = trial.run(&["secret", "grant", "github"]);
    assert_eq!(nobody.code, Some(2), "{nobody:?}");
    let long = trial.run(&["secret", "grant", "github", "--agent", "a", "--for", "91d"]);
    assert!(long.stderr.contains("90 days"), "{long:?}");
    let more = ["secret", "grant", "github", "--agent", "a", "--quiet"];
    let more = trial.run(&more).exits(0).stdout;
    let revoked = trial.run(&["secret", "revoke", id]).exits(0);
    assert!(revoked.stderr.contains("is revoked"), "{revoked:?}");
    let rest = trial
        .run(&["secret", "revoke", "github", "--json"])
        .exits(0)
        .json();
    assert_eq!(rest["revoked"][0]["grant_id"], more.trim());
    assert_eq!(rest["revoked"].as_array().unwrap().len(), 1);
    let none = trial.run(&["secret", "revoke", "github"]).exits(0);
    assert!(
        none.stderr.contains("no grant of it was in force"),
        "{none:?}"
    );

    let gone = trial.run(&["secret", "rm", "github"]).exits(0);
    assert!(gone.stderr.contains("`github` is gone"), "{gone:?}");
    let again = trial.run(&["secret", "rm", "github"]);
    assert!(
        again.stderr.contains("glovebox secret set github"),
        "{again:?}"
    );
    assert_ne!(again.code, Some(0));
}

#[test]
fn a_value_has_no_place_on_the_command_line() {
    let trial = Trial::new();
    for args in [
        &["secret", "set", "github", VALUE][..],
        &["secret", "set", "github", "--value", VALUE],
    ] {
        assert_eq!(trial.run(args).code, Some(2), "{args:?}");
    }
    for wrong in [
        format!("github={VALUE}"),
        format!("={VALUE}"),
        format!("github:{VALUE} "),
    ] {
        let args = ["run", "--scratch", "--secret", &wrong, "--", "true"];
        let refused = trial.run(&args);
        assert_ne!(refused.code, Some(0));
        assert!(!format!("{refused:?}").contains(VALUE), "{refused:?}");
        assert!(
            refused.stderr.contains("glovebox secret set"),
            "{refused:?}"
        );
    }
    let weak = fed(&trial, &["secret", "set", "weak"], "hunter2\n");
    assert_ne!(weak.code, Some(0));
    assert!(!format!("{weak:?}").contains("hunter2"), "{weak:?}");
    assert!(
        trial
            .run(&["secret", "ls", "--quiet"])
            .exits(0)
            .stdout
            .is_empty()
    );
}

#[test]
fn a_value_that_is_typed_is_not_shown() {
    let trial = Trial::new();
    let mut terminal = Terminal::start(&trial, &["secret", "set", "github"], &[]);
    terminal.shows("(not shown): ");
    terminal.press(&format!("wrong\u{15}{VALUE}x\u{7f}\r"));
    let (code, said) = terminal.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("`github` is set (version 1)"), "{said}");
    assert!(!said.contains(VALUE) && !said.contains("wrong"), "{said}");
    assert_eq!(set(&trial, "github", VALUE)["version"], 1);

    let mut terminal = Terminal::start(&trial, &["secret", "set", "other"], &[]);
    terminal.shows("(not shown): ");
    terminal.press(&format!("{VALUE}\u{3}"));
    let (code, said) = terminal.end();
    assert_ne!(code, Some(0), "{said}");
    assert!(said.contains("canceled") && !said.contains(VALUE), "{said}");
    assert_eq!(trial.run(&["secret", "ls", "--quiet"]).stdout, "github\n");
}

fn key_file(trial: &Trial, name: &str, digits: &str) -> String {
    let path = trial.file(name, &digits.repeat(32));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_key_of_ones_own_is_used_and_exchanged() {
    let trial = Trial::new();
    let (one, two) = (key_file(&trial, "one", "ab"), key_file(&trial, "two", "cd"));
    let with = |key: &str, args: &[&str], input: &str| {
        let words: Vec<&str> = args
            .iter()
            .copied()
            .chain(["--secrets-key-file", key])
            .collect();
        fed(&trial, &words, input)
    };
    let same = ["secret", "set", "github", "--json"];
    assert_eq!(with(&one, &same, VALUE).exits(0).json()["version"], 1);
    assert!(!trial.state().join("secrets.key").exists());
    let wrong = with(&two, &same, VALUE);
    assert!(wrong.stderr.contains("sealed with the key"), "{wrong:?}");
    assert_ne!(wrong.code, Some(0));
    fs::set_permissions(&one, fs::Permissions::from_mode(0o644)).unwrap();
    let open = with(&one, &same, VALUE);
    assert!(open.stderr.contains("chmod 600"), "{open:?}");
    fs::set_permissions(&one, fs::Permissions::from_mode(0o600)).unwrap();

    let unnamed = with(&one, &["secret", "rotate-key"], "");
    assert!(unnamed.stderr.contains("--new-key-file"), "{unnamed:?}");
    let there = trial.run(&["--server", "http://127.0.0.1:9", "secret", "rotate-key"]);
    assert!(there.stderr.contains("works on this machine"), "{there:?}");
    let rotate = ["secret", "rotate-key", "--new-key-file", &two];
    let rotated = with(&one, &rotate, "").exits(0);
    assert!(rotated.stderr.contains("1 value is sealed"), "{rotated:?}");
    assert_eq!(with(&two, &same, VALUE).exits(0).json()["version"], 1);
    assert_ne!(with(&one, &same, VALUE).code, Some(0));
    // By the environment, in its other form.
    let mut command = trial.command(&same);
    command.env("GLOVEBOX_SECRETS_KEY", "zc3N".repeat(10) + "zc0=");
    let mut child = Running::spawn(command.stdin(Stdio::piped()));
    child
        .0
        .stdin
        .take()
        .unwrap()
        .write_all(VALUE.as_bytes())
        .unwrap();
    assert_eq!(child.answer().exits(0).json()["version"], 1);
}

#[test]
fn a_rotation_that_is_killed_anywhere_loses_nothing() {
    for stage in [
        "rekey_prepared",
        "rekey_sealing",
        "rekey_sealing#1",
        "rekey_sealed",
    ] {
        let trial = Trial::new();
        set(&trial, "github", OTHER);
        set(&trial, "github", VALUE);
        let reached = trial.work().join("reached");
        let mut command = trial.command(&["secret", "rotate-key"]);
        command.env(
            "GLOVEBOX_PAUSE_AT",
            format!("{stage}:{}", reached.display()),
        );
        let mut killed = Running::spawn(&mut command);
        until(|| reached.exists().then_some(()));
        killed.end();
        // The value is opened to be compared, and it is the same.
        assert_eq!(set(&trial, "github", VALUE)["version"], 2, "{stage}");
        let rotated = trial
            .run(&["secret", "rotate-key", "--json"])
            .exits(0)
            .json();
        assert_eq!(rotated["values"], 2, "{stage}");
        assert_eq!(set(&trial, "github", VALUE)["version"], 2, "{stage}");
        assert!(!trial.state().join("secrets.key.next").exists(), "{stage}");
        let events = trial.run(&["audit", "query", "--json"]).exits(0).stdout;
        let expected = if stage == "rekey_sealed" { 2 } else { 1 };
        assert_eq!(
            events.matches("event:secret.key_rotated").count(),
            expected,
            "{stage}"
        );
    }
}

#[test]
fn a_key_in_the_kernels_keyring_is_found() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    // Numbers of `add_key` and `keyctl`.
    let calls = match cfg!(target_arch = "x86_64") {
        true => ["248", "250"],
        false => ["217", "219"],
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/keyring.py");
    let ran = Command::new("python3")
        .args([script, env!("CARGO_BIN_EXE_glovebox")])
        .args(calls)
        .output()
        .unwrap();
    let ran = Answer::from(ran).exits(0);
    assert!(
        ran.stdout == "done\n" || ran.stdout.starts_with("SKIPPED"),
        "{ran:?}"
    );
}
