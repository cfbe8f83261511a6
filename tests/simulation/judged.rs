//! Every run that has a gate is gated: on every backend, in every mode, by every kind of check, or it is
//! refused before it starts.

use std::fs;

use serde_json::Value;
use support::Column;

use crate::ground::{Ended, Ground, HELD};

/// What a program of ours does that every check can be told to mind.
const LINE: &str = "echo '{\"id\": null, \"version\": 1}'; echo x > a; exit 3";

/// Every kind of check, and whether it fails for that program when it is judged.
const CHECKS: &[(&str, &str, bool)] = &[
    ("not_null", r#"{ not_null = { at = "/id" } }"#, true),
    (
        "schema",
        r#"{ schema = { is = '{"required": ["rows"]}' } }"#,
        true,
    ),
    ("monotonic", r#"{ monotonic = { at = "/version" } }"#, false),
    ("max_size", "{ max_size = { changed_files = 0 } }", true),
    (
        "statistical_bounds",
        r#"{ statistical_bounds = { metric = "processes", max = 0 } }"#,
        true,
    ),
    ("anomaly", r#"{ anomaly = { metric = "effects" } }"#, false),
    ("no_secrets", r#""no_secrets""#, false),
    (
        "path_scope",
        r#"{ path_scope = { within = ["src/**"] } }"#,
        true,
    ),
    ("diff_size", "{ diff_size = { files = 0 } }", true),
    ("no_violations", r#""no_violations""#, false),
    ("exit", r#""exit""#, true),
    ("no_network", r#""no_network""#, false),
    ("hosts", r#"{ hosts = ["example.org:443"] }"#, false),
    ("deterministic", r#""deterministic""#, false),
    (
        "cel",
        r#"{ cel = "!effects.exists(e, e.kind == 'process_spawn')" }"#,
        true,
    ),
    (
        "command",
        r#"{ command = { argv = ["/bin/sh", "-c", "test ! -e a"] } }"#,
        true,
    ),
];

const MODES: [&[&str]; 4] = [&[], &["--hold"], &["--transactional"], &["--simulate"]];

fn gate(name: &str, check: &str, block: bool) -> String {
    format!("[[gate]]\nname = \"{name}\"\nblock = {block}\ncheck = [{check}]\n")
}

/// The record, or nothing but a refusal.
fn record(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or(Value::Null)
}

fn run(ground: &Ground, options: &[&str], line: &str) -> Ended {
    let mut words = vec!["--json", "run", "--toolchain", "off"];
    words.extend(options);
    words.extend(["--", "/bin/sh", "-c", line]);
    let mut command = ground.command_in(&ground.work(), &words);
    if let Some(docker) = options
        .contains(&"docker")
        .then(support::Docker::shared)
        .flatten()
    {
        command.env("DOCKER_HOST", docker.host());
    }
    Ended::of(command.output().unwrap())
}

#[test]
fn natively_every_check_judges_every_mode_before_anything_is_kept() {
    let ground = Ground::root("");
    for (name, check, fails) in CHECKS {
        ground.configure(&gate(name, check, true));
        for mode in MODES {
            let ended = run(&ground, mode, LINE);
            let record = record(&ended);
            let mut asked = record["gates"].as_array().into_iter().flatten();
            let said = asked.rfind(|it| it["gate"] == *name);
            let said =
                said.unwrap_or_else(|| panic!("{name} {mode:?}: {record:#}{}", ended.stderr));
            assert_eq!(said["blocked"], *fails, "{name} {mode:?}: {record:#}");
            assert_eq!(said["validations"][0]["validator"], *name);
            if *fails {
                assert_eq!(
                    (&record["status"], ended.code),
                    (&"held".into(), HELD),
                    "{record:#}"
                );
            }
            let is_kept = !fails && mode.is_empty();
            assert_eq!(ground.work().join("a").exists(), is_kept, "{name} {mode:?}");
            let _ = fs::remove_file(ground.work().join("a"));
            let exec = record["exec_id"].as_str().unwrap().to_owned();
            if record["verdict"] == "hold" {
                ground.glovebox(&["discard", &exec]).assert_code(0);
            }
        }
    }
    ground.end();
}

/// A gate's own program sees what would be kept, in every mode, and its word counts.
#[test]
fn a_gates_command_agrees_in_every_mode() {
    let check = r#"{ command = { argv = ["/bin/sh", "-c", "grep -q x a"] } }"#;
    let ground = Ground::root(&gate("tests", check, true));
    for mode in [
        &[][..],
        &["--hold"],
        &["--keep-if-ok"],
        &["--transactional"],
        &["--simulate"],
    ] {
        let ended = run(&ground, mode, "echo x > a");
        let record = record(&ended);
        let said = &record["gates"].as_array().unwrap().last().unwrap()["status"];
        assert_eq!(
            (said, ended.code),
            (&"passed".into(), 0),
            "{mode:?} {record:#}{}",
            ended.stderr
        );
        if record["verdict"] == "hold" {
            let exec = record["exec_id"].as_str().unwrap();
            ground.glovebox(&["apply", exec]).assert_code(0);
        }
        assert_eq!(ground.read("a"), "x\n", "{mode:?}");
        fs::remove_file(ground.work().join("a")).unwrap();
    }
    let scratch = run(&ground, &["--scratch"], "echo x > a");
    assert_eq!(scratch.code, HELD, "{}{}", scratch.stdout, scratch.stderr);
    ground.end();
}

/// What outlives an exec beside its workspace is not shown to one that is judged, and names of tools
/// that people use are names of tools.
#[test]
fn nothing_is_written_past_a_gate() {
    let cache = "[workspace.cache.pip]\nmode = \"per_user\"\n";
    let scope = r#"{ path_scope = { within = ["ok/**"] } }"#;
    let named = format!("{cache}[[gate]]\nname = \"g\"\ntools = [\"shell\"]\ncheck = [{scope}]\n");
    let ground = Ground::root(&named);
    run(
        &ground,
        &[],
        "mkdir -p ok ~/.cache/pip; echo x > ~/.cache/pip/x; echo x > ok/x",
    );
    ground.configure(cache);
    let after = run(&ground, &[], "ls ~/.cache/pip");
    assert_eq!(record(&after)["stdout"], "", "{}", after.stdout);
    ground.configure(&named);
    let outside = run(&ground, &[], "echo x > out");
    assert_eq!(outside.code, HELD, "{}", outside.stdout);
    // A crash before the gates were asked: nothing is kept, whatever the configuration says by then.
    let mut command = ground.command_in(
        &ground.work(),
        &["run", "--", "/bin/sh", "-c", "echo x > ok/y; sleep 60"],
    );
    let mut child = command.spawn().unwrap();
    let state = ground.trial.state();
    let wrote = || walked(&state).any(|it| it.ends_with("upper/ok/y"));
    assert!(
        support::wait_until(std::time::Duration::from_secs(60), wrote),
        "it did not start"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    ground.configure("");
    let listed = ground.glovebox(&["--json", "ps", "--all", "--limit", "1"]);
    let lost: Value =
        serde_json::from_str(listed.stdout.lines().next().unwrap_or_default()).unwrap_or_default();
    let exec = lost["exec_id"]
        .as_str()
        .or(lost["items"][0]["exec_id"].as_str());
    let exec = exec.unwrap_or_else(|| panic!("{}{}", listed.stdout, listed.stderr));
    ground
        .glovebox(&["workspace", "keep", exec])
        .assert_refused("held");
    assert!(!ground.work().join("ok/y").exists());
    ground.end();
}

fn walked(top: &std::path::Path) -> Box<dyn Iterator<Item = std::path::PathBuf>> {
    let entries = fs::read_dir(top)
        .into_iter()
        .flatten()
        .flatten()
        .map(|it| it.path());
    Box::new(entries.flat_map(|path| {
        let below: Box<dyn Iterator<Item = _>> = match path.is_dir() && !path.is_symlink() {
            true => walked(&path),
            false => Box::new(std::iter::empty()),
        };
        below.chain([path])
    }))
}

/// Where writes cannot be held back, whatever blocks refuses; what only warns is never `passed` on what
/// it did not see.
#[test]
fn elsewhere_what_blocks_is_refused_beforehand_and_what_warns_is_judged() {
    let ground = Ground::root("");
    let kept = ["--lifetime", "shared", "--project", "p"];
    let mut places: Vec<(&[&str], &str)> = vec![
        (&kept, "kept sandbox"),
        (&["--backend", "host"], "host itself"),
    ];
    if Column::Runc.is_here() {
        places.push((&["--backend", "docker"], "docker backend"));
    }
    for (place, says) in &places {
        for (name, check, _) in CHECKS {
            // The host itself is refused to all but those who may have it.
            let gate = gate(name, check, true);
            ground.configure(&format!("[settings]\nsecurity = \"permissive\"\n{gate}"));
            let ended = run(&ground, place, LINE);
            assert_ne!(ended.code, 0, "{name} {place:?}: {}", ended.stdout);
            let said = format!("{}{}", ended.stdout, ended.stderr);
            let named = said.contains(&format!("gate `{name}`")) && said.contains(says);
            assert!(named && said.contains("hint"), "{name} {place:?}: {said}");
            assert!(
                !ground.work().join("a").exists(),
                "{name} {place:?}: it ran"
            );
        }
    }
    let all: String = CHECKS
        .iter()
        .map(|(name, check, _)| gate(name, check, false))
        .collect();
    ground.configure(&all);
    for (place, _) in places.iter().filter(|(place, _)| !place.contains(&"host")) {
        let ended = run(&ground, place, LINE);
        let record = record(&ended);
        for (name, _, fails) in CHECKS {
            let mut asked = record["gates"].as_array().into_iter().flatten();
            let said = asked.rfind(|it| it["gate"] == *name);
            let said =
                said.unwrap_or_else(|| panic!("{name} {place:?}: {record:#}{}", ended.stderr));
            let unseen = said["failure_code"] == "MISSING_DATA";
            let is_about_writes =
                ["no_secrets", "deterministic", "no_violations", "anomaly"].contains(name);
            let expected = match *fails || is_about_writes {
                true => "warning",
                false => "passed",
            };
            assert_eq!(said["status"], expected, "{name} {place:?}: {said:#}");
            assert!(
                unseen || *fails || !is_about_writes,
                "{name} {place:?}: {said:#}"
            );
        }
    }
    ground.glovebox(&["sandbox", "prune", "--all", "--yes"]);
    ground.end();
}

/// A workspace that may not be written needs nothing held back: the output is judged anywhere.
#[test]
fn a_container_that_writes_nothing_is_judged_by_its_output() {
    if !Column::Runc.is_here() {
        return;
    }
    let ground = Ground::root(&gate("answer", r#"{ not_null = { at = "/id" } }"#, true));
    let closed = ["--backend", "docker", "--workspace", "ro"];
    for (line, status, code) in [
        ("echo '{\"id\": 0}'", "succeeded", 0),
        ("echo '{}'", "held", HELD),
    ] {
        let ended = run(&ground, &closed, line);
        let record = record(&ended);
        assert_eq!(
            (&record["status"], ended.code),
            (&status.into(), code),
            "{record:#}{}",
            ended.stderr
        );
        assert_eq!(record["gates"][0]["gate"], "answer", "{record:#}");
    }
    ground.end();
}
