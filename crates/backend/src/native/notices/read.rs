//! From a call that waits to what is told of it.

use glovebox_cage::observe::{Call, OPENS_TO_WRITE, Place, Shape};
use glovebox_model::ByteString;
use rustix::io::Errno;

use super::memory::{bytes, number, text};
use super::path::{Last, argument, cwd, number_of, resolve, spelled};
use super::{Unread, address};
use crate::notice::Noticed;

/// Of an exec. Programs have been started with more, and nobody has read it.
const ARGUMENTS_MAX: usize = 1024;
const ARGUMENT_BYTES_MAX: usize = 64 << 10;
/// Of one call that sends many messages.
const MESSAGES_MAX: u64 = 16;
/// `struct mmsghdr` of a 64-bit machine.
const MESSAGE_BYTES: u64 = 64;
/// The kernel takes no longer one.
const PATH_MAX: usize = 4096;

/// What is written there changes nothing.
const SINKS: [&[u8]; 6] = [
    b"/dev/null",
    b"/dev/zero",
    b"/dev/full",
    b"/dev/random",
    b"/dev/urandom",
    b"/dev/tty",
];

/// `O_ACCMODE` and `O_WRONLY`. The same on both machines.
const ACCESS: u32 = 0o3;
const WRITES_ONLY: u32 = 0o1;
/// `O_NOFOLLOW`, and `O_EXCL`, by which nothing that is there is opened. The same on both machines.
const OPENS_ITSELF: u32 = 0o400_000 | 0o200;

/// Calls that change what stands at a name follow a link there; those that change names do not. One
/// that can be told not to is taken to follow.
fn last_of(call: &str) -> Last {
    match call {
        "lchown" | "lremovexattr" | "lsetxattr" | "mkdir" | "mkdirat" | "mknod" | "mknodat"
        | "rmdir" | "unlink" | "unlinkat" => Last::Itself,
        _ => Last::Followed,
    }
}

/// Of a call that is no exec.
pub(super) fn call(call: &Call) -> Result<Vec<Noticed>, Unread> {
    let name = call.watched.name;
    let write = |path: Place, last: Last, second: Result<Option<ByteString>, Errno>| {
        let (path, second) = (resolve(call, path, last)?, second?);
        let is_sink = second.is_none() && SINKS.contains(&path.as_bytes());
        let write = Noticed::Write {
            call: name,
            path,
            second,
        };
        Ok(Some(write).filter(|_| !is_sink).into_iter().collect())
    };
    match call.watched.shape {
        Shape::Address {
            address: at,
            length,
        } => {
            let length = u64::from(number_of(argument(call, length)).unsigned_abs());
            addressed(call, &[(argument(call, at), length)])
        }
        Shape::Message { header } => addressed(call, &[message(call, argument(call, header))?]),
        Shape::Messages { vector, count } => {
            let (vector, count) = (argument(call, vector), argument(call, count));
            let headers = (0..count.min(MESSAGES_MAX))
                .map(|at| message(call, vector.wrapping_add(at * MESSAGE_BYTES)));
            addressed(call, &headers.collect::<Result<Vec<_>, Errno>>()?)
        }
        Shape::Open { path, flags } => {
            let flags = number_of(argument(call, flags)).cast_unsigned();
            let last = match flags & OPENS_ITSELF {
                0 => Last::Followed,
                _ => Last::Itself,
            };
            // What is opened for both is read as well as written.
            let read = match flags & ACCESS {
                WRITES_ONLY => None,
                _ => Some(Noticed::Read {
                    path: resolve(call, path, last)?,
                }),
            };
            let written = match flags & OPENS_TO_WRITE {
                0 => Vec::new(),
                _ => write(path, last, Ok(None))?,
            };
            Ok(read.into_iter().chain(written).collect())
        }
        Shape::Change(path) => write(path, last_of(name), Ok(None)),
        Shape::Rename { from, to } => {
            let to = resolve(call, to, Last::Itself);
            write(from, Last::Itself, to.map(Some))
        }
        Shape::Link { made, existing } => {
            let existing = resolve(call, existing, Last::Itself);
            write(made, Last::Itself, existing.map(Some))
        }
        Shape::Symlink { made, text: at } => {
            let target = text(call.thread, argument(call, at), PATH_MAX);
            write(
                made,
                Last::Itself,
                target.map(|(target, _)| ByteString::new(target)),
            )
        }
        Shape::Execute { .. } | Shape::End => Ok(Vec::new()),
    }
}

/// Where a message goes: `name` and `namelen` of `struct msghdr`.
fn message(call: &Call, header: u64) -> Result<(u64, u64), Errno> {
    let mut buffer = [0; 16];
    bytes(call.thread, header, &mut buffer)?;
    let (name, rest) = buffer.split_at(8);
    let name = name.first_chunk().map_or(0, |it| u64::from_ne_bytes(*it));
    let length = rest.first_chunk().map_or(0, |it| u32::from_ne_bytes(*it));
    Ok((name, u64::from(length)))
}

fn addressed(call: &Call, addresses: &[(u64, u64)]) -> Result<Vec<Noticed>, Unread> {
    let connects = call.watched.name == "connect";
    let mut all: Vec<Noticed> = Vec::new();
    for (at, length) in addresses {
        let Some(address) = address::read(call.thread, *at, *length)? else {
            continue;
        };
        let socket = number_of(argument(call, 0));
        let datagram = address::is_datagram(call.thread, socket).unwrap_or(!connects);
        // Nothing can be sent to port 0: whoever connects to it only asks which way it would go.
        if connects && datagram && address.port() == 0 {
            continue;
        }
        let connect = Noticed::Connect { address, datagram };
        if !all.contains(&connect) {
            all.push(connect);
        }
    }
    Ok(all)
}

pub(super) fn exec(call: &Call, program: Place, argv: u8) -> Result<Noticed, Unread> {
    let program = spelled(call, program)?;
    let (argv, argv_truncated) = arguments(call, argument(call, argv))?;
    Ok(Noticed::Exec {
        program,
        argv,
        argv_truncated,
        cwd: cwd(call.thread).ok(),
    })
}

/// As many as are kept, and whether some are missing.
fn arguments(call: &Call, list: u64) -> Result<(Vec<ByteString>, bool), Errno> {
    let mut all = Vec::new();
    let mut left = ARGUMENT_BYTES_MAX;
    if list == 0 {
        return Ok((all, false));
    }
    for index in 0..=ARGUMENTS_MAX as u64 {
        let at = number(call.thread, list.wrapping_add(8 * index))?;
        if at == 0 {
            return Ok((all, false));
        }
        if all.len() == ARGUMENTS_MAX {
            break;
        }
        let (argument, whole) = text(call.thread, at, left)?;
        left -= argument.len();
        all.extend(ByteString::new(argument));
        if !whole {
            break;
        }
    }
    Ok((all, true))
}

/// The same of arguments that are known already.
pub(super) fn shorten(argv: Vec<ByteString>) -> (Vec<ByteString>, bool) {
    let (count, mut left) = (argv.len(), ARGUMENT_BYTES_MAX);
    let mut kept = Vec::new();
    for argument in argv.into_iter().take(ARGUMENTS_MAX) {
        let mut bytes = argument.into_bytes();
        let whole = bytes.len() <= left;
        bytes.truncate(left);
        left -= bytes.len();
        kept.extend(ByteString::new(bytes));
        if !whole {
            return (kept, true);
        }
    }
    (kept, count > ARGUMENTS_MAX)
}
