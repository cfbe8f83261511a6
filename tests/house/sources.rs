//! What may stand in a source file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::tree::{files, read, sources, without_tests};

/// The only files with `unsafe` in them: one thin layer over system calls.
const UNSAFE: [&str; 1] = ["crates/cage/src/sys.rs"];

/// Lines without tests. Nobody reads a table from top to bottom.
const LINES_MAX: usize = 600;
const TABLES: [&str; 1] = ["table.rs"];

fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(number, line)| (number + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

fn has_word(line: &str, word: &str) -> bool {
    let boundary = |c: char| !(c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        line[..at].chars().next_back().is_none_or(boundary)
            && line[at + word.len()..].chars().next().is_none_or(boundary)
    })
}

#[test]
fn no_source_file_grows_past_the_limit() {
    let mut largest = (0, String::new());
    for path in sources() {
        if TABLES.iter().any(|table| path.ends_with(table)) {
            continue;
        }
        let lines = without_tests(&read(&path)).lines().count();
        let shown = path.display().to_string();
        assert!(lines <= LINES_MAX, "{shown} has {lines} lines: split it");
        largest = largest.max((lines, shown));
    }
    println!("the largest is {} with {} lines", largest.1, largest.0);
}

#[test]
fn unsafe_stands_in_one_place() {
    let mut seen = 0;
    for path in files("crates", ".rs")
        .into_iter()
        .chain(files("tests", ".rs"))
    {
        let text = read(&path);
        let allowed = UNSAFE.iter().any(|it| path == Path::new(it));
        for (number, line) in code_lines(&text) {
            let quoted = line.split('"').step_by(2).collect::<Vec<_>>().join(" ");
            let code = quoted.split("//").next().unwrap_or_default();
            if has_word(code, "unsafe") || code.contains("unsafe_code") {
                assert!(allowed, "{}:{number}: {line}", path.display());
                seen += 1;
            }
        }
    }
    assert_ne!(seen, 0, "this test looks in the wrong place");
}

#[test]
fn nothing_is_left_to_be_done() {
    // Put together here, so that this file does not find itself.
    let marks = ["todo!(", "unimplemented!(", "TO DO", "FIX ME"];
    let marks: Vec<String> = marks.iter().map(|mark| mark.replace(' ', "")).collect();
    let all = ["crates", "tests", "scripts", "docs"];
    for path in all.iter().flat_map(|below| files(below, "")) {
        let is_this = path.ends_with("house/sources.rs");
        let Ok(text) = std::fs::read_to_string(crate::tree::repository().join(&path)) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            for mark in &marks {
                let found = line.contains(mark.as_str()) && !is_this;
                assert!(!found, "{}:{}: {line}", path.display(), number + 1);
            }
        }
    }
}

#[test]
fn every_crate_begins_by_saying_what_is_in_it() {
    for path in sources() {
        let text = read(&path);
        assert!(
            text.starts_with("//!") || text.starts_with("#!"),
            "{} has no header",
            path.display()
        );
    }
}

/// The switches that tests use must not be in what is shipped, so they hang on debug builds.
#[test]
fn switches_for_tests_exist_in_debug_builds_only() {
    for path in sources() {
        let text = read(&path);
        let text = without_tests(&text);
        for switch in [
            "GLOVEBOX_MUTATION",
            "GLOVEBOX_PATIENCE",
            "GLOVEBOX_PAUSE_AT",
            "GLOVEBOX_KILL_AT",
        ] {
            for (at, _) in text.match_indices(&format!("\"{switch}")) {
                let before = &text[..at];
                let starts = ["\nfn ", "\npub(super) fn ", "\npub(crate) fn "];
                let function = starts.into_iter().filter_map(|it| before.rfind(it)).max();
                let attribute = function.and_then(|at| before[..at].lines().next_back());
                assert_eq!(
                    attribute,
                    Some("#[cfg(debug_assertions)]"),
                    "{}: `{switch}`",
                    path.display()
                );
            }
        }
    }
}

/// Words that no type is called by any more: each has a plainer one.
const RETIRED: [&str; 15] = [
    "Berth",
    "Errand",
    "Eyes",
    "Hall",
    "Hands",
    "HouseRules",
    "Loan",
    "OneSeat",
    "Petition",
    "Remains",
    "Stay",
    "Tray",
    "Watchman",
    "Weather",
    "Wound",
];

/// Public types of one name in two crates. This list only becomes shorter.
const TWICE: [&str; 53] = [
    "Answer",
    "Bound",
    "Bounds",
    "CacheName",
    "Call",
    "Change",
    "Client",
    "Content",
    "Contents",
    "Entry",
    "Event",
    "Failure",
    "Found",
    "Gate",
    "Ground",
    "Host",
    "Kind",
    "Language",
    "Layer",
    "Listed",
    "Listener",
    "Listing",
    "Manifest",
    "Mode",
    "Opened",
    "Order",
    "Origin",
    "Outcome",
    "Page",
    "Place",
    "Placement",
    "Program",
    "Progress",
    "Pruned",
    "Reading",
    "Refusal",
    "Refused",
    "Sandbox",
    "SandboxRequest",
    "Sandboxes",
    "Scheme",
    "Secret",
    "Secrets",
    "Seen",
    "Settings",
    "Shape",
    "Source",
    "Step",
    "System",
    "Target",
    "Watch",
    "Workspace",
    "Workspaces",
];

fn declared_types(text: &str) -> impl Iterator<Item = (bool, &str)> {
    text.lines().filter_map(|line| {
        let declared = line.trim_start();
        let is_public = line.starts_with("pub ");
        let declared = declared.strip_prefix("pub ").unwrap_or(declared);
        let declared = match declared.strip_prefix("pub(") {
            Some(rest) => rest.split_once(") ")?.1,
            None => declared,
        };
        let kinds = ["struct ", "enum ", "trait ", "type "];
        let name = kinds.iter().find_map(|kind| declared.strip_prefix(kind))?;
        let end = name.find(|c: char| !c.is_alphanumeric());
        Some((is_public, &name[..end.unwrap_or(name.len())]))
    })
}

#[test]
fn a_type_has_a_plain_name_of_its_own() {
    let mut crates: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in sources() {
        let text = read(&path);
        let owner = path.iter().nth(1).unwrap().to_string_lossy().into_owned();
        for (is_public, name) in declared_types(&text) {
            let shown = path.display();
            assert!(!RETIRED.contains(&name), "{shown}: `{name}` is retired");
            if is_public {
                crates
                    .entry(name.to_owned())
                    .or_default()
                    .insert(owner.clone());
            }
        }
    }
    let twice: Vec<&str> = crates
        .iter()
        .filter(|(_, owners)| owners.len() > 1)
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(twice, TWICE, "name the newer one otherwise");
}
