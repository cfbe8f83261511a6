//! Which of the caller's own interpreters a sandbox may see, read-only, and where its `PATH` then
//! looks. The caller's `PATH` is mirrored entry by entry: each one is claimed by at most one kind
//! of toolchain, and what no kind claims stays outside.
//!
//! The workspace is written by untrusted programs. Its files may choose among versions that a
//! known manager installed; they never make another directory visible. Nothing is mounted here,
//! and every host path handed out is canonical, so that whoever mounts it can refuse symlinks.

mod asdf;
mod conda;
mod draft;
mod entry;
mod fnm;
mod golang;
mod guard;
mod hint;
mod homebrew;
mod host;
mod kind;
mod local_bin;
mod mise;
mod mode;
mod named;
mod nvm;
mod opt;
mod pyenv;
mod rustup;
mod script;
mod sdkman;
mod text;
mod uv;
mod venv;
mod version;
mod volta;

use std::ffi::OsString;
use std::path::PathBuf;

use glovebox_model::Result;

use draft::Draft;
use entry::{Entry, Filter, Origin};

pub use hint::hint_for_missing;
pub use host::Host;
pub use kind::Kind;
pub use mode::{Mode, Wanted};

/// What the sandbox is asked to run, and what it may see for that.
#[derive(Debug, Clone)]
pub struct Request {
    /// `argv[0]`, as the caller wrote it.
    pub command: OsString,
    pub mode: Mode,
    pub downloads: Downloads,
}

/// Whether a package manager in the sandbox could fetch what it lacks. If not, what the caller
/// already has from a public registry is shown to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Downloads {
    Possible,
    Impossible,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Directory,
    File,
}

/// One read-only bind mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Canonical: no component of it was a symlink when it was looked at.
    pub host: PathBuf,
    /// Where the toolchain's own scripts expect it; mostly the same as `host`.
    pub guest: PathBuf,
    pub shape: Shape,
    pub kind: Kind,
    pub why: String,
}

/// One symlink to make in the sandbox's own root: an interpreter finds its library from where the
/// link leads, so a bind mount would not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub guest: PathBuf,
    pub target: PathBuf,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Toolchains {
    /// Sorted by guest path; none is inside another.
    pub mounts: Vec<Mount>,
    /// Each leads into a mount or into `/usr`; none is inside a mount.
    pub links: Vec<Link>,
    /// For the front of the sandbox's `PATH`, in the caller's order.
    pub path: Vec<PathBuf>,
    pub env: Vec<(String, String)>,
    /// What was left out, and the way to have it.
    pub notes: Vec<String>,
}

/// Finds what `request` may see. Only something asked for by name can fail; what `auto` leaves out
/// becomes a note.
pub fn detect(host: &Host, request: &Request) -> Result<Toolchains> {
    let mut draft = Draft::new(host, request);
    match &request.mode {
        Mode::Off => {}
        Mode::Auto => auto(&mut draft, request),
        Mode::Named(list) => {
            for wanted in list {
                match wanted {
                    Wanted::Auto => auto(&mut draft, request),
                    Wanted::Kind(kind) => named::kind(&mut draft, *kind)?,
                    Wanted::Path(path) => named::path(&mut draft, path)?,
                }
            }
        }
    }
    Ok(draft.finish())
}

fn auto(draft: &mut Draft<'_>, request: &Request) {
    for entry in entry::active(draft.host) {
        entry::recognise(draft, &entry, Filter::Any);
    }
    // A script in a project's environment starts with the environment's host path, whether or not
    // the environment is active.
    for name in [".venv", "venv"] {
        let bin = draft.host.cwd.join(name).join("bin");
        entry::recognise(
            draft,
            &Entry::new(&bin, Origin::Project),
            Filter::Only(Kind::Venv),
        );
    }
    if let Some(entry) = entry::of_command(draft.host, &request.command) {
        entry::recognise(draft, &entry, Filter::Any);
    }
}
