//! A run that is talked to: what is typed, asked and sent when the program has said something.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::vec::IntoIter;

use glovebox_backend::{
    Cancel, Canceler, Control, Controller, Ended, Ending, Notice, Order, Place, Prepared, Run,
    Sandbox, Sink, Spec, Tree,
};
use glovebox_model::{Access, Profile, Result, Stream, TerminalSize};
use glovebox_workspace::Dir;

use crate::house::{Yard, order, profile};

pub(crate) const SIZE: TerminalSize = TerminalSize {
    columns: 100,
    rows: 30,
};

pub(crate) enum Step {
    Type(&'static str),
    /// Nothing more is typed.
    Close,
    Resize(TerminalSize),
    Signal(i32),
    Expire,
    Cancel,
}

/// Each is done when its cue came, which no earlier one has used up. With no cue at the front of all
/// it is done before there is a program.
pub(crate) type Steps = Vec<(&'static str, Step)>;

struct Talk {
    steps: IntoIter<(&'static str, Step)>,
    next: Option<(&'static str, Step)>,
    used: usize,
    said: String,
    streams: Vec<Stream>,
    notices: Vec<Notice>,
    input: Option<UnixStream>,
    controller: Controller,
    canceler: Canceler,
}

impl Talk {
    fn go_on(&mut self) {
        while let Some((cue, step)) = self.next.take() {
            let Some(at) = self.said[self.used..].find(cue) else {
                self.next = Some((cue, step));
                return;
            };
            self.used += at + cue.len();
            match step {
                Step::Type(text) => {
                    let input = self.input.as_mut().expect("it was closed");
                    input.write_all(text.as_bytes()).unwrap();
                }
                Step::Close => self.input = None,
                Step::Resize(size) => self.controller.resize(size).unwrap(),
                Step::Signal(signal) => self.controller.signal(signal).unwrap(),
                Step::Expire => self.controller.expire().unwrap(),
                Step::Cancel => self.canceler.cancel(),
            }
            self.next = self.steps.next();
        }
    }
}

impl Sink for Talk {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self.said.push_str(&String::from_utf8_lossy(bytes));
        if !self.streams.contains(&stream) {
            self.streams.push(stream);
        }
        self.go_on();
    }

    fn noticed(&mut self, notice: Notice) {
        self.notices.push(notice);
    }
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) ended: Result<Ended>,
    pub(crate) said: String,
    pub(crate) notices: Vec<Notice>,
}

impl Told {
    pub(crate) fn ending(&self) -> Ending {
        match &self.ended {
            Ok(ended) => ended.ending,
            Err(error) => panic!("{error:?}: {}", self.said),
        }
    }

    /// It ended well; each line without its end.
    pub(crate) fn lines(&self) -> Vec<&str> {
        assert_eq!(self.ending(), Ending::Exited { code: 0 }, "{self:?}");
        self.said.lines().map(str::trim_end).collect()
    }
}

/// What is run, and what it sees of us.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) order: &'a Order,
    pub(crate) terminal: Option<TerminalSize>,
}

pub(crate) fn talk(
    asked: Asked<'_>,
    steps: Steps,
    begin: impl FnOnce(Run<'_>) -> Result<Ended>,
) -> Told {
    let (input, theirs) = UnixStream::pair().unwrap();
    let (control, controller) = Control::new().unwrap();
    let (cancel, canceler) = Cancel::new().unwrap();
    let mut steps = steps.into_iter();
    let mut talk = Talk {
        next: steps.next(),
        steps,
        used: 0,
        said: String::new(),
        streams: Vec::new(),
        notices: Vec::new(),
        input: Some(input),
        controller,
        canceler,
    };
    talk.go_on();
    let ended = begin(run(asked, theirs.into(), &mut talk, (&control, &cancel)));
    let undone = talk.next.map(|(cue, _)| cue);
    assert_eq!(undone, None, "{ended:?}: {:?}", talk.said);
    if asked.terminal.is_some() {
        let others = talk.streams.iter().find(|it| **it != Stream::Stdout);
        assert_eq!(others, None, "{:?}", talk.said);
    }
    Told {
        ended,
        said: talk.said,
        notices: talk.notices,
    }
}

fn run<'run>(
    asked: Asked<'run>,
    stdin: OwnedFd,
    sink: &'run mut dyn Sink,
    (control, cancel): (&'run Control, &'run Cancel),
) -> Run<'run> {
    Run {
        order: asked.order,
        profile: asked.profile,
        watched: &[],
        stdin: Some(stdin),
        terminal: asked.terminal,
        secrets: &[],
        sink,
        cancel,
        control: Some(control),
    }
}

/// In a sandbox that is one run's.
pub(crate) fn alone(prepared: Prepared) -> impl FnOnce(Run<'_>) -> Result<Ended> {
    |run| {
        let (ended, remains) = Box::new(prepared).run(run);
        drop(remains);
        ended
    }
}

/// Where sandboxes are made, with a directory that both sides see.
pub(crate) struct Stage {
    pub(crate) yard: Yard,
    pub(crate) profile: Profile,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let mut profile = profile();
        profile.limits.disk_bytes = glovebox_model::Bytes::mib(1 << 20);
        Self {
            yard: Yard::new(),
            profile,
        }
    }

    pub(crate) fn open(&self) -> Prepared {
        let artifacts = Dir::open_trusted(&self.yard.house.path().join("artifacts")).unwrap();
        let spec = Spec {
            artifacts: Place::Tree(Tree {
                directory: &artifacts,
                access: Access::Rw,
            }),
            ..Spec::new(&self.profile)
        };
        let state = self.yard.house.state();
        self.yard.native().open(&spec, &state).unwrap()
    }

    /// What the program knows as `/workspace/artifacts/NAME`.
    pub(crate) fn mark(&self, name: &str) -> PathBuf {
        self.yard.house.path().join("artifacts").join(name)
    }

    pub(crate) fn talk(&self, terminal: Option<TerminalSize>, argv: &[&str], steps: Steps) -> Told {
        let order = order(argv, &ENV);
        let asked = Asked {
            profile: &self.profile,
            order: &order,
            terminal,
        };
        talk(asked, steps, alone(self.open()))
    }

    /// The same with what is heard and typed in other hands.
    pub(crate) fn pipe(&self, argv: &[&str], stdin: OwnedFd, sink: &mut dyn Sink) -> Ended {
        let order = order(argv, &ENV);
        let asked = Asked {
            profile: &self.profile,
            order: &order,
            terminal: Some(SIZE),
        };
        let (control, _controller) = Control::new().unwrap();
        let (cancel, _canceler) = Cancel::new().unwrap();
        let run = run(asked, stdin, sink, (&control, &cancel));
        alone(self.open())(run).unwrap()
    }
}

/// A shell that shows its prompt and nothing of its own beside it.
pub(crate) const SHELL: [&str; 5] = ["bash", "--norc", "--noprofile", "--noediting", "-i"];
pub(crate) const ENV: [(&str, &str); 3] = [
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("TERM", "dumb"),
    ("PS1", "next> "),
];

/// One that ends well, in a sandbox of its own.
pub(crate) fn python(terminal: Option<TerminalSize>, code: &str, steps: Steps) -> Told {
    Stage::new().talk(terminal, &["python3", "-u", "-c", code], steps)
}

pub(crate) fn shell(line: &str, steps: Steps) -> Told {
    Stage::new().talk(Some(SIZE), &["sh", "-c", line], steps)
}
