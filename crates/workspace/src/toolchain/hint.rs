//! What to say when a command is on the host and not in the sandbox.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::guard::Guard;
use super::host::Host;
use super::kind::Kind;
use super::mode::Mode;
use super::text::show;
use super::{Downloads, Request, Shape, Toolchains, detect, entry};

/// One sentence for exit status 127, if the caller's `PATH` has the command. `visible` tells
/// whether the sandbox has a path.
pub fn hint_for_missing(
    command: &OsStr,
    host: &Host,
    toolchains: &Toolchains,
    visible: impl Fn(&Path) -> bool,
) -> Option<String> {
    let file = on_host(host, command)?;
    let shown = show(Path::new(command));
    if visible(&file) || kind_that_gives(toolchains, &file).is_some_and(|(_, at)| visible(&at)) {
        return None;
    }
    if let Ok(inside) = file.strip_prefix(&host.cwd) {
        let inside = show(inside);
        return Some(format!(
            "`{shown}` is in the workspace: run it as `./{inside}`"
        ));
    }
    let at = format!("`{shown}` is `{}` on the host", show(&file));
    let auto = Request {
        command: command.to_owned(),
        mode: Mode::Auto,
        downloads: Downloads::Possible,
    };
    let auto = detect(host, &auto).unwrap_or_default();
    if let Some((kind, _)) = kind_that_gives(&auto, &file) {
        let by_name = match kind {
            Kind::Opt | Kind::Path => String::new(),
            kind => format!(" or `--toolchain {kind}`"),
        };
        return Some(format!("{at}: add `--toolchain auto`{by_name}"));
    }
    if let Some(kind) = shim_of(host, &file) {
        let note = auto.notes.iter().find(|note| note.starts_with(kind.name()));
        return Some(match note {
            Some(note) => format!("{at}, a shim of {kind}; {note}"),
            None => format!("{at}, a shim of {kind}, and the selected version does not have it"),
        });
    }
    Some(by_path(host, &file, &at))
}

fn on_host(host: &Host, command: &OsStr) -> Option<PathBuf> {
    let runs = |file: &PathBuf| {
        file.metadata()
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if command.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(command)).filter(|file| file.is_absolute() && runs(file));
    }
    std::env::split_paths(&host.path)
        .filter(|dir| dir.is_absolute() && !command.is_empty())
        .map(|dir| dir.join(command))
        .find(runs)
}

/// The kind of the mount through which the command is found, and its path in the sandbox.
fn kind_that_gives(toolchains: &Toolchains, file: &Path) -> Option<(Kind, PathBuf)> {
    let name = file.file_name()?;
    let by_path = toolchains.path.iter().map(|dir| dir.join(name));
    by_path.chain([file.to_owned()]).find_map(|guest| {
        let link = toolchains.links.iter().find(|link| link.guest == guest);
        let target = link.map_or(&guest, |link| &link.target);
        if link.is_some() && Guard::in_system(target) {
            return Some((Kind::Path, guest));
        }
        let kind = toolchains.mounts.iter().find_map(|mount| {
            let below = target.strip_prefix(&mount.guest).ok()?;
            // An empty rest would add a slash, and a program is no directory.
            let on_host = match mount.shape {
                Shape::File => mount.host.clone(),
                Shape::Directory => mount.host.join(below),
            };
            (on_host.is_file() && !is_proxy(&on_host)).then_some(mount.kind)
        })?;
        Some((kind, guest))
    })
}

/// A proxy of rustup is found in `bin` and does nothing without rustup.
fn is_proxy(program: &Path) -> bool {
    program
        .read_link()
        .is_ok_and(|target| target.file_name() == Some(OsStr::new("rustup")))
}

fn shim_of(host: &Host, file: &Path) -> Option<Kind> {
    let dir = file.parent()?;
    [
        Kind::Pyenv,
        Kind::Asdf,
        Kind::Mise,
        Kind::Volta,
        Kind::Rustup,
    ]
    .into_iter()
    .find(|kind| entry::usual(host, *kind).iter().any(|shims| shims == dir))
}

fn by_path(host: &Host, file: &Path, at: &str) -> String {
    let guard = Guard::new(host);
    let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    if Guard::in_system(&real) {
        return format!("{at}, a link: run `{}`", show(&real));
    }
    let prefix = real.parent().and_then(|dir| {
        let prefix = dir.parent()?;
        (dir.file_name() == Some(OsStr::new("bin")) && guard.check(prefix).is_ok())
            .then_some(prefix)
    });
    match (prefix, guard.check(&real)) {
        (Some(prefix), _) => format!("{at}: add `--toolchain {}`", show(prefix)),
        (None, Ok(())) => format!("{at}: add `--toolchain {}`", show(file)),
        (None, Err(refusal)) => format!(
            "{at}, which is not shown to a sandbox since {refusal}: copy it into the workspace or \
             install it below `/usr/local`"
        ),
    }
}
