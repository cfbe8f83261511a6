//! Pythons that uv installed. uv's tools are in `local_bin`.

use std::path::PathBuf;

use super::draft::{Draft, Spot, Tree};
use super::entry::{Claim, Entry};
use super::host::Host;
use super::kind::Kind;
use super::pyenv::PYTHON_PARTS;
use super::{text, version};

fn pythons(host: &Host) -> Option<PathBuf> {
    host.place("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python")
}

pub(super) fn tools(host: &Host) -> Option<PathBuf> {
    host.place("UV_TOOL_DIR", ".local/share/uv/tools")
}

pub(super) fn recognise(draft: &mut Draft<'_>, entry: &Entry) -> Claim {
    let Some(pythons) = pythons(draft.host) else {
        return Claim::NotMine;
    };
    let Some(below) = draft.below(Kind::Uv, &entry.dir, &pythons) else {
        return Claim::NotMine;
    };
    let parts: Vec<&str> = below.iter().filter_map(|part| part.to_str()).collect();
    let [name, "bin"] = parts.as_slice() else {
        return Claim::NotMine;
    };
    let prefix = pythons.join(name);
    let spot = Spot {
        prefix: &prefix,
        within: &pythons,
    };
    if let Some(guest) = draft.place(Kind::Uv, spot, Tree::Parts(PYTHON_PARTS), "a Python of uv")
        && entry.origin.on_path()
    {
        draft.bin(guest.join("bin"));
    }
    Claim::Mine
}

/// The version of the nearest `.python-version`, or the newest.
pub(super) fn usual(host: &Host) -> Vec<PathBuf> {
    let Some(pythons) = pythons(host) else {
        return Vec::new();
    };
    let wanted = text::nearest(&host.cwd, &[".python-version"])
        .and_then(|(_, text)| version::name(text.lines().next()?).map(str::to_owned));
    let begin = |name: &str, stop: char| format!("cpython-{name}{stop}");
    let found = match &wanted {
        Some(name) => version::newest(&pythons, |dir| {
            dir.starts_with(&begin(name, '.')) || dir.starts_with(&begin(name, '-'))
        }),
        None => version::newest(&pythons, |dir| dir.starts_with("cpython-")),
    };
    found.into_iter().map(|prefix| prefix.join("bin")).collect()
}
