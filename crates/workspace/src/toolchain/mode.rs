//! What `--toolchain` was given.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use glovebox_model::{Code, Error, Result, Stage};

use super::kind::Kind;
use super::text::show;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    Off,
    /// What is active in the caller's shell.
    Auto,
    Named(Vec<Wanted>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    Auto,
    Kind(Kind),
    /// Absolute.
    Path(PathBuf),
}

impl Mode {
    /// The values of a repeatable `--toolchain`; `None` when it was not given at all.
    pub fn parse<S: AsRef<OsStr>>(values: &[S]) -> Result<Option<Self>> {
        let mut wanted = Vec::new();
        let mut off = false;
        for value in values {
            match value.as_ref().to_str() {
                Some("off" | "none") => off = true,
                _ => wanted.push(Wanted::parse(value.as_ref())?),
            }
        }
        match (off, wanted.as_slice()) {
            (false, []) => Ok(None),
            (true, []) => Ok(Some(Self::Off)),
            (false, [Wanted::Auto]) => Ok(Some(Self::Auto)),
            (false, _) => Ok(Some(Self::Named(wanted))),
            (true, _) => Err(
                invalid("`--toolchain off` stands beside another `--toolchain`")
                    .hint("leave out one of the two"),
            ),
        }
    }
}

impl Wanted {
    fn parse(value: &OsStr) -> Result<Self> {
        let path = Path::new(value);
        if path.is_absolute() {
            return Ok(Self::Path(path.to_owned()));
        }
        let shown = show(path);
        match value.to_str() {
            Some("auto") => Ok(Self::Auto),
            // Anything below `/opt`, or anything at all, is not one toolchain.
            Some("opt" | "path") | None => Err(unknown(&shown)),
            Some(text) if text.contains('/') || text.starts_with('.') => {
                Err(invalid(format!("toolchain `{shown}` is a relative path"))
                    .hint("give the absolute path of the directory"))
            }
            Some(text) => Kind::parse(text)
                .map(Self::Kind)
                .ok_or_else(|| unknown(&shown)),
        }
    }
}

fn unknown(shown: &str) -> Error {
    let names: Vec<String> = Kind::ALL
        .iter()
        .filter(|kind| !matches!(kind, Kind::Opt | Kind::Path))
        .map(|kind| format!("`{kind}`"))
        .collect();
    invalid(format!("no toolchain is called `{shown}`")).hint(format!(
        "use `auto`, `off`, an absolute path, or one of {}",
        names.join(", ")
    ))
}

pub(super) fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, Stage::Resolve, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_flag_become_a_mode() {
        let parse = |values: &[&str]| Mode::parse(values).unwrap();
        assert_eq!(parse(&[]), None);
        assert_eq!(parse(&["auto"]), Some(Mode::Auto));
        assert_eq!(parse(&["off"]), Some(Mode::Off));
        assert_eq!(
            parse(&["auto", "brew", "/opt/x"]),
            Some(Mode::Named(vec![
                Wanted::Auto,
                Wanted::Kind(Kind::Homebrew),
                Wanted::Path("/opt/x".into()),
            ]))
        );
    }

    #[test]
    fn a_value_that_means_nothing_is_refused_with_the_list() {
        for bad in ["", "pyenb", "opt", "path", "./x", "a/b", "..", "~"] {
            let error = Mode::parse(&[bad]).unwrap_err();
            assert_eq!(error.code, Code::InvalidArgument, "{bad}");
            assert!(!error.hints.is_empty(), "{bad}");
        }
        assert!(Mode::parse(&["off", "auto"]).is_err());
    }
}
