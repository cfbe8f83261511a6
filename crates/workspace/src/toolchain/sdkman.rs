//! Java and its relatives by SDKMAN: `candidates/NAME/current`, a link to a version.

use std::path::{Path, PathBuf};

use super::draft::{Draft, Spot, Tree};
use super::entry::{Claim, Entry};
use super::host::Host;
use super::kind::Kind;

/// Not `conf` and `init.d`: Maven's `settings.xml` and Gradle's scripts can hold passwords.
const PARTS: &[&str] = &[
    "bin",
    "boot",
    "conf/logging",
    "include",
    "lib",
    "libexec",
    "plugins",
    "share",
];

pub(super) fn root(host: &Host) -> Option<PathBuf> {
    host.place("SDKMAN_DIR", ".sdkman")
}

pub(super) fn usual(host: &Host) -> Vec<PathBuf> {
    let Some(candidates) = root(host).map(|root| root.join("candidates")) else {
        return Vec::new();
    };
    let names = candidates.read_dir().into_iter().flatten().flatten();
    let mut bins: Vec<PathBuf> = names
        .take(100)
        .map(|name| name.path().join("current/bin"))
        .filter(|bin| bin.is_dir())
        .collect();
    bins.sort();
    bins
}

pub(super) fn recognise(draft: &mut Draft<'_>, entry: &Entry) -> Claim {
    let Some(root) = root(draft.host) else {
        return Claim::NotMine;
    };
    let Some(below) = draft.below(Kind::Sdkman, &entry.dir, &root) else {
        return Claim::NotMine;
    };
    let parts: Vec<&str> = below.iter().filter_map(|part| part.to_str()).collect();
    let ["candidates", name, version, "bin"] = parts.as_slice() else {
        return Claim::NotMine;
    };
    let candidate = root.join("candidates").join(name);
    let prefix = candidate.join(version);
    let spot = Spot {
        prefix: &prefix,
        within: &candidate,
    };
    let tree = if *name == "java" {
        Tree::Whole
    } else {
        Tree::Parts(PARTS)
    };
    if let Some(guest) = draft.place(Kind::Sdkman, spot, tree, "a candidate of SDKMAN")
        && entry.origin.on_path()
    {
        if *name == "java" && is_java_home(draft, &prefix) {
            draft.env("JAVA_HOME", &guest);
        }
        draft.bin(guest.join("bin"));
    }
    Claim::Mine
}

fn is_java_home(draft: &mut Draft<'_>, prefix: &Path) -> bool {
    let Some(home) = draft.host.dir_var("JAVA_HOME") else {
        return false;
    };
    draft
        .real(&home)
        .is_some_and(|home| draft.real(prefix) == Some(home))
}
