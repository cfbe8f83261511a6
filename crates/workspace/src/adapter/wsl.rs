//! The same directory from both sides of WSL. From Windows to WSL and back is the same path again.

use super::fault::PathFault;
use super::posix::PosixPath;
use super::windows::{Volume, WindowsPath};

/// How one distribution is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WslMounts {
    automount: PosixPath,
    distro: Option<WindowsPath>,
}

impl WslMounts {
    /// `automount` is `root` in the section `automount` of `/etc/wsl.conf`, `/mnt` unless somebody
    /// changed it; `distro` is `WSL_DISTRO_NAME`.
    pub fn new(automount: &str, distro: Option<&str>) -> Result<Self, PathFault> {
        Ok(Self {
            automount: PosixPath::parse(automount)?,
            distro: distro.map(WindowsPath::of_distro).transpose()?,
        })
    }

    pub fn to_posix(&self, path: &WindowsPath) -> Result<PosixPath, PathFault> {
        let start = match path.volume() {
            Volume::Drive(letter) => self
                .automount
                .join(letter.to_ascii_lowercase().encode_utf8(&mut [0; 4]))?,
            Volume::Distro(distro) => match self.distro_name() {
                None => return Err(PathFault::DistroUnknown),
                // Names of distributions do not differ by case.
                Some(ours) if ours.eq_ignore_ascii_case(distro) => PosixPath::root(),
                Some(_) => return Err(PathFault::OtherDistro),
            },
            Volume::Share { .. } => return Err(PathFault::NetworkShare),
        };
        let mut names = path.names().iter();
        names.try_fold(start, |path, name| path.join(name))
    }

    pub fn to_windows(&self, path: &PosixPath) -> Result<WindowsPath, PathFault> {
        let (start, names) = match self.on_drive(path)? {
            Some((letter, names)) => (WindowsPath::of_drive(letter), names),
            None => match &self.distro {
                Some(distro) => (distro.clone(), path.names()),
                None => return Err(PathFault::DistroUnknown),
            },
        };
        let mut names = names.iter();
        names.try_fold(start, |path, name| path.join(name))
    }

    /// A path on a drive of Windows holds names of Windows, from whichever side it is used.
    pub(super) fn check(&self, path: &PosixPath) -> Result<(), PathFault> {
        match self.on_drive(path)? {
            Some(_) => self.to_windows(path).map(drop),
            None => Ok(()),
        }
    }

    fn on_drive<'p>(&self, path: &'p PosixPath) -> Result<Option<(char, &'p [String])>, PathFault> {
        let Some(rest) = path.names().strip_prefix(self.automount.names()) else {
            return Ok(None);
        };
        let Some((first, names)) = rest.split_first() else {
            return Ok(None);
        };
        let mut letters = first.chars();
        match (letters.next(), letters.next()) {
            (Some('a'..='z'), None) => Ok(first.chars().next().map(|letter| (letter, names))),
            (Some('A'..='Z'), None) => Err(PathFault::UpperCaseDrive),
            _ => Ok(None),
        }
    }

    fn distro_name(&self) -> Option<&str> {
        match self.distro.as_ref()?.volume() {
            Volume::Distro(name) => Some(name),
            Volume::Drive(_) | Volume::Share { .. } => None,
        }
    }
}

impl Default for WslMounts {
    fn default() -> Self {
        Self {
            automount: PosixPath::mnt(),
            distro: None,
        }
    }
}
