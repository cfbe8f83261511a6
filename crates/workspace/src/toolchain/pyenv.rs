//! pyenv. Its shims need all of pyenv, so the selected version stands in for them.

use std::path::{Path, PathBuf};

use super::draft::{Draft, Spot, Tree};
use super::entry::{Claim, Entry};
use super::host::Host;
use super::kind::Kind;
use super::text::{self, Links};
use super::{venv, version};

/// Of any installed Python: not its `envs`, which are other projects', nor `pip.conf`.
pub(super) const PYTHON_PARTS: &[&str] = &[
    "bin", "include", "lib", "lib64", "libexec", "openssl", "share",
];

pub(super) fn root(host: &Host) -> Option<PathBuf> {
    host.place("PYENV_ROOT", ".pyenv")
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
    let Some(below) = draft.below(Kind::Pyenv, &entry.dir, &root) else {
        return Claim::NotMine;
    };
    let parts: Vec<&str> = below.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        ["shims"] => {
            for name in selected(draft.host, &root) {
                one(draft, entry, &root, &name);
            }
            Claim::Mine
        }
        ["versions", name, "bin"] => {
            one(draft, entry, &root, name);
            Claim::Mine
        }
        // Its own scripts: of no use without the rest.
        ["bin"] | ["plugins", ..] => Claim::Mine,
        _ => Claim::NotMine,
    }
}

/// What pyenv would take: its variable, the nearest `.python-version`, its own `version`.
fn selected(host: &Host, root: &Path) -> Vec<String> {
    let words = |text: &str| -> Vec<String> {
        text.lines()
            .map(|line| line.split('#').next().unwrap_or_default())
            .flat_map(|line| line.split([':', ' ', '\t', '\r']))
            .filter(|word| !word.is_empty())
            .take(16)
            .map(str::to_owned)
            .collect()
    };
    if let Some(text) = host.text_var("PYENV_VERSION") {
        return words(text);
    }
    if let Some((_, text)) = text::nearest(&host.cwd, &[".python-version"]) {
        return words(&text);
    }
    text::read(&root.join("version"), Links::Follow)
        .map(|text| words(&text))
        .unwrap_or_default()
}

fn one(draft: &mut Draft<'_>, entry: &Entry, root: &Path, wanted: &str) {
    if wanted == "system" {
        return;
    }
    let versions = root.join("versions");
    let found = version::name(wanted)
        .map(|name| name.strip_prefix("python-").unwrap_or(name))
        .and_then(|name| version::installed(&versions, name));
    let Some(prefix) = found else {
        let named = version::name(wanted).unwrap_or("what the version file says");
        draft.note(format!(
            "pyenv: `{named}` is selected and not installed; `pyenv versions` lists what is"
        ));
        return;
    };
    let guest = if venv::is_venv(&prefix) && is_own(draft, &prefix, &versions) {
        venv::adopt(draft, Kind::Pyenv, &prefix, entry.origin)
    } else {
        let spot = Spot {
            prefix: &prefix,
            within: &versions,
        };
        let why = "a Python of pyenv";
        draft.place(Kind::Pyenv, spot, Tree::Parts(PYTHON_PARTS), why)
    };
    if let Some(guest) = guest
        && entry.origin.on_path()
    {
        draft.bin(guest.join("bin"));
    }
}

/// An environment of pyenv-virtualenv is a link to `versions/VERSION/envs/NAME`.
fn is_own(draft: &mut Draft<'_>, prefix: &Path, versions: &Path) -> bool {
    let real = draft.real(prefix).zip(draft.real(versions));
    real.is_some_and(|(prefix, versions)| prefix.starts_with(versions))
}
