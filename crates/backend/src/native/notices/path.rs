//! From a path in a call to the place that it means, as text. No link is followed: what one leads to
//! may change before the kernel looks.

use glovebox_cage::observe::{Call, Place};
use glovebox_model::ByteString;
use rustix::fs::{CWD, readlinkat};
use rustix::io::Errno;

use super::memory::text;

/// AT_FDCWD, linux/fcntl.h.
const AT_CWD: i32 = -100;
/// The kernel takes no longer one.
const PATH_MAX: usize = 4096;

/// An empty path is the directory itself, where the call names one.
pub(super) fn resolve(call: &Call, place: Place) -> Result<ByteString, Errno> {
    let (path, whole) = match argument(call, place.path) {
        // No path is the open file itself to this one; nobody has memory there.
        0 if call.watched.name == "utimensat" => (Vec::new(), true),
        0 => return Err(Errno::NOENT),
        at => text(call.thread, at, PATH_MAX)?,
    };
    if !whole {
        return Err(Errno::NAMETOOLONG);
    }
    if path.first() == Some(&b'/') {
        return tidy(&[], &path);
    }
    let directory = place.directory.map(|at| number_of(argument(call, at)));
    match directory.filter(|fd| *fd != AT_CWD) {
        None if path.is_empty() => Err(Errno::NOENT),
        None => tidy(&link(call.thread, "cwd")?, &path),
        Some(fd) if fd < 0 => Err(Errno::BADF),
        Some(fd) => tidy(&link(call.thread, &format!("fd/{fd}"))?, &path),
    }
}

pub(super) fn argument(call: &Call, index: u8) -> u64 {
    call.args.get(usize::from(index)).copied().unwrap_or(0)
}

/// The kernel looks at the lower half of the register alone.
pub(super) fn number_of(argument: u64) -> i32 {
    let [a, b, c, d, ..] = argument.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

pub(super) fn cwd(pid: i32) -> Result<ByteString, Errno> {
    tidy(&link(pid, "cwd")?, &[])
}

/// As the sandbox sees it: its root is the root of its mounts, which is as far as the kernel's text
/// goes.
fn link(pid: i32, name: &str) -> Result<Vec<u8>, Errno> {
    let target = readlinkat(CWD, format!("/proc/{pid}/{name}"), Vec::new())?;
    let target = target.into_bytes();
    match target.first() {
        Some(b'/') => Ok(target),
        // A pipe, a socket.
        _ => Err(Errno::NOTDIR),
    }
}

fn tidy(base: &[u8], path: &[u8]) -> Result<ByteString, Errno> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in base.split(is_slash).chain(path.split(is_slash)) {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    let mut tidied = Vec::with_capacity(base.len() + path.len() + 1);
    for part in parts {
        tidied.push(b'/');
        tidied.extend_from_slice(part);
    }
    if tidied.is_empty() {
        tidied.push(b'/');
    }
    ByteString::new(tidied).ok_or(Errno::INVAL)
}

fn is_slash(byte: &u8) -> bool {
    *byte == b'/'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_tidied_as_text() {
        for (base, path, expected) in [
            ("/workspace/work", "a", "/workspace/work/a"),
            ("/workspace/work", "./a//b/", "/workspace/work/a/b"),
            ("/workspace/work", "../../../..", "/"),
            ("/workspace/work", "../x", "/workspace/x"),
            ("", "/", "/"),
            ("", "//etc/./passwd", "/etc/passwd"),
            ("/a", "", "/a"),
            ("/", "...", "/..."),
        ] {
            let tidied = tidy(base.as_bytes(), path.as_bytes()).unwrap();
            assert_eq!(tidied.display(), expected, "{base} {path}");
        }
    }
}
