//! Containers of a real engine. `GLOVEBOX_TEST_DOCKER` says where it listens; it has the image
//! `glovebox-sandbox:latest`.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::trial::{Answer, Running, Trial, names, until};

struct Engine {
    trial: Trial,
    host: String,
}

impl Engine {
    /// `None`, loudly, where no engine is there for tests.
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    fn there() -> Option<Self> {
        match std::env::var("GLOVEBOX_TEST_DOCKER") {
            Ok(host) if !host.is_empty() => Some(Self {
                trial: Trial::new(),
                host,
            }),
            _ if std::env::var_os("CI").is_some() => panic!("GLOVEBOX_TEST_DOCKER is not set"),
            _ => {
                eprintln!("SKIPPED: GLOVEBOX_TEST_DOCKER is not set");
                None
            }
        }
    }

    /// An engine whose disk is busy takes longer than anybody waits for it, now and then.
    fn run(&self, args: &[&str]) -> Answer {
        let run = || {
            let mut command = self.trial.command(args);
            let command = command.env("DOCKER_HOST", &self.host);
            Answer::from(command.output().unwrap())
        };
        let is_away = |answer: &Answer| answer.stderr.contains("engine cannot be reached");
        let answer = (0..2).map(|_| run()).find(|answer| !is_away(answer));
        answer.unwrap_or_else(run)
    }
}

#[test]
fn a_run_in_a_container_is_a_run() {
    let Some(engine) = Engine::there() else {
        return;
    };
    let run = [
        "run",
        "--backend",
        "docker",
        "--project",
        "p",
        "--json",
        "--",
        "sh",
        "-c",
        "echo out; touch x; exit 7",
    ];
    let record = engine.run(&run).exits(7).json();
    assert_eq!(
        (&record["backend"], &record["stdout"], &record["image"]),
        (
            &json!("docker"),
            &json!("out\n"),
            &json!("glovebox-sandbox:latest")
        )
    );
    engine
        .run(&["run", "--project", "p", "--", "test", "-e", "x"])
        .exits(0);
    let missing = [
        "run",
        "--scratch",
        "--backend",
        "docker",
        "--image",
        "no-such-image",
        "--",
        "true",
    ];
    let missing = engine.run(&missing).exits(125);
    assert!(missing.stderr.contains("docker pull"), "{missing:?}");
    let probed = engine
        .run(&["backend", "probe", "docker", "--run", "--json"])
        .exits(0)
        .json();
    assert_eq!(probed["trial"]["health"], "ok", "{probed}");
    let text = engine.run(&["doctor"]).exits(0).stdout;
    assert!(text.contains("ok  containers"), "{text}");
}

#[test]
fn who_demands_a_kernel_gets_one() {
    let Some(engine) = Engine::there() else {
        return;
    };
    let record = engine
        .run(&[
            "run",
            "--scratch",
            "--require",
            "own_kernel",
            "--json",
            "--",
            "true",
        ])
        .exits(0)
        .json();
    assert_eq!(
        (
            &record["backend"],
            &record["runtime"],
            &record["isolation"]["own_kernel"]
        ),
        (&json!("docker"), &json!("runsc"), &json!("kernel"))
    );
}

#[test]
fn a_runtime_that_is_named_with_its_backend_is_the_one_that_runs() {
    let Some(engine) = Engine::there() else {
        return;
    };
    let words = ["run", "--scratch", "--backend", "docker:runsc", "--json"];
    let record = engine
        .run(&[&words[..], &["--", "true"]].concat())
        .exits(0)
        .json();
    assert_eq!(
        (&record["backend"], &record["runtime"]),
        (&json!("docker"), &json!("runsc"))
    );
    let probed = engine.run(&["backend", "probe", "docker:runsc", "--json"]);
    assert_eq!(probed.exits(0).json()["runtime"], "runsc");
}

#[test]
fn a_kept_container_stays_between_commands_and_goes_when_removed() {
    let Some(engine) = Engine::there() else {
        return;
    };
    let made = engine.run(&[
        "sandbox",
        "create",
        "--lifetime",
        "shared",
        "--project",
        "p",
        "--backend",
        "docker",
        "--json",
    ]);
    let made = made.exits(0).json();
    let name = made["name"].as_str().unwrap();
    let container = made["container_id"].as_str().unwrap();
    for _ in 0..2 {
        let record = engine.run(&["exec", name, "--json", "--", "true"]).exits(0);
        assert_eq!(record.json()["backend"], "docker");
    }
    let row = engine
        .run(&["sandbox", "info", name, "--json"])
        .exits(0)
        .json();
    assert_eq!(row["container_id"], container);
    assert_eq!(row["uses"], 2);
    // Made anew it is what it was asked to be, and another container.
    let anew = engine
        .run(&["sandbox", "recreate", name, "--json"])
        .exits(0);
    assert_eq!(anew.json()["config"]["backend"], "docker");
    engine.run(&["exec", name, "--", "true"]).exits(0);
    let row = engine
        .run(&["sandbox", "info", name, "--json"])
        .exits(0)
        .json();
    let second = row["container_id"].as_str().unwrap();
    assert_ne!(second, container);
    engine.run(&["sandbox", "rm", name]).exits(0);
    let left = std::process::Command::new("docker")
        .args(["ps", "--all", "--quiet", "--no-trunc"])
        .env("DOCKER_HOST", &engine.host)
        .output()
        .unwrap();
    let left = String::from_utf8(left.stdout).unwrap();
    assert!(
        !left.contains(container) && !left.contains(second),
        "{left}"
    );
}

/// The engine's command, which says what it is asked and starts nothing until it may.
struct Slow {
    engine: Engine,
    config: std::path::PathBuf,
}

impl Slow {
    fn there() -> Option<Self> {
        use std::os::unix::fs::PermissionsExt;
        let engine = Engine::there()?;
        let place = engine.trial.file("said", "");
        let place = place.parent().unwrap().display();
        let script = format!(
            "#!/bin/sh\necho \"$1\" $(date +%s%3N) >> {place}/said\n\
             [ \"$1\" = start ] && until [ -e {place}/go ]; do sleep 0.02; done\n\
             exec docker \"$@\"\n"
        );
        let command = engine.trial.file("docker", &script);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&command, mode).unwrap();
        let config = format!("[docker]\ncli = \"{}\"\n", command.display());
        let config = engine.trial.file("slow.toml", &config);
        Some(Self { engine, config })
    }

    fn spawn(&self, args: &[&str]) -> Running {
        let mut command = self.engine.trial.command(args);
        command
            .env("DOCKER_HOST", &self.engine.host)
            .env("GLOVEBOX_CONFIG", &self.config);
        Running::spawn(&mut command)
    }

    /// When it was asked for this, in milliseconds.
    fn asked(&self, verb: &str) -> Option<u64> {
        let said = std::fs::read_to_string(self.config.with_file_name("said")).unwrap();
        let asked = said.lines().filter_map(|line| line.split_once(' '));
        let mut asked = asked.filter(|(word, _)| *word == verb);
        asked.next().map(|(_, at)| at.parse().unwrap())
    }

    fn go(&self) {
        self.engine.trial.file("go", "");
    }

    fn containers(&self) -> String {
        use std::os::unix::fs::MetadataExt;
        let facts = self.engine.trial.state().metadata().unwrap();
        let house = format!("label=glovebox.house={:x}-{:x}", facts.dev(), facts.ino());
        let mut command = std::process::Command::new("docker");
        command.args(["ps", "--all", "--quiet", "--filter", &house]);
        let listed = command.env("DOCKER_HOST", &self.engine.host).output();
        String::from_utf8(listed.unwrap().stdout).unwrap()
    }
}

#[test]
fn a_run_that_is_canceled_before_its_container_starts_does_not_wait_for_it() {
    /// A program is given five seconds to tidy up; there is none yet.
    const NO_GRACE_MS: u64 = 4000;
    let Some(slow) = Slow::there() else {
        return;
    };
    let words = ["run", "--backend", "docker", "--project", "p", "--"];
    let child = slow.spawn(&[&words[..], &["touch", "ran"]].concat());
    until(|| slow.asked("start"));
    kill_process(Pid::from_child(&child.0), Signal::INT).unwrap();
    let told = until(|| slow.asked("kill"));
    let removed = until(|| slow.asked("rm"));
    slow.go();
    child.answer().exits(130);
    assert!(removed - told < NO_GRACE_MS, "{} ms", removed - told);
    let work = slow.engine.trial.state().join("projects/p/work");
    assert_eq!(names(&work), Vec::<String>::new());
    assert_eq!(slow.containers(), "");
}

#[test]
fn a_kept_container_that_is_canceled_while_it_is_made_is_not_there() {
    let Some(slow) = Slow::there() else {
        return;
    };
    let words = ["sandbox", "create", "--lifetime", "shared"];
    let child = slow.spawn(&[&words[..], &["--project", "p", "--backend", "docker"]].concat());
    until(|| slow.asked("start"));
    kill_process(Pid::from_child(&child.0), Signal::INT).unwrap();
    slow.go();
    let answer = child.answer().exits(130);
    assert!(answer.stderr.contains("error[canceled]"), "{answer:?}");
    let listed = slow.engine.run(&["sandbox", "ls", "--json"]).exits(0);
    assert_eq!(listed.json(), json!({"items": []}));
    assert_eq!(slow.containers(), "");
}
