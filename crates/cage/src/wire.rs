//! Messages between the processes: one datagram each, descriptors alongside. What is too
//! large for a datagram travels in a memory file.

use std::ffi::CString;
use std::io::{IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::sys::{self, Result};
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::lease::Over;
use crate::moment::Moment;
use crate::plan::{Attachment, Plan, Told};
use crate::terminal::WindowSize;
use crate::way_out::Counts;

/// Below the default socket buffer, so that a datagram never has to wait for room.
const INLINE_MAX: usize = 64 << 10;
const DESCRIPTORS_MAX: usize = 16;

/// Which step failed and why. Nothing was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{step}: {}", std::io::Error::from_raw_os_error(*errno))]
pub struct Failure {
    pub step: String,
    pub errno: i32,
}

/// Names the step that an error number came from.
pub(crate) trait At<T> {
    fn at(self, step: &str) -> Result<T, Failure>;
}

impl<T> At<T> for Result<T> {
    fn at(self, step: &str) -> Result<T, Failure> {
        self.map_err(|errno| Failure {
            step: step.to_owned(),
            errno: errno.raw_os_error(),
        })
    }
}

/// What to execute once the sandbox stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    pub argv: Vec<CString>,
    pub env: Vec<CString>,
    pub cwd: CString,
    /// Where a command without a slash is looked for.
    pub path: Vec<CString>,
    /// Its standard streams are a terminal of the sandbox's own then, and no others come with it.
    pub terminal: Option<WindowSize>,
}

/// One secret of several that travel in one file, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parcel {
    /// Of its file inside.
    pub name: CString,
    pub bytes: u64,
}

/// What was left of the scratch space when the payload ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scratch {
    pub bytes_free: u64,
    pub files_free: u64,
}

/// Of all processes of the sandbox together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProcessUsage {
    pub cpu_us: u64,
    /// The largest single process, in bytes.
    pub max_rss: u64,
}

impl ProcessUsage {
    pub(crate) fn add(&mut self, other: Self) {
        self.cpu_us += other.cpu_us;
        self.max_rss = self.max_rss.max(other.max_rss);
    }
}

impl From<&libc::rusage> for ProcessUsage {
    fn from(usage: &libc::rusage) -> Self {
        let micros = |time: libc::timeval| {
            u64::try_from(time.tv_sec * 1_000_000 + time.tv_usec).unwrap_or(0)
        };
        Self {
            cpu_us: micros(usage.ru_utime) + micros(usage.ru_stime),
            max_rss: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
        }
    }
}

/// How a keeper ends what is not its child, as a container is not: each is a command, its program
/// by its whole path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    /// When a deadline or a lease is over. The caller may still be there.
    pub end: Vec<CString>,
    /// When the caller is gone: it is tried again and again, for so long.
    pub clear: Vec<CString>,
    pub patience: Duration,
    pub env: Vec<CString>,
    /// Locked for as long as the keeper may still give a command: who wants what it ends waits for that.
    pub lock: Option<CString>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToKeeper {
    /// Enter these cgroups (v1) now, so that the cost is paid while the caller does other work.
    Join(Vec<CString>),
    Build(Plan),
    /// Into the sandbox that stands; the trees come alongside, by index.
    Attach(Vec<Attachment>, Told),
    /// Out of it again.
    Detach(Vec<CString>),
    /// When the keeper ends it by itself, instead of what was said before.
    Until(Moment),
    /// There is no sandbox to build: what runs is another's, and only its end is the keeper's.
    Guard(Guard),
    Kill,
    /// The caller has done its part; nobody needs the keeper any more.
    Release,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromKeeper {
    Born {
        pid: i32,
    },
    Failed(Failure),
    Attached,
    Detached,
    /// It watches over what it was told of.
    Guards,
    /// Pid 1 and with it everything inside is gone.
    Ended {
        usage: ProcessUsage,
        /// None: it was told to, or it ended by itself.
        over: Option<Over>,
        at: Moment,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToInit {
    /// Into the cupboard, for the next payload: a file with all of them comes alongside.
    Deliver(Vec<Parcel>),
    Execute(Order),
    /// The same, but not before the next attachment is there.
    ExecuteAttached(Order),
    /// The same, ahead of its time: with a fourth descriptor, through which it hears what to do.
    Preload(Order),
    /// To every process inside but pid 1.
    Signal(i32),
    /// Ends every process inside but pid 1.
    Sweep,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromInit {
    /// With the sockets of the way out, then what observes the sandbox, and at last the handle to a
    /// layer in memory.
    Ready {
        way_out: Option<Counts>,
        /// Whether the descriptor where calls are seen is among them, and the socket for effects.
        calls: bool,
        effects: bool,
    },
    /// With the controlling end of the terminal that the payload is about to get.
    Terminal,
    SetupFailed(Failure),
    CwdFailed {
        errno: i32,
    },
    ExecFailed {
        errno: i32,
    },
    /// The raw wait status of the payload.
    Exited {
        status: i32,
        scratch: Option<Scratch>,
        /// Of everybody who was buried since the order.
        usage: ProcessUsage,
        at: Moment,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToSpawner {
    /// The answer goes into the socket alongside.
    Spawn,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromSpawner {
    /// With three descriptors: the caller's two ends, and the keeper's process.
    Spawned {
        pid: i32,
    },
    Failed {
        errno: i32,
    },
}

#[derive(Serialize, Deserialize)]
enum Envelope {
    Inline(Vec<u8>),
    /// The first descriptor is a memory file with the message.
    InFile,
}

pub(crate) fn pair() -> Result<(OwnedFd, OwnedFd)> {
    let kind = SocketType::SEQPACKET;
    socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)
}

pub(crate) fn send(
    socket: impl AsFd,
    message: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> Result<()> {
    let body = postcard::to_stdvec(message).map_err(|_| Errno::INVAL)?;
    if body.len() <= INLINE_MAX {
        return send_envelope(socket, &Envelope::Inline(body), descriptors);
    }
    let file = rustix::fs::memfd_create("glovebox", MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(file);
    file.write_all(&body).map_err(|_| Errno::NOMEM)?;
    let with_file: Vec<BorrowedFd<'_>> = std::iter::once(file.as_fd())
        .chain(descriptors.iter().copied())
        .collect();
    send_envelope(socket, &Envelope::InFile, &with_file)
}

fn send_envelope(
    socket: impl AsFd,
    envelope: &Envelope,
    descriptors: &[BorrowedFd<'_>],
) -> Result<()> {
    let bytes = postcard::to_stdvec(envelope).map_err(|_| Errno::INVAL)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::MFILE);
    }
    loop {
        let sent = sendmsg(
            &socket,
            &[IoSlice::new(&bytes)],
            &mut control,
            SendFlags::NOSIGNAL,
        );
        match sent {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// The same for pid 1, which is observed itself: nobody answers before it has handed over where that
/// is done.
pub(crate) fn send_sealed(
    socket: impl AsFd,
    message: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
    seal: Option<u64>,
) -> Result<()> {
    let Some(seal) = seal else {
        return send(socket, message, descriptors);
    };
    if descriptors.len() > DESCRIPTORS_MAX {
        return Err(Errno::MFILE);
    }
    let body = postcard::to_stdvec(message).map_err(|_| Errno::INVAL)?;
    let bytes = postcard::to_stdvec(&Envelope::Inline(body)).map_err(|_| Errno::INVAL)?;
    let mut control = rights(descriptors);
    loop {
        match sys::send_sealed(socket.as_fd(), &bytes, &mut control, seal) {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// `struct cmsghdr` of a 64-bit machine with the lowest byte first: its length, its level and type,
/// then the numbers.
fn rights(descriptors: &[BorrowedFd<'_>]) -> Vec<u64> {
    if descriptors.is_empty() {
        return Vec::new();
    }
    let both = |low: i32, high: i32| {
        u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32
    };
    let length = 16 + 4 * descriptors.len() as u64;
    let numbers = descriptors.chunks(2).map(|pair| {
        let number = |at: usize| pair.get(at).map_or(0, AsRawFd::as_raw_fd);
        both(number(0), number(1))
    });
    [length, both(libc::SOL_SOCKET, libc::SCM_RIGHTS)]
        .into_iter()
        .chain(numbers)
        .collect()
}

/// `None` when the other side is gone.
pub(crate) fn receive<T: DeserializeOwned>(socket: impl AsFd) -> Result<Option<(T, Vec<OwnedFd>)>> {
    let mut buffer = vec![0; INLINE_MAX + 64];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let bytes = loop {
        let mut parts = [IoSliceMut::new(&mut buffer)];
        match recvmsg(&socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(received) => break received.bytes,
            Err(Errno::INTR) => {}
            // Said once, when the peer went without reading all; what it had sent is still there.
            Err(Errno::CONNRESET) => {}
            Err(errno) => return Err(errno),
        }
    };
    if bytes == 0 {
        return Ok(None);
    }
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let envelope = postcard::from_bytes(&buffer[..bytes]).map_err(|_| Errno::BADMSG)?;
    let body = match envelope {
        Envelope::Inline(body) => body,
        Envelope::InFile if descriptors.is_empty() => return Err(Errno::BADMSG),
        Envelope::InFile => {
            let mut file = std::fs::File::from(descriptors.remove(0));
            let mut body = Vec::new();
            file.seek(SeekFrom::Start(0)).map_err(|_| Errno::IO)?;
            file.read_to_end(&mut body).map_err(|_| Errno::IO)?;
            body
        }
    };
    let message = postcard::from_bytes(&body).map_err(|_| Errno::BADMSG)?;
    Ok(Some((message, descriptors)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_messages_arrive_with_their_descriptors() {
        let (here, there) = pair().unwrap();
        for size in [0, 10, INLINE_MAX, 3 << 20] {
            let order = Order {
                argv: vec![CString::new(vec![b'x'; size]).unwrap()],
                env: Vec::new(),
                cwd: c"/".into(),
                path: Vec::new(),
                terminal: None,
            };
            let stdin = rustix::stdio::stdin();
            send(&here, &ToInit::Execute(order.clone()), &[stdin, stdin]).unwrap();
            let (message, descriptors) = receive::<ToInit>(&there).unwrap().unwrap();
            let ToInit::Execute(arrived) = message else {
                panic!("another message")
            };
            assert_eq!(arrived, order);
            assert_eq!(descriptors.len(), 2);
        }
    }

    #[test]
    fn what_is_sealed_arrives_as_everything_else() {
        let (here, there) = pair().unwrap();
        let stdin = rustix::stdio::stdin();
        for count in 0..=DESCRIPTORS_MAX {
            let handed = vec![stdin; count];
            send_sealed(&here, &ToInit::Signal(7), &handed, Some(u64::MAX)).unwrap();
            let (message, descriptors) = receive::<ToInit>(&there).unwrap().unwrap();
            assert!(matches!(message, ToInit::Signal(7)));
            assert_eq!(descriptors.len(), count);
        }
    }

    #[test]
    fn a_gone_peer_is_an_end_not_an_error() {
        let (here, there) = pair().unwrap();
        drop(here);
        assert!(receive::<ToInit>(&there).unwrap().is_none());
    }

    #[test]
    fn last_words_arrive_although_ours_were_not_read() {
        let (here, there) = pair().unwrap();
        send(&here, &ToInit::Signal(1), &[]).unwrap();
        let ready = FromInit::Ready {
            way_out: None,
            calls: false,
            effects: false,
        };
        send(&there, &ready, &[]).unwrap();
        drop(there);
        assert!(matches!(
            receive::<FromInit>(&here),
            Ok(Some((FromInit::Ready { .. }, _)))
        ));
        assert!(receive::<FromInit>(&here).unwrap().is_none());
    }

    #[test]
    fn garbage_is_refused() {
        let (here, there) = pair().unwrap();
        rustix::net::send(&here, b"\xff\xff\xff\xff", SendFlags::empty()).unwrap();
        assert_eq!(receive::<ToInit>(&there).unwrap_err(), Errno::BADMSG);
    }
}
