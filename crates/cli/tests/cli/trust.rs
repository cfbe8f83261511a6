//! Who trusts whom: certificates, tokens, and what is said when one does not.

use std::path::Path;
use std::process::Command;

use crate::server::{Served, with};
use crate::trial::{Answer, Trial};

/// The command of the manual, in one line.
fn manuals_command() -> String {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/serve.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    let (_, from) = manual.split_once("$ openssl req").unwrap();
    let (command, _) = from.split_once("\n$ ").unwrap();
    format!("openssl req{}", command.replace("\\\n", ""))
}

fn make_certificate(dir: &Path, command: &str) {
    let mut shell = Command::new("sh");
    let made = shell.args(["-c", command]).current_dir(dir).output();
    let made = made.unwrap();
    assert!(made.status.success(), "{made:?}");
}

fn serve_tls(trial: &Trial, dir: &Path) -> Served {
    let (certificate, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    let flags = [
        "--tls-cert",
        certificate.to_str().unwrap(),
        "--tls-key",
        key.to_str().unwrap(),
    ];
    Served::start(trial, &flags)
}

#[test]
fn the_manuals_certificate_is_trusted() {
    let trial = Trial::new();
    make_certificate(&trial.work(), &manuals_command());
    let server = serve_tls(&trial, &trial.work());
    assert!(server.url.starts_with("https://"), "{}", server.url);
    let run = |args: &[&str]| trial.run(&with(&server, args));
    run(&["--ca-file", "cert.pem", "ps"]).exits(0);
    run(&["ps"]).exits(125);
    let plain = server.url.replace("https://", "http://");
    let mixed = trial.run(&["--server", &plain, "ps"]).exits(125);
    let way = format!("try `{}`", server.url);
    assert!(mixed.stderr.contains(&way), "{mixed:?}");
}

#[test]
fn a_certificate_that_is_its_own_authority_is_told_how_to_be_made() {
    let trial = Trial::new();
    let command = manuals_command();
    let usual = command.replace("-addext basicConstraints=critical,CA:FALSE", "");
    assert_ne!(usual, command);
    make_certificate(&trial.work(), &usual);
    let server = serve_tls(&trial, &trial.work());
    let refused = trial
        .run(&with(&server, &["--ca-file", "cert.pem", "ps"]))
        .exits(125);
    assert!(
        refused
            .stderr
            .contains("basicConstraints=critical,CA:FALSE"),
        "{refused:?}"
    );
}

#[test]
fn tls_to_a_server_without_it_is_told() {
    let trial = Trial::new();
    let server = Served::start(&trial, &[]);
    let secure = server.url.replace("http://", "https://");
    let mixed = trial.run(&["--server", &secure, "ps"]).exits(125);
    let way = format!("try `{}`", server.url);
    assert!(mixed.stderr.contains(&way), "{mixed:?}");
}

#[test]
fn who_is_not_known_reads_where_a_token_was_looked_for() {
    let trial = Trial::new();
    let server = Served::start(&trial, &[]);
    let elsewhere = trial.work().join("elsewhere");
    let ask = |variable: Option<&str>, args: &[&str]| -> Answer {
        let mut command = trial.command(&with(&server, args));
        command.env("GLOVEBOX_STATE_DIR", &elsewhere);
        if let Some(token) = variable {
            command.env("GLOVEBOX_TOKEN", token);
        }
        command.output().unwrap().into()
    };
    let refused = ask(None, &["ps"]).exits(4);
    let looked = elsewhere.join("token");
    for part in [
        "error[unauthenticated]",
        "\n  request: r_",
        "GLOVEBOX_TOKEN",
        "--token-file",
        looked.to_str().unwrap(),
    ] {
        assert!(refused.stderr.contains(part), "{part}: {refused:?}");
    }
    let token = format!("gb_{}_{}", "0".repeat(16), "0".repeat(64));
    let refused = ask(Some(&token), &["ps"]).exits(4);
    assert!(refused.stderr.contains("that of `GLOVEBOX_TOKEN`"));
    assert!(!refused.stderr.contains(&token), "{refused:?}");

    let refused = ask(None, &["ps", "--json"]).exits(4);
    let error: serde_json::Value = serde_json::from_str(&refused.stderr).unwrap();
    let request = error["error"]["request_id"].as_str().unwrap();
    assert!(request.starts_with("r_"), "{error}");
}

#[test]
fn an_empty_variable_is_not_the_administrator() {
    let trial = Trial::new();
    let server = Served::start(&trial, &[]);
    trial.run(&with(&server, &["ps"])).exits(0);
    let mut command = trial.command(&with(&server, &["ps"]));
    let refused = command.env("GLOVEBOX_TOKEN", "").output().unwrap();
    let refused = Answer::from(refused).exits(2);
    assert!(
        refused.stderr.contains("`GLOVEBOX_TOKEN` is empty"),
        "{refused:?}"
    );
}
