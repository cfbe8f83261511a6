//! Sessions from the command line, in this process and at a server: with a terminal and without.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use rustix::termios::LocalModes;
use serde_json::Value;

use crate::pty::Pty;
use crate::server::Served;
use crate::trial::{Answer, Trial, until};

const READY: &str = "ready>";

/// Where sessions are: in this process, or at a server.
struct Place {
    trial: Trial,
    server: Option<Served>,
}

impl Place {
    fn here() -> Self {
        Self {
            trial: Trial::new(),
            server: None,
        }
    }

    fn at_server() -> Self {
        let trial = Trial::new();
        let server = Some(Served::start(&trial, &[]));
        Self { trial, server }
    }

    fn words<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        let server = self.server.as_ref().map(|it| ["--server", it.url.as_str()]);
        let server = server.iter().flatten().copied();
        server.chain(args.iter().copied()).collect()
    }

    fn run(&self, args: &[&str]) -> Answer {
        self.trial.run(&self.words(args))
    }

    fn pty(&self, args: &[&str]) -> Pty {
        Pty::start(&self.trial, &self.words(args))
    }

    /// An interactive shell that says when it is ready.
    fn shell(&self) -> Pty {
        let prompt = format!("PS1={READY}");
        let shell = self.pty(&[
            "run",
            "-it",
            "--scratch",
            "--env",
            &prompt,
            "--",
            "bash",
            "--norc",
        ]);
        shell.shows(READY);
        shell
    }

    fn sessions(&self) -> Vec<Value> {
        let listed = self.run(&["session", "ls", "--json"]).exits(0).json();
        listed["sessions"].as_array().unwrap().clone()
    }

    /// The only one, once it is so.
    fn only(&self, state: &str) -> String {
        until(|| {
            let sessions = self.sessions();
            assert_eq!(sessions.len(), 1, "{sessions:?}");
            (sessions[0]["state"] == state)
                .then(|| sessions[0]["session_id"].as_str().unwrap().to_owned())
        })
    }

    fn logs(&self, id: &str, text: &str) {
        until(|| {
            let log = self.run(&["session", "log", id]).exits(0).stdout;
            log.contains(text).then_some(())
        });
    }
}

impl Drop for Place {
    /// Those of a command have no server that would end them.
    fn drop(&mut self) {
        let listed = self.run(&["session", "ls", "--quiet"]).stdout;
        for id in listed.lines() {
            self.run(&["session", "kill", id]);
        }
    }
}

fn at_a_terminal(place: &Place) {
    let mut shell = place.shell();
    shell.press("echo x$((1+1))x\r");
    shell.shows("x2x");
    shell.press("stty size\r");
    shell.shows("24 80");
    shell.resize(200, 50);
    // The size arrives by another way than the keys.
    until(|| {
        shell.press("stty size\r");
        shell.text().contains("50 200").then_some(())
    });
    shell.press("echo sl''eeping; sleep 600\r");
    shell.shows("sleeping");
    shell.press("\x03");
    shell.press("echo interrupted=$?\r");
    shell.shows("interrupted=130");
    shell.press("exit 7\r");
    let (code, said) = shell.end();
    assert_eq!(code, Some(7), "{said}");
}

#[test]
fn a_shell_at_a_terminal_is_typed_at_resized_and_interrupted() {
    at_a_terminal(&Place::here());
}

#[test]
fn a_shell_at_a_server_is_typed_at_resized_and_interrupted() {
    at_a_terminal(&Place::at_server());
}

fn comes_back(place: &Place) {
    let mut shell = place.shell();
    let raw = shell.settings();
    assert!(!raw.local_modes.contains(LocalModes::ECHO));
    shell.press("stty -echo; kept=$((40+2)); printf 'mark%s\\n' er\r");
    shell.shows("marker");
    shell.press("\x1d");
    let (code, said) = shell.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("`C-]` detaches"), "{said}");
    let id = place.only("running");
    assert!(
        said.contains(&format!("glovebox session attach {id}")),
        "{said}"
    );
    let mut again = place.pty(&["session", "attach", &id[..10], "--detach-key", "C-p,C-q"]);
    // What was on the screen is there again.
    again.shows("marker");
    again.shows(READY);
    again.press("echo kept=$kept\r");
    again.shows("kept=42");
    again.press("\x10\x11");
    assert_eq!(again.end().0, Some(0));
    let mut last = place.pty(&["session", "attach", &id]);
    last.shows("kept=42");
    last.press("exit 5\r");
    assert_eq!(last.end().0, Some(5));
    let ended = place
        .run(&["session", "info", &id, "--json"])
        .exits(0)
        .json();
    assert_eq!(
        (&ended["state"], &ended["exit_code"]),
        (&"exited".into(), &5.into())
    );
    let mut late = Pty::start(&place.trial, &place.words(&["session", "attach", &id]));
    late.press("");
    let (code, said) = late.end();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("has ended: exited 5"), "{said}");
}

#[test]
fn a_session_goes_on_without_its_terminal() {
    comes_back(&Place::here());
}

#[test]
fn a_session_at_a_server_goes_on_without_its_terminal() {
    comes_back(&Place::at_server());
}

#[test]
fn what_a_program_puts_out_reaches_only_the_window() {
    let place = Place::here();
    let mut shell = place.shell();
    let attack = concat!(
        r"printf '\033]52;c;aGk=\007\033]0;title\007\033]8;;http://x\033\\\033P+q544e\033\\",
        r"\033[6n\033[c\033[21t\033[5i\033[>q\302\2336n'; ",
        r"printf '\033[31m\033[?1049h\033[?25l\033[?1000h\033[2;5r'; echo zz$((2+1))"
    );
    shell.press(&format!("{attack}\r"));
    shell.shows("zz3");
    shell.press("\x1d");
    let (code, said) = shell.end();
    assert_eq!(code, Some(0), "{said}");
    for sequence in [
        "\x1b]", "\x1bP", "\x1b[6n", "\x1b[c", "\x1b[0c", "\x1b[21t", "\x1b[5i", "\x1b[>", "\u{9b}",
    ] {
        assert!(!said.contains(sequence), "{sequence:?} in {said:?}");
    }
    // What was switched on is switched off, in the end.
    for (on, off) in [
        ("\x1b[?1049h", "\x1b[?1049l"),
        ("\x1b[?25l", "\x1b[?25h"),
        ("\x1b[?1000h", "\x1b[?1000l"),
        ("\x1b[31m", "\x1b[0m"),
        ("\x1b[2;5r", "\x1b[r"),
    ] {
        let (on_at, off_at) = (said.rfind(on), said.rfind(off));
        assert!(
            on_at.is_some() && on_at < off_at,
            "{on:?} {off:?} in {said:?}"
        );
    }
}

#[test]
fn what_is_typed_fast_is_neither_lost_nor_in_another_order() {
    let place = Place::here();
    let mut shell = place.shell();
    shell.press("stty -echo; cat > all; sha256sum < all; wc -l < all\r");
    let lines: String = (0..20_000).map(|it| format!("{it:07}\n")).collect();
    let file = place.trial.file("expected", &lines);
    let expected = std::process::Command::new("sha256sum")
        .arg(file)
        .output()
        .unwrap();
    let expected = String::from_utf8(expected.stdout).unwrap();
    let expected = expected.split(' ').next().unwrap().to_owned();
    for part in lines.as_bytes().chunks(1000) {
        shell.press(std::str::from_utf8(part).unwrap());
    }
    shell.press("\x04");
    shell.shows("20000");
    assert!(shell.text().contains(&expected), "{}", shell.text());
    shell.press("exit\r");
    assert_eq!(shell.end().0, Some(0));
}

#[test]
fn whatever_ends_the_command_the_terminal_is_as_it_was() {
    let place = Place::here();
    for signal in [Signal::TERM, Signal::HUP] {
        let shell = place.shell();
        let raw = shell.settings();
        assert!(!raw.local_modes.contains(LocalModes::ICANON));
        shell.signal(signal);
        until(|| {
            shell
                .settings()
                .local_modes
                .contains(LocalModes::ICANON)
                .then_some(())
        });
        let after = shell.settings();
        assert!(
            after
                .local_modes
                .contains(LocalModes::ECHO | LocalModes::ISIG)
        );
        let (code, said) = shell.end();
        assert_eq!(code, Some(130), "{said}");
        // As at any terminal that goes away, its shell ends.
        let id = place.only("signaled");
        place.run(&["session", "rm", &id]).exits(0);
    }
}

#[test]
fn a_window_that_is_closed_ends_what_it_started_and_nothing_else() {
    let place = Place::here();
    let mut shell = place.shell();
    shell.press("\x1d");
    assert_eq!(shell.end().0, Some(0));
    let id = place.only("running");
    let again = place.pty(&["session", "attach", &id]);
    again.shows(READY);
    let mut left = again.close();
    assert_eq!(until(|| left.0.try_wait().unwrap()).code(), Some(130));
    assert_eq!(place.only("running"), id);
    place.run(&["session", "kill", &id]).exits(0);
    place.run(&["session", "rm", &id]).exits(0);
    let mut left = place.shell().close();
    assert_eq!(until(|| left.0.try_wait().unwrap()).code(), Some(130));
    place.only("signaled");
}

#[test]
fn a_whole_screen_is_drawn_again_and_left_behind() {
    let place = Place::here();
    let script = r"printf '\033[?1049h\033[2J\033[3;4Hwhole\033[?2004h'; exec cat";
    let mut first = place.pty(&["run", "-it", "--scratch", "--", "sh", "-c", script]);
    first.shows("whole");
    first.press("\x1d");
    let (_, said) = first.end();
    assert!(
        said.contains("\x1b[?1049l") && said.contains("\x1b[?2004l"),
        "{said:?}"
    );
    let id = place.only("running");
    let screen = place
        .run(&["session", "log", &id, "--screen"])
        .exits(0)
        .stdout;
    assert_eq!(screen.lines().nth(2), Some("   whole"), "{screen}");
    let mut again = place.pty(&["session", "attach", &id]);
    again.shows("whole");
    assert!(again.text().contains("\x1b[?1049h"), "{:?}", again.text());
    again.press("\x03");
    let (code, said) = again.end();
    assert_eq!(code, Some(130), "{said}");
    assert!(
        said.rfind("\x1b[?1049h") < said.rfind("\x1b[?1049l"),
        "{said:?}"
    );
}

const CURSES: &str = "
import curses
def main(screen):
    curses.use_default_colors()
    curses.init_pair(1, curses.COLOR_RED, curses.COLOR_BLUE)
    for step in range(50):
        screen.erase()
        screen.border()
        screen.addstr(step % 20 + 1, step + 3, 'step %d' % step, curses.color_pair(1))
        screen.addstr(22, 60, 'żółć ☃')
        screen.refresh()
    pad = screen.subwin(5, 20, 10, 10)
    pad.scrollok(True)
    for line in range(12):
        pad.addstr('line %d\\n' % line)
        pad.refresh()
    screen.addstr(1, 1, 'all drawn')
    screen.refresh()
    screen.getch()
curses.wrapper(main)
";

#[test]
fn a_person_sees_what_the_sessions_own_screen_shows() {
    let place = Place::here();
    let locale = ["--env", "LC_ALL=C.UTF-8"];
    let script = ["--", "python3", "-c", CURSES];
    let mut program = place.pty(&[&["run", "-it", "--scratch"][..], &locale, &script].concat());
    program.shows("all drawn");
    let id = place.only("running");
    let screen = until(|| {
        let screen = place
            .run(&["session", "log", &id, "--screen"])
            .exits(0)
            .stdout;
        screen.contains("all drawn").then_some(screen)
    });
    let [rows, columns] = [24, 80].map(|it| std::num::NonZeroU16::new(it).unwrap());
    let mut terminal = vt100::Parser::new(rows, columns, 0);
    terminal.process(program.text().as_bytes());
    let seen: Vec<String> = terminal.screen().rows(0, 80).collect();
    let seen: Vec<&str> = seen.iter().map(|it| it.trim_end()).collect();
    assert_eq!(seen, screen.lines().collect::<Vec<_>>());
    assert!(
        screen.contains("line 11") && screen.contains("żółć ☃"),
        "{screen}"
    );
    program.press("q");
    assert_eq!(program.end().0, Some(0));
}

#[test]
fn a_person_at_the_terminal_is_asked_first() {
    let place = Place::here();
    let rules = "[[rule]]\nname = \"asks\"\ndecision = \"ask\"\ncommand = \"sh *\"\n";
    let rules = place.trial.file("rules.toml", rules);
    let words = [
        "--config",
        rules.to_str().unwrap(),
        "run",
        "-t",
        "--scratch",
        "--",
        "sh",
        "-c",
        "echo ran$((1+1))",
    ];
    let mut asked = place.pty(&words);
    asked.shows("[l]ater, [d]eny: ");
    asked.press("o\r");
    let (code, said) = asked.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("ran2"), "{said}");
    let mut refused = place.pty(&words);
    refused.shows("[d]eny: ");
    refused.press("d not now\r");
    let (code, said) = refused.end();
    assert_eq!(code, Some(3), "{said}");
    assert!(!said.contains("ran2"), "{said}");
    let mut waits = words.to_vec();
    waits.insert(3, "--no-wait");
    let (code, said) = place.pty(&waits).end();
    // Nobody else could answer: nothing of it is left.
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("nobody can be asked here"), "{said}");
}

fn beside_a_kept_sandbox(place: &Place) {
    let create = [
        "sandbox",
        "create",
        "--lifetime",
        "agent",
        "--agent",
        "ann",
        "--project",
        "demo",
    ];
    let name = place.run(&create).exits(0).stdout;
    let name = name.trim();
    let write = ["exec", name, "--", "sh", "-c", "echo there > left"];
    place.run(&write).exits(0);
    let mut shell = place.pty(&["shell", name, "--env", "PS1=ready>", "--", "bash", "--norc"]);
    shell.shows(READY);
    shell.press("cat left; exit 6\r");
    let (code, said) = shell.end();
    assert_eq!(code, Some(6), "{said}");
    assert!(
        said.contains("there") && said.contains("a sandbox of its own"),
        "{said}"
    );
    let (code, said) = place.pty(&["shell", "no-such"]).end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("there is no sandbox `no-such`"), "{said}");
}

#[test]
fn a_shell_works_beside_a_kept_sandbox() {
    beside_a_kept_sandbox(&Place::here());
}

#[test]
fn a_shell_works_beside_a_kept_sandbox_of_a_server() {
    beside_a_kept_sandbox(&Place::at_server());
}

#[test]
fn an_interrupt_while_it_starts_leaves_nothing() {
    let place = Place::here();
    let mark = place.trial.work().join("paused");
    let pause = format!("resolve:{}", mark.display());
    let words = ["run", "-it", "--scratch", "--", "cat"];
    let mut starting = Pty::start_with(&place.trial, &words, &[("GLOVEBOX_PAUSE_AT", &pause)]);
    until(|| mark.exists().then_some(()));
    starting.press("\x03");
    std::fs::write(place.trial.work().join("paused.go"), "").unwrap();
    let (code, said) = starting.end();
    assert_eq!(code, Some(130), "{said}");
    place.only("killed");
}

#[test]
fn time_is_up_at_a_terminal_too() {
    let place = Place::here();
    for limit in ["--timeout", "--session-time", "--idle-timeout"] {
        let shell = place.pty(&["shell", "--scratch", limit, "300ms", "--", "sleep", "600"]);
        let (code, said) = shell.end();
        assert_eq!(code, Some(124), "{limit}: {said}");
    }
}

fn without_a_terminal(place: &Place) {
    let answer = place
        .run(&["session", "start", "--scratch", "--", "python3", "-iu"])
        .exits(0);
    let id = answer.stdout.trim();
    assert!(
        id.starts_with("e_") && answer.stderr.contains(">>>"),
        "{answer:?}"
    );
    let short = &id[..12];
    place
        .run(&["session", "send", short, "--enter", "print(6*7)"])
        .exits(0);
    place.logs(short, "42\n");
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut command = place
        .trial
        .command(&place.words(&["session", "send", short, "-"]));
    let mut sending = command.stdin(reader).spawn().unwrap();
    drop(command);
    std::io::Write::write_all(&mut writer, b"import sys\nprint(7*9)\n").unwrap();
    drop(writer);
    assert!(sending.wait().unwrap().success());
    place.logs(short, "63\n");
    let keys = place.run(&["session", "keys", short, "C-c"]).exits(2);
    assert!(keys.stderr.contains("no terminal"), "{keys:?}");
    let listed = place.run(&["session", "ls"]).exits(0).stdout;
    assert!(
        listed.contains("python3 -iu") && listed.contains("running"),
        "{listed}"
    );
    let quiet = place.run(&["session", "ls", "--quiet"]).exits(0).stdout;
    assert_eq!(quiet.trim(), id);
    place.run(&["session", "rm", short]).exits(2);
    // `close-input` ends what reads to the end.
    place
        .run(&["session", "send", short, "--enter", "sys.exit(4)"])
        .exits(0);
    let ended = place.only("exited");
    let info = place
        .run(&["session", "info", &ended, "--json"])
        .exits(0)
        .json();
    assert_eq!(info["exit_code"], 4);
    let late = place.run(&["session", "send", short, "x"]).exits(2);
    assert!(late.stderr.contains("exited with 4"), "{late:?}");
    let whole = place
        .run(&["session", "log", short, "--stderr"])
        .exits(0)
        .stdout;
    assert!(whole.contains(">>>") && !whole.contains("42\n"), "{whole}");
    place.run(&["session", "rm", short]).exits(0);
    assert_eq!(place.sessions(), Vec::<Value>::new());
    place.run(&["session", "info", "e_123"]).exits(1);
}

#[test]
fn a_session_without_a_terminal_is_talked_to() {
    without_a_terminal(&Place::here());
}

#[test]
fn a_session_at_a_server_without_a_terminal_is_talked_to() {
    without_a_terminal(&Place::at_server());
}

#[test]
fn a_terminal_is_steered_from_elsewhere() {
    let place = Place::here();
    let start = [
        "session",
        "start",
        "--terminal",
        "--size",
        "100x30",
        "--env",
        "PS1=ready>",
        "--json",
        "--",
        "bash",
        "--norc",
    ];
    let started = place.run(&start).exits(0).json();
    let id = started["session"]["session_id"].as_str().unwrap();
    place
        .run(&[
            "session",
            "send-keys",
            id,
            "s",
            "t",
            "t",
            "y",
            "Space",
            "s",
            "i",
            "z",
            "e",
            "Enter",
        ])
        .exits(0);
    place.logs(id, "30 100");
    place.run(&["session", "resize", id, "90x20"]).exits(0);
    place
        .run(&["session", "submit", id, "stty size; pwd"])
        .exits(0);
    place.logs(id, "20 90");
    place
        .run(&["session", "paste", id, "echo pas''ted"])
        .exits(0);
    place.run(&["session", "keys", id, "Enter"]).exits(0);
    place.logs(id, "pasted");
    let screen = place
        .run(&["session", "log", id, "--screen"])
        .exits(0)
        .stdout;
    assert!(screen.lines().any(|line| line == "pasted"), "{screen}");
    place
        .run(&["session", "submit", id, "echo sl''eeping; sleep 600"])
        .exits(0);
    place.logs(id, "sleeping");
    place.run(&["session", "signal", id, "INT"]).exits(0);
    place.run(&["session", "submit", id, "echo i=$?"]).exits(0);
    place.logs(id, "i=130");
    let killed = place.run(&["session", "kill", id]).exits(0);
    assert!(killed.stderr.contains("has ended: killed"), "{killed:?}");
    place.run(&["session", "kill", id]).exits(0);
    // All that was put out, to the last, for what follows.
    let followed = place.run(&["session", "stream", id]).exits(0).stdout;
    assert!(followed.contains("i=130"), "{followed}");
}

#[test]
fn a_server_that_comes_back_goes_on_where_it_was() {
    let mut place = Place::at_server();
    let mut shell = place.shell();
    shell.press("echo one$((1+1))\r");
    shell.shows("one2");
    let server = place.server.take().unwrap();
    let address = server.url.strip_prefix("http://").unwrap().to_owned();
    assert_eq!(server.close().0, Some(0));
    shell.press("echo two$((1+1))\r");
    place.server = Some(Served::start_at(&place.trial, &address, &[]));
    shell.shows("two2");
    shell.press("exit 3\r");
    let (code, said) = shell.end();
    assert_eq!(code, Some(3), "{said}");
    assert_eq!(said.matches("two2").count(), 1, "{said}");
}

#[test]
fn without_a_terminal_none_is_given() {
    let trial = Trial::new();
    for args in [
        &["run", "-it", "--", "bash"][..],
        &["shell"],
        &["session", "attach", "e_1"],
        &["session", "start", "--attach", "--", "bash"],
    ] {
        let refused = trial.run(args).exits(2);
        assert!(refused.stderr.contains("needs a terminal"), "{refused:?}");
        assert!(refused.stderr.contains("hint: "), "{refused:?}");
    }
    let held = trial
        .run(&["session", "start", "--hold", "--", "bash"])
        .exits(2);
    assert!(
        held.stderr.contains("`--hold` does not go with a session"),
        "{held:?}"
    );
    assert!(!trial.state().exists());
    // As docker has it: `-i` alone passes standard input through.
    let mut command = trial.command(&["run", "-i", "--scratch", "--", "cat"]);
    let output = command.stdin(trial_input(&trial)).output().unwrap();
    assert_eq!(Answer::from(output).exits(0).stdout, "typed\n");
    let ended = trial.run(&["session", "start", "--scratch", "--", "sh", "-c", "exit 9"]);
    assert_eq!(ended.code, Some(9), "{ended:?}");
    let missing = trial.run(&["session", "start", "--scratch", "--", "no-such-command"]);
    assert_eq!(missing.code, Some(127), "{missing:?}");
}

fn trial_input(trial: &Trial) -> std::fs::File {
    std::fs::File::open(trial.file("typed", "typed\n")).unwrap()
}

#[test]
fn a_recording_is_made_and_played_again() {
    const PAUSE: Duration = Duration::from_millis(300);
    let place = Place::at_server();
    let script = "stty -echo; printf '\\033]0;title\\007one '; read cue; printf '\\303'; sleep 0.1; printf '\\244\\n'; exit 3";
    let began = Instant::now();
    let start = [
        "session",
        "start",
        "--terminal",
        "--size",
        "90x20",
        "--scratch",
        "--quiet",
        "--",
    ];
    let words = [&start[..], &["sh", "-c", script]].concat();
    let started = place.run(&words);
    let id = started.stdout.trim();
    // Its time is fixed when the recording has it.
    until(|| {
        let recorded = place.run(&["session", "record", id, "-"]).exits(0);
        recorded.stdout.contains("one ").then_some(())
    });
    std::thread::sleep(PAUSE);
    place.run(&["session", "send", id, "--enter", ""]).exits(0);
    place.run(&["session", "log", id, "--follow"]).exits(0);
    let most = began.elapsed().as_secs_f64();
    let file = place.trial.work().join("demo.cast");
    let file = file.to_str().unwrap();
    place.run(&["session", "record", id, file]).exits(0);
    // Never over another.
    place.run(&["session", "record", id, file]).exits(2);
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    assert_eq!(
        (
            &lines[0]["version"],
            &lines[0]["width"],
            &lines[0]["height"]
        ),
        (&2.into(), &90.into(), &20.into())
    );
    let all: String = lines[1..]
        .iter()
        .map(|it| it[2].as_str().unwrap())
        .collect();
    assert_eq!(all, "\x1b]0;title\x07one ä\r\n");
    let times: Vec<f64> = lines[1..]
        .iter()
        .map(|it| it[0].as_f64().unwrap())
        .collect();
    let (first, last) = (times[0], *times.last().unwrap());
    assert!(
        times.is_sorted() && last - first >= PAUSE.as_secs_f64() && last <= most,
        "{times:?}, {most}"
    );
    for what in [file, id] {
        let played = place
            .run(&["session", "replay", what, "--pause", "0s"])
            .exits(0);
        assert_eq!(played.stdout, all);
    }
    // At a terminal only the window is drawn on.
    let player = place.pty(&["session", "replay", file, "--speed", "100"]);
    player.shows("one ä");
    let (code, said) = player.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("title"), "{said:?}");
    std::fs::write(file, "nonsense").unwrap();
    let refused = place.run(&["session", "replay", file]).exits(2);
    assert!(refused.stderr.contains("no recording"), "{refused:?}");
}
