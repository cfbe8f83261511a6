//! The socket through which programs tell of themselves.

use std::ffi::CStr;
use std::os::fd::OwnedFd;

use rustix::net::socket_with;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen as open};

use crate::sys::Result;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// In the new root, before it is sealed: nobody can put another in its place. Pid 1 masks no modes
/// here, so everybody inside may connect.
pub(super) fn listen(path: &CStr) -> Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    open(&socket, BACKLOG)?;
    Ok(socket)
}
