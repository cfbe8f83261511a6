//! Container engines, hardened as far as their flags go, on the image that our own containers have.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use glovebox_model::{Code, Limits, Result};

use super::command::{Environment, Invocation};
use super::interrupt::Interrupt;
use super::peer::{Absent, Found, Peer};
use super::stage::{Payload, Stage};

/// Made by `images/sandbox/build`.
const IMAGE: &str = "glovebox-sandbox:latest";
/// One that nobody removed goes by itself.
const LONGEST_STAND: &str = "900";

/// How a container comes to its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// A new one for each, with the engine's own runtime or a named one.
    Run(Option<&'static str>),
    /// One that stands, again and again.
    Exec,
}

pub(super) fn find(
    peer: Peer,
    way: Way,
    program: OsString,
    stage: &Stage,
    payload: Payload,
    interrupt: &Interrupt,
) -> Result<Found> {
    let Some(inside) = inside(payload) else {
        return Ok(Found::Silent);
    };
    let absent = |why: String, hint: String| {
        Ok(Found::Absent(Absent {
            name: peer.name(),
            why,
            hint,
        }))
    };
    let engine = peer.program();
    let ask = |words: &[&str]| match invocation(&program, words, stage).answer(interrupt) {
        Err(error) if error.code == Code::Canceled => Err(error),
        answer => Ok(answer.ok()),
    };
    if ask(&["info"])?.is_none() {
        let hint = format!("start its daemon, then see that `{engine} info` answers");
        return absent("its daemon does not answer".to_owned(), hint);
    }
    if ask(&["image", "inspect", "--format", "{{.Id}}", IMAGE])?.is_none() {
        let hint = format!("make it: `GLOVEBOX_DOCKER_CLI={engine} images/sandbox/build`");
        return absent(format!("it has no image `{IMAGE}`"), hint);
    }
    if let Way::Run(Some(runtime)) = way {
        let format = "{{range $name, $it := .Runtimes}}{{$name}} {{end}}";
        let known = ask(&["info", "--format", format])?.unwrap_or_default();
        if !known.split_whitespace().any(|name| name == runtime) {
            let hint = format!("install it and add `{runtime}` to `runtimes` in `daemon.json`");
            return absent(format!("the engine has no runtime `{runtime}`"), hint);
        }
    }
    let limits = &stage.profile().limits;
    let mut words: Vec<String> = Vec::new();
    let mut within = None;
    match way {
        Way::Run(runtime) => {
            words.extend(["run".to_owned(), "--rm".to_owned()]);
            words.extend(runtime.map(|name| format!("--runtime={name}")));
            words.extend(hardening(limits));
            words.push(IMAGE.to_owned());
        }
        Way::Exec => {
            let container = Container::new(&program, stage, payload);
            words.extend(["exec".to_owned(), container.name.clone()]);
            within = Some(container);
        }
    }
    words.extend(inside.iter().map(|&word| word.to_owned()));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(Found::Ready(Box::new(Invocation {
        expected: payload.expected(),
        within,
        ..invocation(&program, &words, stage)
    })))
}

/// The same program, wherever the image has it; none for what the image does not have.
fn inside(payload: Payload) -> Option<&'static [&'static str]> {
    match payload {
        Payload::True => Some(&["/bin/true"]),
        Payload::Python => Some(&["python3", "-c", "print(1)"]),
        Payload::Node => None,
    }
}

fn hardening(limits: &Limits) -> Vec<String> {
    let cpus = limits.cpus_milli.get();
    vec![
        "--network=none".to_owned(),
        "--cap-drop=ALL".to_owned(),
        "--security-opt=no-new-privileges".to_owned(),
        "--read-only".to_owned(),
        "--tmpfs=/tmp".to_owned(),
        format!("--pids-limit={}", limits.pids.get()),
        format!("--memory={}", limits.memory_bytes.get()),
        format!("--cpus={}.{:03}", cpus / 1000, cpus % 1000),
        "--user=1000:1000".to_owned(),
    ]
}

fn invocation(program: &OsString, words: &[&str], stage: &Stage) -> Invocation {
    Invocation {
        argv: std::iter::once(program.clone())
            .chain(words.iter().map(OsString::from))
            .collect(),
        expected: "",
        environment: Environment::Own,
        directory: stage.work(),
        inherited: None,
        within: None,
    }
}

/// One that stands while its contender is measured. It is made when it is first needed, and gone
/// with this value.
#[derive(Debug)]
pub(super) struct Container {
    program: OsString,
    name: String,
    flags: Vec<String>,
    directory: PathBuf,
    stands: Cell<bool>,
}

impl Container {
    fn new(program: &OsString, stage: &Stage, payload: Payload) -> Self {
        Self {
            program: program.clone(),
            name: format!("glovebox-bench-{}-{}", std::process::id(), payload.name()),
            flags: hardening(&stage.profile().limits),
            directory: stage.work(),
            stands: Cell::new(false),
        }
    }

    pub(super) fn stand(&self, interrupt: &Interrupt) -> Result<()> {
        if self.stands.replace(true) {
            return Ok(());
        }
        let head = ["run", "--detach", "--rm", "--init", "--name", &self.name];
        let tail = [IMAGE, "sleep", LONGEST_STAND];
        let flags = self.flags.iter().map(String::as_str);
        let words = head.into_iter().chain(flags).chain(tail);
        let made = Invocation {
            argv: std::iter::once(self.program.clone())
                .chain(words.map(OsString::from))
                .collect(),
            expected: "",
            environment: Environment::Own,
            directory: self.directory.clone(),
            inherited: None,
            within: None,
        };
        made.answer(interrupt).map(drop)
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if self.stands.get() {
            let _ = Command::new(&self.program)
                .args(["rm", "--force", &self.name])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
        }
    }
}
