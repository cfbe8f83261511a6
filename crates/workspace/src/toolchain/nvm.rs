//! Node by nvm: a shell function that puts one version's `bin` into `PATH`.

use std::path::{Path, PathBuf};

use super::draft::{Draft, Spot, Tree};
use super::entry::{Claim, Entry};
use super::host::Host;
use super::kind::Kind;
use super::text::{self, Links};
use super::version;

/// Of any Node: not `etc`, where npm keeps a global `npmrc` with its tokens.
pub(super) const NODE_PARTS: &[&str] = &["bin", "include", "lib", "libexec", "share"];

pub(super) fn root(host: &Host) -> Option<PathBuf> {
    host.dir_var("NVM_DIR").or_else(|| {
        let places = [".nvm", ".config/nvm"].map(|place| host.in_home(place));
        places.into_iter().flatten().find(|place| place.is_dir())
    })
}

pub(super) fn recognise(draft: &mut Draft<'_>, entry: &Entry) -> Claim {
    let Some(root) = root(draft.host) else {
        return Claim::NotMine;
    };
    let Some(below) = draft.below(Kind::Nvm, &entry.dir, &root) else {
        return Claim::NotMine;
    };
    let parts: Vec<&str> = below.iter().filter_map(|part| part.to_str()).collect();
    let ["versions", "node", name, "bin"] = parts.as_slice() else {
        return Claim::NotMine;
    };
    let versions = root.join("versions/node");
    let prefix = versions.join(name);
    let spot = Spot {
        prefix: &prefix,
        within: &versions,
    };
    if let Some(guest) = draft.place(Kind::Nvm, spot, Tree::Parts(NODE_PARTS), "a Node of nvm")
        && entry.origin.on_path()
    {
        draft.bin(guest.join("bin"));
    }
    Claim::Mine
}

/// The version of the nearest `.nvmrc`, of the alias `default`, or the newest.
pub(super) fn usual(host: &Host) -> Vec<PathBuf> {
    if let Some(bin) = host.dir_var("NVM_BIN") {
        return vec![bin];
    }
    let Some(root) = root(host) else {
        return Vec::new();
    };
    let versions = root.join("versions/node");
    text::nearest(&host.cwd, &[".nvmrc"])
        .map(|(_, text)| text)
        .or_else(|| text::read(&root.join("alias/default"), Links::Follow))
        .and_then(|text| matching(&versions, text.lines().next()?))
        .or_else(|| version::newest(&versions, |_| true))
        .into_iter()
        .map(|prefix| prefix.join("bin"))
        .collect()
}

/// `20`, `v20.1` and the like; an alias such as `lts/*` is nothing that can be looked up here.
fn matching(versions: &Path, wanted: &str) -> Option<PathBuf> {
    let number = version::name(wanted)?.trim_start_matches('v');
    number.bytes().next().filter(u8::is_ascii_digit)?;
    version::installed(versions, &format!("v{number}"))
}
