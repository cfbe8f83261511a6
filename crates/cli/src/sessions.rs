//! Sessions through the API: at a server, or in this process.

use std::io::Write;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use glovebox_api::client::Client;
use glovebox_api::{
    ExecRequest, OutputEncoding, SessionInfo, SessionInput, SessionList, SessionOutput,
    SessionPiece, SessionScreen, SessionSignal, Target,
};
use glovebox_model::{Code, Error, Exec, ExecId, Result, Stage, TerminalSize};

use crate::context::Context;
use crate::records::beginning;

const SESSIONS: &str = "/v1/sessions";
/// Of each stream in one answer.
const PIECE: usize = 256 << 10;
/// Digits of a whole id.
const WHOLE: usize = 32;

#[derive(Debug)]
pub(crate) struct Sessions(Client);

/// Where in both streams to go on reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct From {
    pub(crate) stdout: u64,
    pub(crate) stderr: u64,
}

impl Sessions {
    pub(crate) fn of(client: Client) -> Self {
        Self(client)
    }

    pub(crate) fn open(context: &Context<'_>) -> Result<Self> {
        context.api().map(Self)
    }

    /// `None` where nothing was ever written: it is not made only to be read.
    pub(crate) fn open_if_there(context: &Context<'_>) -> Result<Option<Self>> {
        Ok(context.api_if_there()?.map(Self))
    }

    /// Starting may take as long as a container needs.
    pub(crate) fn start(&self, request: &ExecRequest) -> Result<SessionOutput> {
        self.0.post_slowly(Target::new(SESSIONS), request)
    }

    pub(crate) fn list(&self) -> Result<SessionList> {
        self.0.get(Target::new(SESSIONS))
    }

    /// By its id, its client id, or enough of the beginning of its id.
    pub(crate) fn find(&self, name: &str) -> Result<SessionInfo> {
        if name.is_empty() {
            let message = "the name of the session is empty";
            return Err(Error::new(Code::InvalidArgument, Stage::Parse, message)
                .hint("`glovebox session ls` lists sessions with their ids"));
        }
        match self.0.get(Target::new(SESSIONS).segment(name)) {
            Err(error) if error.code == Code::NotFound => self.look_for(name, error),
            found => found,
        }
    }

    fn look_for(&self, name: &str, error: Error) -> Result<SessionInfo> {
        // One that is an exec and no session says so itself.
        let whole = name.strip_prefix("e_").unwrap_or(name).len() >= WHOLE;
        let Some(beginning) = beginning(name).filter(|_| !whole) else {
            return Err(error);
        };
        let mut found = self.list()?.sessions;
        found.retain(|it| it.session_id.as_str().starts_with(&beginning));
        if found.len() > 1 {
            let ids: Vec<&str> = found.iter().map(|it| it.session_id.as_str()).collect();
            let message = format!("more than one session starts with `{name}`");
            return Err(Error::new(Code::InvalidArgument, Stage::Parse, message)
                .hint(format!("say more of it: {}", ids.join(", "))));
        }
        found.pop().ok_or_else(|| {
            let message = format!("there is no session `{name}`");
            Error::new(Code::NotFound, Stage::Parse, message)
                .hint("`glovebox session ls` lists them")
        })
    }

    /// Answered as soon as there is something, and after so long at the latest.
    pub(crate) fn output(&self, id: &ExecId, from: From, wait: Duration) -> Result<SessionOutput> {
        self.0.get(
            of(id)
                .segment("output")
                .query("stdout", from.stdout)
                .query("stderr", from.stderr)
                .query("limit", PIECE)
                .query("wait_ms", wait.as_millis()),
        )
    }

    /// For as long as a server may need to come back.
    pub(crate) fn output_surely(
        &self,
        id: &ExecId,
        from: From,
        wait: Duration,
    ) -> Result<SessionOutput> {
        self.0.insistently(|| self.output(id, from, wait))
    }

    pub(crate) fn screen(&self, id: &ExecId) -> Result<SessionScreen> {
        self.0.get(of(id).segment("screen"))
    }

    /// Until now, as asciicast.
    pub(crate) fn recording(&self, id: &ExecId, out: &mut dyn Write) -> Result<()> {
        self.0.copy(of(id).segment("recording"), out)
    }

    pub(crate) fn send(&self, id: &ExecId, input: &SessionInput) -> Result<SessionInfo> {
        self.0.post(of(id).segment("input"), input)
    }

    /// Bytes that were typed, each once and in their order, even if the program does not read for a
    /// while or the server is away.
    pub(crate) fn type_in(
        &self,
        id: &ExecId,
        bytes: &[u8],
        goes_on: impl Fn() -> bool,
    ) -> Result<SessionInfo> {
        let input = SessionInput {
            base64: Some(STANDARD.encode(bytes)),
            ..SessionInput::default()
        };
        self.0
            .post_insistently(of(id).segment("input"), &input, goes_on)
    }

    pub(crate) fn resize(
        &self,
        id: &ExecId,
        size: TerminalSize,
        goes_on: impl Fn() -> bool,
    ) -> Result<SessionInfo> {
        self.0
            .post_insistently(of(id).segment("resize"), &size, goes_on)
    }

    pub(crate) fn close_input(&self, id: &ExecId) -> Result<SessionInfo> {
        self.0.post_nothing(of(id).segment("close-input"))
    }

    pub(crate) fn signal(&self, id: &ExecId, signal: &str) -> Result<SessionInfo> {
        let signal = SessionSignal {
            signal: signal.to_ascii_uppercase(),
        };
        self.0.post(of(id).segment("signal"), &signal)
    }

    pub(crate) fn kill(&self, id: &ExecId) -> Result<SessionInfo> {
        self.0.post_nothing(of(id).segment("kill"))
    }

    pub(crate) fn remove(&self, id: &ExecId) -> Result<()> {
        self.0.delete_quietly(of(id))
    }

    pub(crate) fn record(&self, id: &ExecId) -> Result<Exec> {
        let target = Target::new("/v1/execs").segment(id.as_str());
        self.0.insistently(|| self.0.get(target.clone()))
    }
}

fn of(id: &ExecId) -> Target {
    Target::new(SESSIONS).segment(id.as_str())
}

/// The bytes as the program wrote them.
pub(crate) fn bytes_of(piece: SessionPiece) -> Result<Vec<u8>> {
    match piece.encoding {
        OutputEncoding::Utf8 => Ok(piece.content.into_bytes()),
        OutputEncoding::Base64 => decoded(&piece.content),
    }
}

pub(crate) fn decoded(text: &str) -> Result<Vec<u8>> {
    STANDARD.decode(text).map_err(|error| {
        let message = "the API answered with something that is not base64";
        Error::new(Code::Internal, Stage::Collect, message).caused_by(error)
    })
}
