//! asdf. Its shims need all of asdf, so the versions of `.tool-versions` stand in for them.

use std::path::{Path, PathBuf};

use super::draft::{Draft, Spot, Tree};
use super::entry::{Claim, Entry};
use super::host::Host;
use super::kind::Kind;
use super::nvm::NODE_PARTS;
use super::pyenv::PYTHON_PARTS;
use super::text::{self, Links};
use super::version;

/// More tools than this in one file are not looked for.
const MOST_TOOLS: usize = 32;

pub(super) fn root(host: &Host) -> Option<PathBuf> {
    host.place("ASDF_DATA_DIR", ".asdf")
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
    let Some(below) = draft.below(Kind::Asdf, &entry.dir, &root) else {
        return Claim::NotMine;
    };
    let parts: Vec<&str> = below.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        ["shims"] => {
            for (tool, name) in selected(draft.host) {
                install(draft, entry, Kind::Asdf, &root, &tool, &name);
            }
            Claim::Mine
        }
        ["installs", tool, name, ..] => {
            install(draft, entry, Kind::Asdf, &root, tool, name);
            Claim::Mine
        }
        // Its own program: of no use without the rest.
        ["bin"] => Claim::Mine,
        _ => Claim::NotMine,
    }
}

/// For each tool the nearest line that names it; the home's file is the default for all.
fn selected(host: &Host) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let home = host.in_home(".tool-versions");
    let files = text::upwards(&host.cwd)
        .map(|dir| (dir.join(".tool-versions"), Links::Refuse))
        .chain(home.map(|file| (file, Links::Follow)));
    for (file, links) in files {
        let text = text::read(&file, links).unwrap_or_default();
        for (tool, name) in text.lines().filter_map(tool_version) {
            if found.len() < MOST_TOOLS && !found.iter().any(|(known, _)| known == tool) {
                found.push((tool.to_owned(), name.to_owned()));
            }
        }
    }
    found
}

/// `python 3.12.1 3.11.7 system # why`: the first version counts.
pub(super) fn tool_version(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split('#').next()?.split_whitespace();
    Some((version::name(words.next()?)?, version::name(words.next()?)?))
}

/// `installs/TOOL/VERSION`, of asdf and mise alike.
pub(super) fn install(
    draft: &mut Draft<'_>,
    entry: &Entry,
    kind: Kind,
    root: &Path,
    tool: &str,
    wanted: &str,
) {
    if wanted == "system" {
        return;
    }
    let installs = root.join("installs");
    let found = version::name(tool)
        .zip(version::name(wanted))
        .and_then(|(tool, name)| version::installed(&installs.join(tool), name));
    let Some(prefix) = found else {
        let named = version::name(wanted).unwrap_or("what the version file says");
        let tool = version::name(tool).unwrap_or("a tool");
        draft.note(format!(
            "{kind}: {tool} `{named}` is selected and not installed; `{kind} list` lists what is"
        ));
        return;
    };
    let spot = Spot {
        prefix: &prefix,
        within: &installs,
    };
    let tree = match tool {
        "python" => Tree::Parts(PYTHON_PARTS),
        "node" | "nodejs" => Tree::Parts(NODE_PARTS),
        _ => Tree::Whole,
    };
    let Some(guest) = draft.place(kind, spot, tree, "an installed tool") else {
        return;
    };
    if entry.origin.on_path() {
        // Go's archive has a directory of its own inside; some tools are one bare program.
        let bins = ["bin", "go/bin"].map(|bin| (prefix.join(bin), guest.join(bin)));
        let bin = bins.into_iter().find(|(host, _)| host.is_dir());
        draft.bin(bin.map_or(guest, |(_, bin)| bin));
    }
}
