//! Virtual environments (venv, virtualenv, poetry, uv …): a directory with `pyvenv.cfg`, and the
//! Python that it is built on.

use std::path::{Path, PathBuf};

use super::draft::{Draft, Spot, Tree};
use super::entry::{self, Claim, Entry, Filter, Origin};
use super::guard::Guard;
use super::host::Host;
use super::kind::Kind;
use super::text::{self, Links, show};

/// Not `pip.conf`, which can name an index with a password.
const PARTS: &[&str] = &[
    "bin",
    "include",
    "lib",
    "lib64",
    "libexec",
    "share",
    "pyvenv.cfg",
];

/// Where the Python of an environment can come from. No environment is built on another one.
const BASES: &[Kind] = &[
    Kind::Pyenv,
    Kind::Uv,
    Kind::Conda,
    Kind::Asdf,
    Kind::Mise,
    Kind::Homebrew,
];

pub(super) fn recognise(draft: &mut Draft<'_>, entry: &Entry) -> Claim {
    let Some(prefix) = entry.prefix() else {
        return Claim::NotMine;
    };
    if !is_venv(prefix) {
        return Claim::NotMine;
    }
    if let Some(guest) = adopt(draft, Kind::Venv, prefix, entry.origin)
        && entry.origin.on_path()
    {
        draft.env("VIRTUAL_ENV", &guest);
        draft.bin(guest.join("bin"));
    }
    Claim::Mine
}

pub(super) fn is_venv(prefix: &Path) -> bool {
    prefix
        .join("pyvenv.cfg")
        .symlink_metadata()
        .is_ok_and(|meta| meta.is_file())
}

/// Shows an environment and its Python. One in the workspace is shown at its host path too, for
/// that is what the first line of its scripts says.
pub(super) fn adopt(
    draft: &mut Draft<'_>,
    kind: Kind,
    prefix: &Path,
    origin: Origin,
) -> Option<PathBuf> {
    let real = draft.real(prefix)?;
    let workspace = draft.guard.workspace().to_owned();
    let (spot, tree, origin) = if real.starts_with(&workspace) {
        (Spot::itself(prefix), Tree::Whole, Origin::Project)
    } else if origin.trusted() {
        (Spot::itself(prefix), Tree::Parts(PARTS), Origin::Base)
    } else {
        let spot = Spot {
            prefix,
            within: &workspace,
        };
        (spot, Tree::Whole, Origin::Project)
    };
    let guest = draft.place(kind, spot, tree, "a virtual environment")?;
    base(draft, &real, origin);
    Some(guest)
}

fn base(draft: &mut Draft<'_>, prefix: &Path, origin: Origin) {
    let config = text::read(&prefix.join("pyvenv.cfg"), Links::Refuse).unwrap_or_default();
    let home = config
        .lines()
        .filter_map(|line| line.split_once('='))
        .find(|(key, _)| key.trim() == "home")
        .map(|(_, value)| PathBuf::from(value.trim()));
    let python = prefix.join("bin/python");
    let link = python.read_link().ok();
    let real = python.canonicalize().ok();
    let of_link = |link: Option<PathBuf>| link.and_then(|path| Some(path.parent()?.to_owned()));

    let mut tried: Vec<PathBuf> = Vec::new();
    for bin in [home, of_link(link), of_link(real)].into_iter().flatten() {
        if bin.is_absolute() && !bin.starts_with(prefix) && !tried.contains(&bin) {
            one_base(draft, &bin, origin);
            tried.push(bin);
        }
    }
}

fn one_base(draft: &mut Draft<'_>, bin: &Path, origin: Origin) {
    if Guard::in_system(bin) {
        return;
    }
    let claim = match entry::usable(bin) {
        Some(dir) => entry::recognise(draft, &Entry::new(&dir, origin), Filter::Among(BASES)),
        None => Claim::NotMine,
    };
    if claim == Claim::NotMine {
        draft.note(format!(
            "venv: its Python is in `{}`, which is no known toolchain; if it is one, add \
             `--toolchain {}`",
            show(bin),
            show(bin.parent().unwrap_or(bin)),
        ));
    }
}

pub(super) fn usual(host: &Host) -> Vec<PathBuf> {
    let active = host.dir_var("VIRTUAL_ENV");
    let project = [".venv", "venv"].map(|name| host.cwd.join(name));
    active
        .into_iter()
        .chain(project)
        .map(|prefix| prefix.join("bin"))
        .collect()
}
