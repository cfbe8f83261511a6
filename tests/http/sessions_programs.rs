//! Programs that people use on a terminal, driven as a person would: what the session's screen shows is
//! compared with what tmux, another terminal, shows of the same program outside.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use support::{wait_until, with};

use crate::sessions_ground::{House, JOB, PATIENCE, Screen, Talk, bash, on_terminal};

const COLUMNS: u16 = 100;
const ROWS: u16 = 30;

fn sized(argv: &[&str]) -> Value {
    with(
        on_terminal(argv),
        json!({"session": {"size": {"columns": COLUMNS, "rows": ROWS}}}),
    )
}

/// The same program on a terminal of tmux, in the directory that is the session's workspace.
struct Outside {
    socket: String,
    work: PathBuf,
}

impl Outside {
    fn start(house: &House, program: &str) -> Self {
        let outside = Self {
            socket: house.trial.home().join("tmux").display().to_string(),
            work: house.trial.work(),
        };
        let (columns, rows) = (COLUMNS.to_string(), ROWS.to_string());
        outside.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
            program,
        ]);
        outside.tmux(&["set-option", "status", "off"]);
        outside.tmux(&["resize-window", "-x", &columns, "-y", &rows]);
        outside
    }

    fn tmux(&self, words: &[&str]) -> String {
        let output = Command::new("tmux")
            .args(["-S", &self.socket])
            .args(words)
            .current_dir(&self.work)
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .output()
            .expect("tmux");
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            output.status.success(),
            "{words:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    fn lines(&self) -> Vec<String> {
        let shown = self.tmux(&["capture-pane", "-p"]);
        let mut lines: Vec<String> = shown.lines().map(|it| it.trim_end().to_owned()).collect();
        lines.resize(ROWS.into(), String::new());
        lines
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = Command::new("tmux")
            .args(["-S", &self.socket, "kill-server"])
            .output();
    }
}

/// A page of text in the session's workspace, and outside.
fn put_text(house: &House, name: &str) {
    let lines: String = (1..=500)
        .map(|it| format!("line {it}: zażółć gęślą jaźń, 日本語, ✓\n"))
        .collect();
    house.trial.put(name, &lines);
    let path = format!("/v1/workspaces/p/files/{name}");
    let client = house.server.client();
    let kept = client.try_bytes(
        "PUT",
        &path,
        Some("application/octet-stream"),
        lines.as_bytes(),
    );
    let kept = kept.expect("an answer");
    assert!(matches!(kept.status, 200 | 201 | 204), "{}", kept.text());
}

#[track_caller]
fn assert_same(talk: &Talk, outside: &Outside, what: &str) {
    let same = wait_until(PATIENCE, || talk.screen().lines() == outside.lines());
    assert!(
        same,
        "{what}\ninside {:#?}\noutside {:#?}",
        talk.screen().lines(),
        outside.lines()
    );
}

#[test]
fn an_editor_and_a_pager_look_as_they_do_outside() {
    let house = House::open();
    put_text(&house, "text");
    let vim = ["vim.tiny", "-u", "NONE", "-i", "NONE", "-n", "text"];
    let talk = house.start(&sized(&vim));
    let outside = Outside::start(&house, &vim.join(" "));
    assert!(talk.until_screen("vim", |it| it.holds("line 1:")).0["alternate"] == true);
    assert_same(&talk, &outside, "vim begins");
    let steps: [(&[&str], &[&str]); 4] = [
        (&["G"], &["G"]),
        (
            &["o", "new", "Space", "text", "Escape"],
            &["o", "new", "Space", "text", "Escape"],
        ),
        (
            &["g", "g", "d", "d", "u", "C-d"],
            &["g", "g", "d", "d", "u", "C-d"],
        ),
        (&["PageDown", "Down", "End"], &["PageDown", "Down", "End"]),
    ];
    for (inside, there) in steps {
        let words = inside.iter().flat_map(|it| match it.len() {
            1 => vec![(*it).to_owned()],
            _ if ["new", "text"].contains(it) => it.chars().map(String::from).collect(),
            _ => vec![(*it).to_owned()],
        });
        let words: Vec<String> = words.collect();
        talk.order("/input", &json!({"keys": words}));
        outside.tmux(&[&["send-keys"], there].concat());
        assert_same(&talk, &outside, &format!("vim, {inside:?}"));
    }
    talk.order("/input", &json!({"keys": ["Escape", ":"]}));
    talk.submit("wq! written");
    let client = house.server.client();
    let written = || client.get("/v1/workspaces/p/files/written");
    assert!(wait_until(PATIENCE, || written().status == 200));
    assert!(written().text().ends_with("new text\n"));
    drop(outside);
    let talk = house.start(&sized(&["less", "text"]));
    let outside = Outside::start(&house, "less text");
    assert_same(&talk, &outside, "less begins");
    for key in ["Space", "G", "Up", "PageUp", "Home"] {
        talk.keys(&[key]);
        let there = if key == "PageUp" { "PPage" } else { key };
        outside.tmux(&["send-keys", there]);
        assert_same(&talk, &outside, &format!("less, {key}"));
    }
    talk.keys(&["q"]);
    assert!(wait_until(PATIENCE, || talk.info()["exit_code"] == 0));
    drop(outside);
    house.close();
}

/// A program that draws its whole screen again and again, at another size in between.
const REDRAWS: &str = "
import curses, time
def draw(window):
    curses.curs_set(0)
    curses.start_color()
    curses.init_pair(1, curses.COLOR_RED, curses.COLOR_BLUE)
    rounds = 0
    while True:
        window.erase()
        height, width = window.getmaxyx()
        for row in range(height - 1):
            window.addnstr(row, 0, f'row {row} round {rounds} ' + '=' * width, width - 1, curses.color_pair(row % 2))
        window.addnstr(height - 1, 0, f'{width}x{height}', width - 1, curses.A_REVERSE)
        window.refresh()
        rounds += 1
        window.timeout(10 if rounds < 20 else -1)
        key = window.getch()
        if key == ord('q'):
            return
        if key == curses.KEY_RESIZE:
            rounds = 0
curses.wrapper(draw)
";

#[test]
fn what_redraws_its_screen_is_seen_at_each_size() {
    let house = House::open();
    let talk = house.start(&sized(&["python3", "-c", REDRAWS]));
    let settled = |size: &'static str| {
        move |it: &Screen| {
            let lines = it.lines();
            let (bottom, rows) = lines.split_last().expect("rows");
            bottom.starts_with(size) && rows.iter().all(|it| it.contains("round 19"))
        }
    };
    talk.until_screen("100x30", settled("100x30"));
    for (columns, rows, size) in [(200, 50, "200x50"), (40, 10, "40x10"), (80, 24, "80x24")] {
        talk.resize(columns, rows);
        let screen = talk.until_screen(size, settled(size));
        assert_eq!(screen.lines().len(), usize::from(rows));
        let full = format!("row 2 round 19 {}", "=".repeat(usize::from(columns) - 16));
        assert_eq!(screen.lines()[2], full);
        assert_eq!(screen.0["cursor_hidden"], true);
    }
    talk.keys(&["q"]);
    let ended = wait_until(PATIENCE, || talk.info()["exit_code"] == 0);
    assert!(ended, "{}", talk.info());
    house.close();
}

#[test]
fn an_interpreter_keeps_its_state_and_a_password_is_not_shown() {
    let house = House::open();
    let mut talk = house.start(&on_terminal(&["python3", "-q"]));
    talk.until(">>> ");
    talk.submit("total = sum(range(10)); import getpass");
    talk.until(">>> ");
    talk.order(
        "/input",
        &json!({"paste": "for number in range(2):\n    print('number', number)\n\n"}),
    );
    talk.until("number 1\r\n");
    talk.submit("print('total', total)");
    talk.until("total 45\r\n");
    talk.submit("word = getpass.getpass('word: '); print('length', len(word))");
    talk.until("\r\nword: ");
    talk.submit("unseen");
    talk.until("length 6\r\n");
    assert!(!talk.text().contains("unseen"), "{}", talk.text());
    talk.submit("while True: pass");
    talk.until("pass\r\n");
    talk.submit("");
    talk.keys(&["C-c"]);
    talk.until("KeyboardInterrupt");
    talk.until(">>> ");
    talk.submit("exit(7)");
    let ended = talk.until_end();
    assert_eq!(ended["exit_code"], 7, "{ended}");
    house.close();
}

#[test]
fn jobs_are_controlled_and_tmux_runs_inside() {
    let house = House::open();
    let mut talk = house.start(&with(
        bash(),
        json!({"session": {"size": {"columns": 80, "rows": 24}}}),
    ));
    talk.until("ready> ");
    talk.submit(JOB.0);
    talk.until(JOB.1);
    talk.keys(&["C-z"]);
    talk.until("Stopped");
    talk.until("ready> ");
    talk.submit("bg; jobs; kill %1; wait; echo none left");
    talk.until("\r\nnone left");
    talk.submit("TERM=xterm-256color tmux -f /dev/null new-session -x 80 -y 24 'echo inside tmux; exec sh -i'");
    talk.until_screen("tmux", |it| it.holds("inside tmux") && it.holds("[0]"));
    talk.keys(&["C-b", "%"]);
    talk.until_screen("two panes", |it| it.holds("│"));
    talk.keys(&["C-b", "&"]);
    talk.until_screen("a question", |it| it.holds("(y/n)"));
    talk.keys(&["y"]);
    talk.until_screen("its end", |it| {
        it.holds("[exited]") || it.holds("[server exited]")
    });
    talk.kill();
    house.close();
}
