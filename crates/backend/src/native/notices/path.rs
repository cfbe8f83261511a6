//! From a path in a call to the place that it means. Links are followed as they are now: another thread
//! may change one before the kernel looks, so that this tells and never decides.

use glovebox_cage::observe::{Call, Place};
use glovebox_model::ByteString;
use rustix::fs::{CWD, readlinkat};
use rustix::io::Errno;

use super::memory::text;

/// AT_FDCWD, linux/fcntl.h.
const AT_CWD: i32 = -100;
/// The kernel takes no longer one.
const PATH_MAX: usize = 4096;

/// The kernel follows no more.
const LINKS_MAX: u32 = 40;

/// Whether a link at the end of a path is what is meant, or what it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Itself,
    Followed,
}

/// The place as the call spells it, no link followed.
pub(super) fn spelled(call: &Call, place: Place) -> Result<ByteString, Errno> {
    let (base, path) = parts(call, place)?;
    tidy(&base, &path)
}

/// The place that the kernel would come to.
pub(super) fn resolve(call: &Call, place: Place, last: Last) -> Result<ByteString, Errno> {
    let (base, path) = parts(call, place)?;
    follow(&base, &path, last, &|at| read_link(call.thread, at))
}

/// The sandbox's own `/proc` is not looked into: whatever is found there from outside is known to the
/// kernel from then on, and a process inside would get another answer for it.
fn read_link(pid: i32, at: &[u8]) -> Result<Option<Vec<u8>>, Errno> {
    let on_host = match at.strip_prefix(b"/proc/") {
        None => [format!("/proc/{pid}/root").as_bytes(), at].concat(),
        Some(inside) => match of_process(inside) {
            Process::None => return Ok(None),
            Process::Own(rest) if !rest.starts_with(b"task/") => {
                [format!("/proc/{pid}/").as_bytes(), rest].concat()
            }
            // All processes of a sandbox have the same.
            Process::Other(b"root") => return Ok(Some(b"/".to_vec())),
            // Its threads have numbers of the sandbox's own, too.
            Process::Own(rest) | Process::Other(rest) => match rest.split(is_slash).next() {
                Some(b"cwd" | b"exe" | b"fd" | b"map_files" | b"task") => {
                    return Err(Errno::ACCESS);
                }
                _ => return Ok(None),
            },
        },
    };
    let link = readlinkat(CWD, on_host, Vec::new());
    Ok(link.ok().map(std::ffi::CString::into_bytes))
}

/// What a path below `/proc` names of a process, if of any.
enum Process<'p> {
    None,
    Own(&'p [u8]),
    Other(&'p [u8]),
}

fn of_process(inside: &[u8]) -> Process<'_> {
    let Some(at) = inside.iter().position(is_slash) else {
        return Process::None;
    };
    let (name, rest) = (&inside[..at], &inside[at + 1..]);
    match name {
        b"self" | b"thread-self" => Process::Own(rest),
        name if name.iter().all(u8::is_ascii_digit) => Process::Other(rest),
        _ => Process::None,
    }
}

/// The text of a link, and nothing for what is none.
type ReadLink<'l> = &'l dyn Fn(&[u8]) -> Result<Option<Vec<u8>>, Errno>;

fn follow(base: &[u8], path: &[u8], last: Last, link: ReadLink<'_>) -> Result<ByteString, Errno> {
    let split = |text: &[u8]| -> Vec<Vec<u8>> {
        let parts = text.split(is_slash).filter(|it| !it.is_empty());
        parts.map(<[u8]>::to_vec).collect()
    };
    // Where the process stands was said by the kernel, and holds no link.
    let mut at: Vec<u8> = tidy(base, &[])?.into_bytes();
    if path.first() == Some(&b'/') || at == b"/" {
        at.clear();
    }
    let mut ahead = split(path);
    ahead.reverse();
    // A slash at the end asks for a directory, so that a link there is followed.
    let last = match path.last() {
        Some(b'/') => Last::Followed,
        _ => last,
    };
    let mut links = 0;
    while let Some(part) = ahead.pop() {
        match part.as_slice() {
            b"." => {}
            b".." => at.truncate(at.iter().rposition(|byte| *byte == b'/').unwrap_or(0)),
            name => {
                let here = at.len();
                at.push(b'/');
                at.extend_from_slice(name);
                let is_meant = ahead.is_empty() && last == Last::Itself;
                let text = match is_meant {
                    true => None,
                    false => link(&at)?,
                };
                let Some(text) = text else { continue };
                links += 1;
                if links > LINKS_MAX {
                    return Err(Errno::LOOP);
                }
                match text.first() {
                    Some(b'/') => at.clear(),
                    _ => at.truncate(here),
                }
                ahead.extend(split(&text).into_iter().rev());
            }
        }
    }
    tidy(&at, &[])
}

/// Where the call begins, and the path from there. An empty path is the directory itself, where the
/// call names one.
fn parts(call: &Call, place: Place) -> Result<(Vec<u8>, Vec<u8>), Errno> {
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
        return Ok((Vec::new(), path));
    }
    let directory = place.directory.map(|at| number_of(argument(call, at)));
    match directory.filter(|fd| *fd != AT_CWD) {
        None if path.is_empty() => Err(Errno::NOENT),
        None => Ok((link(call.thread, "cwd")?, path)),
        Some(fd) if fd < 0 => Err(Errno::BADF),
        Some(fd) => Ok((link(call.thread, &format!("fd/{fd}"))?, path)),
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
    fn links_are_followed_where_the_kernel_follows_them() {
        let links = [
            ("/w/out", "/etc"),
            ("/w/up", "../x"),
            ("/w/d/back", ".."),
            ("/proc/7/root", "/"),
            ("/w/loop", "loop"),
            ("/etc/mtab", "/proc/7/mounts"),
        ];
        let link = |at: &[u8]| {
            let found = links.iter().find(|(name, _)| name.as_bytes() == at);
            Ok(found.map(|(_, text)| text.as_bytes().to_vec()))
        };
        for (path, itself, followed) in [
            ("a", "/w/a", "/w/a"),
            ("out/x", "/etc/x", "/etc/x"),
            ("out", "/w/out", "/etc"),
            ("out/", "/etc", "/etc"),
            ("out/../y", "/y", "/y"),
            ("up/z", "/x/z", "/x/z"),
            ("d/back/a", "/w/a", "/w/a"),
            ("/proc/7/root/etc/x", "/etc/x", "/etc/x"),
            ("out/mtab", "/etc/mtab", "/proc/7/mounts"),
            ("../..", "/", "/"),
        ] {
            let found = |last| {
                follow(b"/w", path.as_bytes(), last, &link)
                    .unwrap()
                    .display()
            };
            assert_eq!(found(Last::Itself), itself, "{path}");
            assert_eq!(found(Last::Followed), followed, "{path}");
        }
        let looped = follow(b"/w", b"loop/x", Last::Itself, &link);
        assert_eq!(looped, Err(Errno::LOOP));
    }

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
