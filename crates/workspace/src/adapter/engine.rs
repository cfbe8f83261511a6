//! Where our directories lie for a container engine that sees the host from another place.

use std::path::{Component, Path, PathBuf};

use glovebox_model::{Code, Error, Result, Stage};

use super::fault::PathFault;
use super::host::HostPath;
use super::posix::PosixPath;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineView {
    /// It sees the same files at the same places.
    Same,
    /// Each directory of ours lies at another place there, which may be one of Windows.
    At(Vec<(PathBuf, HostPath)>),
}

impl EngineView {
    /// `theirs` is where the engine sees `ours`: the setting `host_state_dir`.
    pub fn at(ours: &Path, theirs: &str) -> Result<Self> {
        let theirs = HostPath::parse(theirs).map_err(|fault| {
            Error::new(
                Code::InvalidConfig,
                Stage::Resolve,
                format!("`{}` {fault}", crate::relpath::shown(theirs.as_bytes())),
            )
            .hint(fault.way_out())
        })?;
        Ok(Self::At(vec![(ours.to_path_buf(), theirs)]))
    }

    /// The nearest directory decides; a path in none of them is refused.
    pub fn translate(&self, path: &Path) -> Result<HostPath> {
        let (start, rest) = match self {
            Self::Same => (HostPath::Posix(PosixPath::root()), path),
            Self::At(places) => places
                .iter()
                .filter_map(|(ours, theirs)| Some((ours, theirs, path.strip_prefix(ours).ok()?)))
                .max_by_key(|(ours, _, _)| ours.components().count())
                .map(|(_, theirs, rest)| (theirs.clone(), rest))
                .ok_or_else(|| unseen(path))?,
        };
        let fault = |fault: PathFault| {
            Error::new(
                Code::WorkspaceRefused,
                Stage::Open,
                "the workspace cannot be given to a container",
            )
            .caused_by(format!("its path {fault}"))
            .hint(fault.way_out())
        };
        let mut at = start;
        for part in rest.components() {
            let name = match part {
                Component::Normal(name) => {
                    name.to_str().ok_or_else(|| fault(PathFault::NotUtf8))?
                }
                Component::RootDir => continue,
                Component::ParentDir => return Err(fault(PathFault::Traversal)),
                Component::CurDir | Component::Prefix(_) => {
                    return Err(fault(PathFault::NotAbsolute));
                }
            };
            at = at.join(name).map_err(fault)?;
        }
        match (self, path.is_absolute()) {
            (Self::Same, false) => Err(fault(PathFault::NotAbsolute)),
            _ => Ok(at),
        }
    }
}

fn unseen(path: &Path) -> Error {
    Error::new(
        Code::BackendUnavailable,
        Stage::Open,
        "Glovebox runs in a container, and the engine outside cannot see its directory",
    )
    .caused_by(format!(
        "`{}` is in no volume of this container",
        path.display()
    ))
    .hint("put the state directory on a bind mount, or set `host_state_dir` to where it lies on the host")
}
