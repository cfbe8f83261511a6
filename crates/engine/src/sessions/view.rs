//! A session as it is shown: from its record, and from its keeper or what that left.

use std::os::unix::fs::FileExt;

use glovebox_api::{
    OutputEncoding, SessionInfo, SessionOutput, SessionPiece, SessionScreen, SessionState,
};
use glovebox_model::{Code, Error, Exec, Result, SessionTerms, Stage, Status, Stream};

use super::SessionRead;
use super::directory::Directory;
use super::io::Tail;
use super::protocol::Now;
use crate::dispatch::Dispatcher;

/// What is known of a session.
#[derive(Debug)]
pub(super) struct Sight {
    exec: Exec,
    terms: SessionTerms,
    now: Now,
    tail: Option<Tail>,
    /// It says that it runs, and nobody keeps it.
    lost: bool,
}

impl Sight {
    pub(super) fn of_now(exec: Exec, terms: SessionTerms, now: Now) -> Self {
        Self {
            exec,
            terms,
            now,
            tail: None,
            lost: false,
        }
    }

    pub(super) fn state(&self) -> SessionState {
        match self.exec.status {
            _ if self.lost => SessionState::Lost,
            Status::Queued | Status::AwaitingApproval => SessionState::Waiting,
            Status::Running => SessionState::Running,
            Status::Succeeded | Status::Failed | Status::Held => match self.exec.signal {
                Some(_) => SessionState::Signaled,
                None => SessionState::Exited,
            },
            Status::TimedOut => SessionState::TimedOut,
            Status::Killed | Status::Canceled => SessionState::Killed,
            Status::Lost => SessionState::Lost,
            Status::PolicyDenied | Status::Error => SessionState::Failed,
        }
    }

    pub(super) fn info(&self) -> SessionInfo {
        let (exec, now) = (&self.exec, &self.now);
        let command = std::iter::once(&exec.cmd).chain(&exec.args);
        SessionInfo {
            session_id: exec.exec_id.clone(),
            client_id: exec.client_id.clone(),
            project_id: exec.project_id.clone(),
            command: command.cloned().collect(),
            state: self.state(),
            status: exec.status,
            exit_code: exec.exit_code,
            signal: exec.signal,
            limit_hit: exec.limit_hit,
            started_at: exec.started_at,
            ended_at: exec.ended_at,
            terms: SessionTerms {
                terminal: now.size.or(self.terms.terminal),
                ..self.terms
            },
            stdout: now.stdout,
            stderr: now.stderr,
            idle_ms: now.idle_ms,
            waiting_for_input: now.waiting_for_input,
            input_closed: now.input_closed || self.state().is_final(),
            approval_id: exec.approval_id.clone(),
            error: exec.error.clone(),
            receipt: exec.receipt.clone(),
            ids: exec.ids.clone(),
        }
    }

    pub(super) fn kept_output(&self, read: SessionRead) -> [(u64, Vec<u8>); 2] {
        match &self.tail {
            Some(tail) => [
                tail.stdout.read(read.stdout, read.most),
                tail.stderr.read(read.stderr, read.most),
            ],
            None => [
                (self.now.stdout.end, Vec::new()),
                (self.now.stderr.end, Vec::new()),
            ],
        }
    }

    pub(super) fn screen(self) -> Result<SessionScreen> {
        self.tail.and_then(|it| it.screen).ok_or_else(|| {
            let message = match self.terms.terminal {
                Some(_) => "the screen of this session is not kept any more",
                None => "this session has no terminal: its program reads and writes pipes",
            };
            Error::new(Code::Conflict, Stage::Collect, message)
                .hint("`GET …/output` has what it put out")
        })
    }

    /// Nothing is sent to a session that has ended, and its end is told.
    pub(super) fn has_ended(&self) -> Error {
        let (id, state) = (&self.exec.exec_id, self.state());
        let how = match (state, self.exec.exit_code, self.exec.signal) {
            (SessionState::Exited, Some(code), _) => format!("it exited with {code}"),
            (SessionState::Signaled, _, Some(signal)) => format!("signal {signal} ended it"),
            (SessionState::TimedOut, _, _) => "its time was up".to_owned(),
            (SessionState::Killed, _, _) => "it was killed".to_owned(),
            (SessionState::Lost, _, _) => "it was lost".to_owned(),
            (SessionState::Waiting, _, _) => "it has not started".to_owned(),
            (SessionState::Running, _, _) => "it is ending".to_owned(),
            (SessionState::Failed | SessionState::Exited | SessionState::Signaled, _, _) => {
                "it could not run".to_owned()
            }
        };
        let message = format!("the session `{id}` takes nothing any more: {how}");
        Error::new(Code::Conflict, Stage::Run, message)
            .hint(format!("what it put out: `glovebox session log {id}`"))
    }
}

impl Dispatcher {
    pub(super) fn seal_tail(&self, exec: &Exec, tail: &Tail) -> Result<Vec<u8>> {
        let plain = postcard::to_stdvec(tail).map_err(|error| {
            Error::new(Code::Internal, Stage::Close, "the output cannot be kept").caused_by(error)
        })?;
        self.seal()?
            .close_tail(&exec.ids.space_id, &exec.exec_id, &plain)
    }

    /// None for what this state directory did not write: it is not shown.
    fn open_tail(&self, exec: &Exec, sealed: &[u8]) -> Option<Tail> {
        let seal = self.seal().ok()?;
        let plain = seal.open_tail(&exec.ids.space_id, &exec.exec_id, sealed)?;
        postcard::from_bytes(&plain).ok()
    }

    /// From the record alone.
    pub(super) fn session_on_record(&self, exec: &Exec) -> Result<SessionInfo> {
        let terms = super::session_terms(exec)?;
        let now = Now::on_record(exec);
        Ok(Sight::of_now(exec.clone(), terms, now).info())
    }

    /// From the record, and from what its keeper left: it has ended, or is about to.
    pub(super) fn sight_without_keeper(&self, exec: &Exec, terms: SessionTerms) -> Result<Sight> {
        let exec = self.latest(exec)?;
        let lost = !exec.status.is_final() && self.store()?.is_abandoned(self.state(), &exec)?;
        let directory = Directory::find(self.state().path(), &exec.exec_id)?;
        let sealed = directory.map(|it| it.tail()).transpose()?.flatten();
        let tail = sealed.and_then(|sealed| self.open_tail(&exec, &sealed));
        let mut now = Now::on_record(&exec);
        now.finished |= lost;
        match &tail {
            Some(tail) => {
                (now.stdout, now.stderr) = (tail.stdout.extent(), tail.stderr.extent());
                now.size = tail.screen.as_ref().map(|it| it.size);
            }
            // Of one that was lost the files have more than the record.
            None => {
                now.stdout.end = now.stdout.end.max(self.kept(&exec, Stream::Stdout)?);
                now.stderr.end = now.stderr.end.max(self.kept(&exec, Stream::Stderr)?);
            }
        }
        Ok(Sight {
            exec,
            terms,
            now,
            tail,
            lost,
        })
    }

    /// `found` is what lies in memory; what came before that may be in the files.
    pub(super) fn output_of(
        &self,
        sight: Sight,
        read: SessionRead,
        found: [(u64, Vec<u8>); 2],
    ) -> Result<SessionOutput> {
        let [stdout, stderr] = found;
        let piece =
            |stream, asked, found| self.piece(&sight.exec, stream, (asked, read.most), found);
        let stdout = piece(Stream::Stdout, read.stdout, stdout)?;
        let stderr = piece(Stream::Stderr, read.stderr, stderr)?;
        let now = &sight.now;
        let all = stdout.next >= now.stdout.end && stderr.next >= now.stderr.end;
        let complete = now.finished && all;
        // A program that is silent is likely to be silent a little longer.
        let retry_after_ms = match now.idle_ms {
            _ if complete || !all => 0,
            0..1_000 => 100,
            1_000..10_000 => 500,
            10_000..60_000 => 2_000,
            _ => 5_000,
        };
        Ok(SessionOutput {
            session: sight.info(),
            stdout,
            stderr,
            complete,
            retry_after_ms,
        })
    }

    fn piece(
        &self,
        exec: &Exec,
        stream: Stream,
        (asked, most): (u64, usize),
        (mut offset, mut bytes): (u64, Vec<u8>),
    ) -> Result<SessionPiece> {
        if asked < offset {
            let gap = usize::try_from(offset - asked)
                .unwrap_or(usize::MAX)
                .min(most);
            let earlier = self.head(exec, stream, asked, gap)?;
            if !earlier.is_empty() {
                (offset, bytes) = (asked, earlier);
            }
        }
        // A character that is not whole yet comes with the next piece.
        if let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
            && error.valid_up_to() > 0
        {
            bytes.truncate(error.valid_up_to());
        }
        let next = offset + bytes.len() as u64;
        Ok(match String::from_utf8(bytes) {
            Ok(content) => SessionPiece {
                offset,
                next,
                content,
                encoding: OutputEncoding::Utf8,
            },
            Err(error) => in_base64(offset, next, error.as_bytes()),
        })
    }

    /// How many bytes the file has that keeps the beginning of a stream.
    fn kept(&self, exec: &Exec, stream: Stream) -> Result<u64> {
        let layout = self.layout(&exec.ids.space_id)?;
        let file = match layout.stream(&exec.project_id, &exec.exec_id, stream) {
            Err(error) if error.code == Code::NotFound => return Ok(0),
            file => file?,
        };
        Ok(file.metadata().map_or(0, |it| it.len()))
    }

    /// Of the file that keeps the beginning of a stream.
    fn head(&self, exec: &Exec, stream: Stream, from: u64, most: usize) -> Result<Vec<u8>> {
        let layout = self.layout(&exec.ids.space_id)?;
        let file = match layout.stream(&exec.project_id, &exec.exec_id, stream) {
            Err(error) if error.code == Code::NotFound => return Ok(Vec::new()),
            file => file?,
        };
        let mut bytes = vec![0; most];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], from + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let message = "cannot read what the session put out";
                    return Err(Error::new(Code::StoreUnavailable, Stage::Collect, message)
                        .caused_by(error));
                }
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}

fn in_base64(offset: u64, next: u64, bytes: &[u8]) -> SessionPiece {
    use base64::Engine as _;
    SessionPiece {
        offset,
        next,
        content: base64::engine::general_purpose::STANDARD.encode(bytes),
        encoding: OutputEncoding::Base64,
    }
}
