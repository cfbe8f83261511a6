//! Containers of a real engine. `GLOVEBOX_TEST_DOCKER` says where it listens; it has the image
//! `glovebox-sandbox:latest`.

use serde_json::json;

use crate::trial::{Answer, Trial};

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
