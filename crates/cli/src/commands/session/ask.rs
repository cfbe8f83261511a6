//! What is asked of a session: keys, text, a size, a signal, its end.

use std::io::Read;

use glovebox_api::{SessionInfo, SessionInput};
use glovebox_model::{Code, Error, Result, Stage};

use crate::args::{
    Global, SessionKeysArgs, SessionPasteArgs, SessionResizeArgs, SessionSendArgs,
    SessionSignalArgs, WhichSession,
};
use crate::exit::Exit;
use crate::sessions::Sessions;
use crate::{render, stdout};

/// A pipe takes so much whole or not at all: what was not taken can be sent again.
const AT_ONCE: usize = 4096;
/// What the API takes in one paste.
const PASTE_MOST: u64 = 1 << 20;

fn done(global: &Global, info: &SessionInfo) -> Result<Exit> {
    if global.json {
        stdout::json(info)?;
    }
    Ok(Exit::SUCCESS)
}

pub(super) fn send(
    global: &Global,
    sessions: &Sessions,
    args: &SessionSendArgs,
    enters: bool,
) -> Result<Exit> {
    let info = sessions.find(&args.which.id)?;
    let id = &info.session_id;
    let info = match (args.text.as_str(), enters) {
        ("-", _) => {
            let sent = send_all(sessions, info)?;
            match enters {
                true => sessions.send(&sent.session_id, &submitted(""))?,
                false => sent,
            }
        }
        (text, true) => sessions.send(id, &submitted(text))?,
        (text, false) => {
            let input = SessionInput {
                text: Some(text.to_owned()),
                ..SessionInput::default()
            };
            sessions.send(id, &input)?
        }
    };
    done(global, &info)
}

fn submitted(line: &str) -> SessionInput {
    SessionInput {
        submit: Some(line.to_owned()),
        ..SessionInput::default()
    }
}

/// Standard input to its end, as fast as the program reads.
fn send_all(sessions: &Sessions, mut info: SessionInfo) -> Result<SessionInfo> {
    let mut bytes = [0; AT_ONCE];
    let mut stdin = std::io::stdin().lock();
    loop {
        match stdin.read(&mut bytes) {
            Ok(0) => return Ok(info),
            Ok(count) => info = sessions.type_in(&info.session_id, &bytes[..count], || true)?,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(error)),
        }
    }
}

fn unreadable(error: std::io::Error) -> Error {
    let message = "cannot read standard input";
    Error::new(Code::InvalidArgument, Stage::Parse, message).caused_by(error)
}

pub(super) fn keys(global: &Global, sessions: &Sessions, args: SessionKeysArgs) -> Result<Exit> {
    let info = sessions.find(&args.which.id)?;
    let input = SessionInput {
        keys: Some(args.keys),
        ..SessionInput::default()
    };
    done(global, &sessions.send(&info.session_id, &input)?)
}

pub(super) fn paste(global: &Global, sessions: &Sessions, args: &SessionPasteArgs) -> Result<Exit> {
    let info = sessions.find(&args.which.id)?;
    let text = match args.text.as_str() {
        "-" => {
            let mut text = String::new();
            let mut stdin = std::io::stdin().lock().take(PASTE_MOST + 1);
            stdin.read_to_string(&mut text).map_err(unreadable)?;
            text
        }
        text => text.to_owned(),
    };
    if text.len() as u64 > PASTE_MOST {
        let message = "more than 1 MiB is not pasted at once";
        return Err(Error::new(Code::PayloadTooLarge, Stage::Parse, message)
            .hint("`glovebox session send SESSION -` types it as fast as the program reads"));
    }
    let input = SessionInput {
        paste: Some(text),
        ..SessionInput::default()
    };
    done(global, &sessions.send(&info.session_id, &input)?)
}

pub(super) fn resize(
    global: &Global,
    sessions: &Sessions,
    args: &SessionResizeArgs,
) -> Result<Exit> {
    let info = sessions.find(&args.which.id)?;
    done(
        global,
        &sessions.resize(&info.session_id, args.size, || false)?,
    )
}

pub(super) fn close_input(
    global: &Global,
    sessions: &Sessions,
    which: &WhichSession,
) -> Result<Exit> {
    let info = sessions.find(&which.id)?;
    done(global, &sessions.close_input(&info.session_id)?)
}

pub(super) fn signal(
    global: &Global,
    sessions: &Sessions,
    args: &SessionSignalArgs,
) -> Result<Exit> {
    let info = sessions.find(&args.which.id)?;
    done(global, &sessions.signal(&info.session_id, &args.signal)?)
}

pub(super) fn kill(global: &Global, sessions: &Sessions, names: &[String]) -> Result<Exit> {
    each(global, names, |name| {
        let info = sessions.kill(&sessions.find(name)?.session_id)?;
        if global.json {
            stdout::json(&info)?;
        } else if !global.quiet {
            let (id, how) = (&info.session_id, super::page::ending(&info));
            render::note(&format!("`{id}` has ended: {how}"));
        }
        Ok(())
    })
}

pub(super) fn remove(global: &Global, sessions: &Sessions, names: &[String]) -> Result<Exit> {
    each(global, names, |name| {
        let info = sessions.find(name)?;
        sessions.remove(&info.session_id)?;
        if global.json {
            stdout::json(&info)?;
        } else if !global.quiet {
            render::note(&format!("`{}` is removed", info.session_id));
        }
        Ok(())
    })
}

/// One that fails is told and does not stop the rest; the last failure counts.
fn each(global: &Global, names: &[String], does: impl Fn(&str) -> Result<()>) -> Result<Exit> {
    let mut failed = None;
    for name in names {
        if let Err(error) = does(name)
            && let Some(earlier) = failed.replace(error)
        {
            render::error(&earlier, global.json);
        }
    }
    failed.map_or(Ok(Exit::SUCCESS), Err)
}
