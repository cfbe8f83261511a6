//! Container engines, hardened as far as their flags go, with the image of our own containers.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use glovebox_model::{Code, Limits, Result};

use crate::command::{Environment, Invocation};
use crate::interrupt::Interrupt;
use crate::payload::Payload;
use crate::peer::{Absent, Availability, Peer};
use crate::setup::Setup;

/// Made by `images/sandbox/build`.
const IMAGE: &str = "glovebox-sandbox:latest";
/// Seconds after which a container ends that was not removed.
const LIFETIME: &str = "900";

/// How the engine runs a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// In a new container, with the engine's own runtime or a named one.
    Run(Option<&'static str>),
    /// In a container that is already there.
    Exec,
}

pub(crate) fn find(
    peer: Peer,
    method: Method,
    program: OsString,
    setup: &Setup,
    payload: Payload,
    interrupt: &Interrupt,
) -> Result<Availability> {
    let Some(argv) = argv_in_image(payload) else {
        return Ok(Availability::NotCompared);
    };
    let absent = |why: String, hint: String| {
        Ok(Availability::Absent(Absent {
            name: peer.name(),
            why,
            hint,
        }))
    };
    let engine = peer.program();
    let ask = |words: &[&str]| match invocation(&program, words, setup.work()).output(interrupt) {
        Err(error) if error.code == Code::Canceled => Err(error),
        output => Ok(output.ok()),
    };
    if ask(&["info"])?.is_none() {
        let hint = format!("start its daemon, then see that `{engine} info` answers");
        return absent("its daemon does not answer".to_owned(), hint);
    }
    if ask(&["image", "inspect", "--format", "{{.Id}}", IMAGE])?.is_none() {
        let hint = format!("make it: `GLOVEBOX_DOCKER_CLI={engine} images/sandbox/build`");
        return absent(format!("it has no image `{IMAGE}`"), hint);
    }
    if let Method::Run(Some(runtime)) = method {
        let format = "{{range $name, $it := .Runtimes}}{{$name}} {{end}}";
        let known = ask(&["info", "--format", format])?.unwrap_or_default();
        if !known.split_whitespace().any(|name| name == runtime) {
            let hint = format!("install it and add `{runtime}` to `runtimes` in `daemon.json`");
            return absent(format!("the engine has no runtime `{runtime}`"), hint);
        }
    }
    let limits = &setup.profile().limits;
    let mut words: Vec<String> = Vec::new();
    let mut container = None;
    match method {
        Method::Run(runtime) => {
            words.extend(["run".to_owned(), "--rm".to_owned()]);
            words.extend(runtime.map(|name| format!("--runtime={name}")));
            words.extend(hardening(limits));
            words.push(IMAGE.to_owned());
        }
        Method::Exec => {
            let running = Container::new(&program, setup, payload);
            words.extend(["exec".to_owned(), running.name.clone()]);
            container = Some(running);
        }
    }
    words.extend(argv.iter().map(|&word| word.to_owned()));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(Availability::Ready(Box::new(Invocation {
        expected: payload.expected(),
        container,
        ..invocation(&program, &words, setup.work())
    })))
}

/// The same program where the image has it, if it has it.
fn argv_in_image(payload: Payload) -> Option<&'static [&'static str]> {
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

fn invocation(program: &OsString, words: &[&str], directory: PathBuf) -> Invocation {
    Invocation {
        argv: std::iter::once(program.clone())
            .chain(words.iter().map(OsString::from))
            .collect(),
        expected: "",
        environment: Environment::Inherited,
        directory,
        inherited: None,
        container: None,
    }
}

/// A container that runs while its contender is measured. It is started when it is first needed, and
/// removed with this value.
#[derive(Debug)]
pub(crate) struct Container {
    program: OsString,
    name: String,
    flags: Vec<String>,
    directory: PathBuf,
    is_started: Cell<bool>,
}

impl Container {
    fn new(program: &OsString, setup: &Setup, payload: Payload) -> Self {
        Self {
            program: program.clone(),
            name: format!("glovebox-bench-{}-{}", std::process::id(), payload.name()),
            flags: hardening(&setup.profile().limits),
            directory: setup.work(),
            is_started: Cell::new(false),
        }
    }

    pub(crate) fn start(&self, interrupt: &Interrupt) -> Result<()> {
        if self.is_started.replace(true) {
            return Ok(());
        }
        let head = ["run", "--detach", "--rm", "--init", "--name", &self.name];
        let tail = [IMAGE, "sleep", LIFETIME];
        let flags = self.flags.iter().map(String::as_str);
        let words: Vec<&str> = head.into_iter().chain(flags).chain(tail).collect();
        let command = invocation(&self.program, &words, self.directory.clone());
        command.output(interrupt).map(drop)
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if self.is_started.get() {
            let _ = Command::new(&self.program)
                .args(["rm", "--force", &self.name])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
        }
    }
}
