//! What a session's keeper is asked, and what it answers: over a Unix socket, a header in JSON and bytes
//! behind it. Each question has one answer; a connection takes any number of them, one after the other.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use glovebox_api::{SessionInput, SessionScreen, SessionStream};
use glovebox_model::{Code, Error, Exec, Party, Result, Stage, TerminalSize};
use glovebox_store::RequestKey;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::KeptFor;
use crate::dispatch::Submission;
use crate::visibility::Viewer;

/// Of everything in this file. A keeper that was started by another version may speak another one; each
/// frame begins with it and its [`Claim`], and these never change.
pub(super) const VERSION: u32 = 1;

/// What a keeper has to know of a question of any version: the two highest bits of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    Nothing,
    /// The state directory is this process's from now on.
    Attends,
    /// The session is to end.
    Ends,
}

impl Claim {
    const BITS: u32 = 0b11 << 30;

    const fn bits(self) -> u32 {
        match self {
            Self::Nothing => 0,
            Self::Attends => 1 << 30,
            Self::Ends => 2 << 30,
        }
    }

    fn of(word: u32) -> Self {
        let all = [Self::Attends, Self::Ends];
        let found = all.into_iter().find(|it| it.bits() == word & Self::BITS);
        found.unwrap_or(Self::Nothing)
    }
}

/// A call with its environment and inputs, and what is typed at once, are larger than anything else.
const HEADER_MOST: u32 = 64 << 20;
const BODY_MOST: u32 = 4 << 20;

/// What a keeper is started with.
#[derive(Serialize, Deserialize)]
pub(super) struct Start {
    pub(super) call: glovebox_model::Call,
    pub(super) objection: Option<Error>,
    pub(super) key: Option<RequestKey>,
    pub(super) by: Party,
    pub(super) eyes: Viewer,
    /// What seals secrets, where it was given to the other side.
    pub(super) secrets_key: Option<Vec<u8>>,
    pub(super) kept_for: KeptFor,
    /// How long the session goes on while no process of that kind is there; none: it needs none.
    pub(super) orphan_grace: Option<Duration>,
}

impl Start {
    pub(super) fn of(
        submission: Submission,
        secrets_key: Option<Vec<u8>>,
        (kept_for, orphan_grace): (KeptFor, Option<Duration>),
    ) -> Self {
        // A session's program is talked to: what it reads first is typed like everything else.
        let Submission {
            call,
            stdin: _,
            objection,
            key,
            by,
            eyes,
        } = submission;
        Self {
            call,
            objection,
            key,
            by,
            eyes,
            secrets_key,
            kept_for,
            orphan_grace,
        }
    }

    pub(super) fn submission(self) -> Submission {
        Submission {
            call: self.call,
            stdin: None,
            objection: self.objection,
            key: self.key,
            by: self.by,
            eyes: self.eyes,
        }
    }
}

/// The first word of a keeper, on the socket that it was started with.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Started {
    /// It keeps this exec from now on, unless that has ended or was here before.
    TakenOn {
        exec: Box<Exec>,
        replayed: bool,
    },
    Refused(Box<Error>),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Ask {
    /// A process of this kind is there, for as long as this connection is.
    Attend(KeptFor),
    State,
    /// The state once the program has ended, or waits for input, or after so many milliseconds.
    Settle {
        patience_ms: u64,
    },
    Read {
        stdout: u64,
        stderr: u64,
        most: usize,
        wait_ms: u64,
    },
    Screen,
    Type {
        input: SessionInput,
        /// Who asks with the same one again gets the first answer.
        once: Option<String>,
    },
    Resize(TerminalSize),
    CloseInput,
    Signal(i32),
    /// Answered when nothing of the session is left.
    Kill,
}

impl Ask {
    fn claim(&self) -> Claim {
        match self {
            Self::Attend(_) => Claim::Attends,
            Self::Kill => Claim::Ends,
            _ => Claim::Nothing,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    State(Now),
    /// For whom the session is kept, and whose it is.
    Attended {
        kept_for: KeptFor,
        of: Viewer,
    },
    /// Bytes of the standard output behind it, then those of the standard error.
    Output {
        now: Now,
        stdout: Extract,
        stderr: Extract,
    },
    Screen(Box<SessionScreen>),
    Failed(Box<Error>),
}

/// A session as its keeper knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Now {
    pub(super) stdout: SessionStream,
    pub(super) stderr: SessionStream,
    pub(super) size: Option<TerminalSize>,
    pub(super) idle_ms: u64,
    pub(super) waiting_for_input: bool,
    pub(super) input_closed: bool,
    /// Its record is final, and nothing comes any more.
    pub(super) finished: bool,
}

impl Now {
    /// Of one without a keeper, as far as its record tells.
    pub(super) fn on_record(exec: &Exec) -> Self {
        let whole = |end| SessionStream { start: 0, end };
        Self {
            stdout: whole(exec.stdout_bytes),
            stderr: whole(exec.stderr_bytes),
            size: None,
            idle_ms: 0,
            waiting_for_input: false,
            input_closed: true,
            finished: exec.status.is_final(),
        }
    }
}

/// Bytes of one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Extract {
    pub(super) offset: u64,
    pub(super) length: usize,
}

pub(super) fn send(
    socket: &mut UnixStream,
    header: &impl Serialize,
    bodies: &[&[u8]],
) -> std::io::Result<()> {
    send_with(socket, Claim::Nothing, header, bodies)
}

fn send_with(
    socket: &mut UnixStream,
    claim: Claim,
    header: &impl Serialize,
    bodies: &[&[u8]],
) -> std::io::Result<()> {
    let header = serde_json::to_vec(header)?;
    let too_long = |_| std::io::Error::from(std::io::ErrorKind::InvalidData);
    let length: usize = bodies.iter().map(|it| it.len()).sum();
    let mut frame = Vec::with_capacity(12 + header.len() + length);
    frame.extend((VERSION | claim.bits()).to_le_bytes());
    frame.extend(u32::try_from(header.len()).map_err(too_long)?.to_le_bytes());
    frame.extend(u32::try_from(length).map_err(too_long)?.to_le_bytes());
    frame.extend(header);
    bodies.iter().for_each(|body| frame.extend(*body));
    socket.write_all(&frame)
}

/// What was received.
#[derive(Debug)]
pub(super) enum Frame<T> {
    Whole(T, Vec<u8>),
    /// Of a peer that speaks this version.
    Foreign(u32, Claim),
    /// The other side is gone.
    End,
}

pub(super) fn receive<T: DeserializeOwned>(socket: &mut UnixStream) -> std::io::Result<Frame<T>> {
    let mut start = [0; 12];
    match socket.read_exact(&mut start) {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(Frame::End),
        other => other?,
    }
    let [a, b, c, d, lengths @ ..] = start;
    let word = u32::from_le_bytes([a, b, c, d]);
    let version = word & !Claim::BITS;
    if version != VERSION {
        return Ok(Frame::Foreign(version, Claim::of(word)));
    }
    let [a, b, c, d, e, f, g, h] = lengths;
    let (header, body) = (
        u32::from_le_bytes([a, b, c, d]),
        u32::from_le_bytes([e, f, g, h]),
    );
    if header > HEADER_MOST || body > BODY_MOST {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    let header = exactly(socket, header)?;
    let body = exactly(socket, body)?;
    Ok(Frame::Whole(serde_json::from_slice(&header)?, body))
}

fn exactly(socket: &mut UnixStream, length: u32) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let length = u64::from(length);
    if Read::by_ref(socket).take(length).read_to_end(&mut bytes)? as u64 == length {
        return Ok(bytes);
    }
    Err(std::io::ErrorKind::UnexpectedEof.into())
}

/// One question to a keeper, and its answer.
pub(super) fn ask(
    socket: &mut UnixStream,
    ask: Ask,
    patience: Duration,
) -> Result<(Answer, Vec<u8>)> {
    put(socket, ask).map_err(|error| gone().caused_by(error))?;
    answer(socket, patience, true)
}

pub(super) fn put(socket: &mut UnixStream, ask: Ask) -> std::io::Result<()> {
    send_with(socket, ask.claim(), &ask, &[])
}

/// What is not repeatable may still be done when no answer came in time.
pub(super) fn answer(
    socket: &mut UnixStream,
    patience: Duration,
    repeatable: bool,
) -> Result<(Answer, Vec<u8>)> {
    let answered = socket
        .set_read_timeout(Some(patience))
        .and_then(|()| receive(socket));
    match answered {
        Ok(Frame::Whole(Answer::Failed(error), _)) => Err(*error),
        Ok(Frame::Whole(answer, bytes)) => Ok((answer, bytes)),
        Ok(Frame::Foreign(version, _)) => Err(another_version(version)),
        Ok(Frame::End) => Err(gone()),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            let message = "the session's keeper does not answer";
            let mut late = Error::new(Code::Busy, Stage::Run, message);
            late.retry.allowed = repeatable;
            Err(late.hint("try again; `glovebox session kill ID` ends it"))
        }
        Err(error) => Err(gone().caused_by(error)),
    }
}

pub(super) fn another_version(version: u32) -> Error {
    let message = format!(
        "versions {VERSION} and {version} of the protocol of sessions do not understand each other"
    );
    Error::new(Code::Conflict, Stage::Run, message)
        .hint("the session was started by another version of Glovebox: use that one, or end it with `glovebox session kill ID`")
}

/// The keeper has ended: its record says how, or will soon.
pub(super) fn gone() -> Error {
    Error::new(Code::NotFound, Stage::Run, "the session's keeper is gone")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_arrive_whole_or_not_at_all() {
        let (mut here, mut there) = UnixStream::pair().unwrap();
        send(&mut here, &Ask::Signal(2), &[b"ab", b"c"]).unwrap();
        let Frame::Whole(Ask::Signal(2), body) = receive(&mut there).unwrap() else {
            panic!("another question");
        };
        assert_eq!(body, b"abc");
        // Of another version only that is known, and what it claims.
        for (claim, first) in [
            (Claim::Nothing, 0x09),
            (Claim::Attends, 0x49),
            (Claim::Ends, 0x89),
        ] {
            let (mut here, mut there) = UnixStream::pair().unwrap();
            here.write_all(&[9, 9, 9, first, 9, 9, 9, 9, 9, 9, 9, 9])
                .unwrap();
            let Frame::Foreign(version, claimed) = receive::<Ask>(&mut there).unwrap() else {
                panic!("taken for our own");
            };
            assert_eq!((version, claimed), (0x0909_0909, claim));
        }
        put(&mut here, Ask::Kill).unwrap();
        assert!(matches!(
            receive::<Ask>(&mut there).unwrap(),
            Frame::Whole(Ask::Kill, _)
        ));
        let frame =
            |lengths: [u8; 8], body: &[u8]| [&VERSION.to_le_bytes()[..], &lengths, body].concat();
        // A length that no honest peer sends is not believed.
        let (mut here, mut there) = UnixStream::pair().unwrap();
        here.write_all(&frame([0xff; 8], b"")).unwrap();
        assert!(receive::<Ask>(&mut there).is_err());
        let (mut here, mut there) = UnixStream::pair().unwrap();
        here.write_all(&frame([9, 0, 0, 0, 0, 0, 0, 0], b"{"))
            .unwrap();
        drop(here);
        assert!(receive::<Ask>(&mut there).is_err());
        let (here, mut there) = UnixStream::pair().unwrap();
        drop(here);
        assert!(matches!(receive::<Ask>(&mut there).unwrap(), Frame::End));
    }
}
