//! Bytes from socket to socket. Small amounts are copied; once a way is busy its bytes are moved
//! by the kernel through a pipe and never come up here.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;

use crate::downstream::{Near, Wire};
use crate::exec_session::Way;

/// What is copied at once. A read that fills it shows that a way is busy.
const COPIED: usize = 16 * 1024;
/// What is moved at once, and the size of the pipe. The kernel may refuse that size to an ordinary
/// user who has many; the usual one does too.
const MOVED: usize = 1024 * 1024;

/// Both ways, until both have ended. One end may close while the other goes on.
pub(crate) async fn both(near: &mut Near, far: &Wire) -> io::Result<()> {
    let mut out = far.clone();
    let ahead = near.take_ahead();
    out.write_all(&ahead).await?;
    let near = &*near;
    tokio::try_join!(
        one(near.wire(), far, |bytes| near.count(Way::Sent, bytes)),
        one(far, near.wire(), |bytes| near.count(Way::Received, bytes)),
    )?;
    Ok(())
}

/// `count` is asked before bytes go on: an error keeps them back.
async fn one(from: &Wire, to: &Wire, count: impl Fn(usize) -> io::Result<()>) -> io::Result<()> {
    if copied(from, to, &count).await? == After::Busy {
        moved(from.stream(), to.stream(), &count).await?;
    }
    to.clone().shutdown().await
}

#[derive(Debug, PartialEq, Eq)]
enum After {
    End,
    Busy,
}

async fn copied(
    from: &Wire,
    to: &Wire,
    count: &impl Fn(usize) -> io::Result<()>,
) -> io::Result<After> {
    let (mut from, mut to) = (from.clone(), to.clone());
    let mut buffer = vec![0; COPIED];
    loop {
        let bytes = from.read(&mut buffer).await?;
        if bytes == 0 {
            return Ok(After::End);
        }
        count(bytes)?;
        to.write_all(&buffer[..bytes]).await?;
        if bytes == COPIED {
            return Ok(After::Busy);
        }
    }
}

struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

impl Pipe {
    fn new() -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let _ = fcntl_setpipe_size(&write, MOVED);
        Ok(Self { read, write })
    }
}

async fn moved(
    from: &TcpStream,
    to: &TcpStream,
    count: &impl Fn(usize) -> io::Result<()>,
) -> io::Result<()> {
    let pipe = Pipe::new()?;
    loop {
        // The pipe is empty here, so that only the socket can make it wait.
        let taken = from
            .async_io(Interest::READABLE, || transfer(from, &pipe.write, MOVED))
            .await?;
        if taken == 0 {
            return Ok(());
        }
        count(taken)?;
        let mut left = taken;
        while left > 0 {
            let given = to
                .async_io(Interest::WRITABLE, || transfer(&pipe.read, to, left))
                .await?;
            if given == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            left = left.saturating_sub(given);
        }
    }
}

/// Writing to a socket that is gone raises SIGPIPE here, which Rust's start-up ignores.
fn transfer(from: impl AsFd, to: impl AsFd, bytes: usize) -> io::Result<usize> {
    let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
    Ok(splice(from, None, to, None, bytes, flags)?)
}
