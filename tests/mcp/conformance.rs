//! The official conformance suite: everything that a revision requires of a server.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use support::{Caller, McpTools, Start, Trial};

use crate::proxy::Proxy;

const SUITE: &str = "@modelcontextprotocol/conformance";

/// Scenarios that the suite requires and that may fail, each with the fault of the suite that makes
/// it fail. More than three are not to be.
const EXCEPTIONS: [(&str, &str); 0] = [];

/// What any server can be asked, and ours with its own tools.
const COMMON: [&str; 6] = [
    "tools-list",
    "resources-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
    "server-session-lifecycle",
    "http-header-validation",
];
const COMMON_2025: [&str; 2] = ["server-initialize", "ping"];
const COMMON_2026: [&str; 2] = ["server-stateless", "sep-2164-resource-not-found"];

/// The checks of each scenario.
type Judged = BTreeMap<String, Vec<Value>>;

/// For some answers the suite waits a second and no longer: a machine that stands still fails it, and
/// passes when it is asked again. A fault fails it each time.
const ATTEMPTS: usize = 3;

#[test]
fn revision_2025_11_25_is_spoken_as_its_suite_requires() {
    everything("2025-11-25", 30);
}

#[test]
fn revision_2026_07_28_is_spoken_as_its_suite_requires() {
    everything("2026-07-28", 37);
}

#[test]
fn revision_2025_11_25_is_spoken_with_our_own_tools() {
    what_is_common("2025-11-25", &COMMON_2025);
}

#[test]
fn revision_2026_07_28_is_spoken_with_our_own_tools() {
    what_is_common("2026-07-28", &COMMON_2026);
}

/// `scenarios`: as many as the revision requires of a server, so that none is left out unnoticed.
fn everything(revision: &str, scenarios: usize) {
    let Some(tools) = McpTools::find() else {
        return;
    };
    let start = Start::of(env!("CARGO_BIN_EXE_mcp-fixtures"));
    let required = required(&tools, revision);
    assert_eq!(
        required.len(),
        scenarios,
        "required of a server: {required:?}"
    );
    let fails = |judged: &Judged| {
        let is_fine = |name: &String| judged.get(name).is_some_and(|it| passes(it));
        !required.iter().all(is_fine)
    };
    let (judged, is_conformant) = judged(&tools, revision, &start, fails);
    let mut failed = Vec::new();
    for name in &required {
        let checks = judged.get(name).map_or(&[][..], Vec::as_slice);
        let counted = |status: &str| checks.iter().filter(|it| it["status"] == status).count();
        let passed = passes(checks);
        println!(
            "{name}: {} passed, {} failed, {} warnings",
            counted("SUCCESS"),
            counted("FAILURE"),
            counted("WARNING")
        );
        let excepted = EXCEPTIONS.iter().any(|(it, _)| it == name);
        assert!(
            !(excepted && passed),
            "{name} passes and needs no exception"
        );
        if !passed && !excepted {
            failed.push((name, checks));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(is_conformant || !EXCEPTIONS.is_empty(), "the suite says no");
}

fn passes(checks: &[Value]) -> bool {
    let has = |status: &str| checks.iter().any(|it| it["status"] == status);
    !has("FAILURE") && has("SUCCESS")
}

/// What the suite cannot try without a fixture it says so of.
fn failed(checks: &[Value]) -> Vec<&Value> {
    let all = checks.iter();
    all.filter(|it| it["status"] == "FAILURE" && it["details"]["untestable"] != true)
        .collect()
}

fn what_is_common(revision: &str, more: &[&str]) {
    let Some(tools) = McpTools::find() else {
        return;
    };
    let fails = |judged: &Judged| {
        let mut all = COMMON.iter().chain(more).filter_map(|it| judged.get(*it));
        all.any(|checks| !failed(checks).is_empty())
    };
    let (judged, _) = judged(&tools, revision, &Start::default(), fails);
    let mut seen = 0;
    for name in COMMON.iter().chain(more) {
        // Two of them are of one revision alone.
        let Some(checks) = judged.get(*name) else {
            continue;
        };
        seen += 1;
        let failed = failed(checks);
        assert!(failed.is_empty(), "{name}: {failed:#?}");
        assert!(checks.iter().any(|it| it["status"] == "SUCCESS"), "{name}");
    }
    assert_eq!(seen, COMMON.len() - 1 + more.len());
}

/// The checks of each scenario, and what the suite says at the end.
fn judged(
    tools: &McpTools,
    revision: &str,
    start: &Start,
    fails: impl Fn(&Judged) -> bool,
) -> (Judged, bool) {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = start.on(&trial);
    let token = server.token_of("agent", "local", "suite");
    let proxy = Proxy::to(server.address, &token);
    let mut attempt = 1;
    let judged = loop {
        let results = trial.home().join(format!("results-{attempt}"));
        let output = tools
            .node(&format!("{SUITE}/dist/index.js"))
            .args(["server", "--url", &proxy.url(), "--requirements", revision])
            .arg("--output-dir")
            .arg(&results)
            .output()
            .expect("run the suite");
        assert!(
            results.is_dir(),
            "no results:\n{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        let judged = read(&results);
        if attempt == ATTEMPTS || !fails(&judged) {
            break (judged, output.status.success());
        }
        println!("attempt {attempt} failed");
        attempt += 1;
    };
    drop(proxy);
    assert_eq!(server.stop(), 0);
    trial.end();
    judged
}

/// The server's scenarios in the suite's own list: names below `server:`, up to the next key.
fn required(tools: &McpTools, revision: &str) -> Vec<String> {
    let list = format!("node_modules/{SUITE}/requirements/{revision}.yaml");
    let list = fs::read_to_string(tools.path().join(list)).expect("the suite's list");
    list.lines()
        .skip_while(|line| *line != "server:")
        .skip(1)
        .take_while(|line| line.is_empty() || line.starts_with([' ', '#']))
        .filter_map(|line| line.trim().strip_prefix("- "))
        .map(str::to_owned)
        .collect()
}

/// `-2026-11-17T06-09-03-209Z`
const TIME: usize = 25;

/// A directory is named after its scenario and a time.
fn read(results: &Path) -> Judged {
    let mut judged = BTreeMap::new();
    for entry in fs::read_dir(results).expect("results") {
        let path = entry.expect("a result").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name
            .strip_prefix("server-")
            .and_then(|rest| rest.get(..rest.len().checked_sub(TIME)?))
            .unwrap_or_else(|| panic!("`{name}` is named in another way"));
        let checks = fs::read(path.join("checks.json")).expect("its checks");
        let checks = serde_json::from_slice(&checks).expect("a list of checks");
        judged.insert(name.to_owned(), checks);
    }
    judged
}
