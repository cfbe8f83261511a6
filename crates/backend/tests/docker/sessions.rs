//! A program in a container that is talked to while it runs: on a terminal, and over pipes.

use std::io::Write;
use std::os::unix::net::UnixStream;

use glovebox_backend::{
    Cancel, Control, Controller, Ended, Ending, Order, Place, Run, Sink, Spec, Tree,
};
use glovebox_model::{Access, ByteString, LimitKind, Millis, Stream, TerminalSize};

use crate::harness::{House, Outcome, shared};

const RUNTIMES: [&str; 2] = ["runc", "runsc"];

/// What is done once the program has said something.
enum Step {
    Type(&'static str),
    Resize(TerminalSize),
    Signal(i32),
    Expire,
}

/// Does each step when its cue came, which no earlier step has used up.
struct Talk<'a> {
    steps: std::vec::IntoIter<(&'static str, Step)>,
    next: Option<(&'static str, Step)>,
    stdout: String,
    used: usize,
    input: &'a UnixStream,
    controller: &'a Controller,
}

impl Talk<'_> {
    fn go_on(&mut self) {
        while let Some((cue, step)) = self.next.take() {
            let Some(at) = self.stdout[self.used..].find(cue) else {
                self.next = Some((cue, step));
                return;
            };
            self.used += at + cue.len();
            match step {
                Step::Type(text) => self.input.write_all(text.as_bytes()).unwrap(),
                Step::Resize(size) => self.controller.resize(size).unwrap(),
                Step::Signal(signal) => self.controller.signal(signal).unwrap(),
                Step::Expire => self.controller.expire().unwrap(),
            }
            self.next = self.steps.next();
        }
    }
}

impl Sink for Talk<'_> {
    fn output(&mut self, _: Stream, bytes: &[u8]) {
        self.stdout.push_str(&String::from_utf8_lossy(bytes));
        self.go_on();
    }
}

fn talk(
    house: &House,
    terminal: Option<TerminalSize>,
    script: &str,
    steps: Vec<(&'static str, Step)>,
) -> (String, Ended) {
    let (work, inputs, artifacts) = (
        house.dir("work"),
        house.dir("inputs"),
        house.dir("artifacts"),
    );
    let tree = |directory, access| Place::Tree(Tree { directory, access });
    let spec = Spec {
        work: tree(&work, Access::Rw),
        inputs: tree(&inputs, Access::Ro),
        artifacts: tree(&artifacts, Access::Rw),
        ..Spec::new(&house.profile)
    };
    let sandbox = house.docker.open(&spec, &house.name(), &house.labels());
    let bytes = |text: &str| ByteString::new(text).unwrap();
    let order = Order {
        argv: ["sh", "-c", script].map(bytes).into(),
        env: vec![(bytes("PATH"), bytes("/usr/local/bin:/usr/bin:/bin"))],
        cwd: bytes("/workspace/work"),
        path: vec![bytes("/usr/bin")],
    };
    let (input, theirs) = UnixStream::pair().unwrap();
    let (control, controller) = Control::new().unwrap();
    let (cancel, _canceler) = Cancel::new().unwrap();
    let mut steps = steps.into_iter();
    let mut sink = Talk {
        next: steps.next(),
        steps,
        stdout: String::new(),
        used: 0,
        input: &input,
        controller: &controller,
    };
    let (outcome, remains) = sandbox.unwrap().run(Run {
        order: &order,
        profile: &house.profile,
        watched: &[&work, &artifacts],
        stdin: Some(theirs.into()),
        terminal,
        secrets: &[],
        sink: &mut sink,
        cancel: &cancel,
        control: Some(&control),
    });
    drop(remains);
    let said = std::mem::take(&mut sink.stdout);
    (said, outcome.unwrap_or_else(|error| panic!("{error:?}")))
}

#[test]
fn a_program_on_a_terminal_is_typed_to_resized_and_interrupted() -> Outcome {
    let Some(host) = shared() else { return Ok(()) };
    let size = |columns, rows| TerminalSize { columns, rows };
    // The keys with which the engine's command would let go of the program are the program's, too.
    // `C-q` would be the terminal's own otherwise, and dash ends when its child is interrupted.
    let script = "stty -ixon; trap : INT; [ -t 0 ] && [ -t 1 ] && echo on a terminal; echo begun; IFS= read -r line; stty size; echo got $line | od -An -c; \
        trap 'stty size; echo resized' WINCH; echo wait; \
        while [ \"$(stty size)\" != '50 200' ]; do sleep 0.05; done; echo now; \
        (trap 'echo caught; exit 0' INT; echo sleeping; while :; do sleep 0.05; done); \
        stty -echo; printf 'Password: '; read -r secret; echo; echo length ${#secret}; exit 7";
    for runtime in RUNTIMES {
        let house = House::new(&host, runtime);
        let steps = vec![
            ("begun", Step::Type("a\u{10}\u{11}b\n")),
            ("wait", Step::Resize(size(200, 50))),
            ("sleeping", Step::Signal(2)),
            ("Password: ", Step::Type("hunter22\n")),
        ];
        let (said, ended) = talk(&house, Some(size(100, 30)), script, steps);
        for heard in ["on a terminal", "020 021", "now", "caught", "length 8"] {
            assert!(said.contains(heard), "{runtime}: {heard} in {said}");
        }
        assert!(!said.contains("hunter22"), "{runtime}: {said}");
        assert_eq!(
            ended.ending,
            Ending::Exited { code: 7 },
            "{runtime}: {said}"
        );
        assert!(house.is_empty());
    }
    Ok(())
}

#[test]
fn a_program_on_pipes_takes_lines_and_signals_and_ends_when_it_was_idle() -> Outcome {
    let Some(host) = shared() else { return Ok(()) };
    for runtime in RUNTIMES {
        let mut house = House::new(&host, runtime);
        house.profile.limits.wall_ms = Millis::secs(60);
        let script = "trap 'echo asked' USR1; echo begun; read line; echo got $line; \
            while :; do sleep 0.05; done";
        let steps = vec![
            ("begun", Step::Type("one\n")),
            ("got one", Step::Signal(10)),
            ("asked", Step::Expire),
        ];
        let (said, ended) = talk(&house, None, script, steps);
        assert_eq!(ended.ending, Ending::TimedOut, "{runtime}: {said}");
        assert_eq!(ended.limit_hit, Some(LimitKind::Idle), "{runtime}: {said}");
        assert!(house.is_empty());
    }
    Ok(())
}
