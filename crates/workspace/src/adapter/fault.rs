//! Why a path is not used.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathFault {
    Empty,
    /// NUL, line ends and the like: no engine takes them, and they forge lines of a log.
    Control,
    /// Relative, or relative to the current directory of a drive (`D:x`), or to the current drive.
    NotAbsolute,
    Traversal,
    /// `/…` where a path of Windows belongs.
    PosixOnWindows,
    /// `D:\…` or `\\…` where a POSIX path belongs.
    WindowsOnPosix,
    /// `\\.\`, `\\?\Volume{…}`, `\??\`: no directory of a drive or a share.
    Device,
    /// `\\?\` takes what follows as it is, so `/`, `.` and doubled `\` would be names there.
    Verbatim,
    /// `\\server` without a share, `\\wsl$` without a distribution.
    NoShare,
    /// One of `< > : " | ? *`, or a character that WSL shows as one of them.
    Character,
    /// Windows takes it off, so the name would be that of another directory.
    TrailingDotOrSpace,
    /// `CON`, `NUL`, `COM1` and so on, with any ending.
    ReservedName,
    NameTooLong,
    PathTooLong,
    /// A whole drive, share, distribution or machine.
    WholeVolume,
    /// Drives are mounted under lower-case letters; `/mnt/D` is no drive.
    UpperCaseDrive,
    /// It lies in a distribution, and which one we are in is not known.
    DistroUnknown,
    OtherDistro,
    /// A share of the network has no path in WSL, and the engine does not mount one.
    NetworkShare,
    NotUtf8,
    /// An answer of `wslpath` with more than one line.
    ManyLines,
}

impl PathFault {
    pub const fn why(self) -> &'static str {
        match self {
            Self::Empty => "is empty",
            Self::Control => "holds control characters",
            Self::NotAbsolute => "is not absolute",
            Self::Traversal => "goes up with `..`",
            Self::PosixOnWindows => "is a path of Linux, not of Windows",
            Self::WindowsOnPosix => "is a path of Windows, not of Linux",
            Self::Device => "is a path of a device",
            Self::Verbatim => "is not written out in full after `\\\\?\\`",
            Self::NoShare => "names no share after the server",
            Self::Character => "holds a character that Windows does not allow in names",
            Self::TrailingDotOrSpace => "holds a name that ends in a dot or a space",
            Self::ReservedName => "holds a name that Windows keeps for a device",
            Self::NameTooLong => "holds a name of more than 255 characters",
            Self::PathTooLong => "is too long",
            Self::WholeVolume => "names no directory but a whole volume",
            Self::UpperCaseDrive => "names a drive with an upper-case letter",
            Self::DistroUnknown => "lies in a distribution of WSL that is not known",
            Self::OtherDistro => "lies in another distribution of WSL",
            Self::NetworkShare => "lies on a share of the network",
            Self::NotUtf8 => "is not UTF-8",
            Self::ManyLines => "is more than one line",
        }
    }

    pub const fn way_out(self) -> &'static str {
        match self {
            Self::Empty | Self::NotAbsolute => "write the whole path, as `D:\\work` or `/srv/work`",
            Self::Control | Self::NotUtf8 | Self::Character => "rename the directory",
            Self::Traversal => "write the path that it leads to, without `..`",
            Self::PosixOnWindows => {
                "write it as `D:\\work` in `root_win`; `root_wsl` takes paths of Linux"
            }
            Self::WindowsOnPosix => {
                "write it as `/mnt/d/work` in `root_wsl`; `root_win` takes paths of Windows"
            }
            Self::Device | Self::NoShare | Self::Verbatim => {
                "write it as `D:\\work` or `\\\\server\\share\\work`"
            }
            Self::TrailingDotOrSpace | Self::ReservedName => {
                "rename the directory; Windows would open another one"
            }
            Self::NameTooLong | Self::PathTooLong => "use a shorter path",
            Self::WholeVolume => "name a directory below it",
            Self::UpperCaseDrive => "write the letter of the drive in lower case, as `/mnt/d`",
            Self::DistroUnknown => "say which distribution it is: `WSL_DISTRO_NAME` inside it",
            Self::OtherDistro => "run in that distribution, or use a directory of this one",
            Self::NetworkShare => "use a directory of a local drive",
            Self::ManyLines => "set the missing root instead",
        }
    }
}

impl fmt::Display for PathFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.why())
    }
}

impl std::error::Error for PathFault {}
