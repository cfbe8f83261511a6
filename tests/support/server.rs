//! A server under test: the real binary on a trial's state directory and a port of its own.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::{Client, Response};
use crate::{Trial, glovebox, wait_until};

/// What a start may need on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(90);
/// What one whose test has failed gets for tidying up.
const LEAVING: Duration = Duration::from_secs(10);

/// How a server is started.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// `glovebox` without it.
    program: Option<PathBuf>,
    options: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Start {
    /// Another program, which takes the arguments of `glovebox serve` and says where it listens.
    pub fn of(program: impl Into<PathBuf>) -> Self {
        Self {
            program: Some(program.into()),
            ..Self::default()
        }
    }

    #[must_use]
    pub fn with<Word: Into<String>>(mut self, options: impl IntoIterator<Item = Word>) -> Self {
        self.options.extend(options.into_iter().map(Into::into));
        self
    }

    /// A variable of the server's own environment.
    #[must_use]
    pub fn outside(mut self, key: &str, value: impl Into<String>) -> Self {
        self.environment.push((key.to_owned(), value.into()));
        self
    }

    /// How long it waits before it gives up, in one of its waits: `store`, `lease`, `request`,
    /// `token`, `grace`, `orphans`, `held`, `care`.
    #[must_use]
    pub fn patience(self, wait: &str, patience: Duration) -> Self {
        let text = format!("{wait}:{}", patience.as_millis());
        self.outside("GLOVEBOX_PATIENCE", text)
    }

    /// # Panics
    /// When it does not come up.
    pub fn on(&self, trial: &Trial) -> Server {
        match self.try_on(trial) {
            Ok(server) => server,
            Err(said) => panic!("the server did not come up:\n{said}"),
        }
    }

    /// What it said, when it does not come up.
    pub fn try_on(&self, trial: &Trial) -> Result<Server, String> {
        let since = Instant::now();
        let mut child = self
            .command(trial)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start glovebox serve");
        let stderr = child.stderr.take().expect("its standard error");
        let (sender, lines) = mpsc::channel();
        // Reads on for ever, so that the server never waits for a reader.
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let mut said = Vec::new();
        let address = loop {
            let left = PATIENCE.saturating_sub(since.elapsed());
            match lines.recv_timeout(left) {
                Ok(line) => {
                    let at = line.split_once("listening on http").map(|(_, rest)| rest);
                    said.push(line.clone());
                    if let Some((_, address)) = at.and_then(|rest| rest.split_once("://")) {
                        let address = address.split_whitespace().next().unwrap_or_default();
                        break address.parse().expect("an address");
                    }
                }
                Err(_) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(said.join("\n"));
                }
            }
        };
        let token = std::fs::read_to_string(trial.state().join("token")).expect("the token");
        Ok(Server {
            child,
            address,
            token: token.trim().to_owned(),
            said,
            lines,
            ready_after: since.elapsed(),
        })
    }

    pub fn command(&self, trial: &Trial) -> Command {
        let mut command = Command::new(self.program.clone().unwrap_or_else(glovebox));
        for key in [
            "GLOVEBOX_CONFIG",
            "GLOVEBOX_STATE_DIR",
            "GLOVEBOX_MUTATION",
            "GLOVEBOX_DATABASE",
            "GLOVEBOX_LOG",
        ] {
            command.env_remove(key);
        }
        trial.caller().dress(&mut command);
        command
            .envs(self.environment.iter().cloned())
            .current_dir(trial.home())
            .arg("--state-dir")
            .arg(trial.state())
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(&self.options)
            .stdin(Stdio::null());
        command
    }
}

/// A running server, which its test must end: [`Server::stop`] it, [`Server::kill`] it, or wait for
/// its end.
#[derive(Debug)]
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    /// The admin's, of space `local`.
    pub token: String,
    said: Vec<String>,
    lines: mpsc::Receiver<String>,
    pub ready_after: Duration,
}

impl Server {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// With the admin's token.
    pub fn client(&self) -> Client {
        Client::new(self.address, Some(&self.token))
    }

    pub fn client_of(&self, token: &str) -> Client {
        Client::new(self.address, Some(token))
    }

    pub fn nobody(&self) -> Client {
        Client::new(self.address, None)
    }

    /// Makes a token of this role and space, and returns its secret.
    ///
    /// # Panics
    /// When the server refuses.
    pub fn token_of(&self, role: &str, space: &str, name: &str) -> String {
        let body = json!({"name": name, "role": role, "space_id": space});
        let made = self.client().post("/v1/tokens", &body);
        assert_eq!(made.status, 201, "{}", made.text());
        let secret = made.json()["secret"].as_str().map(str::to_owned);
        secret.expect("a secret")
    }

    /// Runs something to its end.
    pub fn exec(&self, body: &Value) -> Response {
        self.client().post("/v1/execs", body)
    }

    /// At once, with no chance to tidy up.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("signal the server");
    }

    /// Waits for its end; its exit code.
    ///
    /// # Panics
    /// When it does not end.
    pub fn wait(&mut self, patience: Duration) -> i32 {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.child.try_wait().expect("wait for the server") {
                return status.code().unwrap_or(-1);
            }
            assert!(Instant::now() < deadline, "the server does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// SIGTERM and its end.
    pub fn stop(mut self) -> i32 {
        self.signal(rustix::process::Signal::TERM);
        self.wait(Duration::from_secs(100))
    }

    /// Everything it has written on standard error so far.
    pub fn said(&mut self) -> String {
        self.said.extend(self.lines.try_iter());
        self.said.join("\n")
    }
}

/// One that is killed while it builds sandboxes leaves control groups, and a later trial may get a
/// state directory of the same number.
impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        self.signal(rustix::process::Signal::TERM);
        let ended = wait_until(LEAVING, || matches!(self.child.try_wait(), Ok(Some(_))));
        if !ended {
            self.kill();
        }
        if !std::thread::panicking() {
            panic!("a test has left its server running");
        }
    }
}
