//! A directory of the host's inside a container. The text of the option is written by the path
//! itself, here as everywhere.

use std::path::Path;

use glovebox_model::{Access, Code, Error, Result, Stage};
use glovebox_workspace::adapter::{HostPath, PathFault, PosixPath};

/// The value of one `--mount`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount(String);

impl Mount {
    /// `source` as the engine knows it; None when there is nothing to mount.
    pub(super) fn new(source: &HostPath, target: &str, access: Access) -> Result<Option<Self>> {
        let target = PosixPath::parse(target).map_err(|fault| refused("target", target, fault))?;
        match source.mount_option(&target, access) {
            Ok(option) => Ok(option.map(Self)),
            Err(fault) => Err(refused("source", &source.to_string(), fault)),
        }
    }

    pub(super) fn option(&self) -> &str {
        &self.0
    }
}

/// A path of this machine that the engine knows by the same name.
pub(super) fn on_host(path: &Path) -> std::result::Result<HostPath, PathFault> {
    let text = path.to_str().ok_or(PathFault::NotUtf8)?;
    PosixPath::parse(text).map(HostPath::Posix)
}

fn refused(side: &str, path: &str, fault: PathFault) -> Error {
    Error::new(
        Code::WorkspaceRefused,
        Stage::Open,
        "a directory cannot be given to a container",
    )
    .caused_by(format!("its {side} `{}` {fault}", path.escape_debug()))
    .hint(fault.way_out())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(source: &str, access: Access) -> Result<Option<String>> {
        let source = HostPath::parse(source).unwrap();
        let mount = Mount::new(&source, "/workspace/work", access)?;
        Ok(mount.map(|it| it.option().to_owned()))
    }

    #[test]
    fn no_path_adds_an_option() -> Result<()> {
        let sly = "/srv/w,target=/etc,readonly=false,\"x";
        assert_eq!(
            option(sly, Access::Ro)?.as_deref(),
            Some(
                "type=bind,\"source=/srv/w,target=/etc,readonly=false,\"\"x\",target=/workspace/work,readonly"
            )
        );
        assert_eq!(option(sly, Access::None)?, None);
        Ok(())
    }

    #[test]
    fn a_share_of_the_network_is_refused_with_the_way_out() {
        let error = option(r"\\server\share\work", Access::Rw).unwrap_err();
        assert_eq!(error.code, Code::WorkspaceRefused);
        assert_eq!(error.hints, ["use a directory of a local drive"]);
    }
}
