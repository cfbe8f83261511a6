//! `glovebox logs`.

use std::io::{IsTerminal, Read, Write};
use std::thread;
use std::time::Duration;

use glovebox_model::{Code, Error, Exec, Result, Stage, Stream};
use serde::Serialize;

use super::{network_log, ps};
use crate::args::{Global, LogsArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::human::size;
use crate::records::{Output, Records};
use crate::render;
use crate::stdout::{self, Reader};
use crate::terminal::Sanitizer;

/// How long output may lie before it is shown.
const POLL: Duration = Duration::from_millis(100);
/// Read of one stream before the other gets its turn.
const TURN: usize = 64 << 10;

pub(crate) fn run(global: &Global, args: &LogsArgs) -> Result<Exit> {
    let records = Context::new(global).some_records()?;
    let exec = records.find(&args.exec)?;
    if args.network {
        return network_log::run(global, &records, exec, args.follow);
    }
    let mut tails = tails(global, args);
    let exec = if args.follow {
        follow(&records, exec, &mut tails)?
    } else {
        while copy_all(&records, &exec, &mut tails)? == Progress::Some {}
        Some(exec)
    };
    if let Some(exec) = exec.filter(|_| !global.quiet && !global.json) {
        remark(&exec, &tails);
    }
    Ok(Exit::SUCCESS)
}

fn tails<'r>(global: &Global, args: &LogsArgs) -> Vec<Tail<'r>> {
    let form = |place: Place| match (global.json, place.is_terminal()) {
        (true, _) => Form::Json(Vec::new()),
        (false, true) => Form::Clean(Sanitizer::default()),
        (false, false) => Form::Raw,
    };
    let tail = |stream, place| Tail {
        stream,
        place,
        output: None,
        form: form(place),
    };
    match (args.stdout, args.stderr) {
        (true, _) => vec![tail(Stream::Stdout, Place::Stdout)],
        (false, true) => vec![tail(Stream::Stderr, Place::Stdout)],
        (false, false) => {
            let other = if global.json {
                Place::Stdout
            } else {
                Place::Stderr
            };
            vec![
                tail(Stream::Stdout, Place::Stdout),
                tail(Stream::Stderr, other),
            ]
        }
    }
}

/// Until it ends; `None` when nobody reads any more.
fn follow<'r>(
    records: &'r Records,
    mut exec: Exec,
    tails: &mut [Tail<'r>],
) -> Result<Option<Exec>> {
    loop {
        match copy_all(records, &exec, tails)? {
            Progress::Closed => return Ok(None),
            Progress::Some => continue,
            Progress::None if exec.status.is_final() => return Ok(Some(exec)),
            Progress::None if exec.abandoned => {
                render::note(&ps::abandoned(&exec));
                return Ok(Some(exec));
            }
            Progress::None => {}
        }
        thread::sleep(records.pause(POLL));
        // Before the files are read again: what was written before the end is then all there.
        exec = records.again(&exec)?;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Some,
    None,
    Closed,
}

/// A turn for each stream.
fn copy_all<'r>(records: &'r Records, exec: &Exec, tails: &mut [Tail<'r>]) -> Result<Progress> {
    let mut progress = Progress::None;
    for tail in tails {
        match tail.copy(records, exec)? {
            Progress::Closed => return Ok(Progress::Closed),
            Progress::Some => progress = Progress::Some,
            Progress::None => {}
        }
    }
    Ok(progress)
}

/// One stream of an exec, and how far it was printed.
struct Tail<'r> {
    stream: Stream,
    place: Place,
    output: Option<Output<'r>>,
    form: Form,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Stdout,
    Stderr,
}

impl Place {
    fn is_terminal(self) -> bool {
        match self {
            Self::Stdout => std::io::stdout().is_terminal(),
            Self::Stderr => std::io::stderr().is_terminal(),
        }
    }

    fn write(self, bytes: &[u8]) -> Result<Reader> {
        match self {
            Self::Stdout => stdout::write(bytes),
            Self::Stderr => stdout::settled(std::io::stderr().write_all(bytes)),
        }
    }
}

#[derive(Debug)]
enum Form {
    Raw,
    /// For a person's terminal.
    Clean(Sanitizer),
    /// One object per line, with the start of a character that is not all there yet.
    Json(Vec<u8>),
}

#[derive(Serialize)]
struct Piece<'t> {
    stream: &'static str,
    text: &'t str,
}

impl<'r> Tail<'r> {
    fn copy(&mut self, records: &'r Records, exec: &Exec) -> Result<Progress> {
        if self.output.is_none() {
            self.output = records.output(exec, self.stream)?;
        }
        let Some(output) = &mut self.output else {
            return Ok(Progress::None);
        };
        let mut chunk = vec![0; TURN];
        let length = output.read(&mut chunk).map_err(|error| {
            Error::new(
                Code::StoreUnavailable,
                Stage::Collect,
                "cannot read the output",
            )
            .caused_by(error)
        })?;
        if length == 0 {
            return Ok(Progress::None);
        }
        match self.print(&chunk[..length])? {
            Reader::Listening => Ok(Progress::Some),
            Reader::Gone => Ok(Progress::Closed),
        }
    }

    fn print(&mut self, bytes: &[u8]) -> Result<Reader> {
        let stream = match self.stream {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        };
        match &mut self.form {
            Form::Raw => self.place.write(bytes),
            Form::Clean(sanitizer) => self.place.write(&sanitizer.clean(bytes)),
            Form::Json(held) => {
                held.extend_from_slice(bytes);
                let text = take_text(held);
                stdout::json(&Piece {
                    stream,
                    text: &text,
                })
            }
        }
    }
}

/// All of it as text, but for the start of a character at the end.
fn take_text(held: &mut Vec<u8>) -> String {
    let rest = held.split_off(whole_characters(held));
    let text = String::from_utf8_lossy(held).into_owned();
    *held = rest;
    text
}

/// How many bytes there are before a character that is cut off at the end.
fn whole_characters(bytes: &[u8]) -> usize {
    let mut start = 0;
    loop {
        match std::str::from_utf8(&bytes[start..]) {
            Ok(_) => return bytes.len(),
            Err(error) => match error.error_len() {
                None => return start + error.valid_up_to(),
                Some(wrong) => start += error.valid_up_to() + wrong,
            },
        }
    }
}

fn remark(exec: &Exec, tails: &[Tail<'_>]) {
    let id = &exec.exec_id;
    if exec.status.is_final() && tails.iter().all(|tail| tail.output.is_none()) {
        let status = exec.status;
        render::note(&format!("`{id}` ended as `{status}` and has no output"));
    }
    for tail in tails {
        let (name, bytes, truncated) = match tail.stream {
            Stream::Stdout => ("stdout", exec.stdout_bytes, exec.stdout_truncated),
            Stream::Stderr => ("stderr", exec.stderr_bytes, exec.stderr_truncated),
        };
        if truncated {
            let all = size(bytes);
            render::note(&format!("only the head of its {name} ({all}) was kept"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_never_cut_in_two() {
        let text = "aż – 😀b".as_bytes();
        for cut in 0..=text.len() {
            let mut held = text[..cut].to_vec();
            let mut all = take_text(&mut held);
            assert!(held.len() < 4);
            held.extend_from_slice(&text[cut..]);
            all.push_str(&take_text(&mut held));
            assert_eq!(all, "aż – 😀b", "cut at {cut}");
        }
        let mut broken = b"a\xffb\xc5".to_vec();
        assert_eq!(take_text(&mut broken), "a\u{fffd}b");
        assert_eq!(broken, b"\xc5");
    }
}
