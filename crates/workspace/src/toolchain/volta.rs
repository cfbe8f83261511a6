//! Node by Volta. Its `bin` is full of shims, so the pinned or default versions stand in for them.

use std::path::{Path, PathBuf};

use super::draft::{Draft, Spot, Tree};
use super::entry::{Claim, Entry};
use super::host::Host;
use super::kind::Kind;
use super::nvm::NODE_PARTS;
use super::text::{self, Links};
use super::version;

/// In the order in which they are to be found: a pinned npm goes before the one inside Node.
const TOOLS: &[&str] = &["npm", "pnpm", "yarn", "node"];

pub(super) fn root(host: &Host) -> Option<PathBuf> {
    host.place("VOLTA_HOME", ".volta")
}

pub(super) fn usual(host: &Host) -> Vec<PathBuf> {
    root(host)
        .map(|root| root.join("bin"))
        .into_iter()
        .collect()
}

pub(super) fn recognise(draft: &mut Draft<'_>, entry: &Entry) -> Claim {
    let Some(root) = root(draft.host) else {
        return Claim::NotMine;
    };
    let Some(below) = draft.below(Kind::Volta, &entry.dir, &root) else {
        return Claim::NotMine;
    };
    let parts: Vec<&str> = below.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        ["bin"] => {
            let platform = text::read(&root.join("tools/user/platform.json"), Links::Follow)
                .unwrap_or_default();
            let pinned = pinned(&draft.host.cwd);
            for tool in TOOLS {
                let chosen = pinned
                    .as_deref()
                    .and_then(|object| field(object, tool))
                    .or_else(|| default(&platform, tool));
                if let Some(name) = chosen.and_then(version::name) {
                    one(draft, entry, &root, tool, name);
                }
            }
            Claim::Mine
        }
        ["tools", "image", tool, name, "bin"] => {
            one(draft, entry, &root, tool, name);
            Claim::Mine
        }
        _ => Claim::NotMine,
    }
}

fn one(draft: &mut Draft<'_>, entry: &Entry, root: &Path, tool: &str, name: &str) {
    let images = root.join("tools/image");
    let prefix = images.join(tool).join(name);
    if !prefix.is_dir() {
        draft.note(format!(
            "volta: {tool} `{name}` is selected and not installed; `volta list all` lists what is"
        ));
        return;
    }
    let spot = Spot {
        prefix: &prefix,
        within: &images,
    };
    // A package manager's image is one package and is taken whole.
    let tree = if tool == "node" {
        Tree::Parts(NODE_PARTS)
    } else {
        Tree::Whole
    };
    if let Some(guest) = draft.place(Kind::Volta, spot, tree, "a tool of Volta")
        && entry.origin.on_path()
    {
        draft.bin(guest.join("bin"));
    }
}

/// The object `"volta": { … }` of the nearest `package.json`.
fn pinned(cwd: &Path) -> Option<String> {
    let (_, text) = text::nearest(cwd, &["package.json"])?;
    let rest = text.split_once("\"volta\"")?.1.trim_start();
    let object = rest.strip_prefix(':')?.trim_start().strip_prefix('{')?;
    Some(object.split('}').next()?.to_owned())
}

/// `{"node":{"runtime":"20.1.0","npm":null},"pnpm":null,"yarn":"1.22.19"}`
fn default<'t>(platform: &'t str, tool: &str) -> Option<&'t str> {
    field(platform, if tool == "node" { "runtime" } else { tool })
}

/// The text of `"name": "text"`. A wrong guess is no harm: the word must be an installed version.
fn field<'t>(object: &'t str, name: &str) -> Option<&'t str> {
    let rest = object.split_once(&format!("\"{name}\""))?.1.trim_start();
    let value = rest.strip_prefix(':')?.trim_start().strip_prefix('"')?;
    value.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_both_files() {
        let platform =
            "{\n \"node\": {\"runtime\": \"20.1.0\", \"npm\": null},\"yarn\":\"1.22.19\"}";
        assert_eq!(default(platform, "node"), Some("20.1.0"));
        assert_eq!(default(platform, "npm"), None);
        assert_eq!(default(platform, "yarn"), Some("1.22.19"));
        assert_eq!(field("\"node\": \"18.2.0\"", "node"), Some("18.2.0"));
        assert_eq!(field("\"node\": 18", "node"), None);
    }
}
