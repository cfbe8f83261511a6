//! mise (and rtx before it): versions laid out as asdf does, chosen in more kinds of file.

use std::path::PathBuf;

use super::asdf::{install, tool_version};
use super::draft::Draft;
use super::entry::{Claim, Entry};
use super::host::Host;
use super::kind::Kind;
use super::text::{self, Links};
use super::version;

const MOST_TOOLS: usize = 32;
const TABLES: &[&str] = &["mise.toml", ".mise.toml", ".config/mise.toml"];

pub(super) fn root(host: &Host) -> Option<PathBuf> {
    host.place("MISE_DATA_DIR", ".local/share/mise")
}

pub(super) fn usual(host: &Host) -> Vec<PathBuf> {
    root(host)
        .map(|root| root.join("shims"))
        .into_iter()
        .collect()
}

pub(super) fn recognise(draft: &mut Draft<'_>, entry: &Entry) -> Claim {
    let Some(root) = root(draft.host) else {
        return Claim::NotMine;
    };
    let Some(below) = draft.below(Kind::Mise, &entry.dir, &root) else {
        return Claim::NotMine;
    };
    let parts: Vec<&str> = below.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        ["shims"] => {
            for (tool, name) in selected(draft.host) {
                install(draft, entry, Kind::Mise, &root, &tool, &name);
            }
            Claim::Mine
        }
        ["installs", tool, name, ..] => {
            install(draft, entry, Kind::Mise, &root, tool, name);
            Claim::Mine
        }
        _ => Claim::NotMine,
    }
}

fn selected(host: &Host) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut add = |tool: &str, name: &str| {
        let plain = version::name(tool).zip(version::name(name));
        if let Some((tool, name)) = plain
            && found.len() < MOST_TOOLS
            && !found.iter().any(|(known, _)| known == tool)
        {
            found.push((tool.to_owned(), name.to_owned()));
        }
    };
    for dir in text::upwards(&host.cwd) {
        for table in TABLES {
            let text = text::read(&dir.join(table), Links::Refuse).unwrap_or_default();
            text::assignments(&text, "tools").for_each(|(tool, name)| add(tool, name));
        }
        let lines = text::read(&dir.join(".tool-versions"), Links::Refuse).unwrap_or_default();
        lines
            .lines()
            .filter_map(tool_version)
            .for_each(|(tool, name)| add(tool, name));
    }
    if let Some(file) = host.in_home(".config/mise/config.toml") {
        let text = text::read(&file, Links::Follow).unwrap_or_default();
        text::assignments(&text, "tools").for_each(|(tool, name)| add(tool, name));
    }
    found
}
