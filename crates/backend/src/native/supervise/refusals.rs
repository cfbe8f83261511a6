//! What a run is refused for when its program could not be started.

use glovebox_model::{Code, Error, Stage};
use rustix::io::Errno;

pub(super) fn no_cwd(errno: i32) -> Error {
    Error::new(
        Code::CwdNotFound,
        Stage::Run,
        "the working directory cannot be entered",
    )
    .caused_by(std::io::Error::from_raw_os_error(errno))
    .hint("`--cwd` is relative to the workspace, or absolute below `/workspace`")
}

pub(crate) fn no_exec(errno: i32) -> Error {
    let cause = std::io::Error::from_raw_os_error(errno);
    match Errno::from_raw_os_error(errno) {
        Errno::NOENT | Errno::NOTDIR => {
            Error::new(Code::CommandNotFound, Stage::Run, "the command was not found")
                .caused_by(cause)
        }
        Errno::TOOBIG => {
            Error::new(Code::InvalidArgument, Stage::Run, "the arguments are too long to execute")
                .caused_by(cause)
                .hint("one argument may have 128 KiB and all together 2 MiB; pass large data with `--stdin` or `--input FILE`")
        }
        _ => Error::new(Code::CommandNotExecutable, Stage::Run, "the command cannot be executed")
            .caused_by(cause)
            .hint("is it executable (`chmod +x`) and made for this machine?"),
    }
}
