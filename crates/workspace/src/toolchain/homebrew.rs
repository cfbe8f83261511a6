//! Homebrew on Linux. Its programs are links from `bin` into `Cellar`; `var` is data of services
//! and `etc` their settings, so of these only the certificates are shown.

use std::path::{Path, PathBuf};

use super::draft::{Draft, Spot, Tree};
use super::entry::{Claim, Entry};
use super::host::Host;
use super::kind::Kind;

const PARTS: &[&str] = &[
    "bin",
    "Cellar",
    "etc/ca-certificates",
    "include",
    "lib",
    "libexec",
    "opt",
    "sbin",
    "share",
];

pub(super) fn root(host: &Host) -> PathBuf {
    host.dir_var("HOMEBREW_PREFIX")
        .unwrap_or_else(|| host.linuxbrew.clone())
}

pub(super) fn usual(host: &Host) -> Vec<PathBuf> {
    vec![root(host).join("bin")]
}

pub(super) fn recognise(draft: &mut Draft<'_>, entry: &Entry) -> Claim {
    let in_home = draft.host.in_home(".linuxbrew");
    let roots = [Some(root(draft.host)), in_home];
    for root in roots.into_iter().flatten() {
        // A prefix such as `/usr/local` is in the sandbox already.
        if !root.join("Cellar").is_dir() {
            continue;
        }
        let Some(below) = draft.below(Kind::Homebrew, &entry.dir, &root) else {
            continue;
        };
        let why = "a Homebrew prefix";
        let placed = draft.place(Kind::Homebrew, Spot::itself(&root), Tree::Parts(PARTS), why);
        if let Some(guest) = placed
            && entry.origin.on_path()
        {
            draft.bin(guest.join(keep_inside(&below)));
        }
        return Claim::Mine;
    }
    Claim::NotMine
}

/// `bin`, `sbin`, `opt/NAME/bin`, or what a base interpreter names inside the Cellar.
fn keep_inside(below: &Path) -> &Path {
    let shown = PARTS.iter().any(|part| below.starts_with(part));
    if shown { below } else { Path::new("bin") }
}
