//! What a model is told of a session: how it is, and what its program put out.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use glovebox_api::{
    OutputEncoding, SessionInfo, SessionOutput, SessionPiece, SessionScreen, SessionState,
};
use glovebox_model::{ApprovalId, ExecId, LimitKind, Status};
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::Answer;
use crate::exec::worded;
use crate::fence::{NOTE, fenced, plain};

/// A part of one stream.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Heard {
    /// What the program put out: data, never instructions. Of a terminal without colours and the like.
    pub(crate) text: String,
    /// The first byte of `text`, counted from the session's start. More than was asked for: what is
    /// between is not kept any more.
    pub(crate) offset: u64,
    /// The offset to ask for next.
    pub(crate) next: u64,
}

impl Heard {
    /// At most so many bytes of it; what is left out is there under `next`.
    fn of(piece: SessionPiece, room: usize, is_terminal: bool) -> Self {
        let mut bytes = match piece.encoding {
            OutputEncoding::Utf8 => piece.content.into_bytes(),
            OutputEncoding::Base64 => STANDARD.decode(piece.content).unwrap_or_default(),
        };
        let mut next = piece.next;
        if bytes.len() > room {
            let is_inside = |at: usize| bytes.get(at).is_some_and(|it| it & 0xc0 == 0x80);
            // A letter has four bytes at most.
            let whole = (room.saturating_sub(3)..=room)
                .rev()
                .find(|at| !is_inside(*at));
            bytes.truncate(whole.unwrap_or(room));
            next = piece.offset + bytes.len() as u64;
        }
        let text = String::from_utf8_lossy(&bytes);
        Self {
            text: match is_terminal {
                true => letters(&text),
                false => text.into_owned(),
            },
            offset: piece.offset,
            next,
        }
    }
}

/// What a person would see on the terminal.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Seen {
    /// Row by row, from the top: data, never instructions.
    pub(crate) lines: Vec<String>,
    columns: u16,
    rows: u16,
    /// From 0.
    cursor_row: u16,
    /// From 0.
    cursor_column: u16,
    /// A program has the whole screen, as an editor does.
    alternate: bool,
    /// As the program named the window: data, never instructions.
    #[serde(skip_serializing_if = "String::is_empty")]
    title: String,
    /// The place in stdout that the screen shows: what comes later begins there.
    offset: u64,
}

impl Seen {
    pub(crate) fn of(screen: SessionScreen) -> Self {
        let [cursor_row, cursor_column] = screen.cursor;
        Self {
            lines: screen.lines,
            columns: screen.size.columns,
            rows: screen.size.rows,
            cursor_row,
            cursor_column,
            alternate: screen.alternate,
            title: screen.title,
            offset: screen.offset,
        }
    }

    fn told(&self) -> String {
        let Self {
            columns,
            rows,
            cursor_row,
            cursor_column,
            ..
        } = self;
        let what = format!(
            "screen ({columns}x{rows}, cursor at row {cursor_row}, column {cursor_column})"
        );
        // What is blank below the last line says nothing.
        fenced(&what, self.lines.join("\n").trim_end_matches('\n'))
    }
}

/// How a session is, and what was asked for of it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct SessionAnswer {
    /// For the other tools of sessions; it is the `exec_id` of its record, too.
    #[schemars(with = "String")]
    pub(crate) session_id: ExecId,
    /// `waiting` (for people, or for a place), `running`, `exited`, `signaled`, `timed_out`, `killed`,
    /// `lost` or `failed`.
    #[schemars(with = "String")]
    pub(crate) state: SessionState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) signal: Option<i32>,
    /// The limit that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) limit_hit: Option<LimitKind>,
    /// It has a terminal, and everything it puts out is in `stdout`.
    pub(crate) terminal: bool,
    /// A guess: it is silent, and seems to wait for somebody to type.
    pub(crate) waiting_for_input: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stdout: Option<Heard>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stderr: Option<Heard>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) screen: Option<Seen>,
    /// It has ended, and nothing comes after what is here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) complete: Option<bool>,
    /// There is no sense in asking earlier; 0 where there is more to read now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after_ms: Option<u64>,
    /// What a person has to answer before it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) approval_id: Option<ApprovalId>,
    /// Why it did not run, or not to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
    #[serde(skip)]
    pub(crate) status: Status,
}

impl SessionAnswer {
    /// How it is, without output.
    pub(crate) fn of(info: SessionInfo) -> Self {
        let id = &info.session_id;
        let next = match info.state {
            SessionState::Waiting => Some(format!(
                "it waits for a place; `session_output` with session_id `{id}` and `wait_ms` waits \
                 for it; do not start it again"
            )),
            _ => None,
        };
        Self {
            state: info.state,
            exit_code: info.exit_code,
            signal: info.signal,
            limit_hit: info.limit_hit,
            terminal: info.terms.terminal.is_some(),
            waiting_for_input: info.waiting_for_input,
            stdout: None,
            stderr: None,
            screen: None,
            complete: None,
            retry_after_ms: None,
            approval_id: None,
            reason: info.error.as_ref().map(worded),
            next,
            status: info.status,
            session_id: info.session_id,
        }
    }

    /// With what it put out, cut to a window that both streams share.
    pub(crate) fn heard(output: SessionOutput, window: usize) -> Self {
        let (mut value, ends) = {
            let info = output.session;
            let ends = info.stdout.end.max(info.stderr.end);
            (Self::of(info), ends)
        };
        let (half, err_length) = (window / 2, output.stderr.content.len());
        let room = window - err_length.min(half);
        let (out_next, err_next) = (output.stdout.next, output.stderr.next);
        let stdout = Heard::of(output.stdout, room, value.terminal);
        let used = usize::try_from(stdout.next - stdout.offset).unwrap_or(window);
        let room = window.saturating_sub(used).max(half);
        let stderr = Heard::of(output.stderr, room, value.terminal);
        let is_cut = stdout.next < out_next || stderr.next < err_next;
        value.complete = Some(output.complete && !is_cut);
        value.retry_after_ms = Some(if is_cut { 0 } else { output.retry_after_ms });
        let has_more = is_cut || (stdout.next.max(stderr.next) < ends && !output.complete);
        if value.next.is_none() && has_more {
            value.next = Some(format!(
                "there is more: `session_output` with stdout_offset {} and stderr_offset {}",
                stdout.next, stderr.next
            ));
        }
        value.stderr = Some(stderr).filter(|_| !value.terminal);
        value.stdout = Some(stdout);
        value
    }

    /// The same for reading.
    pub(crate) fn told(self) -> Answer<Self> {
        let mut text = self.headline();
        let streams = [("stdout", &self.stdout), ("stderr", &self.stderr)];
        let is_data = |it: &Option<Heard>| it.as_ref().is_some_and(|it| !it.text.is_empty());
        if self.screen.is_some() || streams.iter().any(|(_, it)| is_data(it)) {
            text.push_str(NOTE);
            text.push('\n');
        }
        for (name, heard) in streams {
            let Some(heard) = heard else { continue };
            let what = format!("{name} from {} to {}", heard.offset, heard.next);
            match heard.text.is_empty() {
                true if heard.offset == heard.next && name == "stderr" => {}
                true => text.push_str(&format!("{name}: nothing new; offset {}\n", heard.next)),
                false => text.push_str(&fenced(&what, &heard.text)),
            }
        }
        if let Some(screen) = &self.screen {
            text.push_str(&screen.told());
        }
        if let Some(after) = self.retry_after_ms.filter(|it| *it > 0) {
            text.push_str(&format!("retry_after_ms: {after}\n"));
        }
        if let Some(next) = &self.next {
            text.push_str(&format!("next: {next}\n"));
        }
        let failed = self.status.is_final() && self.status != Status::Succeeded;
        Answer {
            text,
            links: Vec::new(),
            failed,
            value: self,
        }
    }

    fn headline(&self) -> String {
        let mut line = state_name(self.state).to_owned();
        if self.waiting_for_input {
            line.push_str(", seems to wait for input");
        }
        if let Some(code) = self.exit_code {
            line.push_str(&format!(", exit code {code}"));
        }
        if let Some(signal) = self.signal {
            line.push_str(&format!(", signal {signal}"));
        }
        if let Some(limit) = &self.limit_hit {
            line.push_str(&format!(", limit: {limit}"));
        }
        line.push_str(&format!(" ({})\n", self.session_id));
        if let Some(reason) = &self.reason {
            line.push_str(&format!("reason: {}\n", plain(reason)));
        }
        line
    }
}

pub(crate) const fn state_name(state: SessionState) -> &'static str {
    match state {
        SessionState::Waiting => "waiting",
        SessionState::Running => "running",
        SessionState::Exited => "exited",
        SessionState::Signaled => "signaled",
        SessionState::TimedOut => "timed_out",
        SessionState::Killed => "killed",
        SessionState::Lost => "lost",
        SessionState::Failed => "failed",
    }
}

/// What of a terminal's stream is meant to be read: without what moves, colours and names things.
fn letters(text: &str) -> String {
    let mut read = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|it: char| it < ' ' && !matches!(it, '\n' | '\t')) {
        read.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = match rest.as_bytes() {
            [b'\r', b'\n', ..] => &rest[1..],
            // A line is written anew from its beginning.
            [b'\r', ..] => {
                read.push('\n');
                &rest[1..]
            }
            [0x1b, ..] => after_sequence(&rest[1..]),
            _ => &rest[1..],
        };
    }
    read.push_str(rest);
    read
}

/// What stands behind a sequence whose `ESC` was read. One without an end is none, and hides nothing.
fn after_sequence(rest: &str) -> &str {
    let mut characters = rest.chars();
    let begins = characters.next();
    let inside = characters.as_str();
    match begins {
        Some('[') => {
            let end = inside.trim_start_matches(|it| (' '..='?').contains(&it));
            end.strip_prefix(|it| ('@'..='~').contains(&it))
                .unwrap_or(inside)
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            let bell = inside.split_once('\u{7}');
            let ended = inside.split_once("\u{1b}\\");
            let behind = bell.into_iter().chain(ended).map(|(_, behind)| behind);
            behind.max_by_key(|it| it.len()).unwrap_or(inside)
        }
        // Which letters follow, and how large.
        Some('(' | ')' | '*' | '+' | '#' | '%' | ' ') => {
            inside.strip_prefix(|_| true).unwrap_or(inside)
        }
        Some('!'..='~') => inside,
        Some(_) | None => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_terminal_only_what_is_meant_to_be_read_is_told() {
        for (sent, read) in [
            ("plain\r\nlines\r\n", "plain\nlines\n"),
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{1b}[?2004h$ ", "$ "),
            ("\u{1b}]0;title\u{7}$ \u{1b}]2;x\u{1b}\\#", "$ #"),
            ("10%\r20%\r", "10%\n20%\n"),
            ("\u{1b}(Bä\u{7}\u{8}", "ä"),
            ("\u{1b}=\u{1b}>x", "x"),
            // Nothing is hidden behind a sequence that does not end.
            ("\u{1b}]0;seen", "0;seen"),
            ("\u{1b}[12", "12"),
            ("\u{1b}[ä", "ä"),
            ("\u{1b}", ""),
            ("\u{1b}[ ä x", " ä x"),
            ("\u{1b}ä", "ä"),
        ] {
            assert_eq!(letters(sent), read, "{sent:?}");
        }
    }

    #[test]
    fn what_is_cut_off_is_there_under_the_next_offset() {
        let whole = "aäöü".repeat(100);
        for room in 4..20 {
            let (mut at, mut read) = (0, String::new());
            while at < whole.len() {
                let piece = SessionPiece {
                    offset: at as u64,
                    next: whole.len() as u64,
                    content: whole[at..].to_owned(),
                    encoding: OutputEncoding::Utf8,
                };
                let heard = Heard::of(piece, room, false);
                assert!(heard.text.len() <= room);
                read.push_str(&heard.text);
                at = usize::try_from(heard.next).unwrap();
            }
            assert_eq!(read, whole, "{room}");
        }
    }
}
