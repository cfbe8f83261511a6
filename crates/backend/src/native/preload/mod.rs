//! Interpreters that are started ahead: one for each sandbox, for one program. Each waits on its
//! descriptor 3 for the code, and behaves from then on as if it had been started with it.

mod message;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use glovebox_cage::{Event, Handle};
use glovebox_model::{ByteString, Code, Error, Result, Stage, Stream};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};
use rustix::pipe::{PipeFlags, pipe_with};

use super::processes;
use super::pump::Outlet;
use super::sandbox::broken;
use super::standing::{Standing, ready};
use super::supervise::{cage_order, no_exec};
use crate::spec::Order;

/// The interpreter does nothing but read; should it not, the run must not wait for it.
const SENDING: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    Python,
    Node,
}

impl Language {
    pub const ALL: [Self; 2] = [Self::Python, Self::Node];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Node => "node",
        }
    }

    /// The option whose argument is the program.
    const fn option(self) -> &'static str {
        match self {
            Self::Python => "-c",
            Self::Node => "-e",
        }
    }

    /// What waits for the program.
    const fn runner(self) -> &'static str {
        match self {
            Self::Python => include_str!("runner.py"),
            Self::Node => include_str!("runner.js"),
        }
    }
}

/// What is started ahead, and with which variables: those that it reads at its start hold for every
/// program that it may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preload {
    pub language: Language,
    /// As an order names it.
    pub command: ByteString,
    pub env: Vec<(ByteString, ByteString)>,
    /// Where the command is looked for.
    pub path: Vec<ByteString>,
}

/// One that was started.
#[derive(Debug)]
pub(super) struct Interpreter {
    preload: Preload,
    /// As the host knows it, once it waits.
    pid: Option<i32>,
    tells_all: bool,
    streams: Option<(OwnedFd, [Outlet; 2])>,
    channel: OwnedFd,
}

/// Waits until at least one of them has something to say.
fn until_one<const N: usize>(fds: [BorrowedFd<'_>; N], deadline: Instant) -> Result<[bool; N]> {
    loop {
        let said = ready(fds, deadline)?;
        if said.contains(&true) {
            return Ok(said);
        }
    }
}

/// What it said when it had read its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Begins,
    NoDirectory { errno: i32 },
    None,
}

impl Interpreter {
    pub(super) fn start(preload: Preload, handle: &Handle) -> Result<Self> {
        let failed = |errno: Errno| broken(&errno);
        let flags = SocketFlags::CLOEXEC;
        let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        let (channel, theirs) = pair.map_err(failed)?;
        set_socket_timeout(&channel, Timeout::Send, Some(SENDING)).map_err(failed)?;
        let (input, ours) = pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
        let (stdout, output) = Outlet::new(Stream::Stdout).map_err(failed)?;
        let (stderr, error) = Outlet::new(Stream::Stderr).map_err(failed)?;
        let text = |text: &str| ByteString::try_from(text).unwrap_or_default();
        let order = Order {
            argv: vec![
                preload.command.clone(),
                text(preload.language.option()),
                text(preload.language.runner()),
            ],
            env: preload.env.clone(),
            cwd: text("/"),
            path: preload.path.clone(),
        };
        let descriptors = [&input, &output, &error, &theirs].map(AsFd::as_fd);
        let sent = handle.preload(cage_order(&order), descriptors);
        sent.map_err(failed)?;
        Ok(Self {
            preload,
            pid: None,
            tells_all: false,
            streams: Some((ours, [stdout, stderr])),
            channel,
        })
    }

    /// Waits until it has said that it waits.
    pub(super) fn settle(&mut self, standing: &Standing, deadline: Instant) -> Result<()> {
        let handle = &standing.seat.handle;
        let watched = [self.channel(), handle.init_fd(), handle.control_fd()];
        let [channel, ..] = until_one(watched, deadline)?;
        if channel && self.hear(&mut [0])? == b"R" {
            let pid = standing.init().and_then(processes::only_child);
            self.pid = pid;
            self.tells_all = pid.is_some_and(processes::tells_all);
            return Ok(());
        }
        // Its end of the channel goes before pid 1 says why.
        let [init, _] = until_one([handle.init_fd(), handle.control_fd()], deadline)?;
        if !init {
            return Err(broken(&"it ended"));
        }
        match handle.next_init() {
            Ok(Some(Event::ExecFailed { errno })) => Err(no_exec(errno)),
            _ => Err(self.unfit()),
        }
    }

    fn unfit(&mut self) -> Error {
        let command = self.preload.command.display();
        let error = Error::new(
            Code::SetupFailed,
            Stage::Admit,
            format!("`{command}` cannot be started ahead in this sandbox"),
        )
        .hint("programs are still started one by one; only the wait for them is longer");
        match self.last_words() {
            Some(words) => error.caused_by(words),
            None => error,
        }
    }

    fn last_words(&mut self) -> Option<String> {
        let (_, [_, errors]) = self.streams.as_ref()?;
        let mut buffer = [0; 512];
        let length = rustix::io::read(errors.pipe()?, &mut buffer).ok()?;
        let text = String::from_utf8_lossy(&buffer[..length]);
        text.lines().last().map(str::to_owned)
    }

    pub(super) fn preload(&self) -> &Preload {
        &self.preload
    }

    pub(super) fn pid(&self) -> Option<i32> {
        self.pid
    }

    /// The same, of one whose status can be seen by who is not its parent.
    pub(super) fn observable(&self) -> Option<i32> {
        self.pid.filter(|_| self.tells_all)
    }

    pub(super) fn channel(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }

    /// Its end of standard input, and its outputs; given away once.
    pub(super) fn take_streams(&mut self) -> Result<(OwnedFd, [Outlet; 2])> {
        self.streams.take().ok_or_else(|| broken(&"a second run"))
    }

    pub(super) fn message(&self, order: &Order, has_stdin: bool) -> Result<Vec<u8>> {
        match self.preload.code(order) {
            Some(code) => message::encode(code, order, has_stdin),
            None => Err(broken(&"this interpreter cannot take that order")),
        }
    }

    pub(super) fn tell(&self, message: &[u8]) -> Result<()> {
        let mut rest = message;
        while !rest.is_empty() {
            match send(&self.channel, rest, SendFlags::NOSIGNAL) {
                Ok(sent) => rest = &rest[sent..],
                Err(Errno::INTR) => {}
                // It is gone; its end says the rest.
                Err(Errno::PIPE | Errno::CONNRESET) => return Ok(()),
                Err(errno) => return Err(broken(&errno)),
            }
        }
        Ok(())
    }

    pub(super) fn answer(&self) -> Answer {
        match self.hear(&mut [0; 5]) {
            Ok(b"G") => Answer::Begins,
            Ok([b'C', errno @ ..]) => match errno.try_into() {
                Ok(errno) => Answer::NoDirectory {
                    errno: i32::from_le_bytes(errno),
                },
                Err(_) => Answer::None,
            },
            Ok(_) | Err(_) => Answer::None,
        }
    }

    /// What lies there now.
    fn hear<'buffer>(&self, buffer: &'buffer mut [u8]) -> Result<&'buffer [u8]> {
        let heard = recv(&self.channel, &mut *buffer, RecvFlags::DONTWAIT);
        let (length, _) = heard.map_err(|errno| broken(&errno))?;
        Ok(&buffer[..length])
    }
}
