//! A path of Windows, as text, in one spelling: upper-case drive, `\`, nothing at the end.

use std::fmt;

use super::fault::PathFault;

const NAME_MAX: usize = 255;
/// Of a path in the long form, in UTF-16 units.
const PATH_MAX: usize = 32_767;
/// From here on a directory needs the long form: 260, less a short file name inside it.
const SHORT_MAX: usize = 248;
const VERBATIM: &str = r"\\?\";
/// Both lead to the files of a distribution; the first is the older one.
const WSL_SERVERS: [&str; 2] = ["wsl$", "wsl.localhost"];

/// Where a path starts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Volume {
    /// `A` to `Z`.
    Drive(char),
    /// The files of a distribution of WSL.
    Distro(String),
    Share {
        server: String,
        share: String,
    },
}

/// Absolute, every name one that Windows opens as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WindowsPath {
    volume: Volume,
    names: Vec<String>,
}

impl WindowsPath {
    pub fn parse(text: &str) -> Result<Self, PathFault> {
        if text.is_empty() {
            return Err(PathFault::Empty);
        }
        if text.chars().any(char::is_control) {
            return Err(PathFault::Control);
        }
        if let Some(rest) = text.strip_prefix(VERBATIM) {
            return Self::parse_verbatim(rest);
        }
        if text.starts_with(r"\??\") {
            return Err(PathFault::Device);
        }
        let text = text.replace('/', r"\");
        if let Some(rest) = text.strip_prefix(r"\\") {
            return Self::parse_share(rest);
        }
        match text.strip_prefix('\\') {
            Some(_) => Err(PathFault::PosixOnWindows),
            None => Self::parse_drive(&text),
        }
    }

    /// Without a name below it.
    pub(super) fn of_drive(letter: char) -> Self {
        Self {
            volume: Volume::Drive(letter.to_ascii_uppercase()),
            names: Vec::new(),
        }
    }

    pub(super) fn of_distro(distro: &str) -> Result<Self, PathFault> {
        check_name(distro)?;
        Ok(Self {
            volume: Volume::Distro(distro.to_owned()),
            names: Vec::new(),
        })
    }

    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// One name further down.
    pub fn join(&self, name: &str) -> Result<Self, PathFault> {
        let mut path = self.clone();
        path.push(name)?;
        path.check_length()
    }

    /// For calls of Windows itself: the long form where the short one would be cut off.
    pub fn native(&self) -> String {
        let short = self.to_string();
        match units(&short) < SHORT_MAX {
            true => short,
            false => self.verbatim(),
        }
    }

    /// The form that Windows takes as it is, however long.
    pub fn verbatim(&self) -> String {
        let short = self.to_string();
        match short.strip_prefix(r"\\") {
            Some(rest) => format!(r"{VERBATIM}UNC\{rest}"),
            None => format!("{VERBATIM}{short}"),
        }
    }

    fn parse_verbatim(rest: &str) -> Result<Self, PathFault> {
        if rest.contains('/') {
            return Err(PathFault::Verbatim);
        }
        // One at the end is harmless; any other empty name is not the directory it seems to be.
        let inner = rest.strip_suffix('\\').unwrap_or(rest);
        let odd = |part: &str| matches!(part, "" | ".");
        if inner.split('\\').any(odd) {
            return Err(PathFault::Verbatim);
        }
        match rest.get(..4) {
            Some(start) if start.eq_ignore_ascii_case(r"UNC\") => Self::parse_share(&rest[4..]),
            _ => match Self::parse_drive(rest) {
                // `Volume{…}`, `GLOBALROOT`, `pipe`.
                Err(PathFault::NotAbsolute) => Err(PathFault::Device),
                parsed => parsed,
            },
        }
    }

    fn parse_drive(text: &str) -> Result<Self, PathFault> {
        let letter = match text.as_bytes() {
            [letter, b':', b'\\', ..] if letter.is_ascii_alphabetic() => char::from(*letter),
            _ => return Err(PathFault::NotAbsolute),
        };
        Self::of_drive(letter).below(&text[3..])
    }

    fn parse_share(rest: &str) -> Result<Self, PathFault> {
        let mut parts = rest.splitn(3, '\\');
        let server = parts.next().unwrap_or_default();
        let share = parts.next().unwrap_or_default();
        match server {
            "." | "?" => return Err(PathFault::Device),
            ".." => return Err(PathFault::Traversal),
            "" => return Err(PathFault::NoShare),
            _ => check_name(server)?,
        }
        match share {
            "" => return Err(PathFault::NoShare),
            ".." => return Err(PathFault::Traversal),
            _ => check_name(share)?,
        }
        let is_wsl = WSL_SERVERS.iter().any(|it| server.eq_ignore_ascii_case(it));
        let volume = match is_wsl {
            true => Volume::Distro(share.to_owned()),
            false => Volume::Share {
                server: server.to_owned(),
                share: share.to_owned(),
            },
        };
        let top = Self {
            volume,
            names: Vec::new(),
        };
        top.below(parts.next().unwrap_or_default())
    }

    fn below(mut self, rest: &str) -> Result<Self, PathFault> {
        for name in rest.split('\\').filter(|name| !matches!(*name, "" | ".")) {
            self.push(name)?;
        }
        self.check_length()
    }

    fn push(&mut self, name: &str) -> Result<(), PathFault> {
        check_name(name)?;
        self.names.push(name.to_owned());
        Ok(())
    }

    fn check_length(self) -> Result<Self, PathFault> {
        match units(&self.verbatim()) > PATH_MAX {
            true => Err(PathFault::PathTooLong),
            false => Ok(self),
        }
    }
}

fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

fn check_name(name: &str) -> Result<(), PathFault> {
    let forbidden = |c: char| match c {
        '<' | '>' | ':' | '"' | '|' | '?' | '*' | '/' | '\\' => true,
        // What WSL shows as one of those, or as a dot or a space at the end.
        '\u{f000}'..='\u{f0ff}' => true,
        _ => false,
    };
    match name {
        "" => Err(PathFault::Empty),
        ".." => Err(PathFault::Traversal),
        _ if name.chars().any(char::is_control) => Err(PathFault::Control),
        _ if name.chars().any(forbidden) => Err(PathFault::Character),
        _ if name.ends_with(['.', ' ']) => Err(PathFault::TrailingDotOrSpace),
        _ if is_reserved(name) => Err(PathFault::ReservedName),
        _ if units(name) > NAME_MAX => Err(PathFault::NameTooLong),
        _ => Ok(()),
    }
}

/// `NUL`, `nul.txt` and `NUL .tar.gz` are all the same device.
fn is_reserved(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let stem = stem.trim_end_matches(' ').to_ascii_uppercase();
    if matches!(
        stem.as_str(),
        "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$"
    ) {
        return true;
    }
    let number = stem.strip_prefix("COM").or(stem.strip_prefix("LPT"));
    let mut digits = number.unwrap_or_default().chars();
    let port = |c: char| c.is_ascii_digit() || matches!(c, '¹' | '²' | '³');
    matches!((digits.next(), digits.next()), (Some(digit), None) if port(digit))
}

impl fmt::Display for WindowsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names.join(r"\");
        let text = match &self.volume {
            Volume::Drive(letter) => format!(r"{letter}:\{names}"),
            Volume::Distro(distro) if names.is_empty() => format!(r"\\wsl.localhost\{distro}"),
            Volume::Distro(distro) => format!(r"\\wsl.localhost\{distro}\{names}"),
            Volume::Share { server, share } if names.is_empty() => format!(r"\\{server}\{share}"),
            Volume::Share { server, share } => format!(r"\\{server}\{share}\{names}"),
        };
        f.pad(&text)
    }
}
