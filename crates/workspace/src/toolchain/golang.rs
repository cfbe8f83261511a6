//! Go: its root (anywhere, known by its marker files), and the programs that `go install` made.

use std::path::{Path, PathBuf};

use super::draft::{Draft, Spot, Tree};
use super::entry::{Claim, Entry};
use super::host::Host;
use super::kind::Kind;

/// An unpacked root can stand in a directory where other things are kept as well.
const PARTS: &[&str] = &[
    "bin",
    "go.env",
    "lib",
    "misc",
    "pkg/include",
    "pkg/tool",
    "src",
    "VERSION",
];

/// Where `go install` puts programs: a directory of programs and nothing else.
fn installed(host: &Host) -> Vec<PathBuf> {
    let gopath = host.place("GOPATH", "go").map(|path| path.join("bin"));
    host.dir_var("GOBIN").into_iter().chain(gopath).collect()
}

/// Not a workspace of older days, where a person's own sources are below `src` too.
fn is_root(prefix: &Path) -> bool {
    prefix.join("VERSION").is_file()
        && prefix.join("src/runtime").is_dir()
        && !prefix.join("src/github.com").exists()
}

pub(super) fn recognise(draft: &mut Draft<'_>, entry: &Entry) -> Claim {
    if !entry.origin.trusted() {
        return Claim::NotMine;
    }
    if let Some(prefix) = entry.prefix()
        && is_root(prefix)
    {
        let placed = draft.place(
            Kind::Go,
            Spot::itself(prefix),
            Tree::Parts(PARTS),
            "a Go root",
        );
        if let Some(guest) = placed
            && entry.origin.on_path()
        {
            if draft.host.dir_var("GOROOT").as_deref() == Some(prefix) {
                draft.env("GOROOT", &guest);
            }
            draft.bin(guest.join("bin"));
        }
        return Claim::Mine;
    }
    let Some(bin) = installed(draft.host)
        .into_iter()
        .find(|bin| *bin == entry.dir)
    else {
        return Claim::NotMine;
    };
    let Some(within) = bin.parent() else {
        return Claim::NotMine;
    };
    let spot = Spot {
        prefix: &bin,
        within,
    };
    if let Some(guest) = draft.place(Kind::Go, spot, Tree::Whole, "programs of Go")
        && entry.origin.on_path()
    {
        draft.bin(guest);
    }
    Claim::Mine
}

pub(super) fn usual(host: &Host) -> Vec<PathBuf> {
    let root = host
        .dir_var("GOROOT")
        .into_iter()
        .chain(
            [".local/go", "go", ".go"]
                .iter()
                .filter_map(|dir| host.in_home(dir)),
        )
        .find(|root| is_root(root));
    root.map(|root| root.join("bin"))
        .into_iter()
        .chain(installed(host))
        .collect()
}
