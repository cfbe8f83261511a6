//! From an exec that was taken on to its end: progress on the way, people where they are needed,
//! and an end to it when the client calls it off.

use std::time::Duration;

use axum::body::Body;
use bytes::{Buf, BytesMut};
use glovebox_model::{ApprovalId, Code, Error, Exec, ExecId, Stage, Status};
use http_body_util::BodyExt;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use crate::answer::{Answer, Stop};
use crate::api::{Call, Reply};
use crate::consent::{self, Said};
use crate::exec::{self, ExecAnswer};
use crate::question;
use crate::task::Task;

/// Between two words on progress.
const PACE: Duration = Duration::from_millis(100);
/// Of the latest output in one of them.
const MESSAGE: usize = 2 << 10;
/// Between the last word of an exec and its record.
const CLOSING: Duration = Duration::from_millis(20);
/// One event holds at most 64 KiB of output.
const EVENT_MOST: usize = 1 << 20;

/// What a call needs to go on after a person was asked.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) exec_id: ExecId,
    pub(crate) approval_id: ApprovalId,
}

/// Takes an exec on, unless this is the second half of a call that did, and follows it.
pub(crate) async fn run(
    task: &Task,
    submit: Call,
    window: usize,
    background: bool,
) -> Result<Answer<ExecAnswer>, Stop> {
    let taken: Exec = match task.resumed::<Asked>()? {
        Some(asked) => record(task, &asked.exec_id).await?,
        None => task.ask(submit).await?,
    };
    match background && taken.status != Status::AwaitingApproval {
        true => Ok(exec::answer(taken, window)),
        false => to_end(task, taken, window, Part::Began).await,
    }
}

/// What a call is to the exec that it follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// It began it: who calls it off ends the exec, and where people are missing it says so at once.
    Began,
    /// It looks on: it waits for people too, and whoever stops waiting stops nothing.
    Watches,
}

/// Follows it until it is over, a person is missing, or the client has waited long enough.
pub(crate) async fn to_end(
    task: &Task,
    mut now: Exec,
    window: usize,
    part: Part,
) -> Result<Answer<ExecAnswer>, Stop> {
    let exec = now.exec_id.clone();
    let deadline = Instant::now() + task.patience();
    let mut teller = Teller::new(task);
    let (mut after, mut asked) = (0, false);
    while !now.status.is_final() && Instant::now() < deadline {
        // Once for each call: what they said is found out by waiting.
        if now.status == Status::AwaitingApproval && !asked {
            asked = true;
            let turn = ask_person(task, &now).await?;
            if task.context.ct.is_cancelled() {
                return Err(called_off(task, &exec, part).await.into());
            }
            if turn == Turn::Waits && part == Part::Began {
                break;
            }
        }
        let call = Call::get("/v1/execs")
            .segment(exec.as_str())
            .then("/events");
        let response = task.stream(call.query("after", after)).await?;
        if !response.status().is_success() {
            return Err(match Reply::of(response).await {
                Err(error) => error.into(),
                Ok(_) => Error::new(Code::Internal, Stage::Collect, "no events came").into(),
            });
        }
        let mut events = Events::new(response.into_body());
        loop {
            let event = tokio::select! {
                event = events.next() => event?,
                () = task.context.ct.cancelled() => {
                    return Err(called_off(task, &exec, part).await.into());
                }
                () = tokio::time::sleep_until(deadline) => None,
                () = teller.due() => {
                    teller.tell(task).await;
                    continue;
                }
            };
            let Some(event) = event else { break };
            after = event.seq.max(after);
            teller.heard(&event);
            if event.status == Some(Status::AwaitingApproval) && !asked {
                break;
            }
        }
        teller.tell(task).await;
        now = record(task, &exec).await?;
        if !now.status.is_final() && now.status != Status::AwaitingApproval {
            // Its last event is there, and its record is not closed yet.
            tokio::time::sleep(CLOSING).await;
            now = record(task, &exec).await?;
        }
    }
    match now.approval_id.clone() {
        Some(approval) if now.status == Status::AwaitingApproval => {
            Ok(waits(task, now, &approval, window))
        }
        _ => Ok(exec::answer(now, window)),
    }
}

async fn record(task: &Task, exec: &ExecId) -> Result<Exec, Error> {
    task.ask(Call::get("/v1/execs").segment(exec.as_str()))
        .await
}

/// Stops what the client does not want any more.
pub(crate) async fn called_off(task: &Task, exec: &ExecId, part: Part) -> Error {
    let error = Error::new(Code::Canceled, Stage::Run, "the call was called off");
    if part == Part::Watches {
        return error;
    }
    let call = Call::post("/v1/execs")
        .segment(exec.as_str())
        .then("/cancel");
    if let Err(error) = task.reply(call).await {
        tracing::warn!(%error, %exec, "a call that was called off cannot be stopped");
    }
    error
}

/// Whose turn it is after people were asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It was answered, and goes on.
    Answered,
    /// It waits for people elsewhere.
    Waits,
}

pub(crate) async fn ask_person(task: &Task, record: &Exec) -> Result<Turn, Stop> {
    let Some(approval_id) = record.approval_id.clone() else {
        return Ok(Turn::Waits);
    };
    let approval: Value = task
        .ask(Call::get("/v1/approvals").segment(approval_id.as_str()))
        .await?;
    if approval["state"] != "pending" {
        return Ok(Turn::Answered);
    }
    let state = Asked {
        exec_id: record.exec_id.clone(),
        approval_id: approval_id.clone(),
    };
    // A person who cannot be shown all of it here is asked where they can; so are those who are asked
    // together, and those whom somebody else asks.
    let asks_here = approval["quorum"] == 1 && approval["requested_by"] == *task.caller.name;
    let said = match question::about(&approval).filter(|_| asks_here) {
        Some(question) => consent::ask(task, question, &state).await?,
        None => Said::Nothing,
    };
    match said {
        Said::Yes(person) => {
            let body = serde_json::json!({ "decision": "allow_once" });
            answer(task, &person, &approval_id, &body).await?;
            Ok(Turn::Answered)
        }
        Said::No(person, reason) => {
            let body = serde_json::json!({ "decision": "deny", "reason": reason });
            answer(task, &person, &approval_id, &body).await?;
            Ok(Turn::Answered)
        }
        Said::Nothing => Ok(Turn::Waits),
    }
}

async fn answer(
    task: &Task,
    person: &crate::api::Caller,
    approval: &ApprovalId,
    body: &Value,
) -> Result<(), Error> {
    let call = Call::post("/v1/approvals")
        .segment(approval.as_str())
        .then("/reply");
    match task.reply_as(person, call.json(body)?).await {
        // Somebody else was quicker; what they said holds.
        Err(error) if matches!(error.code, Code::Conflict | Code::Expired) => Ok(()),
        answered => answered.map(|_| ()),
    }
}

fn waits(task: &Task, record: Exec, approval_id: &ApprovalId, window: usize) -> Answer<ExecAnswer> {
    let mut value = exec::answer(record, window).value;
    value.next = Some(format!(
        "{} Then `exec_status` with exec_id `{}` waits for its end; do not repeat the call",
        agree_first(task, approval_id),
        value.exec_id,
    ));
    value.told()
}

pub(crate) fn agree_first(task: &Task, approval_id: &ApprovalId) -> String {
    let at = task.approvals_at.replace("{id}", approval_id.as_str());
    format!("a person has to agree first. Tell the user: {at}.")
}

/// One event of an exec.
#[derive(Debug, Default, Deserialize)]
struct Event {
    seq: u64,
    status: Option<Status>,
    text: Option<String>,
    base64: Option<String>,
}

/// Reads events as they are sent.
struct Events {
    body: Body,
    buffer: BytesMut,
}

impl Events {
    fn new(body: Body) -> Self {
        Self {
            body,
            buffer: BytesMut::new(),
        }
    }

    /// May be dropped while it waits: nothing that was read is lost.
    async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            if let Some(event) = self.take() {
                return Ok(Some(event));
            }
            if self.buffer.len() > EVENT_MOST {
                let message = "an event is too large";
                return Err(Error::new(Code::Internal, Stage::Collect, message));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                Some(Err(_)) | None => return Ok(None),
            }
        }
    }

    fn take(&mut self) -> Option<Event> {
        loop {
            let end = self.buffer.windows(2).position(|pair| pair == b"\n\n")?;
            let block = self.buffer.split_to(end);
            self.buffer.advance(2);
            let data = block[..]
                .split(|byte| *byte == b'\n')
                .find_map(|line| line.strip_prefix(b"data:"));
            // A comment keeps the connection alive and says nothing.
            if let Some(event) = data.and_then(|data| serde_json::from_slice(data).ok()) {
                return Some(event);
            }
        }
    }
}

/// Tells the client how far it is, if it wants to know.
struct Teller {
    token: Option<ProgressToken>,
    said: f64,
    heard: f64,
    latest: String,
    since: Instant,
}

impl Teller {
    fn new(task: &Task) -> Self {
        Self {
            token: task.context.meta.get_progress_token(),
            said: 0.0,
            heard: 0.0,
            latest: String::new(),
            since: Instant::now(),
        }
    }

    fn heard(&mut self, event: &Event) {
        if self.token.is_none() {
            return;
        }
        if self.heard <= self.said {
            self.since = Instant::now();
        }
        self.heard += 1.0;
        match (&event.text, &event.status) {
            (Some(text), _) => self.latest.push_str(text),
            (None, Some(status)) => self.latest.push_str(&format!("[{status}]\n")),
            (None, None) if event.base64.is_some() => self.latest.push_str("[bytes]\n"),
            (None, None) => {}
        }
        let mut from = self.latest.len().saturating_sub(MESSAGE);
        while !self.latest.is_char_boundary(from) {
            from += 1;
        }
        self.latest.drain(..from);
    }

    /// When there is something to tell, and the last word is long enough ago.
    async fn due(&self) {
        match self.heard > self.said {
            true => tokio::time::sleep_until(self.since + PACE).await,
            false => std::future::pending().await,
        }
    }

    async fn tell(&mut self, task: &Task) {
        let Some(token) = self.token.clone().filter(|_| self.heard > self.said) else {
            return;
        };
        self.said = self.heard;
        let message = std::mem::take(&mut self.latest);
        let progress = ProgressNotificationParam::new(token, self.said).with_message(message);
        // Who has gone away hears nothing.
        let _ = task.context.peer.notify_progress(progress).await;
    }
}
