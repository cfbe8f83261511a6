//! Deno and Bun: one program each, in a `bin` of its own.

use std::path::{Path, PathBuf};

use super::draft::{Draft, Spot, Tree};
use super::entry::{Claim, Entry};
use super::host::Host;
use super::kind::Kind;

pub(super) fn root(host: &Host, kind: Kind) -> Option<PathBuf> {
    match kind {
        Kind::Deno => host.place("DENO_INSTALL", ".deno"),
        Kind::Bun => host.place("BUN_INSTALL", ".bun"),
        _ => None,
    }
}

pub(super) fn usual(host: &Host, kind: Kind) -> Vec<PathBuf> {
    root(host, kind)
        .map(|root| root.join("bin"))
        .into_iter()
        .collect()
}

pub(super) fn recognise(draft: &mut Draft<'_>, entry: &Entry, kind: Kind) -> Claim {
    let Some(root) = root(draft.host, kind) else {
        return Claim::NotMine;
    };
    if draft.below(kind, &entry.dir, &root).as_deref() != Some(Path::new("bin")) {
        return Claim::NotMine;
    }
    let bin = root.join("bin");
    let spot = Spot {
        prefix: &bin,
        within: &root,
    };
    if let Some(guest) = draft.place(kind, spot, Tree::Whole, "a JavaScript runtime")
        && entry.origin.on_path()
    {
        draft.bin(guest);
    }
    Claim::Mine
}
