//! The same probes in every backend, in two groups. What means the same everywhere (files, processes,
//! networks, sockets and secrets of the host) must be held in each. What asks the kernel itself is
//! judged where the kernel is the host's, by what that backend promises.

use std::collections::BTreeMap;

use serde_json::Value;
use support::{
    Caller, Column, Fixtures, Row, Trial, Verdict, beside_the_repository, bundle_rows,
    own_probe_in, parse_rows, python,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    /// Of the host, whatever stands between.
    Everywhere,
    /// A call or an interface of the kernel.
    Kernel,
}

/// Probes of other classes that ask the kernel, or the first process of the sandbox.
const OF_THE_KERNEL: &[&str] = &[
    "a-set-user-id-program",
    "ending-the-first-process",
    "handles-instead-of-names",
    "joining-other-namespaces",
    "looking-into-the-supervisor",
    "netlink-beyond-routes",
    "programs-that-could-be-overwritten",
    "raw-sockets",
    "robust-list-of-the-supervisor",
    "taking-their-mounts-apart",
    "tracing-the-supervisor",
    "uncommon-socket-families",
];

/// Of one of our own probes.
fn group_of(row: &Row) -> Group {
    match row.class.as_str() {
        "kernel" | "powers" | "mounts" | "namespaces" | "proc" | "devices" => Group::Kernel,
        _ if OF_THE_KERNEL.contains(&row.id.as_str()) => Group::Kernel,
        _ => Group::Everywhere,
    }
}

/// Probes that cross in a backend although nothing of the host is reached, each with the reason.
type Known = &'static [(&'static str, &'static str)];

const IMAGE: &str = "it is the image's own file, not the host's";
const NAME: &str = "the engine names the machine; the name is ours";
const OWN_INIT: &str = "the first process is the engine's init as the same user; it knows nothing";
const NO_USERS: &str =
    "an engine without remapped users has no users of its own; the record says so";
const INERT: &str = "no new privileges by any file: a set-user-id bit or a device is inert";

fn known(column: Column) -> Known {
    match column {
        Column::Native => &[],
        Column::Runc => RUNC,
        Column::Runsc => RUNSC,
    }
}

const RUNC: Known = &[
    ("identity-of-the-host", IMAGE),
    ("users-of-the-host", IMAGE),
    ("above-the-root", IMAGE),
    ("the-environment", NAME),
    ("looking-into-the-supervisor", OWN_INIT),
    ("robust-list-of-the-supervisor", OWN_INIT),
    ("P029", OWN_INIT),
    ("namespaces-of-the-host", NO_USERS),
    ("who-i-am-outside", NO_USERS),
    ("P004", NO_USERS),
    ("P042", NO_USERS),
    (
        "the-place-in-the-control-groups",
        "its own groups are shown, read-only",
    ),
    ("mounts-that-honour-set-user-id", INERT),
    ("mounts-that-honour-devices", INERT),
    ("set-user-id-files", INERT),
    ("a-set-user-id-program", INERT),
    (
        "a-device-node",
        "the kernel itself lets everybody make the node 0:0, which is nothing",
    ),
    ("devices", "a queue of the sandbox's own"),
    ("typing-into-a-terminal", "a terminal that it opened itself"),
    ("secrets-of-the-kernel", "names without addresses"),
    ("files-about-myself", "about its own processes"),
];

/// Only of the first group: the kernel that answers the second is gVisor's.
const RUNSC: Known = &[
    ("identity-of-the-host", IMAGE),
    ("users-of-the-host", IMAGE),
    ("above-the-root", IMAGE),
    ("the-environment", NAME),
    (
        "places-that-can-be-written",
        "`/run` is a memory file system of its own",
    ),
    (
        "standard-streams",
        "gVisor calls the pipes that it was given `host`",
    ),
];

/// Probes that a backend cannot answer, and why that is no hole.
const MAY_SKIP: Known = &[
    ("a-set-user-id-program", "there may be none"),
    (
        "a-signal-to-the-host",
        "the sentinel's pid may be one of ours inside",
    ),
    ("a-pidfd-of-the-host", "the same"),
    ("P055", "no terminal is there to type into"),
    (
        "every-way-to-change-a-read-only-file",
        "no file of the host is shown",
    ),
    (
        "ending-the-first-process",
        "gVisor lets a program end its own sandbox",
    ),
    ("message-queues-of-the-host", "gVisor has no such list"),
];

/// Prints every probe with its group, and fails for each that crosses without a reason.
fn judge(column: Column, rows: &[Row], group: impl Fn(&Row) -> Group) {
    let mut broken = Vec::new();
    let mut reasons: BTreeMap<&str, &str> = known(column).iter().copied().collect();
    println!("{:<38} {:<11} {column}", "probe", "group");
    for row in rows {
        let group = group(row);
        let reason = reasons.remove(row.id.as_str());
        let judged = match (row.verdict, group, column) {
            (Verdict::Held | Verdict::Noted, ..) => "held".to_owned(),
            (Verdict::Skipped, ..) => match MAY_SKIP.iter().find(|(id, _)| *id == row.id) {
                Some((_, reason)) => format!("-  {reason}"),
                None if group == Group::Kernel && column == Column::Runsc => {
                    format!("-  not in gVisor's kernel: {}", row.detail)
                }
                None => {
                    broken.push(row);
                    format!("SKIPPED without a reason: {}", row.detail)
                }
            },
            (Verdict::Crossed, Group::Kernel, Column::Runsc) => {
                format!("gVisor's kernel allows it: {}", row.detail)
            }
            (Verdict::Crossed, ..) => match reason {
                Some(reason) => format!("crossed: {reason}"),
                None => {
                    broken.push(row);
                    format!("CROSSED: {}", row.detail)
                }
            },
        };
        let shown: String = judged.chars().take(150).collect();
        println!("{:<38} {:<11} {shown}", row.id, format!("{group:?}"));
    }
    assert!(broken.is_empty(), "{column}: {broken:#?}");
}

fn own(column: Column) {
    if !column.is_here() {
        return;
    }
    let trial = Trial::new(Caller::Root).unwrap();
    let mut fixtures = Fixtures::new(&trial);
    let rows = own_probe_in(column, &trial, &fixtures);
    fixtures.assert_untouched(Caller::Root);
    assert!(rows.len() > 90, "only {} probes ran", rows.len());
    judge(column, &rows, group_of);
    drop(fixtures);
    column.assert_no_container(&trial);
    trial.end();
}

/// The corpus says itself which of its probes are about a kernel that is shared.
fn scopes() -> BTreeMap<String, Group> {
    let file = beside_the_repository("shared/corpora/probes.jsonl");
    let text = file.and_then(|file| std::fs::read_to_string(file).ok());
    let text = text.unwrap_or_default();
    let rows = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    rows.filter_map(|row| {
        let group = match row["scope"].as_str()? {
            "K" => Group::Kernel,
            _ => Group::Everywhere,
        };
        Some((row["id"].as_str()?.to_owned(), group))
    })
    .collect()
}

fn corpus(column: Column) {
    let Some(bundle) = bundle_rows().filter(|_| column.is_here()) else {
        println!("no corpus beside the repository; our own probes stand alone");
        return;
    };
    let trial = Trial::new(Caller::Root).unwrap();
    let mut fixtures = Fixtures::new(&trial);
    trial.put("bundle.py", &bundle);
    let mut command = vec!["/usr/bin/env".to_owned()];
    command.extend(fixtures.corpus_environment(&trial, "/workspace/work"));
    command.extend([python(), "bundle.py"].map(str::to_owned));
    // gVisor's own threads count, so its limit is no measure; the heavy ones are the native's.
    let limits: &[&str] = match column {
        Column::Runsc => &["--pids", "2048", "--memory", "1G", "--timeout", "180s"],
        Column::Native | Column::Runc => {
            command.push("--heavy".to_owned());
            &[
                "--pids",
                "64",
                "--memory",
                "256M",
                "--disk",
                "96M",
                "--open-files",
                "1024",
                "--timeout",
                "180s",
            ]
        }
    };
    let run = column.dress(trial.run(command)).with(limits);
    let output = run.outside("HOST_ENVIRONMENT", &fixtures.secret).plain();
    let rows = parse_rows(&output.stdout);
    fixtures.assert_untouched(Caller::Root);
    assert!(
        rows.len() > 40,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let scopes = scopes();
    judge(column, &rows, |row| {
        scopes.get(&row.id).copied().unwrap_or(Group::Everywhere)
    });
    drop(fixtures);
    column.assert_no_container(&trial);
    trial.end();
}

#[test]
fn our_probes_are_held_in_containers_of_runc() {
    own(Column::Runc);
}

#[test]
fn our_probes_are_held_in_containers_of_gvisor() {
    own(Column::Runsc);
}

#[test]
fn the_corpus_is_held_in_containers_of_runc() {
    corpus(Column::Runc);
}

#[test]
fn the_corpus_is_held_in_containers_of_gvisor() {
    corpus(Column::Runsc);
}
