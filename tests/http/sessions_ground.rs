//! What the tests of sessions share: one that is talked to over the API.

use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};
use support::{Caller, Client, Response, Server, Start, Trial};

/// What anything here may need on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A server, and what it left at its end.
pub(crate) struct House {
    pub(crate) trial: Trial,
    pub(crate) server: Server,
}

impl House {
    pub(crate) fn open() -> Self {
        Self::with(&Start::default())
    }

    pub(crate) fn with(start: &Start) -> Self {
        let trial = Trial::in_memory(Caller::Root).expect("root");
        let server = start.on(&trial);
        Self { trial, server }
    }

    pub(crate) fn start(&self, body: &Value) -> Talk {
        Talk::start(&self.server.client(), body)
    }

    pub(crate) fn close(self) {
        assert_eq!(self.server.stop(), 0);
        self.trial.end();
    }
}

/// A program with its arguments, over pipes.
pub(crate) fn piped(argv: &[&str]) -> Value {
    program(argv, &json!({"terminal": false}))
}

/// The same on a terminal.
pub(crate) fn on_terminal(argv: &[&str]) -> Value {
    program(argv, &json!({"terminal": true}))
}

/// A shell without a start-up file, with a prompt that is known, and without marks around what it reads.
pub(crate) fn bash() -> Value {
    let mut body = on_terminal(&["bash", "--norc", "--noprofile"]);
    body["exec"]["env"] = json!({"PS1": "ready> ", "TERM": "dumb"});
    body
}

/// What a shell is told to run, and what it says once it is in the foreground: before that an interrupt
/// would be the shell's own.
pub(crate) const JOB: (&str, &str) = (
    "sh -c \"printf 'job %s' runs; exec sleep 1000\"",
    "job runs",
);

fn program(argv: &[&str], session: &Value) -> Value {
    json!({
        "project_id": "p",
        "exec": {"kind": "argv", "command": argv[0], "args": &argv[1..]},
        "session": session,
    })
}

/// One session as its client sees it: what it has read, and where it goes on.
#[derive(Debug, Clone)]
pub(crate) struct Talk {
    pub(crate) client: Client,
    pub(crate) id: String,
    pub(crate) read: Vec<u8>,
    at: u64,
    /// Where the next cue is looked for.
    used: usize,
}

impl Talk {
    #[track_caller]
    pub(crate) fn start(client: &Client, body: &Value) -> Self {
        let answer = client.post("/v1/sessions", body);
        assert!(
            matches!(answer.status, 200..=202),
            "{} {}",
            answer.status,
            answer.text()
        );
        let id = answer.json()["session"]["session_id"]
            .as_str()
            .map(str::to_owned);
        Self {
            client: client.clone(),
            id: id.expect("an id"),
            read: Vec::new(),
            at: 0,
            used: 0,
        }
    }

    pub(crate) fn path(&self, what: &str) -> String {
        format!("/v1/sessions/{}{what}", self.id)
    }

    pub(crate) fn try_order(&self, what: &str, body: &Value) -> Response {
        self.client.post(&self.path(what), body)
    }

    #[track_caller]
    pub(crate) fn order(&self, what: &str, body: &Value) -> Value {
        let answer = self.try_order(what, body);
        assert_eq!(answer.status, 200, "{what}: {}", answer.text());
        answer.json()
    }

    #[track_caller]
    pub(crate) fn send(&self, text: &str) {
        self.order("/input", &json!({"text": text}));
    }

    #[track_caller]
    pub(crate) fn submit(&self, line: &str) {
        self.order("/input", &json!({"submit": line}));
    }

    #[track_caller]
    pub(crate) fn keys(&self, keys: &[&str]) {
        self.order("/input", &json!({"keys": keys}));
    }

    #[track_caller]
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        self.order("/resize", &json!({"columns": columns, "rows": rows}));
    }

    #[track_caller]
    pub(crate) fn signal(&self, signal: &str) {
        self.order("/signal", &json!({"signal": signal}));
    }

    #[track_caller]
    pub(crate) fn kill(&self) -> Value {
        self.order("/kill", &json!({}))
    }

    #[track_caller]
    pub(crate) fn output(&self, stdout: u64, stderr: u64, wait_ms: u64) -> Value {
        let query = format!("/output?stdout={stdout}&stderr={stderr}&wait_ms={wait_ms}");
        let answer = self.client.get(&self.path(&query));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    /// Reads on until this was put out, after what was waited for before.
    #[track_caller]
    pub(crate) fn until(&mut self, cue: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = find(&self.read[self.used..], cue.as_bytes()) {
                self.used += at + cue.len();
                return;
            }
            let output = self.output(self.at, 0, 1_000);
            let (bytes, next) = piece(&output["stdout"]);
            assert_eq!(output["stdout"]["offset"], self.at, "something was missed");
            self.read.extend(bytes);
            self.at = next;
            let is_over = output["complete"] == true && !self.holds(cue);
            assert!(
                !is_over && Instant::now() < deadline,
                "{cue:?} never came: {:?}\n{}",
                self.text(),
                output["session"]
            );
        }
    }

    fn holds(&self, cue: &str) -> bool {
        find(&self.read[self.used..], cue.as_bytes()).is_some()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.read).into_owned()
    }

    /// Everything that it ever put out on its standard output, and its end.
    #[track_caller]
    pub(crate) fn until_end(&mut self) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let output = self.output(self.at, 1 << 40, 1_000);
            let (bytes, next) = piece(&output["stdout"]);
            assert_eq!(output["stdout"]["offset"], self.at, "something was missed");
            self.read.extend(bytes);
            self.at = next;
            if output["session"]["state"] != "running" && output["session"]["stdout"]["end"] == next
            {
                return output["session"].clone();
            }
            assert!(
                Instant::now() < deadline,
                "it does not end: {}",
                self.text()
            );
        }
    }

    #[track_caller]
    pub(crate) fn info(&self) -> Value {
        let answer = self.client.get(&self.path(""));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    #[track_caller]
    pub(crate) fn screen(&self) -> Screen {
        let answer = self.client.get(&self.path("/screen"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        Screen(answer.json())
    }

    /// Asks for the screen until it is as wanted.
    #[track_caller]
    pub(crate) fn until_screen(&self, what: &str, so: impl Fn(&Screen) -> bool) -> Screen {
        let deadline = Instant::now() + PATIENCE;
        let mut at = 0;
        loop {
            let screen = self.screen();
            if so(&screen) {
                return screen;
            }
            assert!(Instant::now() < deadline, "{what}: {:#?}", screen.lines());
            // Until something more was put out.
            at = screen.0["offset"].as_u64().unwrap_or(at);
            self.output(at, 0, 1_000);
        }
    }

    #[track_caller]
    pub(crate) fn record(&self) -> Value {
        let answer = self.client.get(&format!("/v1/execs/{}", self.id));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }
}

/// What a person would see.
#[derive(Debug, Clone)]
pub(crate) struct Screen(pub(crate) Value);

impl Screen {
    pub(crate) fn lines(&self) -> Vec<String> {
        let lines = self.0["lines"].as_array().expect("lines");
        let text = |it: &Value| it.as_str().expect("a line").to_owned();
        lines.iter().map(text).collect()
    }

    pub(crate) fn holds(&self, text: &str) -> bool {
        self.lines().iter().any(|it| it.contains(text))
    }
}

/// The bytes of one stream, and the offset after them.
pub(crate) fn piece(piece: &Value) -> (Vec<u8>, u64) {
    let content = piece["content"].as_str().expect("content");
    let bytes = match piece["encoding"].as_str() {
        Some("base64") => base64::engine::general_purpose::STANDARD
            .decode(content)
            .expect("base64"),
        _ => content.as_bytes().to_vec(),
    };
    (bytes, piece["next"].as_u64().expect("an offset"))
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|it| it == needle)
}
