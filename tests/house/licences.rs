//! What comes in from outside: known licences, one place to come from.

use std::process::Command;

use serde_json::Value;

use crate::tree::{read, repository};

fn packages() -> Vec<Value> {
    // Offline: whoever runs this has built it. Only what is built here counts.
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(repository())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn allowed() -> Vec<String> {
    let deny: toml::Table = read("deny.toml").parse().unwrap();
    let list = deny["licenses"]["allow"].as_array().unwrap();
    list.iter()
        .map(|it| it.as_str().unwrap().to_owned())
        .collect()
}

/// An SPDX expression, as far as crates use it: `OR` of `AND` of names, an older `/` for `OR`, and
/// parentheses.
fn holds(expression: &str, allowed: &[String]) -> bool {
    let text = expression.replace('/', " OR ");
    let text = text.replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut position = 0;
    let value = any(&words, &mut position, allowed);
    value && position == words.len()
}

fn any(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut value = all(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        value |= all(words, at, allowed);
    }
    value
}

fn all(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut value = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        value &= one(words, at, allowed);
    }
    value
}

fn one(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let Some(word) = words.get(*at) else {
        return false;
    };
    *at += 1;
    if *word == "(" {
        let value = any(words, at, allowed);
        let closed = words.get(*at) == Some(&")");
        *at += 1;
        return value && closed;
    }
    let mut name = (*word).to_owned();
    if words.get(*at) == Some(&"WITH") {
        name = format!("{name} WITH {}", words.get(*at + 1).unwrap_or(&""));
        *at += 2;
    }
    allowed.contains(&name)
}

#[test]
fn expressions_are_read_as_they_are_meant() {
    let allowed = ["MIT".to_owned(), "Zlib".to_owned()];
    for good in [
        "MIT",
        "MIT/X",
        "X OR MIT",
        "(X OR MIT) AND Zlib",
        "X AND Y OR MIT",
    ] {
        assert!(holds(good, &allowed), "{good}");
    }
    for bad in [
        "",
        "X",
        "MIT AND X",
        "(MIT",
        "MIT WITH X",
        "X WITH Y OR Z",
        "MIT MIT",
    ] {
        assert!(!holds(bad, &allowed), "{bad}");
    }
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let allowed = allowed();
    let packages = packages();
    for package in &packages {
        let name = package["name"].as_str().unwrap();
        let licence = package["license"].as_str().unwrap_or_default();
        assert!(
            holds(licence, &allowed),
            "`{name}` comes under `{licence}`, which deny.toml does not allow"
        );
    }
    println!("{} packages", packages.len());
}

#[test]
fn every_dependency_comes_from_the_registry() {
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        let source = package["source"].as_str();
        assert!(
            source.is_none_or(|it| it == "registry+https://github.com/rust-lang/crates.io-index"),
            "`{name}` comes from {source:?}"
        );
    }
}
