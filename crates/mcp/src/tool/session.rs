//! Programs that are talked to while they run: how one begins, which there are, and how one is
//! forgotten.

use std::collections::BTreeMap;
use std::time::Duration;

use glovebox_api::{SessionList as Listed, SessionOutput};
use glovebox_model::{ByteString, Code, Exec, Status, TerminalSize};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::program::{Program, Wishes, put};
use super::talk::{self, Until};
use super::{Hint, Tool};
use crate::answer::{Answer, Done, Stop};
use crate::api::Call;
use crate::fence::plain;
use crate::follow::{self, Asked, Part, Turn};
use crate::session::{SessionAnswer, state_name};
use crate::task::Task;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionStart {
    /// The program and its arguments, each a word: `["python3", "-i"]`. No shell reads it.
    command: Option<Vec<String>>,
    /// A bash script instead.
    script: Option<String>,
    /// A terminal, as programs for people want it, or pipes, with `stderr` apart. Without it a
    /// terminal for a shell without arguments (`["bash"]`), pipes for everything else.
    terminal: Option<bool>,
    /// The terminal's width; 80 without it.
    columns: Option<u16>,
    /// The terminal's height; 24 without it.
    rows: Option<u16>,
    /// The workspace that it works on; the connection's own without it.
    project: Option<String>,
    /// Environment variables.
    env: Option<BTreeMap<String, String>>,
    /// A directory of the project to start in.
    cwd: Option<String>,
    /// The answer comes when it waits for input or has ended, and after so many milliseconds at the
    /// latest; 1000 without it. It ends nothing.
    yield_ms: Option<u64>,
    /// Ended when nothing was typed or put out for so long: `10m`.
    idle_timeout: Option<String>,
    /// Ended after so long: `1h`.
    session_time: Option<String>,
    /// The most memory: `512M`, `2G`.
    memory: Option<String>,
    /// Hosts that it must reach, as `pypi.org:443`. Policy decides.
    allow_net: Option<Vec<String>>,
    /// Ask a person for what goes beyond policy, instead of being refused.
    ask: Option<bool>,
    /// Why it is needed, for the person who is asked.
    justification: Option<String>,
    /// Bytes of output in the answer at most.
    max_output: Option<u32>,
}

impl Tool for SessionStart {
    const NAME: &'static str = "session_start";
    const TITLE: &'static str = "Start a session";
    const ABOUT: &'static str = "Starts a program that you talk to while it runs: a shell, a REPL, a \
        debugger, a server to be watched. Returns its session_id and its first output; the program \
        goes on. `session_send` types, `session_output` reads, `session_signal` interrupts or ends \
        it. Give `command` or `script`. For a program that just runs to its end use `run_command`.";
    const HINT: Hint = Hint::Destroys;
    const OPEN: bool = true;
    const STANDS_FOR: Option<&'static str> = Some("run_command");
    type Output = SessionAnswer;

    async fn run(self, task: &Task) -> Done<SessionAnswer> {
        let window = talk::window(self.max_output);
        let patience = talk::patience(task, self.yield_ms.unwrap_or(YIELD_MS));
        let taken: SessionOutput = match task.resumed::<Asked>()? {
            Some(asked) => {
                let id = asked.exec_id.as_str();
                talk::output(task, id, [0, 0], window, Duration::ZERO).await?
            }
            None => task.ask(self.submit(task, patience)?).await?,
        };
        let exec = taken.session.session_id.clone();
        let started = match taken.session.status {
            Status::AwaitingApproval => agreed(task, taken, window, patience).await,
            _ => Ok(SessionAnswer::heard(taken, window)),
        };
        // Nobody else knows of it.
        if task.context.ct.is_cancelled() {
            return Err(follow::called_off(task, &exec, Part::Began).await.into());
        }
        started.map(SessionAnswer::told)
    }
}

/// A prompt is there by then.
const YIELD_MS: u64 = 1000;

impl SessionStart {
    fn submit(self, task: &Task, patience: Duration) -> Result<Call, Stop> {
        let program = Program::of(None, self.command, self.script)?;
        let size = (self.columns.is_some() || self.rows.is_some()).then(|| TerminalSize {
            columns: self.columns.unwrap_or(TerminalSize::USUAL.columns),
            rows: self.rows.unwrap_or(TerminalSize::USUAL.rows),
        });
        let mut session = json!({ "yield_ms": patience.as_millis() });
        put(&mut session, "terminal", self.terminal);
        put(&mut session, "size", size);
        put(&mut session, "idle_timeout", self.idle_timeout);
        let wishes = Wishes {
            project: self.project,
            cwd: self.cwd,
            env: self.env,
            memory: self.memory,
            allow_net: self.allow_net,
            ask: self.ask,
            justification: self.justification,
            ..Wishes::default()
        };
        let mut body = wishes.body(task, program);
        put(
            &mut body["policy_overrides"],
            "session_time",
            self.session_time,
        );
        put(&mut body, "session", Some(session));
        Ok(Call::post("/v1/sessions").json(&body)?)
    }
}

/// A person is asked, here if they can be, and what they agree to begins.
async fn agreed(
    task: &Task,
    taken: SessionOutput,
    window: usize,
    patience: Duration,
) -> Result<SessionAnswer, Stop> {
    let exec = taken.session.session_id.clone();
    let call = Call::get("/v1/execs").segment(exec.as_str());
    let record: Exec = task.ask(call).await?;
    let approval = record.approval_id.clone();
    if record.status == Status::AwaitingApproval
        && follow::ask_person(task, &record).await? == Turn::Waits
    {
        let mut value = SessionAnswer::heard(taken, window);
        value.next = approval.as_ref().map(|approval| {
            format!(
                "{} Then `session_output` with session_id `{exec}` and `wait_ms` waits for it; do \
                 not start it again",
                follow::agree_first(task, approval),
            )
        });
        value.approval_id = approval;
        return Ok(value);
    }
    let begun = talk::heard(
        task,
        exec.as_str(),
        [0, 0],
        window,
        (patience, Until::Rests),
    )
    .await?;
    Ok(SessionAnswer::heard(begun, window))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionList {}

/// One of them.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Line {
    session_id: String,
    state: &'static str,
    command: String,
    project: String,
    terminal: bool,
    /// A guess.
    waiting_for_input: bool,
    /// How long nothing was typed or put out.
    idle_ms: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Lines {
    /// The newest first.
    items: Vec<Line>,
}

impl Tool for SessionList {
    const NAME: &'static str = "session_list";
    const TITLE: &'static str = "List sessions";
    const ABOUT: &'static str = "Lists your sessions, those that have ended too: what each runs, how \
        it is, and whether it seems to wait for input.";
    const HINT: Hint = Hint::Reads;
    type Output = Lines;

    async fn run(self, task: &Task) -> Done<Lines> {
        let listed: Listed = task.ask(Call::get("/v1/sessions")).await?;
        let lines = listed.sessions.into_iter().map(|it| {
            let words = it.command.iter().map(ByteString::one_line);
            Line {
                state: state_name(it.state),
                command: words.collect::<Vec<_>>().join(" "),
                project: it.project_id.to_string(),
                terminal: it.terms.terminal.is_some(),
                waiting_for_input: it.waiting_for_input,
                idle_ms: it.idle_ms,
                session_id: it.session_id.to_string(),
            }
        });
        let lines = Lines {
            items: lines.collect(),
        };
        let told = |it: &Line| {
            let waits = match it.waiting_for_input {
                true => ", seems to wait for input",
                false => "",
            };
            let (id, state) = (&it.session_id, it.state);
            format!("{id}: {state}{waits}: {}\n", plain(&it.command))
        };
        let mut text: String = lines.items.iter().map(told).collect();
        if text.is_empty() {
            text = "there is no session\n".to_owned();
        }
        Ok(Answer::new(lines, text))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionRemove {
    /// From `session_start`.
    session_id: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Removed {
    session_id: String,
}

impl Tool for SessionRemove {
    const NAME: &'static str = "session_remove";
    const TITLE: &'static str = "Forget a session";
    const ABOUT: &'static str = "Forgets what a session that has ended put out; the record that it \
        ran stays. One that runs is ended first, with `session_signal`.";
    const HINT: Hint = Hint::Destroys;
    type Output = Removed;

    async fn run(self, task: &Task) -> Done<Removed> {
        let call = Call::delete("/v1/sessions").segment(&self.session_id);
        let removed = task.reply(call).await;
        removed.map_err(|error| match error.code {
            Code::Conflict => error.hint("`session_signal` with `kill: true` ends it"),
            _ => error,
        })?;
        let text = format!("removed: {}\n", plain(&self.session_id));
        let removed = Removed {
            session_id: self.session_id,
        };
        Ok(Answer::new(removed, text))
    }
}
