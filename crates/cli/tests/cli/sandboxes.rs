//! Sandboxes that outlive an exec, here and at a server.

use serde_json::json;

use crate::server::{Served, with};
use crate::trial::{Answer, Running, Trial, until};

/// Made for an agent on a workspace; its name.
fn create(trial: &Trial, more: &[&str]) -> String {
    let args = ["sandbox", "create", "--agent", "ann", "--project", "demo"];
    let made = trial.run(&[&args[..], more].concat()).exits(0);
    made.stdout.trim().to_owned()
}

fn names(answer: &Answer) -> Vec<&str> {
    answer.stdout.lines().collect()
}

#[test]
fn one_is_made_used_made_anew_and_removed() {
    let trial = Trial::new();
    // Nothing is made only to be read.
    let none = trial.run(&["sandbox", "ls"]).exits(0);
    assert_eq!(none.stdout, "");
    assert_eq!(
        trial.run(&["sandbox", "ls", "--json"]).exits(0).json(),
        json!({"items": []})
    );
    trial.run(&["sandbox", "prune"]).exits(0);
    assert!(!trial.state().exists());

    let name = create(&trial, &[]);
    assert!(name.starts_with("glovebox-ann-"), "{name}");
    let again = ["sandbox", "create", "--agent", "ann", "--project", "demo"];
    let refused = trial.run(&again).exits(2);
    assert!(
        refused.stderr.contains("error[conflict]") && refused.stderr.contains("glovebox exec"),
        "{refused:?}"
    );

    trial
        .run(&["exec", &name, "--", "sh", "-c", "echo kept > file; exit 3"])
        .exits(3);
    let record = trial
        .run(&["exec", &name, "--json", "--", "cat", "file"])
        .exits(0)
        .json();
    let row = trial
        .run(&["sandbox", "info", &name, "--json"])
        .exits(0)
        .json();
    assert_eq!(record["stdout"], "kept\n");
    assert_eq!(record["sandbox_id"], row["sandbox_id"]);
    assert_eq!(record["project_id"], "demo");
    assert_eq!((&row["uses"], &row["scope"]), (&json!(2), &json!("ann")));
    let id = row["sandbox_id"].as_str().unwrap();
    trial
        .run(&["run", "--sandbox", id, "--", "test", "-e", "file"])
        .exits(0);
    // The same one by its scope.
    let same = [
        "run",
        "--lifetime",
        "agent",
        "--agent",
        "ann",
        "--project",
        "demo",
        "--json",
        "--",
        "true",
    ];
    assert_eq!(trial.run(&same).exits(0).json()["sandbox_id"], id);

    let table = trial.run(&["sandbox", "ls"]).exits(0).stdout;
    let line = table.lines().nth(1).unwrap();
    let cells: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(
        &cells[..8],
        [
            name.as_str(),
            "agent",
            "ann",
            "native",
            "down",
            "-",
            "same",
            "4"
        ],
        "{table}"
    );
    let page = trial.run(&["sandbox", "info", &name]).exits(0).stdout;
    assert!(page.contains("project     demo"), "{page}");

    let anew = trial.run(&["sandbox", "recreate", &name]).exits(0);
    assert_eq!(names(&anew), [name.as_str()]);
    let row = trial
        .run(&["sandbox", "info", id, "--json"])
        .exits(0)
        .json();
    assert_eq!(row["uses"], 0);
    // Its workspace stays.
    trial
        .run(&["exec", &name, "--", "test", "-e", "file"])
        .exits(0);

    let removed = trial.run(&["sandbox", "rm", "nobody", &name]).exits(1);
    assert_eq!(names(&removed), [name.as_str()]);
    assert!(removed.stderr.contains("error[not_found]"), "{removed:?}");
    trial.run(&["exec", &name, "--", "true"]).exits(1);
    trial.run(&["sandbox", "rm", &name]).exits(1);
    assert_eq!(trial.run(&["sandbox", "ls", "--quiet"]).exits(0).stdout, "");
}

#[test]
fn what_cannot_be_is_said_with_the_way_out() {
    let trial = Trial::new();
    for (args, hint) in [
        (&["sandbox", "create", "--project", "p"][..], "--agent"),
        (&["sandbox", "create", "--agent", "a"], "--project"),
        (
            &[
                "sandbox",
                "create",
                "--lifetime",
                "session",
                "--project",
                "p",
            ],
            "session",
        ),
        (
            &["run", "--lifetime", "agent", "--agent", "a", "--", "true"],
            "--project",
        ),
        (
            &["run", "--lifetime", "agent", "--project", "p", "--", "true"],
            "agent",
        ),
    ] {
        let refused = trial.run(args).exits(2);
        let hints = refused.stderr.split("hint:").skip(1).collect::<String>();
        assert!(hints.contains(hint), "{args:?}: {refused:?}");
    }
    for args in [
        &["sandbox", "info", "nobody"][..],
        &["sandbox", "explain", "nobody"],
        &["sandbox", "recreate", "nobody"],
        &["exec", "nobody", "--", "true"],
    ] {
        let refused = trial.run(args).exits(1);
        assert!(
            refused.stderr.contains("sandbox ls"),
            "{args:?}: {refused:?}"
        );
    }
}

#[test]
fn a_changed_configuration_is_seen_and_mended() {
    let trial = Trial::new();
    let name = create(&trial, &[]);
    let other = trial.run(&["sandbox", "create", "--session", "s", "--project", "demo"]);
    let other = other.exits(0).stdout.trim().to_owned();
    let text = "[settings]\npids = 77\n[sandbox]\nkeep_root = true\n";
    let config = trial.file("other.toml", text);
    let config = config.to_str().unwrap();
    let run = |args: &[&str]| trial.run(&[&["--config", config][..], args].concat());

    let listed = run(&["sandbox", "ls"]).exits(0);
    assert_eq!(listed.stdout.matches("changed").count(), 2, "{listed:?}");
    assert!(listed.stderr.contains("--mismatched"), "{listed:?}");
    let explained = run(&["sandbox", "explain", &name, "--json"])
        .exits(0)
        .json();
    assert_eq!(explained["config"]["limits"]["pids"], 77);
    // Nothing of it stands here, so nothing is lost.
    assert_eq!(explained["next"], "replaced");
    let page = run(&["sandbox", "explain", &name]).exits(0).stdout;
    assert!(page.contains("next        replaced"), "{page}");
    // By its name it is taken as it is, and it has more than policy allows now.
    let refused = run(&["exec", &name, "--", "true"]);
    assert!(refused.stderr.contains("sandbox recreate"), "{refused:?}");

    let anew = run(&["sandbox", "recreate", "--mismatched", "--json"]).exits(0);
    let anew = anew.json();
    let mut made: Vec<&str> = anew["recreated"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    made.sort_unstable();
    let mut both = [name.as_str(), other.as_str()];
    both.sort_unstable();
    assert_eq!(made, both);
    let none = run(&["sandbox", "recreate", "--mismatched", "--json"]).exits(0);
    assert_eq!(none.json(), json!({"recreated": [], "failed": []}));
    run(&["exec", &name, "--", "true"]).exits(0);
    // One that was used a moment ago and has something to lose stays, and whoever uses it is told.
    let roomy = trial.file("roomy.toml", "[sandbox]\nkeep_root = true\n");
    let back = [
        "--config",
        roomy.to_str().unwrap(),
        "run",
        "--lifetime",
        "agent",
        "--agent",
        "ann",
        "--project",
        "demo",
        "--",
        "true",
    ];
    let told = trial.run(&back).exits(0);
    assert!(
        told.stderr.starts_with("note: ") && told.stderr.contains("sandbox recreate"),
        "{told:?}"
    );
    let quiet = trial.run(&[&["--quiet"][..], &back].concat()).exits(0);
    assert_eq!(quiet.stderr, "");
    let of_agent = run(&["sandbox", "recreate", "--agent", "ann"]).exits(0);
    assert_eq!(names(&of_agent), [name.as_str()]);
    let of_session = run(&["sandbox", "recreate", "--session", "s"]).exits(0);
    assert_eq!(names(&of_session), [other.as_str()]);
    assert_eq!(
        names(&run(&["sandbox", "recreate", "--all"]).exits(0)).len(),
        2
    );
}

#[test]
fn what_nobody_used_for_long_is_pruned() {
    let trial = Trial::new();
    let name = create(&trial, &[]);
    let usual = trial.run(&["sandbox", "prune", "--json"]).exits(0);
    assert_eq!(usual.json(), json!({"removed": [], "failed": []}));
    let config = trial.file("short.toml", "[sandbox]\nprune_idle = \"1ms\"\n");
    let pruned = trial
        .run(&["--config", config.to_str().unwrap(), "sandbox", "prune"])
        .exits(0);
    assert_eq!(names(&pruned), [name.as_str()]);
    assert_eq!(trial.run(&["sandbox", "ls", "--quiet"]).exits(0).stdout, "");
}

#[test]
fn a_server_keeps_them_and_says_the_same() {
    let trial = Trial::new();
    let server = Served::start(&trial, &[]);
    let run = |args: &[&str]| trial.run(&with(&server, args));
    let made = run(&[
        "sandbox",
        "create",
        "--agent",
        "ann",
        "--project",
        "demo",
        "--pids",
        "99",
        "--json",
    ])
    .exits(0)
    .json();
    let name = made["name"].as_str().unwrap();
    let id = made["sandbox_id"].as_str().unwrap();
    assert_eq!(
        (&made["state"], &made["config"]["limits"]["pids"]),
        (&json!("idle"), &json!(99))
    );
    // It stands: the next exec finds the namespaces of the one before.
    let namespace = ["exec", name, "--", "readlink", "/proc/self/ns/pid"];
    let first = run(&namespace).exits(0).stdout;
    assert!(first.starts_with("pid:["), "{first}");
    assert_eq!(run(&namespace).exits(0).stdout, first);
    run(&["exec", name, "--", "sh", "-c", "echo kept > file"]).exits(0);
    let record = run(&["exec", id, "--json", "--", "cat", "file"])
        .exits(0)
        .json();
    assert_eq!(record["stdout"], "kept\n");
    assert_eq!(record["sandbox_id"], id);
    // What it was made with holds for whoever comes by its scope, and when it is made anew.
    let scoped = run(&[
        "run",
        "--lifetime",
        "agent",
        "--agent",
        "ann",
        "--project",
        "demo",
        "--json",
        "--",
        "true",
    ]);
    let scoped = scoped.exits(0).json();
    assert_eq!(scoped["sandbox_id"], id);
    assert_eq!(scoped["ids"]["agent_id"], "ann");
    assert_eq!(scoped["policy_snapshot"]["limits"]["pids"], 99);
    let fresh = run(&[
        "run",
        "--scratch",
        "--lifetime",
        "exec",
        "--json",
        "--",
        "true",
    ]);
    assert_ne!(fresh.exits(0).json()["sandbox_id"], id);

    let row = run(&["sandbox", "info", name, "--json"]).exits(0).json();
    assert_eq!((&row["state"], &row["uses"]), (&json!("idle"), &json!(5)));
    assert_eq!(
        names(&run(&["sandbox", "ls", "--quiet", "--agent", "ann"]).exits(0)),
        [name]
    );
    let none = ["sandbox", "ls", "--quiet", "--lifetime", "shared"];
    assert_eq!(run(&none).exits(0).stdout, "");
    let table = run(&["sandbox", "ls"]).exits(0).stdout;
    assert!(
        table.contains(" idle ") && table.contains(" same "),
        "{table}"
    );
    let explained = run(&["sandbox", "explain", name, "--json"]).exits(0).json();
    assert_eq!(explained["sandbox"]["sandbox_id"], id);

    // Whoever comes without the server is told where it stands.
    let elsewhere = trial.run(&["exec", name, "--", "true"]).exits(125);
    assert!(
        elsewhere.stderr.contains("stands with another") && elsewhere.stderr.contains("--server"),
        "{elsewhere:?}"
    );

    let anew = run(&["sandbox", "recreate", name, "--json"])
        .exits(0)
        .json();
    assert_eq!((&anew["state"], &anew["uses"]), (&json!("down"), &json!(0)));
    assert_eq!(anew["config"]["limits"]["pids"], 99);
    let all = run(&["sandbox", "recreate", "--all", "--json"])
        .exits(0)
        .json();
    assert_eq!(all["recreated"].as_array().unwrap().len(), 1);
    let pruned = run(&["sandbox", "prune", "--json"]).exits(0).json();
    assert_eq!(pruned, json!({"removed": [], "failed": []}));
    assert_eq!(names(&run(&["sandbox", "rm", name]).exits(0)), [name]);
    run(&["sandbox", "info", name]).exits(1);
    run(&["exec", name, "--", "true"]).exits(1);
}

#[test]
fn one_in_use_is_not_taken_down() {
    let trial = Trial::new();
    // Far longer than anybody waits for it.
    let config = "[settings]\ntimeout = \"4m\"\n[sandbox]\nacquire_timeout = \"0s\"\n";
    let config = trial.file("long.toml", config);
    let server = Served::start(&trial, &["--config", config.to_str().unwrap()]);
    let run = |args: &[&str]| trial.run(&with(&server, args));
    let made = run(&[
        "sandbox",
        "create",
        "--lifetime",
        "shared",
        "--project",
        "demo",
    ]);
    let name = made.exits(0).stdout.trim().to_owned();
    let args = ["exec", &name, "--", "sleep", "200"];
    let running = Running::spawn(&mut trial.command(&with(&server, &args)));
    until(|| {
        let row = run(&["sandbox", "info", &name, "--json"]).exits(0).json();
        (row["state"] == "busy").then_some(())
    });
    let refused = run(&["sandbox", "rm", &name]).exits(125);
    assert!(
        refused.stderr.contains("error[busy]") && refused.stderr.contains("glovebox cancel"),
        "{refused:?}"
    );
    let id = run(&["ps", "--quiet"]).exits(0).stdout;
    run(&["cancel", id.trim()]).exits(0);
    assert_eq!(running.answer().code, Some(130));
    run(&["sandbox", "rm", &name]).exits(0);
}
