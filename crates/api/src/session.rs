//! Sessions: execs whose program is talked to while it runs.

use glovebox_model::{
    ApprovalId, ByteString, ClientId, Code, Correlation, Error, ExecId, LimitField, LimitKind,
    Millis, Program, ProjectId, ReceiptRef, Result, SessionTerms, Stage, Status, TerminalSize,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::OutputEncoding;
use crate::amount::Duration;

/// How the program of a session is talked to.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionOptions {
    /// A terminal, or three pipes. Without it: a terminal for a shell without arguments, pipes for
    /// everything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal: Option<bool>,
    /// The terminal's size; 80 by 24 if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<TerminalSize>,
    /// The session is ended when nothing was written or read for so long. `session_time` in
    /// `policy_overrides` is how long it may last at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Duration>,
    /// The answer comes when the program has ended, or waits for input, and after this long at the
    /// latest. It ends nothing.
    #[schema(minimum = 0, maximum = 60000, default = 1000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub yield_ms: Option<u64>,
}

/// Shells that talk to a person when they are started alone.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "fish", "ksh"];
/// How long a start waits for the first output if nothing is said.
const YIELD: std::time::Duration = std::time::Duration::from_secs(1);

impl SessionOptions {
    pub fn terms(&self, program: &Program) -> Result<SessionTerms> {
        let has_terminal = self
            .terminal
            .unwrap_or_else(|| self.size.is_some() || is_shell_alone(program));
        let size = self.size.unwrap_or(TerminalSize::USUAL);
        let clash = |message: &str| Error::new(Code::Conflict, Stage::Parse, message);
        let invalid = |message: &str| Error::new(Code::InvalidArgument, Stage::Parse, message);
        if !size.is_possible() {
            let most = TerminalSize::MOST;
            return Err(invalid("no terminal has this size")
                .hint(format!("from 1 to {most} columns and rows")));
        }
        if self.size.is_some() && !has_terminal {
            return Err(
                clash("pipes have no size").hint("leave out `size`, or say `\"terminal\": true`")
            );
        }
        let idle = self.idle_timeout.as_ref().map(|it| {
            it.raw(LimitField::SessionTime).map(Millis).map_err(|_| {
                clash("`idle_timeout` is outside of what makes sense for a session")
                    .hint("between `1ms` and `30d`")
            })
        });
        Ok(SessionTerms {
            terminal: has_terminal.then_some(size),
            idle_timeout_ms: idle.transpose()?,
        })
    }

    /// The same, ended when nothing was written or read for so long.
    #[must_use]
    pub fn ended_when_idle(mut self, most: Option<Millis>) -> Self {
        self.idle_timeout = most.map(|it| Duration::Text(format!("{}ms", it.get())));
        self
    }

    /// How long a start waits for the first output.
    pub fn patience(&self) -> std::time::Duration {
        self.yield_ms
            .map_or(YIELD, std::time::Duration::from_millis)
    }
}

fn is_shell_alone(program: &Program) -> bool {
    let argv = program.argv();
    let Some((shell, options)) = argv.split_first() else {
        return false;
    };
    let shell = shell.display();
    let shell = shell.rsplit('/').next().unwrap_or_default();
    // `-i` and `-l` leave it interactive.
    SHELLS.contains(&shell)
        && options
            .iter()
            .all(|it| matches!(it.as_bytes(), b"-i" | b"-l"))
}

/// Where a session is. An end is one that was seen: nothing is made up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// It waits for people, or for a place.
    Waiting,
    Running,
    Exited,
    Signaled,
    TimedOut,
    /// For a limit, or because somebody asked.
    Killed,
    /// Its keeper is gone, and with it the program; how it ended is not known.
    Lost,
    /// It was refused, or could not be started.
    Failed,
}

impl SessionState {
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
    }
}

/// One stream of a session: what was written since its start, and what of that can still be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct SessionStream {
    /// The first byte that can still be read.
    pub start: u64,
    /// One past the last.
    pub end: u64,
}

/// A session as it is now. Its record is the exec of the same id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionInfo {
    /// Of its exec, too.
    pub session_id: ExecId,
    pub client_id: Option<ClientId>,
    pub project_id: ProjectId,
    pub command: Vec<ByteString>,
    pub state: SessionState,
    /// Of the exec.
    pub status: Status,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub limit_hit: Option<LimitKind>,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Timestamp>,
    #[serde(flatten)]
    pub terms: SessionTerms,
    /// All that a terminal shows; of pipes the standard output.
    pub stdout: SessionStream,
    pub stderr: SessionStream,
    /// How long nothing was written or read.
    pub idle_ms: u64,
    /// A guess: the program seems to wait for somebody to type.
    pub waiting_for_input: bool,
    /// No more input is taken.
    pub input_closed: bool,
    /// What people are asked before it starts.
    pub approval_id: Option<ApprovalId>,
    pub error: Option<Error>,
    pub receipt: Option<ReceiptRef>,
    pub ids: Correlation,
}

/// A piece of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionPiece {
    /// Of the first byte of `content`. More than what was asked for: what is between is not kept any
    /// more.
    pub offset: u64,
    /// To be asked for next. The same offset gives the same bytes again, as long as they are kept.
    pub next: u64,
    pub content: String,
    pub encoding: OutputEncoding,
}

/// What a session has put out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionOutput {
    pub session: SessionInfo,
    pub stdout: SessionPiece,
    pub stderr: SessionPiece,
    /// Nothing comes after this: the session has ended, and this is the last of it.
    pub complete: bool,
    /// For who asks again and again: there is no sense in asking earlier.
    pub retry_after_ms: u64,
}

impl SessionOutput {
    /// Whether there is nothing after these offsets, and may still be something.
    pub fn has_nothing_since(&self, (stdout, stderr): (u64, u64)) -> bool {
        !self.complete && self.stdout.next <= stdout && self.stderr.next <= stderr
    }
}

/// What is typed. Exactly one of the fields.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"text": "ls\n"}))]
pub struct SessionInput {
    /// As it is.
    #[schema(max_length = 1048576)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The same for bytes that are no text, in base64.
    #[schema(max_length = 1398104)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// Keys by name: `Enter`, `C-c`, `M-x`, `Up`, `F5`, or a single character. Terminals only.
    #[schema(max_items = 1000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    /// As pasted: in brackets where the program asked for that.
    #[schema(max_length = 1048576)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paste: Option<String>,
    /// A line, and Enter.
    #[schema(max_length = 1048576)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submit: Option<String>,
}

/// A signal by its name (`INT`, `SIGTERM`) or number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"signal": "INT"}))]
pub struct SessionSignal {
    #[schema(
        pattern = "^(?:(?:SIG)?(?:HUP|INT|QUIT|KILL|USR1|USR2|ALRM|TERM|CHLD|CONT|STOP|TSTP|TTIN|TTOU|WINCH)|[1-9]|[1-5][0-9]|6[0-4])$"
    )]
    pub signal: String,
}

/// What a client says on a session's WebSocket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum SessionMessage {
    Input(SessionInput),
    Resize(TerminalSize),
    /// By its name or number.
    Signal(String),
    /// `true`: no more input comes.
    CloseInput(bool),
}

/// What a person would see on the terminal now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionScreen {
    pub size: TerminalSize,
    /// Every row, without what is blank at its end.
    pub lines: Vec<String>,
    /// Row and column, both from 0.
    pub cursor: [u16; 2],
    pub cursor_hidden: bool,
    /// A program has the whole screen, as an editor does.
    pub alternate: bool,
    /// As the program named the window.
    pub title: String,
    /// What draws this screen on an empty terminal of this size: text with escape sequences, in base64.
    pub redraw: String,
    /// The place in the output up to which this screen shows it: what is read from here on goes on with
    /// it. An escape sequence or a character that has begun and not ended comes after it, unless it is
    /// longer than 64 KiB.
    pub offset: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionList {
    /// The newest first.
    pub sessions: Vec<SessionInfo>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_alone_has_a_terminal_and_everything_else_pipes() {
        let word = |text: &str| ByteString::try_from(text).unwrap();
        let argv = |words: &str| {
            let mut words = words.split(' ').map(word);
            Program::Argv {
                command: words.next().unwrap(),
                args: words.collect(),
            }
        };
        let terminal = |options: &SessionOptions, words: &str| {
            let terms = options.terms(&argv(words)).unwrap();
            terms.terminal
        };
        let none = SessionOptions::default();
        assert_eq!(terminal(&none, "/bin/bash -l"), Some(TerminalSize::USUAL));
        for words in ["bash -c true", "python3", "tail -f log"] {
            assert_eq!(terminal(&none, words), None, "{words}");
        }
        let size = TerminalSize {
            columns: 200,
            rows: 50,
        };
        let sized = SessionOptions {
            size: Some(size),
            ..SessionOptions::default()
        };
        assert_eq!(terminal(&sized, "vim"), Some(size));
        let piped = SessionOptions {
            terminal: Some(false),
            ..SessionOptions::default()
        };
        assert_eq!(terminal(&piped, "bash"), None);
        let torn = SessionOptions {
            size: Some(TerminalSize {
                columns: 0,
                rows: 1,
            }),
            ..SessionOptions::default()
        };
        assert!(torn.terms(&argv("vim")).is_err());
    }
}
