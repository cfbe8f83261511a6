//! Container engines, hardened as far as their flags go, on a small image made beforehand.

use std::ffi::OsString;

use glovebox_model::{Code, Result};

use super::command::{Environment, Invocation};
use super::interrupt::Interrupt;
use super::peer::{Absent, Found, Peer};
use super::stage::{Payload, Stage};

/// Made by `bench/docker-image.sh`.
const IMAGE: &str = "glovebox-bench";

pub(super) fn find(
    engine: Peer,
    program: OsString,
    stage: &Stage,
    payload: Payload,
    interrupt: &Interrupt,
) -> Result<Found> {
    if payload != Payload::True {
        // The image holds no Python; one from elsewhere would be another program.
        return Ok(Found::Silent);
    }
    let absent = |why: &str, hint: String| {
        Ok(Found::Absent(Absent {
            name: engine.name(),
            why: why.to_owned(),
            hint,
        }))
    };
    if !answers(&program, &["info"], stage, interrupt)? {
        let hint = format!(
            "start its daemon, then see that `{} info` answers",
            engine.name()
        );
        return absent("its daemon does not answer", hint);
    }
    if !answers(&program, &["image", "inspect", IMAGE], stage, interrupt)? {
        let hint = format!("make it: `bench/docker-image.sh {}`", engine.name());
        return absent("it has no image `glovebox-bench`", hint);
    }
    Ok(Found::Ready(run(program, stage, payload)))
}

fn run(program: OsString, stage: &Stage, payload: Payload) -> Invocation {
    let limits = &stage.profile().limits;
    let cpus = limits.cpus_milli.get();
    let flags = [
        "run".to_owned(),
        "--rm".to_owned(),
        "--network=none".to_owned(),
        "--cap-drop=ALL".to_owned(),
        "--security-opt=no-new-privileges".to_owned(),
        "--read-only".to_owned(),
        "--tmpfs=/tmp".to_owned(),
        format!("--pids-limit={}", limits.pids.get()),
        format!("--memory={}", limits.memory_bytes.get()),
        format!("--cpus={}.{:03}", cpus / 1000, cpus % 1000),
        "--user=1000:1000".to_owned(),
        IMAGE.to_owned(),
    ];
    let words = flags.into_iter().map(OsString::from);
    let payload_argv = payload.argv().into_iter().map(OsString::from);
    Invocation {
        argv: std::iter::once(program)
            .chain(words)
            .chain(payload_argv)
            .collect(),
        expected: payload.expected(),
        environment: Environment::Own,
        directory: stage.work(),
        inherited: None,
    }
}

fn answers(
    program: &OsString,
    words: &[&str],
    stage: &Stage,
    interrupt: &Interrupt,
) -> Result<bool> {
    let question = Invocation {
        argv: std::iter::once(program.clone())
            .chain(words.iter().map(OsString::from))
            .collect(),
        expected: "",
        environment: Environment::Own,
        directory: stage.work(),
        inherited: None,
    };
    let mut child = question.start()?;
    match super::command::wait(&mut child, interrupt) {
        Err(error) if error.code == Code::Canceled => Err(error),
        Err(_) => Ok(false),
        Ok(answered) => Ok(answered),
    }
}
