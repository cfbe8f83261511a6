//! Each promise in SPECIFICATION.md names the test that holds it, and the test is there.

use std::path::PathBuf;

use crate::tree::{files, read, repository};

const FILE: &str = "SPECIFICATION.md";

/// The last cell of each row of a table whose last column is called `test`.
fn promises(text: &str) -> Vec<(usize, String)> {
    let cells = |line: &str| -> Vec<String> {
        let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
        inner
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    let mut found = Vec::new();
    let mut in_table = false;
    for (number, line) in text.lines().enumerate() {
        if !line.trim_start().starts_with('|') {
            in_table = false;
            continue;
        }
        let last = cells(line).pop().unwrap_or_default();
        if !in_table {
            in_table = last.to_lowercase().starts_with("test");
        } else if !last.trim_matches(['-', ':']).is_empty() {
            found.push((number + 1, last));
        }
    }
    found
}

/// Where the tests of a binary, of a topic in one, or of a crate stand.
fn sources_of(binary: &str) -> Vec<PathBuf> {
    let name = binary.strip_prefix("glovebox-").unwrap_or(binary);
    let mut found = files(&format!("tests/{name}"), ".rs");
    found.extend(files(&format!("crates/{name}/src"), ".rs"));
    found.extend(files("crates", ".rs").into_iter().filter(|path| {
        let mut parts = path.iter().skip(2).map(|part| part.to_string_lossy());
        parts.next().as_deref() == Some("tests")
            && parts.any(|part| part.trim_end_matches(".rs") == name)
    }));
    found
}

fn exists(test: &str) -> bool {
    if test.starts_with("scripts/") {
        let is_a_step = read("scripts/test").contains(&format!("./{test} "));
        return is_a_step && repository().join(test).is_file();
    }
    let Some((binary, path)) = test.split_once("::") else {
        return false;
    };
    let name = path.rsplit("::").next().unwrap_or(path);
    let boundary = |c: char| !(c.is_alphanumeric() || c == '_');
    sources_of(binary).iter().any(|path| {
        let text = read(path);
        // As a function, or as a name that a macro of the same file makes one of.
        text.match_indices(name).any(|(at, _)| {
            let before = text[..at].trim_end_matches(' ');
            let after = &text[at + name.len()..];
            let whole = text[..at].chars().next_back().is_none_or(boundary)
                && after.chars().next().is_none_or(boundary);
            whole && (before.ends_with("fn") || after.starts_with(" = "))
        })
    })
}

#[test]
fn every_promise_names_a_test_that_exists() {
    if !repository().join(FILE).exists() {
        let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!ci, "{FILE} is missing");
        eprintln!("SKIPPED: {FILE} is missing");
        return;
    }
    let promises = promises(&read(FILE));
    assert!(
        !promises.is_empty(),
        "{FILE} has no table with a column `test`"
    );
    let mut pending = 0;
    for (line, cell) in &promises {
        for test in cell
            .split([',', ' '])
            .map(|it| it.trim_matches(['`', '.', ';']))
        {
            match test {
                "" => {}
                "pending" => pending += 1,
                test => assert!(exists(test), "{FILE}:{line}: there is no test `{test}`"),
            }
        }
    }
    println!("{} promises, {pending} pending", promises.len());
}

#[test]
fn a_test_that_is_not_there_is_not_found() {
    assert!(exists("house::a_test_that_is_not_there_is_not_found"));
    assert!(exists("anomaly::kills::killed_while_the_payload_runs"));
    assert!(!exists("house::no_such_test"));
    assert!(!exists("nowhere::a_test_that_is_not_there_is_not_found"));
    assert!(!exists("arrows_between_crates_point_one_way"));
}
