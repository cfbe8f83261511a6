//! What the program of a container is asked for while it runs, and its terminal: the engine's command
//! stands on a terminal of ours and carries both ways what is written there.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};

use glovebox_cage::Terminal;
use glovebox_model::TerminalSize;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use crate::streams::{Act, Control, window_size};

/// The engine's command takes these keys for itself. It has to be some, so it is a sequence that is
/// not typed: without it `C-p` would wait for the next key, and `C-p C-q` would let go of the program.
/// The first of them waits for the next key: at a person's terminal it is the one that detaches.
pub(super) const DETACH_KEYS: &str =
    "--detach-keys=ctrl-],ctrl-@,ctrl-_,ctrl-^,ctrl-@,ctrl-_,ctrl-^,ctrl-@";

#[derive(Debug, Default)]
pub(super) struct Controls<'run> {
    /// None when nothing can be asked any more.
    pub(super) asked: Option<&'run Control>,
    terminal: Option<Terminal>,
}

/// Ours: to be written, and to be read.
pub(super) type Ends = [OwnedFd; 2];

impl<'run> Controls<'run> {
    /// Gives the command its input and output: pipes, or a terminal. What it says for itself comes on a
    /// pipe in any case.
    pub(super) fn wire(
        asked: Option<&'run Control>,
        command: &mut Command,
        (size, has_input): (Option<TerminalSize>, bool),
    ) -> rustix::io::Result<(Self, Option<Ends>)> {
        command.stderr(Stdio::piped());
        let Some(size) = size else {
            let input = if has_input {
                Stdio::piped()
            } else {
                Stdio::null()
            };
            command.stdin(input).stdout(Stdio::piped());
            let terminal = None;
            return Ok((Self { asked, terminal }, None));
        };
        let (terminal, peer) = Terminal::of_host(window_size(size))?;
        // As the command will make it: what is typed before that is neither shown nor kept for a line.
        let mut modes = tcgetattr(&peer)?;
        modes.make_raw();
        tcsetattr(&peer, OptionalActions::Now, &modes)?;
        let end = || rustix::io::fcntl_dupfd_cloexec(&terminal, 0);
        let ends = [end()?, end()?];
        let again = rustix::io::fcntl_dupfd_cloexec(&peer, 0)?;
        command.stdin(Stdio::from(peer)).stdout(Stdio::from(again));
        let terminal = Some(terminal);
        Ok((Self { asked, terminal }, Some(ends)))
    }

    /// To be polled for reading.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.asked.map(Control::fd)
    }

    /// What was asked for and cannot be done here.
    pub(super) fn obey(&mut self, command: &Child) -> Vec<Wish> {
        let Some(acts) = self.asked.and_then(Control::take) else {
            self.asked = None;
            return Vec::new();
        };
        let wish = |act| match act {
            Act::Resize(size) => {
                // A command that has ended meanwhile needs no size.
                let _ = self.resize(size, command);
                None
            }
            Act::Signal(signal) => match (&self.terminal, key_of(signal)) {
                (Some(_), Some(key)) => Some(Wish::Key(key)),
                _ => Some(Wish::Signal(signal)),
            },
            Act::Expire => Some(Wish::Expire),
        };
        acts.into_iter().filter_map(wish).collect()
    }

    /// The command passes its terminal's size on when it is told that there is another.
    fn resize(&self, size: TerminalSize, command: &Child) -> rustix::io::Result<()> {
        let Some(terminal) = &self.terminal else {
            return Ok(());
        };
        terminal.resize(window_size(size))?;
        let pid = i32::try_from(command.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.ok_or(Errno::SRCH)?, Signal::WINCH)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// Typed before everything that waits.
    Key(u8),
    /// By the engine, to the first process.
    Signal(i32),
    Expire,
}

/// What types it on a terminal: then it reaches the foreground, wherever that is.
fn key_of(signal: i32) -> Option<u8> {
    const KEYS: [(Signal, u8); 3] = [
        (Signal::INT, 0x03),
        (Signal::QUIT, 0x1c),
        (Signal::TSTP, 0x1a),
    ];
    let found = KEYS.iter().find(|(known, _)| known.as_raw() == signal);
    found.map(|(_, key)| *key)
}
