//! Sessions: execs whose program is talked to while it runs.

use std::time::Duration;

use axum::Json as Answered;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use glovebox_engine::{Dispatcher, PendingAnswer, Seen, SessionOrder, SessionRead};
use glovebox_model::{Code, Exec, Result, Status, TerminalSize};
use serde::Deserialize;
use tokio::net::UnixStream;
use utoipa::IntoParams;

use super::Path;
use super::submit::Asked;
use super::wait::find;
use crate::app::App;
use crate::auth::{Caller, ReadsExecs, WritesExecs};
use crate::body::{Json, Mutation, Query};
use crate::failure::{Answer, Failure};
use crate::idempotency::{Outcome, once, replayed};
use crate::mask;
use glovebox_api::{
    ExecRequest, SessionInfo, SessionInput, SessionList, SessionOutput, SessionScreen,
    SessionSignal, SessionState,
};

/// Bytes of each stream in an answer if nothing is said.
pub(super) const PIECE: usize = 64 << 10;
/// A keeper that says nothing for so long after it should have is asked no longer.
const LATE: Duration = Duration::from_secs(30);
/// How long a question waits where there is no keeper that could answer earlier.
const WITHOUT_KEEPER: Duration = Duration::from_secs(1);
/// How long a start may wait.
const YIELD_MOST: Duration = Duration::from_secs(60);

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Since {
    /// The first byte of the standard output, or of what a terminal shows.
    #[param(minimum = 0, maximum = 9007199254740991i64, default = 0)]
    stdout: Option<u64>,
    /// The first byte of the standard error.
    #[param(minimum = 0, maximum = 9007199254740991i64, default = 0)]
    stderr: Option<u64>,
    /// At most so many bytes of each.
    #[param(minimum = 1, maximum = 1048576, default = 65536)]
    limit: Option<usize>,
    /// The answer waits so long for output that is not there yet.
    #[param(minimum = 0, maximum = 60000, default = 0)]
    wait_ms: Option<u64>,
}

impl Since {
    fn read(&self) -> SessionRead {
        SessionRead {
            stdout: self.stdout.unwrap_or(0),
            stderr: self.stderr.unwrap_or(0),
            most: self.limit.unwrap_or(PIECE),
            wait: Duration::from_millis(self.wait_ms.unwrap_or(0)),
        }
    }
}

/// Start a session
///
/// A session is an exec whose program lives on: it is talked to, and read, by its id. The request is
/// that of an exec, with `session`. The answer has the first output: it comes when the program waits
/// for input or has ended, and after `yield_ms` at the latest. A session survives a restart of the
/// server.
#[utoipa::path(
    post, path = "/v1/sessions", operation_id = "create_session", tag = "sessions",
    request_body = ExecRequest,
    responses(
        (status = 201, description = "It runs.", body = SessionOutput),
        (status = 200, description = "It has ended already.", body = SessionOutput),
        (status = 202, description = "It waits for people, or for its turn.", body = SessionOutput),
    ),
)]
pub(super) async fn create(
    State(app): State<App>,
    WritesExecs(caller): WritesExecs,
    mut request: Json<ExecRequest>,
) -> Answer<Response> {
    if request.value.exec.stdin.is_some() || request.value.exec.stdin_base64.is_some() {
        let message = "a session has no `stdin` of its own: what it reads is typed";
        return Err(
            Failure::new(Code::Conflict, message).hint("`POST /v1/sessions/{id}/input` types")
        );
    }
    as_session_time(&mut request.value)?;
    let options = request.value.session.get_or_insert_default();
    let patience = options.patience().min(YIELD_MOST);
    let asked = Asked::of(request, &caller)?;
    let started = app.submit(move |dispatcher| {
        asked.put(dispatcher, |submission| {
            dispatcher.start_session(submission)
        })
    });
    let (exec, was_here) = started.await?;
    let waits = matches!(exec.status, Status::AwaitingApproval | Status::Queued);
    if !was_here && !waits {
        let settled = SessionOrder::Settle(patience);
        order(&app, &caller, exec.clone(), settled).await?;
    }
    let first = SessionRead {
        stdout: 0,
        stderr: 0,
        most: PIECE,
        wait: Duration::ZERO,
    };
    let output = read(&app, exec, first).await?;
    let status = match output.session.state {
        SessionState::Waiting => StatusCode::ACCEPTED,
        SessionState::Running => StatusCode::CREATED,
        _ => StatusCode::OK,
    };
    let response = (status, Answered(output)).into_response();
    Ok(match was_here {
        true => replayed(response),
        false => response,
    })
}

/// `timeout` is how long an exec may run; of a session that is `session_time`.
fn as_session_time(request: &mut ExecRequest) -> Answer<()> {
    let Some(overrides) = &mut request.policy_overrides else {
        return Ok(());
    };
    let time = overrides.timeout.take();
    if time.is_some() && overrides.session_time.is_some() {
        return Err(Failure::new(
            Code::Conflict,
            "`timeout` and `session_time` are the same for a session",
        )
        .hint("leave out `timeout`"));
    }
    overrides.session_time = overrides.session_time.take().or(time);
    Ok(())
}

/// List sessions
///
/// Those on this machine that were not removed, the newest first; an agent's own for an agent.
#[utoipa::path(
    get, path = "/v1/sessions", operation_id = "list_sessions", tag = "sessions",
    responses((status = 200, description = "As they are now.", body = SessionList)),
)]
pub(super) async fn list(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
) -> Answer<Answered<SessionList>> {
    let eyes = caller.eyes();
    let listed = app.ask("sessions", move |dispatcher| dispatcher.sessions(&eyes));
    listed.await.map(Answered)
}

/// Get a session
#[utoipa::path(
    get, path = "/v1/sessions/{id}", operation_id = "get_session", tag = "sessions",
    params(("id" = String, Path, description = "The session's id, or its client id.")),
    responses((status = 200, description = "As it is now.", body = SessionInfo)),
)]
pub(super) async fn get(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path(id): Path<String>,
) -> Answer<Answered<SessionInfo>> {
    let exec = find_session(&app, &caller, &id).await?;
    let shown = order(&app, &caller, exec, SessionOrder::Show);
    shown.await.map(Answered)
}

/// Remove a session
///
/// Forgets what it put out; its record stays. One that runs is a 409.
#[utoipa::path(
    delete, path = "/v1/sessions/{id}", operation_id = "remove_session", tag = "sessions",
    params(("id" = String, Path, description = "The session's id, or its client id.")),
    responses((status = 204, description = "It is gone.")),
)]
pub(super) async fn remove(
    State(app): State<App>,
    WritesExecs(caller): WritesExecs,
    Path(id): Path<String>,
    mutation: Mutation,
) -> Answer<Response> {
    let (work_app, work_caller) = (app.clone(), caller.clone());
    // Looked for within: who asks again gets the first answer, also when it is gone.
    let work = async move {
        let exec = find_session(&work_app, &work_caller, &id).await?;
        let eyes = work_caller.eyes();
        let removed = work_app.ask("remove_session", move |dispatcher| {
            dispatcher.remove_session(&eyes, &exec)
        });
        removed.await.map(|()| Outcome::empty())
    };
    once(&app, &caller, &mutation, work).await
}

/// Read a session's output
///
/// From an offset on, which can be asked for again as long as it is kept: the newest megabyte of each
/// stream, and of a long output its beginning. More than was asked for is skipped where `offset` is
/// larger than what was asked for.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/output", operation_id = "get_session_output", tag = "sessions",
    params(("id" = String, Path, description = "The session's id, or its client id."), Since),
    responses((status = 200, description = "What it put out since.", body = SessionOutput)),
)]
pub(super) async fn output(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path(id): Path<String>,
    Query(since): Query<Since>,
) -> Answer<Answered<SessionOutput>> {
    let exec = find_session(&app, &caller, &id).await?;
    read(&app, exec, since.read()).await.map(Answered)
}

/// See a session's screen
///
/// What a person would see on its terminal now, or saw last.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/screen", operation_id = "get_session_screen", tag = "sessions",
    params(("id" = String, Path, description = "The session's id, or its client id.")),
    responses((status = 200, description = "The screen.", body = SessionScreen)),
)]
pub(super) async fn screen(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path(id): Path<String>,
) -> Answer<Answered<SessionScreen>> {
    let exec = find_session(&app, &caller, &id).await?;
    let of = exec.clone();
    let asked = app.ask("read_screen", move |dispatcher| dispatcher.read_screen(&of));
    let asked = asked.await?;
    let shown = answered(&app, asked, LATE, "screen", move |dispatcher, asked| {
        dispatcher.session_screen(&exec, asked)
    });
    let mut screen = shown.await?;
    // Before it is base64: what is found and replaced in that is none any more.
    let secrets = app.secrets_of(&mask::whose(&caller)).await?;
    if let Ok(drawn) = STANDARD.decode(&screen.redraw) {
        screen.redraw = STANDARD.encode(secrets.redact(&drawn));
    }
    Ok(Answered(screen))
}

/// Type into a session
#[utoipa::path(
    post, path = "/v1/sessions/{id}/input", operation_id = "send_session_input", tag = "sessions",
    params(("id" = String, Path, description = "The session's id, or its client id.")),
    request_body = SessionInput,
    responses((status = 200, description = "It was typed.", body = SessionInfo)),
)]
pub(super) async fn input(
    State(app): State<App>,
    WritesExecs(caller): WritesExecs,
    Path(id): Path<String>,
    Json {
        value,
        mut mutation,
    }: Json<SessionInput>,
) -> Answer<Response> {
    // It is kept beside the key: without ours, what was typed at a password prompt could be guessed by
    // trying values against it.
    if mutation.key.is_some() {
        let parts = [&mutation.fingerprint[..]];
        mutation.fingerprint = app.auth().key()?.derive("fingerprint of input", &parts);
    }
    // Known to the keeper, too: this server may end before it has kept its answer.
    let token = &caller.token().token_id;
    let once = mutation.key.as_ref().map(|key| format!("{token} {key}"));
    let typed = SessionOrder::Type { input: value, once };
    ordered(app, caller, id, mutation, typed).await
}

/// Close a session's input
///
/// Of a pipe its end; on a terminal the key for it is typed.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/close-input", operation_id = "close_session_input", tag = "sessions",
    params(("id" = String, Path, description = "The session's id, or its client id.")),
    responses((status = 200, description = "It was closed.", body = SessionInfo)),
)]
pub(super) async fn close_input(
    State(app): State<App>,
    WritesExecs(caller): WritesExecs,
    Path(id): Path<String>,
    mutation: Mutation,
) -> Answer<Response> {
    ordered(app, caller, id, mutation, SessionOrder::CloseInput).await
}

/// Resize a session's terminal
#[utoipa::path(
    post, path = "/v1/sessions/{id}/resize", operation_id = "resize_session", tag = "sessions",
    params(("id" = String, Path, description = "The session's id, or its client id.")),
    request_body = TerminalSize,
    responses((status = 200, description = "It has this size.", body = SessionInfo)),
)]
pub(super) async fn resize(
    State(app): State<App>,
    WritesExecs(caller): WritesExecs,
    Path(id): Path<String>,
    Json { value, mutation }: Json<TerminalSize>,
) -> Answer<Response> {
    ordered(app, caller, id, mutation, SessionOrder::Resize(value)).await
}

/// Send a signal to a session
///
/// To all that runs in it; on a terminal `INT`, `QUIT` and `TSTP` go to what is in the foreground, as
/// their keys do.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/signal", operation_id = "signal_session", tag = "sessions",
    params(("id" = String, Path, description = "The session's id, or its client id.")),
    request_body = SessionSignal,
    responses((status = 200, description = "It was sent.", body = SessionInfo)),
)]
pub(super) async fn signal(
    State(app): State<App>,
    WritesExecs(caller): WritesExecs,
    Path(id): Path<String>,
    Json { value, mutation }: Json<SessionSignal>,
) -> Answer<Response> {
    ordered(app, caller, id, mutation, SessionOrder::Signal(value)).await
}

/// Kill a session
///
/// Everything in it, at once; answers when nothing of it is left. One that has ended stays as it is.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/kill", operation_id = "kill_session", tag = "sessions",
    params(("id" = String, Path, description = "The session's id, or its client id.")),
    responses((status = 200, description = "It has ended.", body = SessionInfo)),
)]
pub(super) async fn kill(
    State(app): State<App>,
    WritesExecs(caller): WritesExecs,
    Path(id): Path<String>,
    mutation: Mutation,
) -> Answer<Response> {
    ordered(app, caller, id, mutation, SessionOrder::Kill).await
}

async fn ordered(
    app: App,
    caller: Caller,
    id: String,
    mutation: Mutation,
    what: SessionOrder,
) -> Answer<Response> {
    let (work_app, work_caller) = (app.clone(), caller.clone());
    let work = async move {
        let exec = find_session(&work_app, &work_caller, &id).await?;
        let info = order(&work_app, &work_caller, exec, what).await?;
        Outcome::json(StatusCode::OK, &info)
    };
    once(&app, &caller, &mutation, work).await
}

/// An exec that is no session is there, and says so when it is asked for anything.
pub(super) async fn find_session(app: &App, caller: &Caller, id: &str) -> Answer<Seen<Exec>> {
    let found = find(app, &caller.eyes(), id).await;
    let missing = |failure: Failure| match failure.0.code {
        Code::NotFound => Failure::not_found("session")
            .hint("`GET /v1/sessions` lists those of the token's space"),
        _ => failure,
    };
    let exec = found.map_err(missing)?;
    let of = exec.clone();
    let forgotten = app.ask("is_forgotten", move |dispatcher| {
        dispatcher.is_forgotten(&of)
    });
    match forgotten.await? {
        false => Ok(exec),
        true => {
            let id = &exec.exec_id;
            let message = format!("the session `{id}` is not kept any more");
            Err(Failure::new(Code::NotFound, message).hint(format!(
                "its record is: `GET /v1/execs/{id}`, `glovebox show {id}`"
            )))
        }
    }
}

pub(super) async fn order(
    app: &App,
    caller: &Caller,
    exec: Seen<Exec>,
    what: SessionOrder,
) -> Answer<SessionInfo> {
    let patience = match what {
        SessionOrder::Settle(patience) => patience + LATE,
        _ => LATE,
    };
    let (eyes, of) = (caller.eyes(), exec.clone());
    let asked = app.ask("order_session", move |dispatcher| {
        dispatcher.order_session(&eyes, &of, what)
    });
    let asked = asked.await?;
    answered(app, asked, patience, "session", move |dispatcher, asked| {
        dispatcher.session(&exec, asked)
    })
    .await
}

pub(super) async fn read(app: &App, exec: Seen<Exec>, read: SessionRead) -> Answer<SessionOutput> {
    let of = exec.clone();
    let asked = app.ask("read_session", move |dispatcher| {
        dispatcher.read_session(&of, read)
    });
    let (asked, patience) = (asked.await?, read.wait + LATE);
    let began = tokio::time::Instant::now();
    let output = answered(
        app,
        asked,
        patience,
        "session_output",
        move |dispatcher, asked| dispatcher.session_output(&exec, read, asked),
    );
    let output = output.await?;
    if output.has_nothing_since((read.stdout, read.stderr)) {
        // It waits, or its end is not on record yet: there is no keeper to wait at. Or so many wait there
        // that it answers at once.
        let least = read.wait.min(WITHOUT_KEEPER);
        tokio::time::sleep(least.saturating_sub(began.elapsed())).await;
    }
    Ok(output)
}

/// Waits for a keeper without a thread, then reads what it says.
async fn answered<T: Send + 'static>(
    app: &App,
    asked: PendingAnswer,
    patience: Duration,
    what: &'static str,
    read: impl FnOnce(&Dispatcher, PendingAnswer) -> Result<T> + Send + 'static,
) -> Answer<T> {
    let watched = asked
        .watch()
        .and_then(|it| it.map(UnixStream::from_std).transpose());
    if let Some(socket) = watched.map_err(|_| Failure::internal())? {
        // One that stays silent is told as such by whoever reads.
        let _ = tokio::time::timeout(patience, socket.readable()).await;
    }
    app.ask(what, move |dispatcher| read(dispatcher, asked))
        .await
}
