//! conda, mamba and micromamba: a prefix with `conda-meta`. The base prefix also holds every other
//! environment, the package cache and `.condarc`, so a prefix is never shown whole.

use std::path::{Path, PathBuf};

use super::draft::{Draft, Spot, Tree};
use super::entry::{Claim, Entry};
use super::host::Host;
use super::kind::Kind;

/// Not `conda-meta` either: the addresses of channels in it can hold tokens.
const PARTS: &[&str] = &[
    "bin",
    "compiler_compat",
    "include",
    "lib",
    "lib64",
    "libexec",
    "mkspecs",
    "plugins",
    "sbin",
    "share",
    "ssl",
    "x86_64-conda-linux-gnu",
    "aarch64-conda-linux-gnu",
];

const BASES_IN_HOME: &[&str] = &[
    "miniconda3",
    "miniforge3",
    "anaconda3",
    "mambaforge",
    "micromamba",
    "miniconda",
    "anaconda",
    ".conda",
    ".local/share/mamba",
];

/// The base prefixes that conda itself or its installers would use.
fn bases(host: &Host) -> Vec<PathBuf> {
    let by_program = host
        .dir_var("CONDA_EXE")
        .and_then(|program| Some(program.parent()?.parent()?.to_owned()));
    let by_name = BASES_IN_HOME.iter().filter_map(|name| host.in_home(name));
    by_program
        .into_iter()
        .chain(host.dir_var("MAMBA_ROOT_PREFIX"))
        .chain(by_name)
        .chain([host.opt.join("conda"), host.opt.join("miniconda3")])
        .collect()
}

pub(super) fn recognise(draft: &mut Draft<'_>, entry: &Entry) -> Claim {
    let Some(prefix) = entry.prefix() else {
        return Claim::NotMine;
    };
    if !prefix.join("conda-meta").is_dir() {
        return Claim::NotMine;
    }
    if !entry.origin.trusted() && !below_a_base(draft, prefix) {
        return Claim::NotMine;
    }
    let why = "a conda environment";
    let placed = draft.place(Kind::Conda, Spot::itself(prefix), Tree::Parts(PARTS), why);
    if let Some(guest) = placed
        && entry.origin.on_path()
    {
        if draft.host.dir_var("CONDA_PREFIX").as_deref() == Some(prefix) {
            draft.env("CONDA_PREFIX", &guest);
            if let Some(name) = draft.host.text_var("CONDA_DEFAULT_ENV") {
                draft.env("CONDA_DEFAULT_ENV", Path::new(name));
            }
        }
        draft.bin(guest.join("bin"));
    }
    Claim::Mine
}

fn below_a_base(draft: &mut Draft<'_>, prefix: &Path) -> bool {
    bases(draft.host).iter().any(|base| {
        let Some((real, base)) = draft.real(prefix).zip(draft.real(base)) else {
            return false;
        };
        real == base
            || real
                .strip_prefix(base)
                .is_ok_and(|rest| rest.starts_with("envs") && rest.iter().count() == 2)
    })
}

pub(super) fn usual(host: &Host) -> Vec<PathBuf> {
    host.dir_var("CONDA_PREFIX")
        .into_iter()
        .chain(bases(host))
        .map(|prefix| prefix.join("bin"))
        .find(|bin| bin.is_dir())
        .into_iter()
        .collect()
}
