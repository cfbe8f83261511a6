//! Node by fnm. What it puts into `PATH` is a link of one shell to a version, so the version itself
//! is what the sandbox sees.

use std::path::PathBuf;

use super::draft::{Draft, Spot, Tree};
use super::entry::{Claim, Entry};
use super::host::Host;
use super::kind::Kind;
use super::nvm::NODE_PARTS;

pub(super) fn root(host: &Host) -> Option<PathBuf> {
    host.dir_var("FNM_DIR").or_else(|| {
        let places = [".local/share/fnm", ".fnm"].map(|place| host.in_home(place));
        places.into_iter().flatten().find(|place| place.is_dir())
    })
}

pub(super) fn usual(host: &Host) -> Vec<PathBuf> {
    root(host)
        .map(|root| root.join("aliases/default/bin"))
        .into_iter()
        .collect()
}

pub(super) fn recognise(draft: &mut Draft<'_>, entry: &Entry) -> Claim {
    let Some((root, real)) = root(draft.host).zip(draft.real(&entry.dir)) else {
        return Claim::NotMine;
    };
    let Some(below) = draft.below(Kind::Fnm, &real, &root) else {
        return Claim::NotMine;
    };
    let parts: Vec<&str> = below.iter().filter_map(|part| part.to_str()).collect();
    let ["node-versions", name, "installation", "bin"] = parts.as_slice() else {
        return Claim::NotMine;
    };
    let versions = root.join("node-versions");
    let prefix = versions.join(name).join("installation");
    let spot = Spot {
        prefix: &prefix,
        within: &versions,
    };
    if let Some(guest) = draft.place(Kind::Fnm, spot, Tree::Parts(NODE_PARTS), "a Node of fnm")
        && entry.origin.on_path()
    {
        draft.bin(guest.join("bin"));
    }
    Claim::Mine
}
