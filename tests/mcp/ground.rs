//! What the tests of the protocol stand on: a trial, the way to its Glovebox, and the official Python
//! clients with a script of ours.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Caller, Client, Era, McpTools, Server, Start, Trial};

/// For a script with everything it does.
const PATIENCE: Duration = Duration::from_secs(220);

/// People answer in the window of an agent's host, about what goes beyond this, and before more than
/// one command is run at once.
pub(crate) const ASKING: &str = r#"
[approvals]
elicitation = true

[settings]
memory = "512M"

[[rule]]
decision = "ask"
when = "size(commands) > 1"
because = "somebody should look at it"
"#;

/// Where a client finds the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Stdio,
    Http,
}

/// Which client, and which revision it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The last client of the first era.
    First,
    /// Today's, which finds out.
    Auto,
    /// Today's with the handshake of the first era.
    Legacy,
    /// Today's, without a handshake.
    Modern,
}

impl Mode {
    fn era(self) -> Era {
        match self {
            Self::First => Era::First,
            Self::Auto | Self::Legacy | Self::Modern => Era::Second,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Auto => "auto",
            Self::Legacy => "legacy",
            Self::Modern => crate::wire::MODERN,
        }
    }
}

pub(crate) struct Ground {
    pub(crate) trial: Trial,
    pub(crate) server: Option<Server>,
    /// An agent's.
    token: String,
    way: Way,
}

impl Ground {
    pub(crate) fn new(way: Way, config: &str) -> Self {
        Self::of(Caller::Root, way, config).expect("root")
    }

    /// `None` when there is no such user here.
    pub(crate) fn of(caller: Caller, way: Way, config: &str) -> Option<Self> {
        let trial = Trial::in_memory(caller)?;
        let path = trial.home().join("config.toml");
        fs::write(&path, config).expect("write the configuration");
        let mut ground = Self {
            trial,
            server: None,
            token: String::new(),
            way,
        };
        if way == Way::Http {
            let start = Start::default().outside("GLOVEBOX_CONFIG", path.to_str().expect("a path"));
            let server = start.on(&ground.trial);
            ground.token = server.token_of("agent", "local", "robot");
            ground.server = Some(server);
        }
        Some(ground)
    }

    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().expect("a server")
    }

    pub(crate) fn client(&self) -> Client {
        self.server().client()
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// `glovebox mcp`, in the directory of a project.
    pub(crate) fn stdio(&self) -> Command {
        let mut command = self.trial.glovebox();
        command
            .env("GLOVEBOX_CONFIG", self.trial.home().join("config.toml"))
            .arg("mcp");
        command
    }

    /// The files of the project that tools work on where none is named.
    pub(crate) fn work(&self) -> PathBuf {
        match self.way {
            Way::Stdio => self.trial.work(),
            Way::Http => self.trial.state().join("projects/default/work"),
        }
    }

    /// Records of everything that was run.
    pub(crate) fn execs(&self) -> Vec<Value> {
        match self.way {
            Way::Http => {
                let page = self.client().get("/v1/execs?limit=200");
                assert_eq!(page.status, 200, "{}", page.text());
                page.json()["items"].as_array().cloned().unwrap_or_default()
            }
            Way::Stdio => {
                let mut command = self.trial.glovebox();
                command.args(["ps", "--all", "--json"]);
                let output = command.output().expect("glovebox ps");
                assert!(output.status.success(), "{output:?}");
                let listed: Value = serde_json::from_slice(&output.stdout).expect("a list");
                let items = listed.get("items").unwrap_or(&listed);
                items.as_array().cloned().unwrap_or_default()
            }
        }
    }

    /// Runs `tests/mcp/NAME.py` with this client, and returns what it reports.
    pub(crate) fn script(&self, tools: &McpTools, name: &str, mode: Mode) -> Value {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let place = match self.way {
            Way::Http => json!({
                "url": format!("http://{}/mcp", self.server().address),
                "token": self.token,
            }),
            Way::Stdio => {
                let command = self.stdio();
                let mut words = self.becoming();
                words.extend(
                    std::iter::once(command.get_program())
                        .chain(command.get_args())
                        .map(|it| it.to_string_lossy().into_owned()),
                );
                let environment: serde_json::Map<String, Value> = command
                    .get_envs()
                    .filter_map(|(key, value)| {
                        let value = value?.to_string_lossy().into_owned();
                        Some((key.to_string_lossy().into_owned(), value.into()))
                    })
                    .collect();
                json!({"command": words, "env": environment, "cwd": self.trial.work()})
            }
        };
        let order = json!({"mode": mode.name(), "place": place});
        let mut command = Command::new(tools.python(mode.era()));
        command
            .arg(here.join(format!("{name}.py")))
            .arg(order.to_string())
            .current_dir(self.trial.home())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null());
        finished(command, PATIENCE)
    }

    /// What makes a command that root starts the caller's.
    fn becoming(&self) -> Vec<String> {
        match (self.trial.caller(), self.trial.caller().account()) {
            (Caller::User, Some(account)) => vec![
                "setpriv".to_owned(),
                format!("--reuid={}", account.uid),
                format!("--regid={}", account.gid),
                "--clear-groups".to_owned(),
                "--".to_owned(),
            ],
            _ => Vec::new(),
        }
    }

    pub(crate) fn end(mut self) {
        if let Some(server) = self.server.take() {
            assert_eq!(server.stop(), 0);
        }
        self.trial.end();
    }
}

/// What a script says at its end: one line of JSON, the last.
fn finished(mut command: Command, patience: Duration) -> Value {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start a client");
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let read = |pipe: Option<_>| std::thread::spawn(move || pipe.map(read_all).unwrap_or_default());
    let out = read(stdout.map(Pipe::Out));
    let err = read(stderr.map(Pipe::Err));
    let deadline = Instant::now() + patience;
    let status = loop {
        match child.try_wait().expect("wait for a client") {
            Some(status) => break Some(status),
            None if Instant::now() > deadline => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let (out, err) = (out.join().unwrap(), err.join().unwrap());
    let done = status.is_some_and(|it| it.success());
    assert!(done, "{status:?}\n{out}\n{err}");
    let last = out.lines().next_back().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|_| panic!("no report:\n{out}\n{err}"))
}

enum Pipe {
    Out(std::process::ChildStdout),
    Err(std::process::ChildStderr),
}

fn read_all(pipe: Pipe) -> String {
    let mut text = Vec::new();
    let _ = match pipe {
        Pipe::Out(mut pipe) => std::io::Read::read_to_end(&mut pipe, &mut text),
        Pipe::Err(mut pipe) => std::io::Read::read_to_end(&mut pipe, &mut text),
    };
    String::from_utf8_lossy(&text).into_owned()
}
