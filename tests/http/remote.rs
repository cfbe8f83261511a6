//! The command line at a server does what it does without one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::{Caller, Database, Gate, Server, Start, Trial, glovebox, wait_until};

/// `glovebox`, in a state directory of its own, or at a server.
fn command(trial: &Trial, server: Option<(SocketAddr, &str)>, words: &[&str]) -> Command {
    let mut command = Command::new(glovebox());
    for key in [
        "GLOVEBOX_CONFIG",
        "GLOVEBOX_STATE_DIR",
        "GLOVEBOX_SERVER",
        "GLOVEBOX_TOKEN",
    ] {
        command.env_remove(key);
    }
    match server {
        Some((address, token)) => {
            command.args(["--server", &format!("http://{address}")]);
            command.env("GLOVEBOX_TOKEN", token);
        }
        None => {
            command.arg("--state-dir").arg(trial.state());
        }
    }
    command.args(words).current_dir(trial.work());
    command
}

fn at(server: &Server) -> Option<(SocketAddr, &str)> {
    Some((server.address, server.token.as_str()))
}

fn output(mut command: Command, stdin: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(stdin.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The names in it, at every depth: its shape.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let fields = object
                .iter()
                .map(|(name, value)| (name.clone(), shape(value)));
            Value::Object(fields.collect())
        }
        _ => Value::Null,
    }
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn a_run_is_the_same_with_and_without_a_server() {
    let (here, there) = (
        Trial::in_memory(Caller::Root).unwrap(),
        Trial::in_memory(Caller::Root).unwrap(),
    );
    let server = Start::default().on(&there);
    let sh = |script: &'static str| vec!["run", "--scratch", "--", "sh", "-c", script];
    let cases: Vec<(Vec<&str>, &str, i32)> = vec![
        (sh("echo out; echo err >&2; pwd"), "", 0),
        (sh("exit 3"), "", 3),
        (sh("kill -9 $$"), "", 137),
        (
            vec![
                "run",
                "--scratch",
                "--timeout",
                "300ms",
                "--",
                "sleep",
                "30",
            ],
            "",
            124,
        ),
        (vec!["run", "--scratch", "--", "no-such-program"], "", 127),
        (
            vec!["run", "--scratch", "--net", "unrestricted", "--", "true"],
            "",
            3,
        ),
        (
            vec!["run", "--scratch", "--stdin", "--", "wc", "-c"],
            "twelve bytes",
            0,
        ),
        (
            vec![
                "run",
                "--scratch",
                "--env",
                "WORD=a b",
                "--",
                "sh",
                "-c",
                "echo \"$WORD\"",
            ],
            "",
            0,
        ),
        (vec!["run", "--scratch", "--", "printf", "\\377\\n"], "", 0),
        (
            vec!["code", "--scratch", "shell"],
            "echo $((6*7)); exit 4",
            4,
        ),
        (
            vec![
                "run",
                "--project",
                "p",
                "--",
                "sh",
                "-c",
                "echo x >> f; cat f",
            ],
            "",
            0,
        ),
        (
            vec!["run", "--scratch", "--no-such-option", "--", "true"],
            "",
            2,
        ),
    ];
    for (words, stdin, code) in cases {
        let local = output(command(&here, None, &words), stdin);
        let remote = output(command(&here, at(&server), &words), stdin);
        assert_eq!(local.status.code(), Some(code), "{words:?}: {local:?}");
        assert_eq!(remote.status.code(), Some(code), "{words:?}: {remote:?}");
        assert_eq!(text(&remote.stdout), text(&local.stdout), "{words:?}");
        if code == 0 {
            assert_eq!(text(&remote.stderr), text(&local.stderr), "{words:?}");
        }
    }
    let words = [
        "run",
        "--scratch",
        "--json",
        "--",
        "sh",
        "-c",
        "echo out; echo a > /workspace/artifacts/a; exit 3",
    ];
    let local = output(command(&here, None, &words), "");
    let remote = output(command(&here, at(&server), &words), "");
    assert_eq!(
        (local.status.code(), remote.status.code()),
        (Some(3), Some(3))
    );
    let (local, remote) = (json(&local), json(&remote));
    assert_eq!(shape(&remote), shape(&local));
    for field in [
        "status",
        "exit_code",
        "stdout",
        "args",
        "mode",
        "artifacts",
        "project_id",
    ] {
        assert_eq!(remote[field], local[field], "{field}");
    }
    let wrong = output(
        command(&here, Some((server.address, "gb_wrong")), &["ps"]),
        "",
    );
    assert_eq!(wrong.status.code(), Some(4), "{wrong:?}");
    assert_eq!(server.stop(), 0);
    here.end();
    there.end();
}

#[test]
fn what_reads_and_administers_works_at_a_server() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let gate = Gate::new(&trial, "gate");
    let server = Start::default().on(&trial);
    let client = server.client();
    let cli = |words: &[&str]| output(command(&trial, at(&server), words), "");
    let fine = |words: &[&str]| {
        let output = cli(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        text(&output.stdout)
    };
    let held = client.begin(&support::sh(&format!(
        "echo one; {}; echo two; echo e >&2",
        gate.wait()
    )));
    client.record_when(&held, |record| record["status"] == "running");
    assert!(fine(&["ps"]).contains(&held[..10]));
    let follows = command(&trial, at(&server), &["logs", "-f", &held])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    gate.open();
    let followed = follows.wait_with_output().unwrap();
    assert_eq!(
        (text(&followed.stdout), text(&followed.stderr)),
        ("one\ntwo\n".into(), "e\n".into())
    );
    assert_eq!(fine(&["logs", "--stdout", &held]), "one\ntwo\n");
    let shown: Value = serde_json::from_str(&fine(&["show", "--json", &held])).unwrap();
    assert_eq!(shown, client.record(&held));
    // The same as without the server, in the same state directory.
    let local = output(command(&trial, None, &["show", "--json", &held]), "");
    assert_eq!(json(&local), shown);
    assert!(fine(&["ps", "--all"]).contains(&held[..10]));
    assert!(fine(&["audit", "verify"]).starts_with("sound"));
    assert!(fine(&["policy", "explain", "--", "true"]).contains("allow"));
    let refused = cli(&["policy", "explain", "--net", "unrestricted", "--", "true"]);
    assert!(text(&refused.stdout).contains("deny"), "{refused:?}");

    let made: Value = serde_json::from_str(&fine(&[
        "token", "create", "--role", "agent", "--space", "s", "--name", "n", "--json",
    ]))
    .unwrap();
    let secret = made["secret"].as_str().unwrap();
    assert_eq!(
        server.client_of(secret).get("/v1/whoami").json()["space_id"],
        "s"
    );
    let id = made["token"]["token_id"].as_str().unwrap();
    assert!(fine(&["token", "ls"]).contains(id));
    // An agent of another space sees none of it.
    let agent = Some((server.address, secret));
    let hidden = output(command(&trial, agent, &["show", &held]), "");
    assert!(
        !hidden.status.success() && !text(&hidden.stderr).contains("out of"),
        "{hidden:?}"
    );
    let forbidden = output(command(&trial, agent, &["settings", "show"]), "");
    assert!(!forbidden.status.success(), "{forbidden:?}");
    fine(&["token", "rm", id]);
    assert_eq!(server.client_of(secret).get("/v1/whoami").status, 401);
    fine(&["settings", "set", "max_queued=7"]);
    assert!(fine(&["settings", "show"]).contains('7'));
    assert_eq!(
        client.get("/v1/settings").json()["settings"]["max_queued"],
        7
    );

    let never = Gate::new(&trial, "never");
    let held = client.begin(&support::sh(&never.wait()));
    fine(&["cancel", &held]);
    assert_eq!(client.ended(&held)["status"], "canceled");
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn an_interrupt_cancels_at_the_server() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let gate = Gate::new(&trial, "never");
    let server = Start::default().on(&trial);
    let script = format!("echo here; {}", gate.wait());
    let words = ["run", "--project", "p", "--", "sh", "-c", &script];
    let mut child = command(&trial, at(&server), &words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "here\n");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let client = server.client();
    let page = client.get("/v1/execs").json();
    let record = client.ended(page["items"][0]["exec_id"].as_str().unwrap());
    assert_eq!(record["status"], "canceled", "{record}");
    assert_eq!(server.stop(), 0);
    trial.end();
}

/// Passes connections on, until it cuts them.
struct Proxy {
    address: SocketAddr,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let kept = Arc::clone(&open);
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(server) else {
                    continue;
                };
                // Before anything is passed on: whoever has heard something can be cut.
                let both = [near.try_clone().unwrap(), far.try_clone().unwrap()];
                kept.lock().unwrap().extend(both);
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    thread::spawn(move || {
                        let mut bytes = [0; 4096];
                        while let Ok(count @ 1..) = from.read(&mut bytes) {
                            if to.write_all(&bytes[..count]).is_err() {
                                break;
                            }
                        }
                        let _ = to.shutdown(Shutdown::Write);
                    });
                }
            }
        });
        Self { address, open }
    }

    /// How many it had.
    fn cut(&self) -> usize {
        let open = std::mem::take(&mut *self.open.lock().unwrap());
        for stream in &open {
            let _ = stream.shutdown(Shutdown::Both);
        }
        open.len()
    }
}

#[test]
fn a_connection_that_is_cut_costs_no_line_and_runs_nothing_twice() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let gates = ["g1", "g2", "g3"].map(|name| Gate::new(&trial, name));
    let server = Start::default().on(&trial);
    let proxy = Proxy::before(server.address);
    let script = format!(
        "echo ran >> log; echo 1; {}; echo 2; {}; echo 3; {}; echo 4; exit 5",
        gates[0].wait(),
        gates[1].wait(),
        gates[2].wait()
    );
    let through = Some((proxy.address, server.token.as_str()));
    let words = ["run", "--project", "p", "--", "sh", "-c", &script];
    let mut child = command(&trial, through, &words)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut told = Vec::new();
    for gate in &gates {
        told.push(lines.next().unwrap().unwrap());
        assert!(proxy.cut() > 0, "nothing to cut");
        gate.open();
    }
    told.extend(lines.map(Result::unwrap));
    assert_eq!(told, ["1", "2", "3", "4"]);
    assert_eq!(child.wait().unwrap().code(), Some(5));
    assert_eq!(gates[0].file("log").as_deref(), Some("ran\n"));
    let all_gone = wait_until(Duration::from_secs(60), || {
        server.client().get("/sandbox/health").json()["running"] == 0
    });
    assert!(all_gone);
    assert_eq!(server.stop(), 0);
    trial.end();
}

#[test]
fn a_shared_database_is_read_without_its_server() {
    let Some(database) = Database::new() else {
        return;
    };
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default()
        .with(["--database", database.url()])
        .on(&trial);
    let client = server.client();
    let id = client.begin(&support::sh("echo out"));
    client.record_when(&id, |record| record["status"] == "succeeded");
    for (words, said) in [
        (&["ps", "--all", "--quiet"][..], &*id),
        (&["show", &id[..10]], &*id),
        (&["logs", &id], "out\n"),
        (&["audit", "tail"], "outcome"),
        (&["audit", "export"], "checkpoint"),
        (&["audit", "verify"], "sound"),
        (&["token", "ls"], "admin"),
        (&["settings", "show"], "max_queued"),
        (&["approval", "ls", "--json"], "items"),
    ] {
        let mut command = command(&trial, None, words);
        command.env("GLOVEBOX_DATABASE", database.url());
        let output = output(command, "");
        assert!(output.status.success(), "{words:?}: {output:?}");
        assert!(text(&output.stdout).contains(said), "{words:?}: {output:?}");
    }
    assert_eq!(server.stop(), 0);
    trial.end();
}
