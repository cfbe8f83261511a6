//! `glovebox session ls`.

use glovebox_api::{SessionInfo, SessionList, SessionState};
use glovebox_model::Result;
use jiff::Timestamp;

use crate::args::Global;
use crate::context::Context;
use crate::exit::Exit;
use crate::human::{age, clip, command_line, duration};
use crate::paint::{Paint, Tone};
use crate::sessions::Sessions;
use crate::table::{Cell, Table};
use crate::{render, stdout};

/// So that a row fits into 80 columns most of the time.
const COMMAND_MOST: usize = 28;
/// Digits of an id that tell sessions apart nearly always.
const DIGITS: usize = "e_".len() + 12;

pub(super) fn run(global: &Global) -> Result<Exit> {
    let listed = match Sessions::open_if_there(&Context::new(global))? {
        Some(sessions) => sessions.list()?,
        None => SessionList {
            sessions: Vec::new(),
        },
    };
    if global.json {
        stdout::json(&listed)?;
    } else if global.quiet {
        let ids = listed
            .sessions
            .iter()
            .map(|it| format!("{}\n", it.session_id));
        stdout::text(&ids.collect::<String>())?;
    } else if listed.sessions.is_empty() {
        render::note("there is no session; `glovebox session start -- CMD` starts one");
    } else {
        let table = table(&listed.sessions, Timestamp::now());
        stdout::text(&table.text(Paint::on(&std::io::stdout())))?;
    }
    Ok(Exit::SUCCESS)
}

fn table(sessions: &[SessionInfo], now: Timestamp) -> Table<6> {
    let mut table = Table::new(["ID", "STATE", "COMMAND", "TERMINAL", "IDLE", "AGE"]);
    for info in sessions {
        let terminal = match info.terms.terminal {
            Some(size) => format!("{}x{}", size.columns, size.rows),
            None => "-".to_owned(),
        };
        let idle = match info.state.is_final() {
            true => "-".to_owned(),
            // Tenths of seconds change while they are read.
            false => duration(info.idle_ms / 1000 * 1000),
        };
        let id = info.session_id.as_str();
        table.push([
            Cell::from(id.get(..DIGITS).unwrap_or(id)),
            Cell::toned(tone(info.state), &state(info)),
            Cell::from(clip(&render::one_line(&command(info)), COMMAND_MOST)),
            Cell::from(terminal),
            Cell::from(idle),
            Cell::from(info.started_at.map_or("-".to_owned(), |at| age(at, now))),
        ]);
    }
    table
}

pub(super) fn command(info: &SessionInfo) -> String {
    match info.command.split_first() {
        Some((cmd, args)) => command_line(cmd, args),
        None => String::new(),
    }
}

pub(super) fn state(info: &SessionInfo) -> String {
    let word = match info.state {
        SessionState::Waiting => "waiting",
        SessionState::Running if info.waiting_for_input => "running, waits for input",
        SessionState::Running => "running",
        SessionState::Exited => match info.exit_code {
            Some(code) => return format!("exited {code}"),
            None => "exited",
        },
        SessionState::Signaled => match info.signal {
            Some(signal) => return format!("signal {signal}"),
            None => "signaled",
        },
        SessionState::TimedOut => "timed out",
        SessionState::Killed => "killed",
        SessionState::Lost => "lost",
        SessionState::Failed => "failed",
    };
    word.to_owned()
}

pub(super) const fn tone(state: SessionState) -> Tone {
    match state {
        SessionState::Running => Tone::Good,
        SessionState::Waiting => Tone::Caution,
        SessionState::Exited => Tone::Plain,
        SessionState::Signaled
        | SessionState::TimedOut
        | SessionState::Killed
        | SessionState::Lost
        | SessionState::Failed => Tone::Bad,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::sample;

    #[test]
    fn a_row_says_what_runs_and_how_it_stands() {
        let mut running = sample::session(2);
        running.waiting_for_input = true;
        let mut ended = sample::session(1);
        (ended.state, ended.exit_code) = (SessionState::Exited, Some(3));
        ended.terms.terminal = None;
        let now = Timestamp::from_second(1_700_000_600).unwrap();
        assert_eq!(
            table(&[running, ended], now).text(Paint::Plain),
            "\
ID              STATE                     COMMAND                     TERMINAL  IDLE   AGE
e_020202020202  running, waits for input  sh -c 'ev\\u{1b}il; exit 3'  80x24     1m 1s  10m
e_010101010101  exited 3                  sh -c 'ev\\u{1b}il; exit 3'  -         -      10m
"
        );
    }
}
