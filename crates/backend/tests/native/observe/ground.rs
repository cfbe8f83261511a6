//! An observed sandbox, and what was told of it.

use std::path::PathBuf;

use glovebox_backend::{
    Cancel, Ended, Ending, Notice, Noticed, Observe, Order, Place, Prepared, Run, Sandbox, Sink,
    Spec,
};
use glovebox_model::{Access, Bytes, Count, Profile, Result, Stream};

use crate::house::{Yard, order, profile, unbound};

pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Room for a few interpreters.
pub(crate) fn roomy() -> Profile {
    let mut profile = Profile {
        workspace: Access::Rw,
        ..profile()
    };
    profile.limits.memory_bytes = Bytes::mib(512);
    profile.limits.pids = Count(128);
    profile
}

pub(crate) fn spec(profile: &Profile, observe: Option<Observe>) -> Spec<'_> {
    Spec {
        work: Place::Empty,
        inputs: Place::Empty,
        artifacts: Place::Empty,
        observe,
        ..unbound(profile)
    }
}

pub(crate) fn open(yard: &Yard, profile: &Profile, observe: Observe) -> Prepared {
    let state = yard.house.state();
    let simulates = true;
    let spec = spec(
        profile,
        Some(Observe {
            simulates,
            ..observe
        }),
    );
    yard.native().open(&spec, &state).unwrap()
}

#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) notices: Vec<Notice>,
}

impl Sink for Told {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        match stream {
            Stream::Stdout => self.stdout.push_str(&text),
            Stream::Stderr => self.stderr.push_str(&text),
        }
    }

    fn noticed(&mut self, notice: Notice) {
        self.notices.push(notice);
    }
}

impl Told {
    /// Each as `strace` writes it.
    pub(crate) fn execs(&self) -> Vec<String> {
        let line = |notice: &Notice| match &notice.what {
            Noticed::Exec { program, argv, .. } => {
                let argv: Vec<String> = argv.iter().map(|it| format!("{it:?}")).collect();
                Some(format!("{program:?} [{}]", argv.join(", ")))
            }
            _ => None,
        };
        self.notices.iter().filter_map(line).collect()
    }

    pub(crate) fn programs(&self) -> Vec<String> {
        let program = |notice: &Notice| match &notice.what {
            Noticed::Exec { program, .. } => Some(program.display()),
            _ => None,
        };
        self.notices.iter().filter_map(program).collect()
    }

    pub(crate) fn writes(&self) -> Vec<String> {
        let line = |notice: &Notice| match &notice.what {
            Noticed::Write { call, path, second } => {
                let second = second.as_ref().map(|it| format!(" {}", it.display()));
                let second = second.unwrap_or_default();
                Some(format!("{call} {}{second}", path.display()))
            }
            _ => None,
        };
        self.notices.iter().filter_map(line).collect()
    }

    pub(crate) fn connects(&self) -> Vec<String> {
        let line = |notice: &Notice| match &notice.what {
            Noticed::Connect { address, datagram } => {
                let kind = if *datagram { "udp" } else { "tcp" };
                Some(format!("{kind} {address}"))
            }
            _ => None,
        };
        self.notices.iter().filter_map(line).collect()
    }
}

pub(crate) fn run(prepared: Prepared, profile: &Profile, order: &Order) -> (Result<Ended>, Told) {
    let (cancel, _canceler) = Cancel::new().unwrap();
    let mut told = Told::default();
    let (ended, remains) = Box::new(prepared).run(Run {
        order,
        profile,
        watched: &[],
        stdin: None,
        terminal: None,
        secrets: &[],
        sink: &mut told,
        cancel: &cancel,
        control: None,
    });
    drop(remains);
    (ended, told)
}

/// One that runs in a sandbox of its own and ends well.
pub(crate) fn see_with(observe: Observe, argv: &[&str]) -> Told {
    let yard = Yard::new();
    let profile = roomy();
    let prepared = open(&yard, &profile, observe);
    let (ended, told) = run(prepared, &profile, &order(argv, &[("PATH", PATH)]));
    let ended = ended.unwrap();
    assert_eq!(ended.ending, Ending::Exited { code: 0 }, "{told:?}");
    assert_eq!(ended.notices_dropped, 0);
    told
}

pub(crate) fn see(argv: &[&str]) -> Told {
    see_with(Observe::default(), argv)
}

pub(crate) fn shell(line: &str) -> Told {
    see(&["sh", "-c", line])
}

pub(crate) fn python(code: &str) -> Told {
    see(&["python3", "-c", code])
}

/// Of any program that every host has.
pub(crate) fn some_command() -> PathBuf {
    PathBuf::from("/usr/bin/env")
}
