//! `max_bytes` and `max_files` of a workspace: whoever passes them is stopped while writing, and
//! nobody else is.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::{Value, json};
use support::{Caller, Server, Start, sh, still_there, with};

use crate::ground::{Ground, assert_same};

const BYTES: u64 = 16 << 20;
/// What a writer may get done between two looks at it: a page cache takes gigabytes in a second, and
/// the looks are late on a machine that does other things, so a writer pauses now and then. Unstopped
/// it would be half a gigabyte, and 20,000 files, in more than 8 s.
const BYTES_MOST: u64 = 16 * BYTES;
const FILES_MOST: u64 = 10_000;

const QUOTA: &str = "[settings]\ntimeout = \"5m\"\n\
                     [workspace]\nmax_bytes = \"16M\"\nmax_files = 200\n";
/// Many files, so that no limit on the size of one stops it.
const FILL: &str = "i=0; while [ $i -lt 512 ]; do head -c 1M /dev/zero > f$i || exit 9; \
                    i=$((i+1)); [ $((i % 16)) -ne 0 ] || sleep 0.25; done";
const MANY: &str = "i=0; while [ $i -lt 20000 ]; do : > f$i; \
                    i=$((i+1)); [ $((i % 500)) -ne 0 ] || sleep 0.25; done";
/// As long as the other one works, and as long again.
const NEIGHBOUR: &str =
    "i=0; until [ -e done ]; do echo line >> log; i=$((i+1)); sleep 0.01; done; wc -l < log";

fn used(work: &Path) -> (u64, u64) {
    let (mut bytes, mut files) = (0, 0);
    let mut waiting = vec![work.to_owned()];
    while let Some(path) = waiting.pop() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            // A server may still tidy up after an exec whose record is there.
            let Some(stat) = still_there(entry.metadata()) else {
                continue;
            };
            bytes += stat.blocks() * 512;
            files += 1;
            if stat.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    (bytes, files)
}

fn in_project(project: &str, line: &str) -> Value {
    with(sh(line), json!({"project_id": project}))
}

fn serve(ground: &Ground) -> Server {
    let config = ground.config().display().to_string();
    Start::default()
        .outside("GLOVEBOX_CONFIG", config)
        .on(&ground.trial)
}

/// How the writer meets its quota.
#[derive(Clone, Copy)]
struct Stop {
    line: &'static str,
    limit: &'static str,
    grade: &'static str,
}

const WATCHED: Stop = Stop {
    line: FILL,
    limit: "disk",
    grade: "supervised",
};
const MANY_WATCHED: Stop = Stop {
    line: MANY,
    limit: "inodes",
    ..WATCHED
};

fn stopped_beside_a_neighbour(caller: Caller, stop: Stop, more: Value) -> Option<Value> {
    let Stop { line, limit, grade } = stop;
    let ground = Ground::new(caller, QUOTA)?;
    let server = serve(&ground);
    let client = server.client();
    let neighbour = client.begin(&in_project("neighbour", NEIGHBOUR));
    let work = |project: &str| {
        ground
            .trial
            .state()
            .join("projects")
            .join(project)
            .join("work")
    };
    let log = work("neighbour").join("log");
    let patience = std::time::Duration::from_secs(60);
    assert!(
        support::wait_until(patience, || log.exists()),
        "the neighbour does not run"
    );

    let writer = client.begin(&with(in_project("writer", line), more));
    let record = client.ended(&writer);
    assert_eq!(record["limit_hit"], limit, "{record}");
    assert_eq!(record["isolation"]["disk_limit"], grade, "{record}");
    // What it wrote, and what waits of it.
    let (bytes, files) = used(work("writer").parent().unwrap());
    assert!(
        bytes <= BYTES_MOST && files <= FILES_MOST,
        "{bytes} bytes, {files} files"
    );

    // It never noticed.
    let lines = || fs::read_to_string(&log).unwrap().lines().count();
    let then = lines();
    assert!(
        support::wait_until(patience, || lines() > then + 5),
        "the neighbour stands still"
    );
    let file = work("neighbour").join("done");
    fs::write(file, "").unwrap();
    let neighbour = client.ended(&neighbour);
    assert_eq!(neighbour["status"], "succeeded", "{neighbour}");
    assert_eq!(server.stop(), 0);
    ground.trial.end();
    Some(record)
}

#[test]
fn a_writer_is_stopped_at_its_bytes_while_a_neighbour_goes_on() {
    stopped_beside_a_neighbour(Caller::Root, WATCHED, json!({}));
}

#[test]
fn an_ordinary_users_writer_is_stopped_at_its_bytes_while_a_neighbour_goes_on() {
    stopped_beside_a_neighbour(Caller::User, WATCHED, json!({}));
}

#[test]
fn a_writer_is_stopped_at_its_files_while_a_neighbour_goes_on() {
    stopped_beside_a_neighbour(Caller::Root, MANY_WATCHED, json!({}));
}

#[test]
fn an_ordinary_users_writer_is_stopped_at_its_files_while_a_neighbour_goes_on() {
    stopped_beside_a_neighbour(Caller::User, MANY_WATCHED, json!({}));
}

/// What is written beside a workspace counts as what is written to it.
#[test]
fn a_writer_that_is_held_back_is_stopped_as_well() {
    stopped_beside_a_neighbour(Caller::Root, WATCHED, json!({"writes": "held"}));
}

/// Demanded of the kernel: the program is not ended, it is told that there is no space left, to the
/// byte.
fn stopped_by_the_kernel(caller: Caller) {
    let bytes = Stop {
        grade: "kernel",
        ..WATCHED
    };
    let demand = json!({"writes": "held", "policy_overrides": {"require": ["disk_limit"]}});
    let Some(record) = stopped_beside_a_neighbour(caller, bytes, demand.clone()) else {
        return;
    };
    assert_eq!(record["exit_code"], 9, "{record}");
    assert!(told(&record).contains("No space left"), "{record}");
    assert_eq!(record["verdict"], "hold", "{record}");
    let held = record["changes"]["bytes"].as_u64().unwrap();
    assert!((BYTES - (1 << 20)..=BYTES).contains(&held), "{record}");
    let limits = &record["policy_snapshot"]["limits"];
    assert_eq!(limits["disk_bytes"], BYTES, "what held is told: {limits}");

    let files = Stop {
        line: "i=0; while : > f$i; do i=$((i+1)); done; exit 9",
        limit: "inodes",
        grade: "kernel",
    };
    let record = stopped_beside_a_neighbour(caller, files, demand).expect("as above");
    let made = record["changes"]["created"].as_u64().unwrap();
    assert!((150..=201).contains(&made), "{record}");
}

fn told(record: &Value) -> String {
    record["stderr"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_writer_meets_the_kernels_limit_while_a_neighbour_goes_on() {
    stopped_by_the_kernel(Caller::Root);
}

#[test]
fn an_ordinary_users_writer_meets_the_kernels_limit_while_a_neighbour_goes_on() {
    stopped_by_the_kernel(Caller::User);
}

/// A line that meets its quota, and one in its artifacts: together they have as much as the quota.
const BOTH: &str = "head -c 10M /dev/zero > here; head -c 10M /dev/zero > /workspace/artifacts/there; \
                    echo $?; stat -c %s here /workspace/artifacts/there";

#[test]
fn artifacts_and_writes_share_the_kernels_limit() {
    for caller in [Caller::Root, Caller::User] {
        let Some(ground) = Ground::new(caller, QUOTA) else {
            continue;
        };
        let record = ground.run(&["--hold", "--require", "disk_limit"], BOTH);
        assert_eq!(record["isolation"]["disk_limit"], "kernel", "{record}");
        let said = record["stdout"].as_str().unwrap();
        let numbers: Vec<u64> = said.lines().map(|it| it.parse().unwrap()).collect();
        let [code, here, there] = numbers[..] else {
            panic!("{record}")
        };
        assert_eq!((code, here), (1, 10 << 20), "{record}");
        assert!((5 << 20..=6 << 20).contains(&there), "{record}");
        let artifact = &record["artifacts"][0];
        assert_eq!(
            (&artifact["path"], &artifact["size"]),
            (&"there".into(), &there.into())
        );
        let kept = ground
            .trial
            .state()
            .join(record["artifacts_dir"].as_str().unwrap());
        assert_eq!(fs::metadata(kept.join("there")).unwrap().len(), there);
        ground.trial.end();
    }
}

/// What was written in memory is kept as if it had been written here. A file with a second name is
/// left alone: a layer knows each of its names by itself.
#[test]
fn what_lay_in_memory_is_kept_whole() {
    const CHANGE: &str = "echo changed > src/main.py; rm nothing; mkdir made; echo x > made/x; \
                          mv .hidden moved; rm -rf empty; echo file > empty; chmod 600 '-rf *'; \
                          rm -r src/deep; mkdir -p src/deep/er; echo new > src/deep/er/new; \
                          truncate -s 64K holes; mkfifo pipe; rm pipe";
    for caller in [Caller::Root, Caller::User] {
        let (Some(ground), Some(control)) = (Ground::new(caller, ""), Ground::new(caller, ""))
        else {
            continue;
        };
        ground.plant();
        control.plant();
        control.run(&[], CHANGE);
        let before = ground.tree();
        let held = ground.run(&["--hold", "--require", "disk_limit"], CHANGE);
        assert_eq!(held["isolation"]["disk_limit"], "kernel", "{held}");
        assert_same(&ground.tree(), &before, "nothing is kept yet");
        ground.json(&["workspace", "keep", held["exec_id"].as_str().unwrap()]);
        assert_eq!(brief(&ground), brief(&control));

        let line = "echo again > again; exit 1";
        let failed = ground.run(&["--keep-if-ok", "--require", "disk_limit"], line);
        assert_eq!(failed["verdict"], "discard", "{failed}");
        let line = "echo again > again";
        let kept = ground.run(&["--keep-if-ok", "--require", "disk_limit"], line);
        assert_eq!(kept["verdict"], "keep", "{kept}");
        assert_eq!(
            fs::read_to_string(ground.work().join("again")).unwrap(),
            "again\n"
        );
        let info = ground.json(&["workspace", "info"]);
        assert!(!info.to_string().contains("e_"), "nothing waits: {info}");
        ground.trial.end();
        control.trial.end();
    }
}

fn brief(ground: &Ground) -> Vec<String> {
    let tree = ground.tree();
    let of = tree.iter();
    of.map(|(path, it)| format!("{path:?} {}", it.brief()))
        .collect()
}

/// Without the size of the layer nobody is told that there is no space left.
#[test]
fn without_the_kernels_limit_the_writer_is_not_stopped_by_it() {
    let ground = Ground::root(QUOTA);
    let line = "head -c 32M /dev/zero > large; echo $?";
    let options = ["--hold", "--require", "disk_limit"];
    let stopped = ground.run(&options, line);
    assert_eq!(stopped["stdout"], "1\n", "{stopped}");
    let mut words = vec!["--json", "run", "--toolchain", "off"];
    words.extend(options);
    words.extend(["--", "/bin/sh", "-c", line]);
    let mut command = ground.command(&words);
    let output = command
        .env("GLOVEBOX_MUTATION", "layer size")
        .output()
        .unwrap();
    let mutated: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(mutated["stdout"], "0\n", "{mutated}");
    ground.trial.end();
}

#[test]
fn a_full_workspace_can_be_emptied_and_written_to_again() {
    let ground = Ground::root(QUOTA);
    let full = ground.run(&[], FILL);
    assert_eq!(full["limit_hit"], "disk", "{full}");
    let more = ground.run(&[], "head -c 4M /dev/zero > more");
    assert_ne!(more["status"], "succeeded", "{more}");
    let emptied = ground.run(&[], "rm -f f* more; ls");
    assert_eq!(
        (&emptied["status"], &emptied["stdout"]),
        (&"succeeded".into(), &"".into())
    );
    let again = ground.run(&[], "head -c 4M /dev/zero > again && ls");
    assert_eq!(
        (&again["status"], &again["stdout"]),
        (&"succeeded".into(), &"again\n".into())
    );
    ground.trial.end();
}

/// Each is over before anybody looks; what they leave counts all the same.
#[test]
fn many_short_execs_do_not_pass_a_quota_that_a_long_one_cannot() {
    let ground = Ground::root(QUOTA);
    for number in 0..20 {
        ground.run(&[], &format!("head -c 4M /dev/zero > f{number}"));
    }
    let (bytes, _) = used(&ground.work());
    assert!(bytes <= 2 * BYTES, "{bytes} bytes");
    ground.trial.end();
}

/// Refused whole, whoever's template it is; what fits beside what is there goes in.
#[test]
fn a_seed_passes_no_quota() {
    let ground = Ground::root("[workspace]\nmax_bytes = \"128K\"\nmax_files = 16\n");
    let template = ground.trial.home().join("template");
    fs::create_dir(&template).unwrap();
    let from = template.display().to_string();
    let seed = ["workspace", "seed", "--from", &from];
    fs::write(template.join("small"), "small").unwrap();
    fs::write(template.join("large"), vec![b'x'; 1 << 20]).unwrap();
    ground.glovebox(&seed).assert_refused("disk_full");
    assert_eq!(used(&ground.work()), (0, 0));
    fs::write(template.join("large"), vec![b'x'; 100 << 10]).unwrap();
    ground.json(&seed);
    // What is there is not counted again.
    ground.json(&seed);
    for number in 0..20 {
        fs::write(template.join(format!("f{number}")), "").unwrap();
    }
    ground.glovebox(&seed).assert_refused("disk_full");
    assert_eq!(used(&ground.work()).1, 2);
    let quota =
        format!("[workspace]\nmax_bytes = \"128K\"\nmax_files = 16\ntemplate = \"{from}\"\n");
    fs::write(ground.config(), quota).unwrap();
    let anew = [
        "run",
        "--project",
        "anew",
        "--toolchain",
        "off",
        "--",
        "/bin/true",
    ];
    ground.glovebox(&anew).assert_refused("disk_full");
    ground.trial.end();
}

#[test]
fn an_undo_passes_no_quota() {
    const BEFORE: &str = "[workspace]\nsnapshot_before = \"safe\"\n";
    let ground = Ground::root(BEFORE);
    ground.run(&[], "head -c 4M /dev/zero > large");
    ground.run(&[], "rm large; echo small > small");
    fs::write(ground.config(), format!("{BEFORE}max_bytes = \"1M\"\n")).unwrap();
    let refused = ground.glovebox(&["workspace", "undo"]);
    refused.assert_refused("disk_full");
    assert!(!ground.work().join("large").exists());
    fs::write(ground.config(), format!("{BEFORE}max_bytes = \"8M\"\n")).unwrap();
    ground.json(&["workspace", "undo"]);
    assert_eq!(
        fs::metadata(ground.work().join("large")).unwrap().len(),
        4 << 20
    );
    ground.trial.end();
}

/// The quota is the workspace's: two who each stay below it do not pass it together.
#[test]
fn two_execs_of_one_workspace_share_its_quota() {
    let ground = Ground::root(QUOTA);
    let server = serve(&ground);
    let client = server.client();
    let line = |name: &str| {
        let fill = FILL.replace("f$i", &format!("{name}$i"));
        in_project("shared", &fill)
    };
    let both = [client.begin(&line("a")), client.begin(&line("b"))];
    for id in &both {
        let record = client.ended(id);
        assert_eq!(record["limit_hit"], "disk", "{record}");
    }
    let (bytes, _) = used(&ground.trial.state().join("projects/shared/work"));
    assert!(bytes <= BYTES_MOST, "{bytes} bytes");
    assert_eq!(server.stop(), 0);
    ground.trial.end();
}

/// Nobody is told that the kernel counts where only we do.
#[test]
fn the_kernels_count_of_a_directory_on_disk_is_refused_and_not_pretended() {
    let ground = Ground::root(QUOTA);
    let words = [
        "run",
        "--toolchain",
        "off",
        "--require",
        "disk_limit",
        "--",
        "/bin/sh",
        "-c",
        FILL,
    ];
    let refused = ground.glovebox(&words);
    assert_eq!(refused.code, 125, "{}{}", refused.stdout, refused.stderr);
    for said in ["disk_limit", "--hold", "--keep-if-ok"] {
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
    }
    assert_eq!(used(&ground.work()), (0, 0));
    ground.trial.end();
}
