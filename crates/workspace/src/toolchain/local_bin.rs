//! `~/.local/bin` and `~/bin`: directories where everything meets. They are never shown; of what is
//! in them, links into a known toolchain or into `/usr` are made again, one by one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::draft::Draft;
use super::entry::{self, Claim, Entry, Filter, Origin};
use super::guard::Guard;
use super::host::Host;
use super::kind::Kind;
use super::{uv, venv};

/// Each tool is an environment with several mounts of its own.
const MOST_TOOLS: usize = 16;
const MOST_LINKS: usize = 512;

const INTERPRETERS: &[Kind] = &[
    Kind::Pyenv,
    Kind::Uv,
    Kind::Nvm,
    Kind::Fnm,
    Kind::Asdf,
    Kind::Mise,
    Kind::Sdkman,
    Kind::Go,
];

pub(super) fn is_mixed(host: &Host, dir: &Path) -> bool {
    usual(host).iter().any(|mixed| mixed == dir)
}

pub(super) fn usual(host: &Host) -> Vec<PathBuf> {
    [".local/bin", "bin"]
        .iter()
        .filter_map(|dir| host.in_home(dir))
        .collect()
}

pub(super) fn scan(draft: &mut Draft<'_>, entry: &Entry, filter: Filter<'_>) {
    let interpreters: Vec<Kind> = INTERPRETERS
        .iter()
        .copied()
        .filter(|kind| filter.allows(*kind))
        .collect();
    let mut tools = 0;
    for (name, target) in links(draft, &entry.dir) {
        let into_known = if let Some((kind, prefix)) = tool(draft, &target) {
            let wanted = filter.allows(kind) && entry.origin.on_path();
            if wanted && tools == MOST_TOOLS {
                draft.note(format!(
                    "{kind}: only the first {MOST_TOOLS} tools are shown; `--toolchain` shows \
                     another one by its path"
                ));
            }
            let shown = wanted && tools < MOST_TOOLS;
            tools += usize::from(shown);
            shown && venv::adopt(draft, kind, &prefix, Origin::Base).is_some()
        } else if Guard::in_system(&target) {
            matches!(filter, Filter::Any)
        } else {
            interpreter(draft, entry, &target, &interpreters) == Claim::Mine
        };
        if into_known {
            draft.link(&entry.dir.join(name), &target, entry.origin);
        }
    }
}

/// The toolchain of an interpreter, without putting the rest of its `bin` into `PATH`.
fn interpreter(draft: &mut Draft<'_>, entry: &Entry, target: &Path, kinds: &[Kind]) -> Claim {
    let origin = if entry.origin.trusted() {
        Origin::Base
    } else {
        Origin::Project
    };
    match target.parent() {
        Some(dir) if !is_mixed(draft.host, dir) => {
            entry::recognise(draft, &Entry::new(dir, origin), Filter::Among(kinds))
        }
        _ => Claim::NotMine,
    }
}

/// The links in `dir` and where they really lead, what is to be run before all others.
fn links(draft: &Draft<'_>, dir: &Path) -> Vec<(OsString, PathBuf)> {
    let found = dir.read_dir().into_iter().flatten().flatten();
    let mut names: Vec<OsString> = found
        .filter(|file| file.file_type().is_ok_and(|kind| kind.is_symlink()))
        .take(MOST_LINKS)
        .map(|file| file.file_name())
        .collect();
    names.sort_by_key(|name| (*name != draft.request.command, name.clone()));
    names
        .into_iter()
        .filter_map(|name| Some((name.clone(), dir.join(name).canonicalize().ok()?)))
        .collect()
}

/// The environment that pipx or uv made for one tool, if `program` is in such a one.
fn tool(draft: &mut Draft<'_>, program: &Path) -> Option<(Kind, PathBuf)> {
    let host = draft.host;
    let pipx = host.dir_var("PIPX_HOME").map(|home| home.join("venvs"));
    let places = [
        (Kind::Uv, uv::tools(host)),
        (Kind::Pipx, pipx),
        (Kind::Pipx, host.in_home(".local/share/pipx/venvs")),
        (Kind::Pipx, host.in_home(".local/pipx/venvs")),
    ];
    for (kind, place) in places {
        let Some(place) = place else { continue };
        let Some(real) = draft.real(&place) else {
            continue;
        };
        let Ok(below) = program.strip_prefix(&real) else {
            continue;
        };
        let mut parts = below.iter();
        let prefix = place.join(parts.next()?);
        let in_bin = parts.next().is_some_and(|part| part == "bin");
        return (in_bin && venv::is_venv(&prefix)).then_some((kind, prefix));
    }
    None
}
