//! The second table: sandboxes that outlive an exec. They stand with a server, so the cases of a
//! column share one.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use support::{Caller, Column, Docker, Server, Start, Trial, glovebox, wait_until};

/// What anything here may need on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A kept sandbox of one case's own.
struct Kept<'server> {
    trial: &'server Trial,
    server: SocketAddr,
    column: Column,
    agent: String,
    name: String,
}

struct Said {
    code: i32,
    json: Value,
}

impl Said {
    #[track_caller]
    fn ok(self) -> Value {
        assert_eq!(self.code, 0, "{}", self.json);
        self.json
    }

    #[track_caller]
    fn stdout(self) -> String {
        let text = self.json["stdout"].as_str().map(str::to_owned);
        text.unwrap_or_else(|| panic!("{}", self.json))
    }
}

impl<'server> Kept<'server> {
    fn new(trial: &'server Trial, server: SocketAddr, column: Column, agent: &str) -> Self {
        let mut kept = Self {
            trial,
            server,
            column,
            agent: agent.to_owned(),
            name: String::new(),
        };
        let made = kept.create().ok();
        kept.name = made["name"].as_str().expect("a name").to_owned();
        assert_eq!(made["state"], "idle", "{made}");
        assert_eq!(made["config"]["backend"], column.backend());
        kept
    }

    fn cli<'word>(&self, words: impl IntoIterator<Item = &'word str>) -> Said {
        let output = Command::new(glovebox())
            .arg("--state-dir")
            .arg(self.trial.state())
            .arg("--server")
            .arg(format!("http://{}", self.server))
            .arg("--json")
            .args(words)
            .output()
            .expect("start glovebox");
        // What went wrong is said on the other stream.
        let text = match output.stdout.is_empty() {
            true => &output.stderr,
            false => &output.stdout,
        };
        let plain = || json!({"stdout": String::from_utf8_lossy(text)});
        Said {
            code: output.status.code().unwrap_or(-1),
            json: serde_json::from_slice(text).unwrap_or_else(|_| plain()),
        }
    }

    fn create(&self) -> Said {
        let (agent, column) = (self.agent.as_str(), self.column.options());
        let words = [
            "sandbox",
            "create",
            "--lifetime",
            "agent",
            "--agent",
            agent,
            "--project",
            agent,
            // What is taken too much of is taken sooner.
            "--memory",
            "256M",
        ];
        self.cli(words.into_iter().chain(column))
    }

    fn exec(&self, options: &[&str], command: &[&str]) -> Said {
        let words = ["exec"].into_iter().chain(options.iter().copied());
        let rest = [self.name.as_str(), "--"]
            .into_iter()
            .chain(command.iter().copied());
        self.cli(words.chain(rest))
    }

    fn sh(&self, script: &str) -> Said {
        self.exec(&[], &["sh", "-c", script])
    }

    fn python(&self, code: &str) -> Said {
        self.exec(&[], &["/usr/bin/python3", "-c", code])
    }

    /// Its row when it is idle again, which it is a moment after its exec was answered.
    #[track_caller]
    fn given_back(&self) -> Value {
        let mut info = Value::Null;
        let idle = wait_until(PATIENCE, || {
            info = self.cli(["sandbox", "info", &self.name]).ok();
            info["state"] == "idle"
        });
        assert!(idle, "{info}");
        info
    }
}

type Check = fn(&Kept<'_>);

const CASES: &[(&str, Check)] = &[
    ("it is made once, listed and shown", listed),
    ("an exec in it is an exec like any other", an_exec),
    ("files stay, in the workspace and beside it", files_stay),
    ("processes do not stay", processes_go),
    (
        "variables and working directories do not stay",
        nothing_else_stays,
    ),
    (
        "artifacts are one exec's alone, inputs are the workspace's",
        artifacts,
    ),
    ("a time-out ends the exec and not the sandbox", time_out),
    (
        "memory beyond its limit ends the exec and not the sandbox",
        memory,
    ),
    ("one exec at a time", turns),
    ("made anew it has its workspace and nothing else", recreated),
    ("one that was ended from outside comes back", revived),
    ("removed it is gone", removed),
];

fn listed(kept: &Kept<'_>) {
    let again = kept.create();
    assert_eq!(again.json["error"]["code"], "conflict", "{}", again.json);
    let all = kept.cli(["sandbox", "ls"]).ok();
    let names = all["items"].as_array().expect("a list").iter();
    assert_eq!(
        names.filter(|it| it["name"] == kept.name.as_str()).count(),
        1
    );
    let info = kept.cli(["sandbox", "info", &kept.name]).ok();
    assert_eq!(info["lifetime"], "agent");
    assert_eq!(info["scope"], kept.agent.as_str());
    assert_eq!(info["uses"], 0);
    assert!(kept.name.len() <= 63);
}

fn an_exec(kept: &Kept<'_>) {
    let said = kept.sh("echo out; echo err >&2; exit 7");
    assert_eq!(said.code, 7, "{}", said.json);
    assert_eq!(
        (&said.json["stdout"], &said.json["stderr"]),
        (&json!("out\n"), &json!("err\n"))
    );
    assert_eq!(said.json["status"], "failed");
    let info = kept.given_back();
    assert_eq!(said.json["sandbox_id"], info["sandbox_id"]);
    assert_eq!(info["uses"], 1);
    assert_eq!(said.json["backend"], kept.column.backend());
    assert_eq!(kept.exec(&[], &["no-such-program"]).code, 127);
    assert_eq!(kept.exec(&[], &["/usr"]).code, 126);
    let said = kept.exec(&["--cwd", "missing"], &["pwd"]);
    assert_eq!(said.json["error"]["code"], "cwd_not_found", "{}", said.json);
    let said = kept.exec(
        &["--env", "A=x y\nz"],
        &["sh", "-c", "printf %s \"$A\"; pwd"],
    );
    assert_eq!(said.stdout(), "x y\nz/workspace/work\n");
}

fn files_stay(kept: &Kept<'_>) {
    let places = "/workspace/work /tmp /home/sandbox";
    kept.sh(&format!("for it in {places}; do echo $it > $it/left; done"))
        .ok();
    let said = kept.sh(&format!("for it in {places}; do cat $it/left; done"));
    assert_eq!(said.stdout(), "/workspace/work\n/tmp\n/home/sandbox\n");
    let work = kept
        .trial
        .state()
        .join("projects")
        .join(&kept.agent)
        .join("work/left");
    assert_eq!(
        std::fs::read_to_string(work).expect("a file"),
        "/workspace/work\n"
    );
}

/// Every process but the first, itself and those that an engine keeps there, by their commands.
const OTHERS: &str = "import os
for pid in filter(str.isdigit, os.listdir('/proc')):
    try: words = open(f'/proc/{pid}/cmdline', 'rb').read().split(b'\\0')
    except OSError: continue
    if b'left-behind' in words: print(pid, words)
print('looked')";

fn processes_go(kept: &Kept<'_>) {
    let leave = "import os, signal, subprocess, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        for number in range(1, 32):
            try: signal.signal(number, signal.SIG_IGN)
            except OSError: pass
        os.execv('/usr/bin/python3', ['python3', '-c', '''
import os, time
open(f\"/tmp/begun-{os.getpid()}\", \"w\").close()
while True: open(\"/workspace/work/beat\", \"a\").write(\"x\"); time.sleep(0.02)''', 'left-behind'])
import glob
while len(glob.glob('/tmp/begun-*')) < 3: time.sleep(0.01)";
    kept.python(leave).ok();
    assert_eq!(kept.python(OTHERS).stdout(), "looked\n");
    let beat = kept
        .trial
        .state()
        .join("projects")
        .join(&kept.agent)
        .join("work/beat");
    let size = || std::fs::metadata(&beat).expect("a file").len();
    let before = size();
    kept.exec(&[], &["sleep", "0.2"]).ok();
    assert_eq!(size(), before, "something still writes");
}

fn nothing_else_stays(kept: &Kept<'_>) {
    kept.exec(
        &["--env", "LEFT=left"],
        &["sh", "-c", "mkdir -p d; cd d; export X=left; umask 0"],
    )
    .ok();
    let said = kept.sh("pwd; umask; env");
    let text = said.stdout();
    assert!(text.starts_with("/workspace/work\n0022\n"), "{text}");
    assert!(!text.contains("left"), "{text}");
}

fn artifacts(kept: &Kept<'_>) {
    let file = kept.trial.home().join(format!("given-{}", kept.agent));
    std::fs::write(&file, "mine").expect("write a file");
    let given = format!("{}:given", file.display());
    let first = kept.exec(
        &["--input", &given],
        &[
            "sh",
            "-c",
            "cp /workspace/inputs/given /workspace/artifacts/first",
        ],
    );
    let first = first.ok();
    assert_eq!(
        first["artifacts"].as_array().map(Vec::len),
        Some(1),
        "{first}"
    );
    let second = kept
        .sh("cd /workspace; echo inputs/* artifacts/*; echo x > artifacts/second")
        .ok();
    assert_eq!(second["stdout"], "inputs/given artifacts/*\n");
    let names: Vec<&Value> = second["artifacts"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| &it["path"])
        .collect();
    assert_eq!(names, ["second"]);
}

fn time_out(kept: &Kept<'_>) {
    kept.sh("echo stays > /tmp/stays").ok();
    let said = kept.exec(
        &["--timeout", "1s"],
        &["sh", "-c", "trap '' TERM INT; sleep 60 & sleep 60"],
    );
    assert_eq!(
        (said.code, &said.json["status"]),
        (124, &json!("timed_out")),
        "{}",
        said.json
    );
    let after = kept.sh("cat /workspace/work/none /tmp/stays; echo alive");
    let text = after.stdout();
    match kept.column {
        Column::Native => assert_eq!(text, "stays\nalive\n"),
        // The container is killed and started again, so its memory files are new.
        Column::Runc | Column::Runsc => assert!(text.ends_with("alive\n"), "{text}"),
    }
    assert_eq!(kept.python(OTHERS).stdout(), "looked\n");
}

fn memory(kept: &Kept<'_>) {
    let said = kept.python("x = bytearray(600 << 20); print(len(x))");
    assert_eq!(said.json["limit_hit"], "memory", "{}", said.json);
    assert_eq!(said.json["status"], "killed", "{}", said.json);
    let after = kept.sh("echo alive").ok();
    assert_eq!(
        (&after["stdout"], &after["limit_hit"]),
        (&json!("alive\n"), &json!(null))
    );
}

fn turns(kept: &Kept<'_>) {
    let alone = "mkdir alone || exit 9; sleep 0.3; rmdir alone";
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| kept.sh(alone).ok());
        }
    });
    assert_eq!(kept.given_back()["uses"], 4);
}

fn recreated(kept: &Kept<'_>) {
    kept.sh("for it in /workspace/work /tmp /home/sandbox; do echo $it > $it/left; done")
        .ok();
    kept.cli(["sandbox", "recreate", &kept.name]).ok();
    let said = kept.sh("cat /workspace/work/left /tmp/left /home/sandbox/left; echo looked");
    assert_eq!(said.stdout(), "/workspace/work\nlooked\n");
}

fn revived(kept: &Kept<'_>) {
    kept.sh("echo x > left").ok();
    let docker = Docker::shared().filter(|_| kept.column.is_docker());
    match docker {
        Some(docker) => drop(docker.ask(&["rm", "--force", &kept.name])),
        None => kill_pid_one_with(kept),
    }
    let said = kept.sh("cat left; echo alive");
    assert_eq!(said.stdout(), "x\nalive\n");
}

/// Finds the sandbox by a program that waits in it, and ends its first process.
fn kill_pid_one_with(kept: &Kept<'_>) {
    let tag = format!("to-be-found-{}-{}", kept.trial.tag(), kept.agent);
    std::thread::scope(|scope| {
        let waiting =
            scope.spawn(|| kept.exec(&["--env", &format!("TAG={tag}")], &["sleep", "60"]));
        let mut first = None;
        let found = wait_until(PATIENCE, || {
            first = support::processes_with(&tag)
                .into_iter()
                .find_map(parent_that_is_first);
            first.is_some()
        });
        assert!(found, "it does not run");
        let pid = first.and_then(rustix::process::Pid::from_raw);
        let pid = pid.expect("a pid");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("a signal");
        let said = waiting.join().expect("an end");
        assert_eq!(said.json["status"], "error", "{}", said.json);
    });
}

fn parent_that_is_first(pid: u32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?;
    let comm = std::fs::read_to_string(format!("/proc/{parent}/comm")).ok()?;
    (comm.trim() == "glovebox-init").then(|| parent.parse().ok())?
}

fn removed(kept: &Kept<'_>) {
    kept.sh("echo x > left; sleep 100 &").ok();
    kept.cli(["sandbox", "rm", &kept.name]).ok();
    let said = kept.sh("true");
    assert_eq!(said.json["error"]["code"], "not_found", "{}", said.json);
    if let Some(docker) = Docker::shared().filter(|_| kept.column.is_docker()) {
        let left = docker.containers(&kept.trial.state());
        assert!(!left.contains(&kept.name), "{left:?}");
    }
    let work = kept
        .trial
        .state()
        .join("projects")
        .join(&kept.agent)
        .join("work/left");
    assert!(work.exists(), "the workspace stays");
}

/// A server that has an engine of containers, if there is one, and no pool.
fn serve(trial: &Trial) -> Server {
    let config = trial.home().join("config.toml");
    // Four in turn take long where each waits for the disk.
    let text = "[pool]\nenabled = false\n[sandbox]\nacquire_timeout = \"150s\"\n";
    std::fs::write(&config, text).expect("write the configuration");
    let start = Start::default().with(["--config", &config.to_string_lossy()]);
    match Docker::shared() {
        Some(docker) => start.outside("DOCKER_HOST", docker.host()).on(trial),
        None => start.on(trial),
    }
}

/// Takes down what would outlive the server.
fn clear(server: &Server) {
    let all = server.client().get("/v1/sandboxes").json();
    for listed in all["items"].as_array().into_iter().flatten() {
        let name = listed["name"].as_str().unwrap_or_default();
        let path = format!("/v1/sandboxes/{name}");
        let gone = server.client().send("DELETE", &path, None);
        assert_eq!(gone.status, 200, "{}", gone.text());
    }
}

fn fill(column: Column) {
    if !column.is_here() {
        return;
    }
    let trial = Trial::new(Caller::Root).expect("root");
    let server = serve(&trial);
    let address = server.address;
    let outcomes = crate::table::share(CASES.len(), |number| {
        let since = std::time::Instant::now();
        let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let agent = format!("agent-{number}-{column:?}");
            let kept = Kept::new(&trial, address, column, &agent);
            CASES[number].1(&kept);
            // Its row removed it already, or it goes now.
            kept.cli(["sandbox", "rm", &kept.name]);
        }));
        (since.elapsed(), tried)
    });
    let mut broken = Vec::new();
    println!("{:<60} {column}", "a sandbox that is kept");
    for ((name, _), (took, tried)) in CASES.iter().zip(outcomes) {
        match tried {
            Ok(()) => println!("{name:<60} yes  {:>6} ms", took.as_millis()),
            Err(panic) => {
                println!("{name:<60} NO");
                broken.push(format!("{name}: {}", crate::table::said(&*panic)));
            }
        }
    }
    clear(&server);
    server.client().verify_ledger();
    assert_eq!(server.stop(), 0);
    column.assert_no_container(&trial);
    trial.end();
    assert!(broken.is_empty(), "{column}:\n{}", broken.join("\n"));
}

#[test]
fn native_sandboxes_are_kept() {
    fill(Column::Native);
}

#[test]
fn containers_of_runc_are_kept() {
    fill(Column::Runc);
}

#[test]
fn containers_of_gvisor_are_kept() {
    fill(Column::Runsc);
}

/// Two state directories are two houses, also where they share an engine: neither sees, uses or ends
/// the sandboxes of the other, even if they belong to an agent of the same name.
#[test]
fn two_houses_on_one_engine_keep_their_sandboxes_apart() {
    if !Column::Runc.is_here() {
        return;
    }
    let trials = [(); 2].map(|()| Trial::new(Caller::Root).expect("root"));
    let servers = [&trials[0], &trials[1]].map(serve);
    let kept = [0, 1].map(|it| {
        Kept::new(
            &trials[it],
            servers[it].address,
            Column::Runc,
            "agent-of-both",
        )
    });
    for (number, kept) in kept.iter().enumerate() {
        kept.sh(&format!("echo {number} > /tmp/whose")).ok();
    }
    for (number, kept) in kept.iter().enumerate() {
        assert_eq!(kept.sh("cat /tmp/whose").stdout(), format!("{number}\n"));
    }
    kept[1].cli(["sandbox", "rm", &kept[1].name]).ok();
    // The same one, not another that came in its place.
    assert_eq!(kept[0].sh("cat /tmp/whose").stdout(), "0\n");
    for (trial, server) in trials.iter().zip(servers) {
        clear(&server);
        assert_eq!(server.stop(), 0);
        Column::Runc.assert_no_container(trial);
        trial.assert_nothing_is_left();
    }
}
