//! Who hears a signal, who stops and goes on, and what the end of the program ends.

use glovebox_backend::Ending;
use glovebox_model::{LimitKind, TerminalSize};
use rustix::process::Signal;

use crate::terminal::ground::{SHELL, SIZE, Stage, Step, python, shell};

const INT: i32 = Signal::INT.as_raw();
const QUIT: i32 = Signal::QUIT.as_raw();
const TSTP: i32 = Signal::TSTP.as_raw();
const USR1: i32 = Signal::USR1.as_raw();
const TERM: i32 = Signal::TERM.as_raw();
const STOP: i32 = Signal::STOP.as_raw();

// What is typed is shown, so a cue is nothing that stands in it.

pub(crate) fn an_interrupt_ends_what_is_in_the_foreground_and_the_shell_goes_on() {
    let steps = vec![
        (
            "next> ",
            Step::Type("sh -c 'echo fore$((1)); exec sleep 600'\n"),
        ),
        ("fore1", Step::Signal(INT)),
        ("next> ", Step::Type("echo interrupted$?\n")),
        (
            "interrupted130",
            Step::Type("sh -c 'echo key$((1)); exec sleep 600'\n"),
        ),
        // As the key itself does.
        ("key1", Step::Type("\u{3}")),
        ("next> ", Step::Type("echo typed$?\n")),
        ("typed130", Step::Type("exit 3\n")),
    ];
    let told = Stage::new().talk(Some(SIZE), &SHELL, steps);
    assert_eq!(told.ending(), Ending::Exited { code: 3 }, "{told:?}");
}

/// One in the foreground and one in the background say what they hear, until they hear the last.
fn heard(terminal: Option<TerminalSize>) -> Vec<String> {
    let code = "import os, signal
def stay(name):
    heard = []
    awake, bell = os.pipe()
    os.set_blocking(bell, False)
    signal.set_wakeup_fd(bell)
    def hear(number, _):
        os.write(1, f'<{name} {number}>\\n'.encode())
        heard.append(number)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGUSR1):
        signal.signal(number, hear)
    return heard, awake
mask = signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
reader, writer = os.pipe()
child = os.fork()
heard, awake = stay('back' if child == 0 else 'fore')
if child == 0:
    os.setpgid(0, 0)
    os.write(writer, b'x')
else:
    os.read(reader, 1)
    print('both')
signal.pthread_sigmask(signal.SIG_SETMASK, mask)
while signal.SIGUSR1 not in heard:
    os.read(awake, 100)
if child:
    os.waitpid(child, 0)";
    let steps = vec![
        ("both", Step::Signal(INT)),
        ("<fore 2>", Step::Signal(QUIT)),
        ("<fore 3>", Step::Signal(TSTP)),
        ("<fore 20>", Step::Signal(USR1)),
    ];
    let told = python(terminal, code, steps);
    let mut heard: Vec<String> = told.lines().into_iter().map(str::to_owned).collect();
    assert_eq!(heard.remove(0), "both");
    heard.sort();
    heard
}

pub(crate) fn a_signal_with_a_key_reaches_the_foreground_and_others_reach_all() {
    let all = [
        "<back 10>",
        "<fore 10>",
        "<fore 20>",
        "<fore 2>",
        "<fore 3>",
    ];
    assert_eq!(heard(Some(SIZE)), all);
}

pub(crate) fn without_a_terminal_every_signal_reaches_all() {
    let numbers = ["10", "20", "2", "3"];
    let both = ["back", "fore"].map(|name| numbers.map(|it| format!("<{name} {it}>")));
    assert_eq!(heard(None), both.concat());
}

pub(crate) fn what_was_stopped_goes_on() {
    let steps = vec![
        (
            "next> ",
            Step::Type("sh -c 'echo fore$((1)); read word; echo got-$word'\n"),
        ),
        ("fore1", Step::Signal(TSTP)),
        ("Stopped", Step::Type("echo on$?; fg\n")),
        // 128 and the signal; then the shell says what it brings back.
        ("on148", Step::Type("word\n")),
        ("got-word", Step::Type("exit 4\n")),
    ];
    let told = Stage::new().talk(Some(SIZE), &SHELL, steps);
    assert_eq!(told.ending(), Ending::Exited { code: 4 }, "{told:?}");
    // All of it stopped: it hears that it is to end, and may tidy up.
    let line = "trap 'echo tidied; exit 6' TERM; echo up; while :; do sleep 600 & wait; done";
    let told = shell(line, vec![("up", Step::Signal(STOP)), ("", Step::Cancel)]);
    assert_eq!(told.ending(), Ending::Canceled, "{told:?}");
    assert!(told.said.contains("tidied"), "{told:?}");
    // The same when nobody has typed for too long.
    let line = "echo up; exec sleep 600";
    let told = shell(line, vec![("up", Step::Signal(STOP)), ("", Step::Expire)]);
    let ended = told.ended.as_ref().unwrap();
    assert_eq!(
        (ended.ending, ended.limit_hit, ended.signal),
        (Ending::TimedOut, Some(LimitKind::Idle), Some(TERM)),
        "{told:?}"
    );
}

pub(crate) fn a_child_that_holds_the_terminal_keeps_nothing_running() {
    let line = "own=$(tty); (trap '' HUP TERM INT; touch a; exec sleep 600) &
        setsid sh -c 'trap \"\" HUP TERM INT; touch b; exec sleep 600' < $own > $own 2>&1 &
        cd /workspace/artifacts; until test -e a -a -e b; do :; done; echo up; exit 5";
    let line = line.replace("touch ", "touch /workspace/artifacts/");
    let stage = Stage::new();
    let told = stage.talk(Some(SIZE), &["sh", "-c", &line], Vec::new());
    assert_eq!(told.ending(), Ending::Exited { code: 5 }, "{told:?}");
    assert_eq!(told.said, "up\r\n");
    // By itself, long before the time of either was up.
    let lasted = told.ended.unwrap().duration;
    assert!(lasted < crate::house::PATIENCE, "{lasted:?}");
    assert!(stage.mark("a").exists() && stage.mark("b").exists());
}
