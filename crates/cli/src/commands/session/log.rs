//! `glovebox session log`.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use glovebox_api::SessionInfo;
use glovebox_model::Result;

use crate::args::{Global, SessionLogArgs};
use crate::exit::Exit;
use crate::human::size;
use crate::render;
use crate::sessions::{From, Sessions, bytes_of};
use crate::stdout::{self, Reader};
use crate::terminal_filter::{Passing, TerminalFilter};

/// Of one question: a server says something within a minute.
const WAIT: Duration = Duration::from_secs(20);

pub(super) fn run(
    global: &Global,
    sessions: &Sessions,
    args: &SessionLogArgs,
    follows: bool,
) -> Result<Exit> {
    let info = sessions.find(&args.which.id)?;
    if args.screen {
        return screen(global, sessions, &info);
    }
    let wait = if follows { WAIT } else { Duration::ZERO };
    let mut streams = Streams::new(args.stderr);
    let mut from = From::default();
    loop {
        let output = sessions.output_surely(&info.session_id, from, wait)?;
        let (next, complete) = (
            From {
                stdout: output.stdout.next,
                stderr: output.stderr.next,
            },
            output.complete,
        );
        let missing = output.stdout.offset.saturating_sub(from.stdout)
            + output.stderr.offset.saturating_sub(from.stderr);
        let empty = output.stdout.content.is_empty() && output.stderr.content.is_empty();
        let is_first = from == From::default();
        let reader = match global.json {
            true if empty && !complete && !is_first => Reader::Listening,
            true => stdout::json(&output)?,
            false => {
                if missing > 0 && !global.quiet {
                    render::note(&format!("{} between are not kept", size(missing)));
                }
                streams.print(bytes_of(output.stdout)?, bytes_of(output.stderr)?)?
            }
        };
        let is_all = complete || (!follows && empty);
        if is_all || reader == Reader::Gone {
            break;
        }
        from = next;
    }
    streams.end()?;
    Ok(Exit::SUCCESS)
}

fn screen(global: &Global, sessions: &Sessions, info: &SessionInfo) -> Result<Exit> {
    let screen = sessions.screen(&info.session_id)?;
    if global.json {
        stdout::json(&screen)?;
    } else {
        let lines = screen.lines.iter().map(|it| render::one_line(it) + "\n");
        stdout::text(&lines.collect::<String>())?;
    }
    Ok(Exit::SUCCESS)
}

/// Where both streams go. On a terminal they are text with colours.
struct Streams {
    stderr_alone: bool,
    out: Option<TerminalFilter>,
    err: Option<TerminalFilter>,
}

impl Streams {
    fn new(stderr_alone: bool) -> Self {
        let filter = |is_terminal: bool| is_terminal.then(|| TerminalFilter::new(Passing::Text));
        Self {
            stderr_alone,
            out: filter(std::io::stdout().is_terminal()),
            err: filter(std::io::stderr().is_terminal()),
        }
    }

    fn print(&mut self, out: Vec<u8>, err: Vec<u8>) -> Result<Reader> {
        if self.stderr_alone {
            return stdout::write(&passed(&mut self.out, err));
        }
        let err = passed(&mut self.err, err);
        match stdout::write(&passed(&mut self.out, out))? {
            Reader::Listening => stdout::settled(std::io::stderr().write_all(&err)),
            Reader::Gone => Ok(Reader::Gone),
        }
    }

    fn end(mut self) -> Result<()> {
        let reset = |filter: &mut Option<TerminalFilter>| {
            let reset = filter.as_mut().map(TerminalFilter::reset);
            reset.unwrap_or_default()
        };
        let (out, err) = (reset(&mut self.out), reset(&mut self.err));
        stdout::write(&out)?;
        stdout::settled(std::io::stderr().write_all(&err)).map(drop)
    }
}

fn passed(filter: &mut Option<TerminalFilter>, bytes: Vec<u8>) -> Vec<u8> {
    match filter {
        Some(filter) => filter.pass(&bytes),
        None => bytes,
    }
}
