//! A path of Linux, as text.

use std::fmt;

use super::fault::PathFault;

/// `NAME_MAX` and `PATH_MAX` without the closing NUL.
const NAME_MAX: usize = 255;
const PATH_MAX: usize = 4095;

/// Absolute, without `.`, `..`, doubled slashes and control characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PosixPath(Vec<String>);

impl PosixPath {
    pub fn parse(text: &str) -> Result<Self, PathFault> {
        if text.is_empty() {
            return Err(PathFault::Empty);
        }
        // `//server/share` is a share of the network to everybody but Linux.
        if looks_like_windows(text) || text.starts_with("//") {
            return Err(PathFault::WindowsOnPosix);
        }
        if !text.starts_with('/') {
            return Err(PathFault::NotAbsolute);
        }
        let mut path = Self(Vec::new());
        for part in text.split('/').filter(|part| !matches!(*part, "" | ".")) {
            path.push(part)?;
        }
        path.check_length()
    }

    pub(super) fn root() -> Self {
        Self(Vec::new())
    }

    /// Where WSL mounts the drives unless it is told otherwise.
    pub(super) fn mnt() -> Self {
        Self(vec!["mnt".to_owned()])
    }

    /// One name further down.
    pub fn join(&self, name: &str) -> Result<Self, PathFault> {
        let mut path = self.clone();
        path.push(name)?;
        path.check_length()
    }

    pub fn names(&self) -> &[String] {
        &self.0
    }

    fn push(&mut self, name: &str) -> Result<(), PathFault> {
        match name {
            "" => return Err(PathFault::Empty),
            ".." => return Err(PathFault::Traversal),
            "." => return Err(PathFault::NotAbsolute),
            _ if name.chars().any(char::is_control) => return Err(PathFault::Control),
            _ if name.contains('/') => return Err(PathFault::Character),
            _ if name.len() > NAME_MAX => return Err(PathFault::NameTooLong),
            _ => self.0.push(name.to_owned()),
        }
        Ok(())
    }

    fn check_length(self) -> Result<Self, PathFault> {
        let length: usize = self.0.iter().map(|name| name.len() + 1).sum();
        match length > PATH_MAX {
            true => Err(PathFault::PathTooLong),
            false => Ok(self),
        }
    }
}

fn looks_like_windows(text: &str) -> bool {
    match text.as_bytes() {
        [b'\\', ..] => true,
        [letter, b':', ..] => letter.is_ascii_alphabetic(),
        _ => false,
    }
}

impl fmt::Display for PosixPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.is_empty() {
            true => f.pad("/"),
            false => f.pad(&self.0.iter().flat_map(|it| ["/", it]).collect::<String>()),
        }
    }
}
