//! Toolchains asked for by name or by path. What cannot be had is an error here, not a note.

use std::path::{Path, PathBuf};

use glovebox_model::{Error, Result};

use super::draft::{Draft, Spot, Tree};
use super::entry::{self, Claim, Entry, Filter, Origin};
use super::guard::{Guard, Refusal};
use super::kind::Kind;
use super::mode::invalid;
use super::text::show;

/// What is active of this kind, or else what its usual places have.
pub(super) fn kind(draft: &mut Draft<'_>, kind: Kind) -> Result<()> {
    let before = draft.size();
    let notes = draft.notes().len();
    for entry in entry::active(draft.host) {
        entry::recognise(draft, &entry, Filter::Only(kind));
    }
    let usual = entry::usual(draft.host, kind);
    if draft.size() == before {
        for dir in &usual {
            let entry = Entry::new(dir, Origin::Asked);
            entry::recognise(draft, &entry, Filter::Only(kind));
        }
    }
    if draft.size() > before {
        return Ok(());
    }
    let mut error = invalid(format!(
        "toolchain `{kind}` was asked for and there is none to show"
    ));
    for note in &draft.notes()[notes..] {
        error = error.caused_by(note);
    }
    if let Some(place) = usual.first() {
        error = error.hint(format!(
            "it was looked for in `PATH` and in `{}`",
            show(place)
        ));
    }
    Err(error.hint("what is below `/usr` needs no `--toolchain`; any other place can be named by its absolute path"))
}

/// One directory, or one program.
pub(super) fn path(draft: &mut Draft<'_>, path: &Path) -> Result<()> {
    let real = path.canonicalize().map_err(|error| {
        invalid(format!("toolchain `{}` cannot be opened", show(path)))
            .caused_by(error)
            .hint("give the absolute path of a directory or of a program that exists")
    })?;
    if Guard::in_system(&real) {
        draft.note(format!("`{}` is in every sandbox already", show(path)));
        return Ok(());
    }
    if !real.starts_with(draft.guard.workspace()) && draft.stands_in_workspace(path) {
        return Err(refused(path, &Refusal::WorkspaceLink));
    }
    let named: PathBuf = entry::usable(path).unwrap_or_else(|| real.clone());
    if let Some(kind) = manager_at(draft, &real) {
        return self::kind(draft, kind);
    }
    if real.is_file() {
        let why = "asked for by path";
        return match draft.try_file(Kind::Path, &real, &named, why) {
            Ok(()) => {
                draft.bin(named.parent().unwrap_or(&named).to_owned());
                Ok(())
            }
            Err(refusal) => Err(refused(path, &refusal)),
        };
    }
    if known_prefix(draft, &named) == Claim::Mine {
        return Ok(());
    }
    let guest = draft
        .try_place(
            Kind::Path,
            Spot::itself(&named),
            Tree::Whole,
            "asked for by path",
        )
        .map_err(|refusal| refused(path, &refusal))?;
    let bin = if real.join("bin").is_dir() {
        guest.join("bin")
    } else {
        guest
    };
    draft.bin(bin);
    Ok(())
}

/// A manager's whole directory stands for the manager: it can hold credentials beside versions.
fn manager_at(draft: &mut Draft<'_>, real: &Path) -> Option<Kind> {
    Kind::ALL.iter().copied().find(|kind| {
        entry::root(draft.host, *kind)
            .and_then(|root| draft.real(&root))
            .is_some_and(|root| root == real)
    })
}

/// A prefix that some kind knows is shown as that kind shows it: an environment comes with its
/// Python, and a conda base without all others' environments.
fn known_prefix(draft: &mut Draft<'_>, prefix: &Path) -> Claim {
    let before = draft.size();
    let kinds: Vec<Kind> = Kind::ALL
        .iter()
        .copied()
        .filter(|kind| *kind != Kind::Opt)
        .collect();
    let bin = Entry::new(&prefix.join("bin"), Origin::Asked);
    entry::recognise(draft, &bin, Filter::Among(&kinds));
    if draft.size() > before {
        Claim::Mine
    } else {
        Claim::NotMine
    }
}

fn refused(path: &Path, refusal: &Refusal) -> Error {
    invalid(format!("`{}` cannot be a toolchain: {refusal}", show(path)))
        .hint("name the directory of one toolchain, such as `~/.pyenv/versions/3.12.1`, or one program")
        .hint("or copy what is needed into the workspace")
}
