//! A session and the person's terminal: `glovebox session attach`, `run -t` and `shell`.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use glovebox_api::{SessionOptions, SessionState};
use glovebox_model::{Code, Error, Exec, ExecId, Program, Result, Stage, Status};

use super::start::{Permitted, begin, waits_for_people};
use crate::args::{Global, LifeOptions, RunOptions, SessionAttachArgs};
use crate::attach::{self, Attachment, DetachKeys, Parted, Shows, require_terminal};
use crate::commands::execute::{Report, tell_end};
use crate::exit::Exit;
use crate::sessions::Sessions;
use crate::{interrupt, render, stdout};

/// How often it is asked whether people have answered.
const LOOK: Duration = Duration::from_millis(300);

/// A program that is started with a terminal, this one attached to it.
pub(crate) struct AtTerminal {
    /// What asked for it, for messages.
    pub(crate) what: &'static str,
    pub(crate) options: RunOptions,
    pub(crate) life: LifeOptions,
    pub(crate) detach: DetachKeys,
    pub(crate) program: Program,
}

pub(crate) fn run_at_terminal(global: &Global, asked: AtTerminal) -> Result<Exit> {
    refuse_json(global, asked.what)?;
    require_terminal(asked.what)?;
    let report = asked.options.exec.report.as_deref();
    let report = report.map(Report::open).transpose()?;
    let no_wait = asked.options.exec.no_wait;
    let size = attach::size();
    let options = SessionOptions {
        terminal: Some(true),
        size: Some(size),
        yield_ms: Some(0),
        ..SessionOptions::default()
    };
    let (presses, _asker) = interrupt::presses()?;
    let begun = begin(global, asked.options, &asked.life, options, asked.program)?;
    let id = begun.output.session.session_id.clone();
    if interrupt::is_pressed(&presses) {
        // Nothing is left that was not wanted any more when it had started.
        begun.sessions.kill(&id)?;
        return Ok(Exit::CANCELED);
    }
    let permitted = begun.permitted(global, no_wait)?;
    match permitted {
        Permitted::TakenBack => return Ok(Exit::CANCELED),
        Permitted::Later if no_wait => return Ok(Exit::WAITING),
        Permitted::Later | Permitted::Yes => {}
    }
    let sessions = begun.sessions;
    if permitted == Permitted::Later && !is_answered(&sessions, &id, &presses)? {
        sessions.kill(&id)?;
        return Ok(Exit::CANCELED);
    }
    let seat = Seat {
        global,
        sessions: Arc::clone(&sessions),
        id: id.clone(),
        detach: asked.detach,
    };
    let (exit, parted) = seat.see_through(Shows::Everything(size), Hangup::Ends)?;
    if let (Some(report), Parted::Ended) = (report, parted) {
        report.write(&sessions.record(&id)?)?;
    }
    Ok(exit)
}

pub(super) fn attach(
    global: &Global,
    open: impl Fn() -> Result<Sessions>,
    args: SessionAttachArgs,
) -> Result<Exit> {
    refuse_json(global, "`session attach`")?;
    require_terminal("`session attach`")?;
    let sessions = open()?;
    let info = sessions.find(&args.which.id)?;
    let id = info.session_id.clone();
    if info.terms.terminal.is_none() {
        let message = format!("`{id}` has no terminal: its program reads and writes pipes");
        return Err(Error::new(Code::Conflict, Stage::Open, message)
            .hint(format!("read it: `glovebox session log {id} --follow`"))
            .hint(format!(
                "type into it: `glovebox session send {id} --enter TEXT`"
            )));
    }
    if info.state.is_final() {
        let how = super::page::ending(&info);
        let message = format!("`{id}` has ended: {how}");
        return Err(Error::new(Code::Conflict, Stage::Open, message)
            .hint(format!("what it put out: `glovebox session log {id}`")));
    }
    let (presses, _asker) = interrupt::presses()?;
    if waits_for_people(global, &sessions, &info)? && !is_answered(&sessions, &id, &presses)? {
        return Ok(Exit::CANCELED);
    }
    let seat = Seat {
        global,
        sessions: Arc::new(sessions),
        id,
        detach: args.detach.detach_key,
    };
    let (exit, _) = seat.see_through(Shows::Screen, Hangup::Leaves)?;
    Ok(exit)
}

/// Waits for people with the terminal as it was: what is pressed meanwhile is for no program. False:
/// nobody wants to wait any more.
fn is_answered(sessions: &Sessions, id: &ExecId, presses: &OwnedFd) -> Result<bool> {
    while sessions.find(id.as_str())?.state == SessionState::Waiting {
        if interrupt::is_pressed_within(presses, LOOK) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// How it ended, where its program did not end it. Empty: it is told with the record.
fn not_by_itself(record: &Exec) -> Option<String> {
    match (record.status, record.signal, record.limit_hit) {
        (Status::Succeeded | Status::Failed, None, _) => None,
        (Status::Succeeded | Status::Failed, Some(signal), None) => {
            Some(format!("was ended by signal {signal}"))
        }
        (Status::Canceled | Status::Killed, _, None) => {
            Some("was killed from elsewhere".to_owned())
        }
        _ => Some(String::new()),
    }
}

/// There is one standard output, and the program has it.
fn refuse_json(global: &Global, what: &str) -> Result<()> {
    if !global.json {
        return Ok(());
    }
    let message =
        format!("{what} gives the terminal to the program, and `--json` would write there");
    Err(Error::new(Code::InvalidArgument, Stage::Parse, message)
        .hint("`--report FILE` writes the record to a file")
        .hint("`glovebox session start --json` starts one without a terminal of yours"))
}

/// What becomes of the session when this terminal hangs up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hangup {
    /// Its program is told, as at any terminal.
    Ends,
    Leaves,
}

struct Seat<'g> {
    global: &'g Global,
    sessions: Arc<Sessions>,
    id: ExecId,
    detach: DetachKeys,
}

impl Seat<'_> {
    fn see_through(self, shows: Shows, hangup: Hangup) -> Result<(Exit, Parted)> {
        let Self {
            global,
            sessions,
            id,
            detach,
        } = self;
        if !global.quiet && !detach.are_none() {
            render::note(&format!(
                "`{detach}` detaches from `{id}`, which goes on then"
            ));
        }
        let attachment = Attachment {
            sessions: Arc::clone(&sessions),
            id: id.clone(),
            detach,
            shows,
        };
        let parted = attach::attach(attachment).map_err(|error| {
            error.hint(format!("come back to it: `glovebox session attach {id}`"))
        })?;
        let exit = match (parted, hangup) {
            (Parted::Ended, _) => {
                let record = sessions.record(&id)?;
                if let Some(how) = not_by_itself(&record) {
                    // Behind whatever it had written last.
                    stdout::text("\n")?;
                    if !global.quiet && !how.is_empty() {
                        render::note(&format!(
                            "`{id}` {how}; `glovebox show {id}` has the record"
                        ));
                    }
                }
                tell_end(global, &record);
                Exit::of_record(&record)
            }
            (Parted::Detached, _) => {
                if !global.quiet {
                    render::note(&format!(
                        "`{id}` goes on: `glovebox session attach {id}` comes back, \
                         `glovebox session kill {id}` ends it"
                    ));
                }
                Exit::SUCCESS
            }
            (Parted::HungUp, Hangup::Leaves) => Exit::CANCELED,
            (Parted::HungUp, Hangup::Ends) => {
                // One that has ended meanwhile needs no signal.
                let _ = sessions.signal(&id, "HUP");
                Exit::CANCELED
            }
        };
        Ok((exit, parted))
    }
}
