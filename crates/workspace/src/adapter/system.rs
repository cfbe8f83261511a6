//! Whose paths these are.

use glovebox_model::{Code, Error, Result, Stage};
use serde::{Deserialize, Serialize};

/// As it stands in the settings (`runtime` under `[workspace]`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runtime {
    #[default]
    Auto,
    Windows,
    Wsl,
    Posix,
}

/// As it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum System {
    Windows,
    Wsl,
    Posix,
}

/// What the host says of itself. The caller reads it; files that are not there are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts<'a> {
    /// `std::env::consts::OS`, or Python's `os.name`.
    pub os: &'a str,
    /// The text of `/proc/version`.
    pub proc_version: &'a str,
    /// The text of `/proc/sys/kernel/osrelease`.
    pub osrelease: &'a str,
}

impl System {
    pub fn detect(facts: Facts<'_>) -> Self {
        if is_windows(facts.os) {
            return Self::Windows;
        }
        let microsoft = |text: &str| text.to_ascii_lowercase().contains("microsoft");
        match microsoft(facts.proc_version) || microsoft(facts.osrelease) {
            true => Self::Wsl,
            false => Self::Posix,
        }
    }
}

impl Runtime {
    /// What the settings say, unless it cannot be: `D:\work` would be one odd file name on Linux.
    /// A kernel of WSL that somebody built may not give itself away, so `wsl` is believed there.
    pub fn on(self, facts: Facts<'_>) -> Result<System> {
        let here = is_windows(facts.os);
        match (self, here) {
            (Self::Auto, _) => Ok(System::detect(facts)),
            (Self::Windows, true) => Ok(System::Windows),
            (Self::Wsl, false) => Ok(System::Wsl),
            (Self::Posix, false) => Ok(System::Posix),
            (Self::Windows, false) => Err(mismatch("windows", "this is not Windows")),
            (Self::Wsl, true) => Err(mismatch("wsl", "this is Windows itself")),
            (Self::Posix, true) => Err(mismatch("posix", "this is Windows")),
        }
    }
}

fn is_windows(os: &str) -> bool {
    os.eq_ignore_ascii_case("windows") || os.eq_ignore_ascii_case("nt")
}

fn mismatch(mode: &str, why: &str) -> Error {
    let message = format!("`runtime` is `{mode}`, and {why}");
    Error::new(Code::InvalidConfig, Stage::Resolve, message)
        .hint("set `runtime` under `[workspace]` to `auto`")
}
