//! `glovebox session record` and `glovebox session replay`: asciicast version 2.

use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use glovebox_model::{Code, Error, Result, Stage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Deserialize;

use crate::args::{Global, SessionRecordArgs, SessionReplayArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::fresh_file::FreshFile;
use crate::sessions::Sessions;
use crate::stdout::{self, Reader};
use crate::terminal_filter::{Passing, TerminalFilter};
use crate::{interrupt, render};

pub(super) fn record(
    global: &Global,
    sessions: &Sessions,
    args: &SessionRecordArgs,
) -> Result<Exit> {
    let info = sessions.find(&args.which.id)?;
    match args.output.as_deref().filter(|it| *it != Path::new("-")) {
        None => sessions.recording(&info.session_id, &mut std::io::stdout().lock())?,
        Some(path) => {
            let mut file = FreshFile::begin(path)?;
            sessions.recording(&info.session_id, &mut file)?;
            file.finish()?;
            if !global.quiet {
                let path = path.display();
                render::note(&format!(
                    "recorded; watch it: `glovebox session replay {path}`"
                ));
            }
        }
    }
    Ok(Exit::SUCCESS)
}

pub(super) fn replay(global: &Global, args: &SessionReplayArgs) -> Result<Exit> {
    let path = Path::new(&args.what);
    if path.is_file() {
        let file = std::fs::File::open(path).map_err(|error| {
            let message = format!("cannot open the recording `{}`", path.display());
            Error::new(Code::InvalidArgument, Stage::Parse, message).caused_by(error)
        })?;
        return play(BufReader::new(file), args);
    }
    let sessions = Sessions::open(&Context::new(global))?;
    let info = sessions
        .find(&args.what)
        .map_err(|error| match error.code {
            Code::NotFound => error.hint("a file with a recording can be named, too"),
            _ => error,
        })?;
    let mut whole = Vec::new();
    sessions.recording(&info.session_id, &mut whole)?;
    play(whole.as_slice(), args)
}

#[derive(Deserialize)]
struct Head {
    version: u32,
}

/// One line of a recording: when, what, and the text.
type Line = (f64, String, String);

fn play(recording: impl BufRead, args: &SessionReplayArgs) -> Result<Exit> {
    let mut lines = recording.lines();
    let head = lines
        .next()
        .transpose()
        .map_err(|error| no_recording().caused_by(error))?;
    let head = serde_json::from_str::<Head>(&head.unwrap_or_default());
    if !head.is_ok_and(|it| it.version == 2) {
        return Err(no_recording());
    }
    let (presses, _asker) = interrupt::presses()?;
    // On a terminal only what a session may draw; elsewhere every byte.
    let mut filter = std::io::stdout()
        .is_terminal()
        .then(|| TerminalFilter::new(Passing::Showing));
    let mut now = 0.0;
    let mut interrupted = false;
    for line in lines {
        let line = line.map_err(|error| no_recording().caused_by(error))?;
        let (at, kind, text): Line =
            serde_json::from_str(&line).map_err(|error| no_recording().caused_by(error))?;
        let pause = Duration::try_from_secs_f64((at - now) / args.speed).unwrap_or_default();
        now = at;
        if kind != "o" {
            continue;
        }
        interrupted = rest(pause.min(args.pause.duration()), &presses);
        let bytes = match &mut filter {
            Some(filter) => filter.pass(text.as_bytes()),
            None => text.into_bytes(),
        };
        if interrupted || stdout::write(&bytes)? == Reader::Gone {
            break;
        }
    }
    if let Some(filter) = &mut filter {
        let reset = filter.reset();
        stdout::write(&reset)?;
        // What follows begins on a line of its own.
        let _ = stdout::settled(std::io::stdout().write_all(b"\r\n"));
    }
    Ok(if interrupted {
        Exit::CANCELED
    } else {
        Exit::SUCCESS
    })
}

/// Waits so long; whether it was interrupted.
fn rest(long: Duration, presses: &impl std::os::fd::AsFd) -> bool {
    let until = Instant::now() + long;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let mut sources = [PollFd::new(presses, PollFlags::IN)];
        match poll(&mut sources, Timespec::try_from(left).ok().as_ref()) {
            Ok(0) => return false,
            Ok(_) => return true,
            // A signal, which the next round sees.
            Err(_) => {}
        }
    }
}

fn no_recording() -> Error {
    Error::new(
        Code::InvalidArgument,
        Stage::Parse,
        "this is no recording of a terminal",
    )
    .hint("`glovebox session record SESSION FILE` makes one (asciicast, version 2)")
}
