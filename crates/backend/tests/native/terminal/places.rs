//! A terminal in the other kinds of sandboxes: kept, layered, observed.

use glovebox_backend::{Ending, Kept, Layer, Noticed, Observe, Run};
use glovebox_model::TerminalSize;
use glovebox_workspace::change::EntryChange;
use rustix::process::Signal;

use crate::house::{Rooms, Yard, order, profile, shell};
use crate::kept::stays::keep;
use crate::observe::ground as observed;
use crate::overlay::ground as layered;
use crate::terminal::ground::{Asked, ENV, SIZE, Step, Steps, alone, talk};

pub(crate) fn a_kept_sandbox_gives_each_exec_a_terminal_of_its_own() {
    let yard = Yard::new();
    let profile = profile();
    let rooms = Rooms::new(&yard.house, "a");
    let mut kept = keep(&yard, &profile);
    let mut run = |line: &str, terminal, steps: Steps| {
        let order = order(&["sh", "-c", line], &ENV);
        let asked = Asked {
            profile: &profile,
            order: &order,
            terminal,
        };
        let begin = |run: Run<'_>| kept.run(rooms.room(), run);
        let told = talk(asked, steps, begin);
        assert!(kept.is_alive(), "{told:?}");
        told
    };
    // One that leaves the terminal in disorder, a line half typed, and somebody who listens on.
    let first = "tty; stty -echo -icanon; own=$(tty)
        (trap '' HUP INT TERM; touch /tmp/there; exec cat < $own > /tmp/heard) &
        until test -e /tmp/there; do :; done; echo up; wait";
    let steps = vec![
        ("up", Step::Type("half")),
        (
            "",
            Step::Resize(TerminalSize {
                columns: 7,
                rows: 5,
            }),
        ),
        ("", Step::Signal(Signal::INT.as_raw())),
    ];
    let told = run(first, Some(SIZE), steps);
    let signal = Signal::INT.as_raw();
    assert_eq!(told.ending(), Ending::Signaled { signal }, "{told:?}");
    let second = "tty; stty size; stty -a | tr ' ' '\\n' | grep -x -e echo -e icanon
        ls -1 /dev/pts; read line; echo got $line; cat /tmp/heard; exit 3";
    let steps = vec![("ptmx", Step::Type("whole\n"))];
    let told = run(second, Some(SIZE), steps);
    assert_eq!(told.ending(), Ending::Exited { code: 3 }, "{told:?}");
    let lines: Vec<&str> = told.said.lines().collect();
    let expected = [
        "/dev/pts/0",
        "30 100",
        "icanon",
        "echo",
        "0",
        "ptmx",
        "whole",
        "got whole",
    ];
    assert_eq!(lines[..expected.len()], expected, "{told:?}");
    // What the first was typed may have come to whoever listened then, and nothing else.
    let heard = lines[expected.len()..].concat();
    assert!("half".starts_with(&heard), "{told:?}");
    let told = run("ls /dev/pts; tty", None, Vec::new());
    assert_eq!(told.said, "ptmx\nnot a tty\n");
    drop(Box::new(kept).close());
}

pub(crate) fn on_a_layer_it_works_as_anywhere() {
    let ground = layered::Ground::new();
    let held = ground.hold("one");
    let (prepared, _) = ground.open(Layer::Disk(held.layer())).unwrap();
    held.begin().unwrap();
    let order = shell("tty; stty size; read line; echo $line > typed; echo $line > /dev/tty");
    let asked = Asked {
        profile: &ground.profile,
        order: &order,
        terminal: Some(SIZE),
    };
    let steps = vec![("30 100\r\n", Step::Type("word\n"))];
    let told = talk(asked, steps, alone(prepared));
    assert_eq!(told.lines(), ["/dev/pts/0", "30 100", "word", "word"]);
    // The terminal itself is none of what was written.
    let changes = layered::told(&ground.changes(&held));
    assert_eq!(changes, [("typed".to_owned(), EntryChange::Created)]);
    let typed = ground.yard.house.path().join("held/one/layer/upper/typed");
    assert_eq!(std::fs::read_to_string(typed).unwrap(), "word\n");
    assert!(!ground.work().join("typed").exists());
}

pub(crate) fn in_an_observed_sandbox_it_is_opened_unseen() {
    let yard = Yard::new();
    let profile = observed::roomy();
    let observe = Observe {
        reads: true,
        ..Observe::default()
    };
    let prepared = observed::open(&yard, &profile, observe);
    let line = "read line; : < /dev/ptmx; echo $line";
    let order = order(&["sh", "-c", line], &ENV);
    let asked = Asked {
        profile: &profile,
        order: &order,
        terminal: Some(SIZE),
    };
    let told = talk(asked, vec![("", Step::Type("word\n"))], alone(prepared));
    assert_eq!(told.lines(), ["word", "word"]);
    assert_eq!(told.ended.as_ref().unwrap().notices_dropped, 0);
    let path = |what: &Noticed| match what {
        Noticed::Read { path } | Noticed::Write { path, .. } => Some(path.display()),
        _ => None,
    };
    let seen = told.notices.iter().filter_map(|it| path(&it.what));
    let seen: Vec<String> = seen.filter(|it| it.starts_with("/dev/")).collect();
    // What the program itself opened alone, by which it is clear that another would be seen.
    assert_eq!(seen, ["/dev/pts/ptmx"]);
}
