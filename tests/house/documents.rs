//! Documents say what is there.

use std::path::Path;

use crate::tree::{files, read, repository};

/// What a reader types first.
const FIRST: &str = "cargo run --release -- run -- python3 -c 'print(6*7)'";

#[test]
fn the_readme_begins_with_the_command_that_is_tested() {
    let readme = read("README.md");
    let mut lines = readme.lines().skip_while(|line| !line.starts_with("$ "));
    assert_eq!(lines.next(), Some(format!("$ {FIRST}").as_str()));
    assert_eq!(lines.next(), Some("42"));
}

/// A reader takes a minute for it; everything else has a place in `docs/`.
#[test]
fn the_readme_is_short() {
    let lines = read("README.md").lines().count();
    assert!(lines <= 150, "README.md has {lines} lines");
}

/// The lines of the README's session with a simulation.
fn recorded(readme: &str) -> Vec<&str> {
    let mut blocks = readme.split("```console\n").skip(1);
    let block = blocks.find_map(|rest| {
        let (block, _) = rest.split_once("```").unwrap();
        block.contains("--simulate").then_some(block)
    });
    block.expect("a simulation in the README").lines().collect()
}

#[test]
fn the_picture_of_the_readme_shows_what_is_written_below_it() {
    let picture = read("docs/recordings/simulate-review-apply.svg");
    let shown: Vec<String> = picture
        .lines()
        .filter(|line| line.starts_with("<text "))
        .map(|line| {
            let (_, text) = line.split_once('>').unwrap();
            let text = text.strip_suffix("</text>").unwrap();
            text.replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&amp;", "&")
        })
        .collect();
    let readme = read("README.md");
    assert_eq!(shown, recorded(&readme), "run scripts/recording");
}

/// That guide is run by a test, so what it prints is what Glovebox prints.
#[test]
fn the_session_of_the_readme_prints_what_its_guide_prints() {
    let guide = read("docs/guide/simulation.md");
    let readme = read("README.md");
    for line in recorded(&readme) {
        if line.starts_with("$ ") || line == "…" {
            continue;
        }
        let id = line.match_indices("e_").find_map(|(at, _)| {
            let id = line.get(at..at + 34)?;
            id[2..]
                .bytes()
                .all(|it| it.is_ascii_hexdigit())
                .then_some(id)
        });
        let line = id.map_or(line.to_owned(), |id| line.replace(id, "e_…"));
        assert!(guide.lines().any(|it| it == line), "{line}");
    }
}

#[test]
fn every_document_is_in_the_index() {
    let index = read("docs/README.md");
    let linked: Vec<&str> = index.lines().flat_map(links).collect();
    for path in files("docs", ".md") {
        let name = path.strip_prefix("docs").unwrap().to_str().unwrap();
        let found = name == "README.md" || linked.contains(&name);
        assert!(found, "docs/README.md does not lead to {name}");
    }
}

#[test]
fn the_licence_is_there_and_is_the_one_that_the_manifest_names() {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let named = &manifest["workspace"]["package"]["license"];
    assert_eq!(named.as_str(), Some("Apache-2.0"));
    let licence = read("LICENSE");
    assert!(licence.contains("Apache License") && licence.contains("Version 2.0"));
}

/// Targets of `[text](target)` in a line outside of code.
fn links(line: &str) -> Vec<&str> {
    line.match_indices("](")
        .filter_map(|(at, _)| line[at + 2..].split(')').next())
        .collect()
}

fn anchor(heading: &str) -> String {
    heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

fn has_anchor(text: &str, wanted: &str) -> bool {
    text.lines()
        .filter(|line| line.starts_with('#'))
        .any(|line| anchor(line) == wanted)
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut count = 0;
    for path in files("", ".md").into_iter().chain(files("", "llms.txt")) {
        let text = read(&path);
        let mut fenced = false;
        for (number, line) in text.lines().enumerate() {
            fenced ^= line.trim_start().starts_with("```");
            if fenced {
                continue;
            }
            for link in links(line) {
                if link.contains("://") || link.starts_with("mailto:") {
                    continue;
                }
                count += 1;
                let place = format!("{}:{}: {link}", path.display(), number + 1);
                let (file, heading) = link.split_once('#').unwrap_or((link, ""));
                let target = match file {
                    "" => path.clone(),
                    file => path.parent().unwrap_or(Path::new("")).join(file),
                };
                let full = repository().join(&target);
                assert!(full.exists(), "{place} is not there");
                if !heading.is_empty() {
                    assert!(
                        has_anchor(&read(&target), heading),
                        "{place}: no such heading"
                    );
                }
            }
        }
    }
    println!("{count} links");
}

/// Documents and comments speak of the project, not of how it was made.
#[test]
fn nothing_speaks_of_how_it_was_made() {
    // Put together here, so that this file does not find itself.
    let words = [
        "/wor k/shared",
        "../shar ed/",
        "co-author ed-by",
        "generat ed with",
        "this promp t",
        "the brie f asks",
    ];
    let words: Vec<String> = words.iter().map(|word| word.replacen(' ', "", 1)).collect();
    for ending in [".md", ".rs", ".toml", ".sh"] {
        for path in files("", ending) {
            let text = read(&path).to_lowercase();
            for word in &words {
                assert!(!text.contains(word), "{}: `{word}`", path.display());
            }
        }
    }
}

#[test]
fn scripts_can_be_executed() {
    use std::os::unix::fs::PermissionsExt;
    for entry in std::fs::read_dir(repository().join("scripts")).unwrap() {
        let path = entry.unwrap().path();
        let mode = path.metadata().unwrap().permissions().mode();
        let text = std::fs::read_to_string(&path).unwrap();
        let shown = path.display();
        assert!(mode & 0o100 != 0, "{shown} is not executable");
        assert!(text.starts_with("#!"), "{shown} names no interpreter");
        if text.starts_with("#!/usr/bin/env bash") {
            assert!(
                text.contains("set -euo pipefail"),
                "{shown} goes on after errors"
            );
        }
    }
}
