//! A person's terminal as that of a session, here or at a server. One thread reads what the session puts
//! out, one types, and this one looks at keys, signals and what the others say.

mod detach_keys;
mod drawing;
mod follower;
mod raw_mode;
mod typist;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use glovebox_model::{Code, Error, ExecId, Result, Stage, TerminalSize};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

pub(crate) use detach_keys::DetachKeys;
pub(crate) use raw_mode::require_terminal;

use crate::interrupt;
use crate::sessions::{From, Sessions};
use detach_keys::Watch;
use drawing::Drawing;
use follower::Follower;
use raw_mode::RawMode;
use typist::{Keyboard, Typed, Typist};

/// As much as a terminal gives at once.
const KEYS: usize = 4096;

/// What is attached, and how.
#[derive(Debug)]
pub(crate) struct Attachment {
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) id: ExecId,
    pub(crate) detach: DetachKeys,
    pub(crate) shows: Shows,
}

/// What is seen first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    /// All that it put out: it started a moment ago, in this size.
    Everything(TerminalSize),
    /// What is on its screen.
    Screen,
}

/// Why the terminal is not attached any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parted {
    Ended,
    Detached,
    /// This process was asked to end, or its terminal is gone.
    HungUp,
}

#[derive(Debug)]
enum Event {
    Ended,
    /// The terminal takes nothing any more.
    Gone,
    Failed(Box<Error>),
}

/// What each thread has.
#[derive(Debug, Clone)]
struct Link {
    sessions: Arc<Sessions>,
    id: ExecId,
    drawing: Arc<Drawing>,
    events: Events,
}

/// Where the threads tell what happened.
#[derive(Debug, Clone)]
struct Events {
    sender: Sender<Event>,
    wake: Arc<OwnedFd>,
}

impl Events {
    fn tell(&self, event: Event) {
        // After the end there is no need to know.
        let _ = self.sender.send(event);
        let _ = rustix::io::write(&self.wake, b"e");
    }
}

/// The size of the terminal that would be attached.
pub(crate) fn size() -> TerminalSize {
    raw_mode::size().unwrap_or(TerminalSize::USUAL)
}

/// Until the session ends or the person leaves. The threads are left behind: what they wait for may take
/// long, and they draw nothing any more.
pub(crate) fn attach(attachment: Attachment) -> Result<Parted> {
    let Attachment {
        sessions,
        id,
        detach,
        shows,
    } = attachment;
    let (presses, _asker) = interrupt::presses()?;
    let resizes = interrupt::resizes()?;
    let (sender, events) = channel();
    let (woken, wake) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).map_err(no_room)?;
    let link = Link {
        sessions,
        id,
        drawing: Arc::new(Drawing::new()),
        events: Events {
            sender,
            wake: Arc::new(wake),
        },
    };
    let (typist, keyboard) = Typist::new(link.clone());
    let follower = Follower {
        link: link.clone(),
        from: From::default(),
        redraws: shows == Shows::Screen,
    };
    let raw_mode = RawMode::begin()?;
    let size = size();
    match shows {
        // Before the picture is asked for, which has this size then.
        Shows::Screen => {
            link.sessions.resize(&link.id, size, || false)?;
            // What stands in the window can be scrolled back to.
            link.drawing.draw(&b"\r\n".repeat(size.rows.into()));
        }
        Shows::Everything(before) if before == size => {}
        Shows::Everything(_) => drop(keyboard.put(Typed::Size(size))),
    }
    spawn("typist", &link.events, move || typist.run())?;
    spawn("follower", &link.events, move || follower.run())?;
    let desk = Desk {
        keyboard,
        watch: Watch::new(&detach),
        events,
        presses,
        resizes,
        woken,
    };
    let parted = desk.sit();
    let last: &[u8] = match parted {
        Ok(Parted::Ended) => b"",
        _ => b"\r\n",
    };
    link.drawing.close(last);
    drop(raw_mode);
    parted
}

fn spawn(name: &str, events: &Events, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let care = Care(events.clone());
    let spawned = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            let _care = care;
            work();
        });
    spawned
        .map(drop)
        .map_err(|error| failed("no thread is left").caused_by(error))
}

/// Tells of a thread that panicked: the end would never come otherwise.
struct Care(Events);

impl Drop for Care {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let error = failed("a part of this command broke down");
            self.0.tell(Event::Failed(Box::new(error)));
        }
    }
}

fn no_room(errno: Errno) -> Error {
    failed("no descriptors are left").caused_by(errno)
}

fn failed(message: &str) -> Error {
    Error::new(Code::Internal, Stage::Open, message)
}

/// Where the person sits.
struct Desk {
    keyboard: Keyboard,
    watch: Watch,
    events: Receiver<Event>,
    presses: OwnedFd,
    resizes: OwnedFd,
    woken: OwnedFd,
}

impl Desk {
    fn sit(mut self) -> Result<Parted> {
        loop {
            // What nothing reads stays in the terminal.
            let keys = match self.keyboard.has_room() {
                true => PollFlags::IN,
                false => PollFlags::empty(),
            };
            let mut sources = [
                PollFd::new(&self.woken, PollFlags::IN),
                PollFd::new(&self.presses, PollFlags::IN),
                PollFd::new(&self.resizes, PollFlags::IN),
                PollFd::from_borrowed_fd(rustix::stdio::stdin(), keys),
            ];
            // A full keyboard is looked at again soon.
            let soon = rustix::event::Timespec {
                tv_sec: 0,
                tv_nsec: 50_000_000,
            };
            match poll(&mut sources, keys.is_empty().then_some(&soon)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(failed("cannot wait for keys").caused_by(errno)),
            }
            let [woken, presses, resizes, stdin] = sources.map(|it| !it.revents().is_empty());
            if woken {
                drain(&self.woken);
                match self.events.try_recv() {
                    Ok(Event::Ended) => return Ok(Parted::Ended),
                    Ok(Event::Gone) => return Ok(Parted::HungUp),
                    Ok(Event::Failed(error)) => return Err(*error),
                    Err(_) => {}
                }
            }
            if presses {
                return Ok(Parted::HungUp);
            }
            if resizes {
                drain(&self.resizes);
                self.keyboard.put(Typed::Size(size()));
            }
            if stdin && let Some(parted) = self.typed()? {
                return Ok(parted);
            }
        }
    }

    fn typed(&mut self) -> Result<Option<Parted>> {
        let mut bytes = [0; KEYS];
        let count = match rustix::io::read(rustix::stdio::stdin(), &mut bytes) {
            Ok(0) | Err(Errno::IO) => return Ok(Some(Parted::HungUp)),
            Ok(count) => count,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(None),
            Err(errno) => return Err(failed("cannot read what is typed").caused_by(errno)),
        };
        let (typed, detached) = self.watch.typed(&bytes[..count]);
        if !typed.is_empty() {
            self.keyboard.put(Typed::Bytes(typed));
        }
        if detached {
            self.keyboard.settle();
        }
        Ok(detached.then_some(Parted::Detached))
    }
}

fn drain(pipe: &OwnedFd) {
    let mut bytes = [0; 64];
    while matches!(rustix::io::read(pipe, &mut bytes), Ok(1..)) {}
}
