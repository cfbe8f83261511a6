//! `glovebox session info`.

use glovebox_api::{SessionInfo, SessionState, SessionStream};
use glovebox_model::Result;
use jiff::Timestamp;

use super::list::{command, state, tone};
use crate::args::{Global, WhichSession};
use crate::exit::Exit;
use crate::human::{age, duration, size, time};
use crate::key_values::KeyValues;
use crate::paint::Paint;
use crate::sessions::Sessions;
use crate::stdout;

pub(super) fn run(global: &Global, sessions: &Sessions, which: &WhichSession) -> Result<Exit> {
    let info = sessions.find(&which.id)?;
    if global.json {
        stdout::json(&info)?;
    } else {
        let mut sheet = KeyValues::new(Paint::on(&std::io::stdout()));
        page(&mut sheet, &info, Timestamp::now());
        stdout::text(&sheet.text)?;
    }
    Ok(Exit::SUCCESS)
}

/// How it ended, in a few words.
pub(super) fn ending(info: &SessionInfo) -> String {
    match (info.state, info.limit_hit) {
        (SessionState::Killed | SessionState::TimedOut, Some(limit)) => {
            format!("{} (limit: {limit})", state(info))
        }
        _ => state(info),
    }
}

fn page(sheet: &mut KeyValues, info: &SessionInfo, now: Timestamp) {
    let ago = |at: Timestamp| format!("{} ({} ago)", time(at), age(at, now));
    sheet.line("session", info.session_id.as_str());
    let client_id = info.client_id.as_ref().map(ToString::to_string);
    sheet.optional("client id", client_id.as_deref());
    sheet.toned("state", tone(info.state), &ending(info));
    let approval = info
        .approval_id
        .as_ref()
        .filter(|_| info.state == SessionState::Waiting);
    sheet.optional("waits for", approval.map(|it| it.to_string()).as_deref());
    sheet.line("command", &command(info));
    sheet.line("workspace", info.project_id.as_str());
    sheet.optional("started", info.started_at.map(ago).as_deref());
    sheet.optional("ended", info.ended_at.map(ago).as_deref());
    let terminal = match info.terms.terminal {
        Some(size) => format!("{} columns, {} rows", size.columns, size.rows),
        None => "none; it reads and writes pipes".to_owned(),
    };
    sheet.line("terminal", &terminal);
    if !info.state.is_final() {
        sheet.line("idle", &duration(info.idle_ms));
        let ends = info.terms.idle_timeout_ms.map(|it| duration(it.get()));
        sheet.optional("idle end", ends.map(|it| format!("after {it}")).as_deref());
        if info.input_closed {
            sheet.line("input", "closed");
        }
    }
    sheet.line("stdout", &kept(info.stdout));
    if info.terms.terminal.is_none() {
        sheet.line("stderr", &kept(info.stderr));
    }
    let error = info.error.as_ref().map(|it| it.message.clone());
    sheet.optional("error", error.as_deref());
}

fn kept(stream: SessionStream) -> String {
    match stream.start {
        0 => size(stream.end),
        start => format!(
            "{}, the newest {} at hand",
            size(stream.end),
            size(stream.end - start)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::sample;

    #[test]
    fn a_page_says_how_it_stands() {
        let mut info = sample::session(1);
        info.stdout = SessionStream {
            start: 1024,
            end: 4096,
        };
        let mut sheet = KeyValues::new(Paint::Plain);
        let now = Timestamp::from_second(1_700_000_600).unwrap();
        page(&mut sheet, &info, now);
        assert_eq!(
            sheet.text,
            "\
session     e_01010101010101010101010101010101
state       running
command     sh -c 'ev\\u{1b}il; exit 3'
workspace   demo
started     2023-11-14T22:13:20Z (10m ago)
terminal    80 columns, 24 rows
idle        1m 1s
stdout      4.0 KiB, the newest 3.0 KiB at hand
"
        );
        (info.state, info.limit_hit) = (
            SessionState::TimedOut,
            Some(glovebox_model::LimitKind::Wall),
        );
        assert_eq!(ending(&info), "timed out (limit: wall)");
    }
}
