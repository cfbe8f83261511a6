//! Talking to a session: what is typed, what comes back, and what interrupts or ends it.

use std::time::Duration;

use glovebox_api::{
    SessionInfo, SessionInput, SessionOutput as Output, SessionScreen, SessionSignal as Signal,
};
use glovebox_model::{Code, Error, Stage, TerminalSize};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::Instant;

use super::{Hint, Tool, invalid, program};
use crate::answer::{Done, Stop};
use crate::api::Call;
use crate::session::{Seen, SessionAnswer};
use crate::task::Task;

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// It has put something out, and pauses.
    News,
    /// It has put something out, and seems to wait for input.
    Rests,
}

/// A program that is silent for so long has said what it wanted to say.
const PAUSE: Duration = Duration::from_millis(300);
/// The longest that the API waits at once.
const AT_ONCE: Duration = Duration::from_secs(50);
/// What a line that was typed usually takes.
const SEND_WAIT_MS: u64 = 1000;
/// The longest letter is not cut.
const WINDOW_LEAST: usize = 8;

pub(super) fn window(asked: Option<u32>) -> usize {
    program::window(asked).max(WINDOW_LEAST)
}

/// No longer than the client waits.
pub(super) fn patience(task: &Task, asked_ms: u64) -> Duration {
    Duration::from_millis(asked_ms)
        .min(task.patience())
        .min(AT_ONCE)
}

fn of(id: &str, what: &str) -> Call {
    Call::post("/v1/sessions").segment(id).then(what)
}

/// What was put out from these offsets on; with `wait`, once there is something.
pub(super) async fn output(
    task: &Task,
    id: &str,
    [stdout, stderr]: [u64; 2],
    most: usize,
    wait: Duration,
) -> Result<Output, Error> {
    let call = Call::get("/v1/sessions")
        .segment(id)
        .then("/output")
        .query("stdout", stdout)
        .query("stderr", stderr)
        .query("limit", most)
        .query("wait_ms", wait.as_millis());
    tokio::select! {
        output = task.ask(call) => output,
        () = task.context.ct.cancelled() => {
            Err(Error::new(Code::Canceled, Stage::Run, "the call was called off"))
        }
    }
}

/// The same once it is worth telling, and when the time is over.
pub(super) async fn heard(
    task: &Task,
    id: &str,
    from: [u64; 2],
    most: usize,
    (wait, until): (Duration, Until),
) -> Result<Output, Error> {
    let deadline = Instant::now() + wait;
    let mut at = from;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        // What is typed comes back as an echo, and then what it is about.
        let quick = if at == from { left } else { left.min(PAUSE) };
        let page = output(task, id, at, most, quick).await?;
        let next = [page.stdout.next, page.stderr.next];
        let (is_new, has_any) = (next != at, next != from);
        at = next;
        let length: u64 = at
            .iter()
            .zip(from)
            .map(|(at, from)| at.saturating_sub(from))
            .sum();
        let enough = match until {
            Until::News => has_any && !is_new,
            // A program on pipes does not say that it waits.
            Until::Rests => {
                let is_piped = page.session.terms.terminal.is_none();
                has_any && (page.session.waiting_for_input || (is_piped && !is_new))
            }
        };
        let is_full = usize::try_from(length).is_ok_and(|it| it >= most);
        if enough || is_full || left.is_zero() || page.session.state.is_final() {
            break;
        }
    }
    output(task, id, from, most, Duration::ZERO).await
}

/// An order to one that has ended is refused with how it ended.
async fn order(task: &Task, call: Call) -> Result<SessionInfo, Error> {
    task.ask(call)
        .await
        .map_err(|error: Error| match error.code {
            Code::Conflict => error.hint("`session_output` has what it put out"),
            _ => error,
        })
}

async fn info(task: &Task, id: &str) -> Result<SessionInfo, Error> {
    task.ask(Call::get("/v1/sessions").segment(id)).await
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionOutput {
    /// From `session_start`.
    session_id: String,
    /// The byte of stdout to begin at: `stdout.next` of the answer before; 0 without it. The same
    /// offset gives the same bytes again, as long as they are kept.
    stdout_offset: Option<u64>,
    /// The same of stderr, which only pipes have.
    stderr_offset: Option<u64>,
    /// Wait so many milliseconds for something new, 50000 at most; without it what is there now.
    wait_ms: Option<u64>,
    /// What a person would see on the terminal now, instead of what was put out since an offset: for
    /// editors and whatever else draws.
    screen: Option<bool>,
    /// Bytes of output in the answer at most.
    max_output: Option<u32>,
}

impl Tool for SessionOutput {
    const NAME: &'static str = "session_output";
    const TITLE: &'static str = "Read a session";
    const ABOUT: &'static str = "Reads what a session's program put out, from an offset in bytes on, \
        and how it is: pass `next` of each stream as the next offset and nothing is missed or comes \
        twice. With `wait_ms` it waits for something new, with `screen: true` it shows the terminal. \
        `waiting_for_input` is a guess; `retry_after_ms` says when asking again makes sense; after \
        `complete` nothing comes.";
    const HINT: Hint = Hint::Reads;
    type Output = SessionAnswer;

    async fn run(self, task: &Task) -> Done<SessionAnswer> {
        let (id, window) = (self.session_id.as_str(), window(self.max_output));
        let wait = self.wait_ms.map(|it| (patience(task, it), Until::News));
        if self.screen == Some(true) {
            let before = info(task, id).await?;
            let from = [
                self.stdout_offset.unwrap_or(before.stdout.end),
                self.stderr_offset.unwrap_or(before.stderr.end),
            ];
            if let Some(wait) = wait {
                heard(task, id, from, window, wait).await?;
            }
            return Ok(shown(task, id).await?.told());
        }
        // Who goes on with one stream has seen the other, and waits for what is new in it.
        let goes_on = self.stdout_offset.is_some() != self.stderr_offset.is_some();
        let seen = match goes_on && wait.is_some() {
            true => {
                let now = info(task, id).await?;
                [now.stdout.end, now.stderr.end]
            }
            false => [0, 0],
        };
        let from = [
            self.stdout_offset.unwrap_or(seen[0]),
            self.stderr_offset.unwrap_or(seen[1]),
        ];
        let output = match wait {
            Some(wait) => heard(task, id, from, window, wait).await?,
            None => output(task, id, from, window, Duration::ZERO).await?,
        };
        Ok(SessionAnswer::heard(output, window).told())
    }
}

async fn shown(task: &Task, id: &str) -> Result<SessionAnswer, Error> {
    let call = Call::get("/v1/sessions").segment(id).then("/screen");
    let screen: SessionScreen = task
        .ask(call)
        .await
        .map_err(|error: Error| match error.code {
            Code::Conflict => error.hint("`session_output` without `screen` has what it put out"),
            _ => error,
        })?;
    let mut value = SessionAnswer::of(info(task, id).await?);
    value.screen = Some(Seen::of(screen));
    Ok(value)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionSend {
    /// From `session_start`.
    session_id: String,
    /// A line, and Enter: what you mostly want.
    submit: Option<String>,
    /// Exactly these characters; `\n` is not added.
    text: Option<String>,
    /// Keys by name, on a terminal: `Enter`, `C-c`, `M-x`, `Up`, `Tab`, `Escape`, `F5`.
    keys: Option<Vec<String>>,
    /// As pasted into a terminal: several lines that are not to be run one by one.
    paste: Option<String>,
    /// No more input: the end of a pipe, `C-d` on a terminal.
    close_input: Option<bool>,
    /// How many milliseconds to wait at most for the program to answer and to want input again; 1000
    /// without it, 50000 at most, 0 to return at once.
    wait_ms: Option<u64>,
    /// Show the terminal afterwards, instead of what was put out.
    screen: Option<bool>,
    /// Bytes of output in the answer at most.
    max_output: Option<u32>,
}

impl SessionSend {
    /// Exactly one thing, which only the API knows how to type.
    fn call(&mut self) -> Result<Call, Error> {
        let input = SessionInput {
            text: self.text.take(),
            base64: None,
            keys: self.keys.take(),
            paste: self.paste.take(),
            submit: self.submit.take(),
        };
        let closes = self.close_input == Some(true);
        match (input == SessionInput::default(), closes) {
            (true, true) => Ok(of(&self.session_id, "/close-input")),
            (false, false) => of(&self.session_id, "/input").json(&input),
            (true, false) => Err(invalid("there is nothing to send")
                .hint("give one of `submit`, `text`, `keys`, `paste` and `close_input`")),
            (false, true) => {
                Err(invalid("`close_input` stands alone").hint("send the input first"))
            }
        }
    }
}

impl Tool for SessionSend {
    const NAME: &'static str = "session_send";
    const TITLE: &'static str = "Type into a session";
    const ABOUT: &'static str = "Types into a session, waits until the program has answered and seems \
        to want input again (`wait_ms` at most), and returns the new output, so that no other call \
        is needed. Give exactly one of `submit`, `text`, `keys`, `paste` and `close_input`. If it is \
        not done by then, `session_output` with `stdout.next` as offset has the rest.";
    const HINT: Hint = Hint::Destroys;
    const OPEN: bool = true;
    type Output = SessionAnswer;

    async fn run(mut self, task: &Task) -> Done<SessionAnswer> {
        let call = self.call()?;
        let id = self.session_id.as_str();
        let before = info(task, id).await?;
        order(task, call).await?;
        let wait = patience(task, self.wait_ms.unwrap_or(SEND_WAIT_MS));
        let (from, window) = (
            [before.stdout.end, before.stderr.end],
            window(self.max_output),
        );
        let output = heard(task, id, from, window, (wait, Until::Rests)).await?;
        Ok(match self.screen {
            Some(true) => shown(task, id).await?.told(),
            Some(false) | None => SessionAnswer::heard(output, window).told(),
        })
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionSignal {
    /// From `session_start`.
    session_id: String,
    /// By name: `INT`, as `C-c` does, `TERM`, `HUP`, `QUIT`, `USR1`.
    signal: Option<String>,
    /// End everything in the session at once, and return when nothing of it is left.
    kill: Option<bool>,
}

impl Tool for SessionSignal {
    const NAME: &'static str = "session_signal";
    const TITLE: &'static str = "Signal or end a session";
    const ABOUT: &'static str = "Sends a signal to what runs in a session, or ends all of it with \
        `kill: true`. Give one of the two. What it put out stays readable with `session_output`.";
    const HINT: Hint = Hint::Destroys;
    type Output = SessionAnswer;

    async fn run(self, task: &Task) -> Done<SessionAnswer> {
        let call = match (self.signal, self.kill) {
            (Some(signal), None | Some(false)) => {
                let signal = signal.to_ascii_uppercase();
                of(&self.session_id, "/signal").json(&Signal { signal })?
            }
            (None, Some(true)) => of(&self.session_id, "/kill"),
            (None, None | Some(false)) => {
                return Err(invalid("there is nothing to send")
                    .hint("give `signal`, or `kill: true`")
                    .into());
            }
            (Some(_), Some(true)) => {
                return Err(invalid("`signal` and `kill` are two things")
                    .hint("give one of them")
                    .into());
            }
        };
        told(task, call).await
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionResize {
    /// From `session_start`.
    session_id: String,
    /// From 1 to 500.
    columns: u16,
    /// From 1 to 500.
    rows: u16,
}

impl Tool for SessionResize {
    const NAME: &'static str = "session_resize";
    const TITLE: &'static str = "Resize a terminal";
    const ABOUT: &'static str = "Gives a session's terminal another size, and tells its program. Only \
        for sessions that have a terminal.";
    const HINT: Hint = Hint::Writes;
    type Output = SessionAnswer;

    async fn run(self, task: &Task) -> Done<SessionAnswer> {
        let size = TerminalSize {
            columns: self.columns,
            rows: self.rows,
        };
        told(task, of(&self.session_id, "/resize").json(&size)?).await
    }
}

async fn told(task: &Task, call: Call) -> Done<SessionAnswer> {
    let info = order(task, call).await.map_err(Stop::from)?;
    let mut answer = SessionAnswer::of(info).told();
    // That it ended is what was wanted.
    answer.failed = false;
    Ok(answer)
}
