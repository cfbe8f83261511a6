//! Who may have a secret.

use std::io::Write;
use std::process::{Output, Stdio};

use support::{Caller, Trial};

const VALUE: &str = "cnry-7f3Kq9ZtWxYwQ2vLp";

fn set(trial: &Trial, name: &str, more: &[&str]) {
    let mut child = trial
        .glovebox()
        .args(["secret", "set", name])
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{VALUE}").unwrap();
    assert!(child.wait().unwrap().success());
}

fn glovebox(trial: &Trial, words: &[&str]) -> Output {
    trial.glovebox().args(words).output().unwrap()
}

#[test]
fn a_secret_needs_somebody_who_agrees() {
    for caller in [Caller::Root, Caller::User] {
        let Some(trial) = Trial::in_memory(caller) else {
            return;
        };
        set(&trial, "pass", &[]);
        let script = "wc -c < \"$PASS\"; cat \"$PASS\"; echo; base64 \"$PASS\"";
        let run = |conversation: &str| {
            let options = ["--secret", "pass", "--conversation", conversation];
            trial.run(["/bin/sh", "-c", script]).with(options).json()
        };
        // Nobody is at a terminal, and nobody has agreed before.
        let refused = run("c-1");
        assert_eq!(refused.code, 3, "{}\n{}", refused.record, refused.stderr);
        let said = format!("{}{}", refused.record, refused.stderr);
        assert!(said.contains("glovebox secret grant pass"), "{said}");

        let granted = glovebox(
            &trial,
            &["secret", "grant", "pass", "--conversation", "c-1", "--json"],
        );
        assert!(granted.status.success(), "{granted:?}");
        let outcome = run("c-1");
        outcome.expect("succeeded", 0, None);
        let said = outcome.text("stdout");
        assert_eq!(
            said,
            format!("{}\n[secret pass]\n[secret pass]\n", VALUE.len()),
            "{said}"
        );
        assert_eq!(outcome.record["secrets"][0]["name"], "pass");
        // Another conversation was not meant.
        assert_eq!(run("c-2").code, 3);

        let revoked = glovebox(&trial, &["secret", "revoke", "pass"]);
        assert!(revoked.status.success(), "{revoked:?}");
        assert_eq!(run("c-1").code, 3);

        // What was never allowed for it is not had by a grant.
        let granted = glovebox(
            &trial,
            &["secret", "grant", "pass", "--conversation", "c-1"],
        );
        assert!(granted.status.success(), "{granted:?}");
        let outcome = trial
            .run(["/bin/true"])
            .with(["--secret", "pass=env", "--conversation", "c-1"])
            .json();
        assert_ne!(outcome.code, 0, "{}", outcome.record);
        let said = format!("{}{}", outcome.record, outcome.stderr);
        assert!(said.contains("env") && !said.contains(VALUE), "{said}");

        for listed in [["secret", "ls", "--json"], ["secret", "grants", "--json"]] {
            let output = glovebox(&trial, &listed);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(
                output.status.success() && text.contains("pass") && !text.contains(VALUE),
                "{text}"
            );
        }
        trial.end();
    }
}

#[test]
fn an_unknown_secret_says_how_to_set_it() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let outcome = trial
        .run(["/bin/true"])
        .with(["--secret", "nobody-set-it"])
        .json();
    assert_ne!(outcome.code, 0, "{}", outcome.record);
    let said = format!("{}{}", outcome.record, outcome.stderr);
    assert!(said.contains("glovebox secret set nobody-set-it"), "{said}");
    trial.end();
}

#[test]
fn a_credential_in_a_plain_variable_is_refused_with_the_right_way() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let outcome = trial
        .run(["/bin/true"])
        .with(["--env", "API_KEY=ghp_0123456789abcdefghijklmnopqrstuvwxyz"])
        .json();
    assert_ne!(outcome.code, 0, "{}", outcome.record);
    let said = format!("{}{}", outcome.record, outcome.stderr);
    assert!(
        said.contains("glovebox secret set") && !said.contains("ghp_0123"),
        "{said}"
    );
    trial.end();
}
