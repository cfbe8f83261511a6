//! The workspace's root out of the settings, which name it once for Windows and once for WSL.

use std::time::Duration;

use glovebox_model::{Access, Code, Error, Result, Stage};

use super::fault::PathFault;
use super::host::HostPath;
use super::posix::PosixPath;
use super::system::System;
use super::windows::WindowsPath;
use super::wsl::WslMounts;
use crate::relpath::{RelPath, shown};

/// How long whoever runs `wslpath` waits for it: it starts WSL when that does not run.
pub const WSLPATH_TIMEOUT: Duration = Duration::from_secs(5);

/// Their names below `[workspace]` in the configuration.
const WIN: &str = "root_win";
const WSL: &str = "root_wsl";

/// As they stand in the settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Roots {
    pub win: Option<String>,
    pub wsl: Option<String>,
}

/// What `wslpath` is asked when the root of this side is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// On Windows: how is this called here?
    Windows(PosixPath),
    /// In WSL: how is this called here?
    Posix(WindowsPath),
}

impl Question {
    /// What to run. Without `--exec` Windows would hand the path to a shell.
    pub fn command(&self) -> Vec<String> {
        match self {
            Self::Windows(path) => ["wsl.exe", "--exec", "wslpath", "-w"]
                .map(str::to_owned)
                .into_iter()
                .chain([path.to_string()])
                .collect(),
            Self::Posix(path) => vec!["wslpath".to_owned(), "-u".to_owned(), path.to_string()],
        }
    }
}

/// Who translates the one root when the other is missing.
pub enum Filler<'a> {
    /// The rules, which are right as long as [`WslMounts`] is.
    Rules(&'a WslMounts),
    /// `wslpath`, run by the caller for at most [`WSLPATH_TIMEOUT`]; an error says what went wrong.
    Wslpath(&'a mut dyn FnMut(&Question) -> std::result::Result<String, String>),
}

impl std::fmt::Debug for Filler<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Rules(_) => "Rules",
            Self::Wslpath(_) => "Wslpath",
        })
    }
}

/// The same directory for us and for the engine. On Windows both are paths of Windows, anywhere
/// else neither is: there is no other way to make one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapted(HostPath);

impl Adapted {
    pub fn new(
        system: System,
        roots: &Roots,
        mounts: &WslMounts,
        filler: Filler<'_>,
    ) -> Result<Self> {
        let path = match system {
            System::Windows => HostPath::Windows(on_windows(roots, filler)?),
            System::Wsl => HostPath::Posix(in_wsl(roots, mounts, filler)?),
            System::Posix => HostPath::Posix(on_posix(roots)?),
        };
        match path.is_whole_volume() {
            true => Err(refused(
                "the workspace's root",
                &path.to_string(),
                PathFault::WholeVolume,
            )),
            false => Ok(Self(path)),
        }
    }

    /// What this system opens.
    pub fn host_path_native(&self) -> String {
        self.0.native()
    }

    /// What the engine's command is given as the source of a `--mount`.
    pub fn docker_mount_path(&self) -> Result<String> {
        self.0.mount_source().map_err(|fault| self.fault(fault))
    }

    pub fn mount_option(&self, target: &PosixPath, access: Access) -> Result<Option<String>> {
        let option = self.0.mount_option(target, access);
        option.map_err(|fault| self.fault(fault))
    }

    /// A directory further down, as `projects/demo/work`.
    pub fn below(&self, path: &RelPath) -> Result<Self> {
        let mut inner = self.0.clone();
        for name in path.components() {
            inner = std::str::from_utf8(name)
                .map_err(|_| PathFault::NotUtf8)
                .and_then(|name| inner.join(name))
                .map_err(|fault| refused("the directory", &shown(path.as_bytes()), fault))?;
        }
        Ok(Self(inner))
    }

    pub fn path(&self) -> &HostPath {
        &self.0
    }

    fn fault(&self, fault: PathFault) -> Error {
        refused("the workspace", &self.0.to_string(), fault)
    }
}

fn on_windows(roots: &Roots, filler: Filler<'_>) -> Result<WindowsPath> {
    if let Some(text) = set(&roots.win) {
        return WindowsPath::parse(text).map_err(|fault| setting(WIN, text, fault));
    }
    let Some(text) = set(&roots.wsl) else {
        return Err(missing(WIN, "as `D:\\work`"));
    };
    let other = PosixPath::parse(text).map_err(|fault| setting(WSL, text, fault))?;
    match filler {
        Filler::Rules(mounts) => mounts
            .to_windows(&other)
            .map_err(|fault| untranslated(WIN, WSL, text, fault)),
        Filler::Wslpath(ask) => {
            let answer = answered(ask(&Question::Windows(other)), WIN, WSL, text)?;
            WindowsPath::parse(&answer).map_err(|fault| bad_answer(WIN, &answer, fault))
        }
    }
}

fn in_wsl(roots: &Roots, mounts: &WslMounts, filler: Filler<'_>) -> Result<PosixPath> {
    let path = match (set(&roots.wsl), set(&roots.win)) {
        (Some(text), _) => {
            let path = PosixPath::parse(text).map_err(|fault| setting(WSL, text, fault))?;
            mounts
                .check(&path)
                .map_err(|fault| setting(WSL, text, fault))?;
            path
        }
        (None, Some(text)) => {
            let other = WindowsPath::parse(text).map_err(|fault| setting(WIN, text, fault))?;
            match filler {
                Filler::Rules(mounts) => mounts
                    .to_posix(&other)
                    .map_err(|fault| untranslated(WSL, WIN, text, fault))?,
                Filler::Wslpath(ask) => {
                    let answer = answered(ask(&Question::Posix(other)), WSL, WIN, text)?;
                    PosixPath::parse(&answer).map_err(|fault| bad_answer(WSL, &answer, fault))?
                }
            }
        }
        (None, None) => return Err(missing(WSL, "as `/home/me/work` or `/mnt/d/work`")),
    };
    Ok(path)
}

/// Where there is no Windows the root of WSL is simply the root.
fn on_posix(roots: &Roots) -> Result<PosixPath> {
    match set(&roots.wsl) {
        Some(text) => PosixPath::parse(text).map_err(|fault| setting(WSL, text, fault)),
        None => Err(missing(
            WSL,
            "as `/srv/work`; there are no drives of Windows here",
        )),
    }
}

fn set(root: &Option<String>) -> Option<&str> {
    root.as_deref().filter(|text| !text.is_empty())
}

/// The one line that `wslpath` printed.
fn answered(
    answer: std::result::Result<String, String>,
    want: &str,
    have: &str,
    text: &str,
) -> Result<String> {
    let answer = answer.map_err(|why| {
        Error::new(
            Code::InvalidConfig,
            Stage::Resolve,
            format!("`{want}` is not set, and `wslpath` did not find it"),
        )
        .caused_by(shown(why.as_bytes()))
        .caused_by(format!("`{have}` is `{}`", shown(text.as_bytes())))
        .hint(set_it(want))
        .hint("or check that WSL is installed and starts: `wsl --status`")
    })?;
    let line = answer.strip_suffix('\n').unwrap_or(&answer);
    let line = line.strip_suffix('\r').unwrap_or(line);
    match line.contains(['\n', '\r']) {
        true => Err(bad_answer(want, line, PathFault::ManyLines)),
        false => Ok(line.to_owned()),
    }
}

fn refused(what: &str, text: &str, fault: PathFault) -> Error {
    let message = format!("{what} `{}` {fault}", shown(text.as_bytes()));
    Error::new(Code::InvalidConfig, Stage::Resolve, message).hint(fault.way_out())
}

fn setting(key: &str, text: &str, fault: PathFault) -> Error {
    refused(&format!("`{key}`"), text, fault)
}

fn bad_answer(want: &str, answer: &str, fault: PathFault) -> Error {
    refused("the answer of `wslpath`", answer, fault).hint(set_it(want))
}

fn untranslated(want: &str, have: &str, text: &str, fault: PathFault) -> Error {
    Error::new(
        Code::InvalidConfig,
        Stage::Resolve,
        format!("`{want}` is not set, and cannot be told from `{have}`"),
    )
    .caused_by(format!("`{}` {fault}", shown(text.as_bytes())))
    .hint(set_it(want))
    .hint(fault.way_out())
}

fn missing(key: &str, example: &str) -> Error {
    Error::new(
        Code::InvalidConfig,
        Stage::Resolve,
        format!("`{key}` is not set"),
    )
    .hint(format!(
        "set it under `[workspace]` to the directory for workspaces, {example}"
    ))
}

fn set_it(key: &str) -> String {
    format!("set `{key}` under `[workspace]`")
}
