//! What one exec at a server and one call of a tool spend, of a server that has done a few.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use support::{Client, Trial, wait_until};

use crate::calls::{self, Counted, PAYLOAD};
use crate::processes::Faults;
use crate::table::{Spent, Unit};
use crate::{commands, processes};

/// Before anything is counted: what is done once is done.
const FIRST: usize = 3;
/// Of so many, the cheapest: timers, checkpoints of the database and new threads make others dearer, on a
/// busy machine nearly all of them. A change that spends more does so in each.
const COUNTED: usize = 16;
/// As many sandboxes are in the pool. Two may be in the hands of its builders, and one must be left.
const STANDING: usize = 4;
/// What anything here may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// What one whose test has failed gets for tidying up.
const LEAVING: Duration = Duration::from_secs(10);

pub(crate) trait Served {
    fn pid(&self) -> u32;
    /// Once, and to its end.
    fn serve_one(&mut self);
    fn end(self: Box<Self>);
}

pub(crate) fn spent(
    what: &'static str,
    start: &dyn Fn(Option<&Path>) -> Box<dyn Served>,
) -> Vec<Spent> {
    let counted = count(start);
    let (faults, resident_kb) = used(start);
    let of_all = |of: &dyn Fn(&Counted) -> u64| least(counted.iter().map(of));
    [
        (Unit::Calls, of_all(&|it| it.calls)),
        (Unit::Syncs, of_all(&|it| it.syncs)),
        (Unit::Made, of_all(&|it| it.made)),
        (Unit::Faults, faults),
        (Unit::ResidentKb, resident_kb),
    ]
    .map(|(unit, amount)| Spent::new(what, unit, amount))
    .to_vec()
}

fn least(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().min().unwrap_or(u64::MAX)
}

/// With what it makes the server do afterwards: another sandbox takes the place of one from the pool.
fn one(served: &mut dyn Served) {
    served.serve_one();
    processes::settle(served.pid());
}

fn count(start: &dyn Fn(Option<&Path>) -> Box<dyn Served>) -> Vec<Counted> {
    // In memory: whoever is traced waits until its line is written.
    let directory = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let log = directory.path().join("log");
    let mut served = start(Some(&log));
    (0..FIRST).for_each(|_| one(&mut *served));
    // strace writes line by line.
    let length = || fs::metadata(&log).expect("the log").len() as usize;
    let mut cuts = vec![length()];
    for _ in 0..COUNTED {
        one(&mut *served);
        cuts.push(length());
    }
    served.end();
    calls::count(&calls::whole(&log), &cuts)
}

fn used(start: &dyn Fn(Option<&Path>) -> Box<dyn Served>) -> (u64, u64) {
    let mut served = start(None);
    let pid = served.pid();
    (0..FIRST).for_each(|_| one(&mut *served));
    let mut faults = Vec::new();
    for _ in 0..COUNTED {
        let before = Faults::now(pid);
        one(&mut *served);
        faults.push(Faults::now(pid).since(&before));
    }
    let resident_kb = processes::resident_kb(pid);
    served.end();
    (least(faults), resident_kb)
}

/// Of a test that failed, it is asked to end.
struct Started(Child);

impl Started {
    fn ask_to_end(&self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(Some(_))) {
            return;
        }
        self.ask_to_end();
        if !wait_until(LEAVING, || matches!(self.0.try_wait(), Ok(Some(_)))) {
            let _ = self.0.kill();
        }
    }
}

/// A server that is asked for one exec after another.
pub(crate) struct Execs {
    trial: Trial,
    child: Started,
    client: Client,
    body: Value,
    is_pooled: bool,
}

impl Execs {
    /// Its sandboxes are all of one shape.
    pub(crate) fn pooled(binary: &Path, log: Option<&Path>) -> Self {
        let body = json!({"project_id": "p", "exec": {"kind": "argv", "command": PAYLOAD}});
        let config = format!("[pool]\nmin = {STANDING}\npython = 0\n");
        let it = Self::start(binary, log, &config, body);
        let is_filled = || it.client.get("/v1/pool").json()["idle"] == STANDING;
        assert!(wait_until(PATIENCE, is_filled), "the pool is not filled");
        Self {
            is_pooled: true,
            ..it
        }
    }

    pub(crate) fn kept(binary: &Path, log: Option<&Path>) -> Self {
        let body = json!({
            "exec": {"kind": "argv", "command": PAYLOAD},
            "task_ref": {"agent_id": "ann"},
            "sandbox": {"lifetime": "agent"},
        });
        Self::start(binary, log, "[pool]\nenabled = false\n", body)
    }

    fn start(binary: &Path, log: Option<&Path>, config: &str, body: Value) -> Self {
        let trial = commands::trial();
        let path = trial.home().join("config.toml");
        fs::write(&path, config).expect("write the configuration");
        let mut child = commands::glovebox(binary, &trial, log)
            .arg("--config")
            .arg(path)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start glovebox serve");
        let mut lines = BufReader::new(child.stderr.take().expect("its standard error")).lines();
        let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, address) = line.split_once("listening on http://")?;
            Some(address.trim().parse().expect("an address"))
        });
        // Reads on, so that the server never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        let token = fs::read_to_string(trial.state().join("token")).expect("the token");
        let address = address.expect("a server that listens");
        Self {
            client: Client::new(address, Some(token.trim())),
            trial,
            child: Started(child),
            body,
            is_pooled: false,
        }
    }
}

impl Served for Execs {
    fn pid(&self) -> u32 {
        self.child.0.id()
    }

    fn serve_one(&mut self) {
        let answer = self.client.post("/v1/execs", &self.body);
        let record = answer.json();
        assert_eq!(record["status"], "succeeded", "{record}");
    }

    fn end(mut self: Box<Self>) {
        if self.is_pooled {
            let pool = self.client.get("/v1/pool").json();
            assert_eq!(pool["misses"], 0, "{pool}");
        }
        self.child.ask_to_end();
        assert!(self.child.0.wait().expect("its end").success());
        self.trial.end();
    }
}

/// `glovebox mcp`, whose tool `run_command` is called again and again.
pub(crate) struct Tools {
    trial: Trial,
    child: Started,
    output: BufReader<ChildStdout>,
    calls: u64,
}

impl Tools {
    pub(crate) fn start(binary: &Path, log: Option<&Path>) -> Self {
        let trial = commands::trial();
        let mut child = commands::glovebox(binary, &trial, log)
            .arg("mcp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start glovebox mcp");
        let output = BufReader::new(child.stdout.take().expect("its standard output"));
        let mut it = Self {
            trial,
            child: Started(child),
            output,
            calls: 0,
        };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "tests", "version": "1"},
        });
        it.ask("initialize", &hello);
        it.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        it
    }

    fn say(&mut self, message: &Value) {
        let input = self.child.0.stdin.as_mut().expect("its standard input");
        writeln!(input, "{message}").expect("say something");
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).expect("hear something");
            let message: Value = serde_json::from_str(&line).expect("a message");
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }
}

impl Served for Tools {
    fn pid(&self) -> u32 {
        self.child.0.id()
    }

    fn serve_one(&mut self) {
        let call = json!({"name": "run_command", "arguments": {"command": [PAYLOAD]}});
        let answer = self.ask("tools/call", &call);
        assert_ne!(answer["result"]["isError"], true, "{answer}");
        assert!(answer["result"].is_object(), "{answer}");
    }

    fn end(mut self: Box<Self>) {
        drop(self.child.0.stdin.take());
        assert!(self.child.0.wait().expect("its end").success());
        self.trial.end();
    }
}
