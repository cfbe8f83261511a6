//! Which path the same directory has for us and for the container engine, on Windows, in WSL and
//! elsewhere. Text in, text out: nothing here looks at a disk or starts a program, so that all of
//! it can be tested anywhere. A path of the wrong kind is refused and never guessed at.

mod engine;
mod fault;
mod host;
mod posix;
mod roots;
mod system;
mod windows;
mod wsl;

pub use engine::EngineView;
pub use fault::PathFault;
pub use host::HostPath;
pub use posix::PosixPath;
pub use roots::{Adapted, Filler, Question, Roots, WSLPATH_TIMEOUT};
pub use system::{Facts, Runtime, System};
pub use windows::{Volume, WindowsPath};
pub use wsl::WslMounts;
